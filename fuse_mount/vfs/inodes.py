"""Files and directories as the mount holds them.

There is one object an inode, alive while it has a name, an open handle or a lookup count of the
kernel. The classes have slots and share what they can: a store may hold 100,000 of them.
"""

from __future__ import annotations

import stat
from typing import TypeAlias

from fuse_mount.vfs.buffer import Buffer

FILE_MODE = stat.S_IFREG | 0o644
FILE_MODE_READ_ONLY = stat.S_IFREG | 0o444
DIR_MODE = stat.S_IFDIR | 0o755
DIR_MODE_READ_ONLY = stat.S_IFDIR | 0o555


RECALLED = 1 << 40
"""The least lookup count of a node that the kernel knows from a process before this one. How often
is not remembered, nor who has it open."""


class _Node:
    """What files and directories share; `parent` is None when it has no name (any more).

    `cookie` places the entry in its directory's listing. `nlookup` counts the kernel's references.
    """

    __slots__ = (
        "atime_ns",
        "cookie",
        "ctime_ns",
        "gid",
        "ino",
        "mode",
        "mtime_ns",
        "name",
        "nlink",
        "nlookup",
        "parent",
        "size",
        "st_ino",
        "uid",
    )

    def __init__(self, ino: int, mode: int, uid: int, gid: int, time_ns: int) -> None:
        self.ino = self.st_ino = ino
        self.mode, self.uid, self.gid = mode, uid, gid
        self.atime_ns = self.mtime_ns = self.ctime_ns = time_ns
        self.nlink, self.size, self.nlookup, self.cookie = 1, 0, 0, 0
        self.parent: Dir | None = None
        self.name = ""

    def touch(self, time_ns: int) -> None:
        """The content changed: a strictly later mtime, in steps of a microsecond."""
        self.mtime_ns = max(time_ns, self.mtime_ns + 1000)
        self.atime_ns = self.ctime_ns = self.mtime_ns


class File(_Node):
    """A file.

    `memory_id` is "" while the store does not know it. `version_id`, `sha`, `stored` (size in
    bytes) and `text` speak of the newest version known here; `text` is None when not in memory.
    `buffer` holds local changes; readers see it before `text`.

    `local`: never reaches the store. `away`: the path the server still knows it by, while a
    rename to a temporary name is held back. `lost_path`: where it was when someone else deleted
    it while it was open. `born`: the count of remote changes when it was created here.
    `previous`: the text before a remote change that the kernel has not been told of yet.
    """

    __slots__ = (
        "away",
        "born",
        "buffer",
        "local",
        "lost_path",
        "memory_id",
        "opens",
        "previous",
        "sha",
        "stored",
        "text",
        "updated_us",
        "version_id",
        "writers",
    )

    def __init__(self, ino: int, mode: int, uid: int, gid: int, time_ns: int) -> None:
        super().__init__(ino, mode, uid, gid, time_ns)
        self.memory_id = self.version_id = self.sha = self.away = self.lost_path = ""
        self.text: bytes | None = None
        self.previous: bytes | None = None
        self.buffer: Buffer | None = None
        self.opens = self.writers = self.stored = self.updated_us = self.born = 0
        self.local = False

    @property
    def visible(self) -> bytes | bytearray | None:
        """What a reader sees, None when it has to be fetched."""
        return self.text if self.buffer is None else self.buffer.data


class Dir(_Node):
    """A directory. `kept`: it stays in this mount though no memory is below it."""

    __slots__ = ("children", "kept", "listing", "next_cookie")

    def __init__(self, ino: int, mode: int, uid: int, gid: int, time_ns: int) -> None:
        super().__init__(ino, mode, uid, gid, time_ns)
        self.nlink = 2
        self.children: dict[str, File | Dir] = {}
        self.kept = False
        self.listing: list[tuple[int, str, File | Dir]] | None = None
        self.next_cookie = FIRST_COOKIE


FIRST_COOKIE = 3
"""1 and 2 are the cookies of `.` and `..`."""

Entry: TypeAlias = File | Dir
