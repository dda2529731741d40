"""A small file system in memory behind the binding's contract: the kernel layer's test double.

It has no store, no feed and no rules; a test sets `gate` to make reads of a file wait.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from fuse_mount.vfs.interface import (
    AttrChange,
    Later,
    OpenFile,
    Requester,
    Timeouts,
    Usage,
)


@dataclass
class MemoryNode:
    """A file or directory."""

    ino: int
    mode: int
    st_ino: int = 0
    uid: int = 0
    gid: int = 0
    nlink: int = 1
    data: bytearray = field(default_factory=bytearray)
    children: dict[str, MemoryNode] = field(default_factory=dict)
    atime_ns: int = 0
    mtime_ns: int = 0
    ctime_ns: int = 0

    @property
    def size(self) -> int:
        """Bytes of text."""
        return len(self.data)


class MemoryFilesystem:
    """Implements `fuse_mount.vfs.interface.Filesystem`."""

    def __init__(self, *, read_only: bool = False, timeouts: Timeouts | None = None) -> None:
        self.read_only = read_only
        self.root = MemoryNode(1, stat.S_IFDIR | 0o755, st_ino=1)
        self.nodes = {1: self.root}
        self.lookups: dict[int, int] = {}
        self.gate: dict[str, threading.Event] = {}
        self.committed: list[str] = []
        self._timeouts = timeouts or Timeouts(3600.0, 3600.0, 3600.0)
        self._inos = itertools.count(2)
        self._handles = itertools.count(1)
        self._open: dict[int, MemoryNode] = {}

    def put(self, path: str, data: bytes) -> MemoryNode:
        """Make or change a file, with its directories."""
        *folders, name = path.strip("/").split("/")
        node = self.root
        for folder in folders:
            node = node.children.get(folder) or self._make(node, folder, stat.S_IFDIR | 0o755)
        file = node.children.get(name) or self._make(node, name, stat.S_IFREG | 0o644)
        file.data = bytearray(data)
        file.mtime_ns = time.time_ns()
        return file

    def _make(self, parent: MemoryNode, name: str, mode: int) -> MemoryNode:
        node = MemoryNode(next(self._inos), mode, mtime_ns=time.time_ns())
        node.st_ino = node.ino
        node.uid, node.gid = os.geteuid(), os.getegid()
        parent.children[name] = node
        self.nodes[node.ino] = node
        return node

    def _child(self, parent: int, name: str) -> MemoryNode:
        try:
            return self.nodes[parent].children[name]
        except KeyError:
            raise OSError(errno.ENOENT, name) from None

    def start(self) -> None:
        """Nothing to load."""

    def stop(self) -> None:
        """Nothing to end."""

    def known_before(self) -> Iterator[tuple[int, int, str]]:
        """Nothing: the mount is new."""
        return iter(())

    def timeouts(self) -> Timeouts:
        """As given."""
        return self._timeouts

    def lookup(self, parent: int, name: str) -> MemoryNode:
        """The child."""
        node = self._child(parent, name)
        self.looked_up(node.ino)
        return node

    def forget(self, ino: int, nlookup: int) -> None:
        """Count down."""
        self.lookups[ino] = self.lookups.get(ino, 0) - nlookup

    def looked_up(self, ino: int) -> None:
        """Count up."""
        self.lookups[ino] = self.lookups.get(ino, 0) + 1

    def getattr(self, ino: int) -> MemoryNode:
        """The node."""
        return self.nodes[ino]

    def setattr(self, ino: int, change: AttrChange, who: Requester) -> MemoryNode:
        """Size, mode and mtime."""
        node = self.nodes[ino]
        if change.size is not None:
            node.data = node.data[: change.size].ljust(change.size, b"\0")
        if change.mode is not None:
            node.mode = stat.S_IFMT(node.mode) | stat.S_IMODE(change.mode)
        if change.mtime_ns is not None:
            node.mtime_ns = change.mtime_ns
        return node

    def opendir(self, ino: int) -> int:
        """A handle."""
        handle = next(self._handles)
        self._open[handle] = self.nodes[ino]
        return handle

    def readdir(self, handle: int, offset: int) -> Iterator[tuple[str, MemoryNode, int]]:
        """Entries by inode number."""
        node = self._open[handle]
        entries = [(".", node, 1), ("..", node, 2)]
        entries += [(name, child, child.ino + 2) for name, child in node.children.items()]
        return iter([entry for entry in entries if entry[2] > offset])

    def releasedir(self, handle: int) -> None:
        """Forget the handle."""
        del self._open[handle]

    def open(self, ino: int, flags: int, who: Requester) -> OpenFile:
        """A handle; O_TRUNC empties."""
        node = self.nodes[ino]
        if flags & os.O_TRUNC:
            node.data = bytearray()
        handle = next(self._handles)
        self._open[handle] = node
        return OpenFile(handle, True, flags & os.O_ACCMODE == os.O_RDONLY)

    def create(
        self, parent: int, name: str, mode: int, flags: int, who: Requester
    ) -> tuple[MemoryNode, OpenFile]:
        """A new file, opened."""
        node = self._make(self.nodes[parent], name, stat.S_IFREG | stat.S_IMODE(mode))
        self.looked_up(node.ino)
        return node, self.open(node.ino, flags, who)

    def read(self, handle: int, offset: int, size: int) -> bytes | Later[bytes]:
        """Bytes, after the file's gate opens."""
        node = self._open[handle]
        name = next((name for name in self.gate if self.root.children.get(name) is node), None)
        if name is None:
            return bytes(node.data[offset : offset + size])
        gate = self.gate[name]

        def wait() -> bytes:
            gate.wait()
            return bytes(node.data[offset : offset + size])

        return Later(wait)

    def write(self, handle: int, offset: int, data: bytes, *, placed: bool = False) -> int:
        """Into the text."""
        node = self._open[handle]
        node.data = node.data.ljust(offset, b"\0")
        node.data[offset : offset + len(data)] = data
        return len(data)

    def flush(self, handle: int) -> Later[None] | None:
        """Nothing to commit."""
        return None

    fsync = flush

    def release(self, handle: int) -> Later[None] | None:
        """Forget the handle."""
        del self._open[handle]
        return None

    def unlink(self, parent: int, name: str) -> None:
        """Remove the name."""
        self._child(parent, name)
        del self.nodes[parent].children[name]

    def mkdir(self, parent: int, name: str, mode: int, who: Requester) -> MemoryNode:
        """A new directory."""
        if name in self.nodes[parent].children:
            raise OSError(errno.EEXIST, name)
        node = self._make(self.nodes[parent], name, stat.S_IFDIR | stat.S_IMODE(mode))
        self.looked_up(node.ino)
        return node

    def rmdir(self, parent: int, name: str) -> None:
        """Remove an empty directory."""
        if self._child(parent, name).children:
            raise OSError(errno.ENOTEMPTY, name)
        del self.nodes[parent].children[name]

    def rename(self, parent: int, name: str, new_parent: int, new_name: str, flags: int) -> None:
        """Move."""
        node = self._child(parent, name)
        del self.nodes[parent].children[name]
        self.nodes[new_parent].children[new_name] = node

    def refuse_special(self, parent: int, name: str) -> int:
        """EPERM."""
        return errno.EPERM

    def getxattr(self, ino: int, name: str) -> bytes:
        """One attribute, for the test of it."""
        if name == "user.memstore.id":
            return b"mem_%d" % ino
        raise OSError(errno.ENODATA, name)

    def listxattr(self, ino: int) -> list[str]:
        """One name."""
        return ["user.memstore.id"]

    def statfs(self) -> Usage:
        """Fixed caps."""
        return Usage(4096, 1000, 900, 100, 90, 255)

    def drain(self, deadline_s: float) -> list[str]:
        """Nothing is dirty."""
        return []
