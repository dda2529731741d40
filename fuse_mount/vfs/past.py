"""What `.versions` shows: every version that ever was, by every path its memory ever had.

Kept in memory once it was entered: what a version is, not its text. All methods need the lock of
`fuse_mount.vfs.history`; `changed` and `renamed` are told what the kernel must forget.
"""

from __future__ import annotations

import hashlib
import stat
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath

from fuse_mount.vfs.inodes import FIRST_COOKIE
from fuse_mount.vfs.names import representable
from memstore.model import limits
from memstore.model.actors import Actor
from memstore.model.clock import rfc3339_us, to_us
from memstore.model.events import Event
from memstore.model.versions import OPERATIONS, Version

FIRST_PAST_INO = 1 << 52
"""Inode numbers and handles from here on are the past's; the tree's own are small."""

_FILE_MODE = stat.S_IFREG | 0o444
_REDACTED_MODE = stat.S_IFREG
_DIR_MODE = stat.S_IFDIR | 0o555


@dataclass(slots=True)
class Moment:
    """One version. `path` is None once redacted."""

    id: str
    memory_id: str
    path: str | None
    operation: str
    size: int
    sha256: str
    created_us: int
    author: Actor | None
    redacted: bool


def of_version(version: Version) -> Moment:
    """A version of a listing."""
    return Moment(
        version.id,
        version.memory_id,
        version.path,
        version.operation,
        version.content_size_bytes or 0,
        version.content_sha256 or "",
        to_us(version.created_at),
        version.created_by,
        version.redacted_at is not None,
    )


def of_event(event: Event) -> Moment | None:
    """The version that a `memory.*` event tells of."""
    operation = event.kind.removeprefix("memory.")
    if operation not in OPERATIONS or not event.memory_id or not event.version_id:
        return None
    return Moment(
        event.version_id,
        event.memory_id,
        event.path,
        operation,
        event.content_size_bytes or 0,
        event.content_sha256 or "",
        to_us(event.created_at),
        event.created_by,
        event.path is None,
    )


class PastNode:
    """A directory or file of the past, as `fuse_mount.vfs.interface.Node` asks."""

    __slots__ = (
        "atime_ns",
        "cookie",
        "ctime_ns",
        "gid",
        "ino",
        "mode",
        "mtime_ns",
        "nlink",
        "size",
        "st_ino",
        "uid",
    )

    def __init__(self, ino: int, mode: int, uid: int, gid: int, time_ns: int) -> None:
        self.ino = self.st_ino = ino
        self.mode, self.uid, self.gid = mode, uid, gid
        self.atime_ns = self.mtime_ns = self.ctime_ns = time_ns
        self.nlink, self.size, self.cookie = 1, 0, 0


class PastFile(PastNode):
    """One version, in one directory."""

    __slots__ = ("moment",)

    def __init__(self, ino: int, uid: int, gid: int, moment: Moment) -> None:
        super().__init__(ino, _FILE_MODE, uid, gid, moment.created_us * 1000)
        self.moment = moment
        self.refresh()

    def refresh(self) -> None:
        """Mode and size as the version has them now."""
        redacted = self.moment.redacted
        self.mode = _REDACTED_MODE if redacted else _FILE_MODE
        self.size = 0 if redacted else self.moment.size


class PastDir(PastNode):
    """A path that is or was a memory's, or a directory of such paths, or both.

    `memories` are those that ever were at the path. Its files are made when it is first entered.
    """

    __slots__ = ("_listing", "entries", "filled", "memories", "name", "next_cookie", "parent")

    def __init__(
        self, ino: int, uid: int, gid: int, parent: PastDir | None, name: str, time_ns: int
    ) -> None:
        super().__init__(ino, _DIR_MODE, uid, gid, time_ns)
        self.nlink, self.parent, self.name = 2, parent, name
        self.entries: dict[str, PastNode] = {}
        self.memories: dict[str, None] = {}
        self.filled = False
        self.next_cookie = FIRST_COOKIE
        self._listing: tuple[list[int], list[tuple[str, PastNode]]] | None = None

    def add(self, name: str, node: PastNode) -> None:
        """Give a node its name; a directory called like a version gives way."""
        there = self.entries.get(name)
        if isinstance(there, PastFile) and isinstance(node, PastDir):
            return
        node.cookie = self.next_cookie
        self.next_cookie += 1
        self.entries.pop(name, None)
        self.entries[name] = node
        self.nlink += isinstance(node, PastDir) - isinstance(there, PastDir)
        self.mtime_ns = self.ctime_ns = max(self.mtime_ns, node.mtime_ns)
        self._listing = None

    def remove(self, name: str) -> None:
        """Take a name away."""
        self.nlink -= isinstance(self.entries.pop(name), PastDir)
        self._listing = None

    def after(self, cookie: int) -> Iterator[tuple[str, PastNode, int]]:
        """Entries after a cookie, in the order in which they came, which is that of their times."""
        if self._listing is None:
            self._listing = (
                [node.cookie for node in self.entries.values()],
                list(self.entries.items()),
            )
        cookies, entries = self._listing
        for at in range(bisect_right(cookies, cookie), len(cookies)):
            name, node = entries[at]
            yield name, node, cookies[at]


class Past:
    """The tree below `.versions`."""

    def __init__(
        self,
        *,
        uid: int,
        gid: int,
        changed: Callable[[int], None],
        renamed: Callable[[int, str], None],
    ) -> None:
        self._uid, self._gid = uid, gid
        self._changed, self._renamed = changed, renamed
        self.nodes: dict[int, PastNode] = {}
        self.moments: dict[str, Moment] = {}
        self._lineages: dict[str, list[Moment]] = {}
        self._homes: dict[str, dict[str, PastDir]] = {}
        self._redacted: set[str] = set()
        self.root = self._directory(None, "", 0)

    # Nodes

    def _number(self, key: str) -> int:
        """An inode number that is the same in every process that serves this mount."""
        digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=6).digest()
        number = FIRST_PAST_INO | int.from_bytes(digest)
        while number in self.nodes:
            number += 1
        return number

    def _directory(self, parent: PastDir | None, path: str, time_ns: int) -> PastDir:
        name = path.rpartition("/")[2]
        made = PastDir(self._number(path), self._uid, self._gid, parent, name, time_ns)
        self.nodes[made.ino] = made
        return made

    def path_of(self, directory: PastDir) -> str:
        """The store path that a directory stands for; the root's is ""."""
        parts: list[str] = []
        at: PastDir = directory
        while at.parent is not None:
            parts.append(at.name)
            at = at.parent
        return "".join(f"/{part}" for part in reversed(parts))

    def fill(self, directory: PastDir) -> None:
        """Make the files of a directory, when it is entered."""
        if directory.filled:
            return
        directory.filled = True
        found = [m for id in directory.memories for m in self._lineages[id]]
        for moment in sorted(found, key=lambda moment: (moment.created_us, moment.id)):
            self._show(directory, moment)

    def _show(self, directory: PastDir, moment: Moment) -> None:
        number = self._number(f"{self.path_of(directory)}\0{moment.id}")
        file = PastFile(number, self._uid, self._gid, moment)
        self.nodes[number] = file
        directory.add(file_name(directory.name, moment), file)

    # What happened

    def add(self, moment: Moment) -> None:
        """One more version; one that is known is not added again, but may be redacted by now."""
        known = self.moments.get(moment.id)
        if known is not None:
            if moment.redacted:
                self.redact(moment.id)
            return
        if moment.id in self._redacted:
            moment.redacted, moment.path = True, None
        self.moments[moment.id] = moment
        self._lineages.setdefault(moment.memory_id, []).append(moment)
        homes = self._homes.setdefault(moment.memory_id, {})
        for directory in homes.values():
            if directory.filled:
                self._show(directory, moment)
                self._changed(directory.ino)
        if moment.path is not None and moment.path not in homes and representable(moment.path):
            homes[moment.path] = self._settle(moment)

    def _settle(self, moment: Moment) -> PastDir:
        """The directory of a path, made when missing, with all of a memory's versions in it."""
        assert moment.path is not None
        at, path = self.root, ""
        for segment in moment.path[1:].split("/"):
            path = f"{path}/{segment}"
            child = at.entries.get(segment)
            if not isinstance(child, PastDir):
                child = self._directory(at, path, moment.created_us * 1000)
                at.add(segment, child)
                self._renamed(at.ino, segment)
                self._changed(at.ino)
            at = child
        at.memories[moment.memory_id] = None
        if at.filled:
            for one in self._lineages[moment.memory_id]:
                self._show(at, one)
            self._changed(at.ino)
        return at

    def redact(self, id: str) -> None:
        """A version says nothing any more; a path that only it told is gone with it."""
        self._redacted.add(id)
        moment = self.moments.get(id)
        if moment is None or moment.redacted:
            return
        path, moment.path, moment.redacted = moment.path, None, True
        homes = self._homes[moment.memory_id]
        for directory in homes.values():
            file = directory.entries.get(file_name(directory.name, moment))
            if isinstance(file, PastFile):
                file.refresh()
                self._changed(file.ino)
        told = any(other.path == path for other in self._lineages[moment.memory_id])
        if path in homes and not told:
            self._leave(homes.pop(path), moment.memory_id)

    def _leave(self, directory: PastDir, memory_id: str) -> None:
        """Nothing says any more that a memory was ever at this path."""
        directory.memories.pop(memory_id, None)
        for name, node in list(directory.entries.items()):
            if isinstance(node, PastFile) and node.moment.memory_id == memory_id:
                directory.remove(name)
                del self.nodes[node.ino]
                self._renamed(directory.ino, name)
        self._changed(directory.ino)
        while directory.parent is not None and not (directory.entries or directory.memories):
            above, name = directory.parent, directory.name
            if above.entries.get(name) is directory:
                above.remove(name)
            del self.nodes[directory.ino]
            self._renamed(above.ino, name)
            self._changed(above.ino)
            directory = above

    def clear(self) -> None:
        """The store is gone, and its past with it."""
        for node in self.nodes.values():
            self._changed(node.ino)
        for name in self.root.entries:
            self._renamed(self.root.ino, name)
        self.moments.clear()
        self._lineages.clear()
        self._homes.clear()
        self.root.memories.clear()
        for name in list(self.root.entries):
            self.root.remove(name)
        self.nodes = {self.root.ino: self.root}


def file_name(of: str, moment: Moment) -> str:
    """`<time>.<version id><extension>`, of a version of the memory at a path that ends so."""
    name = f"{rfc3339_us(moment.created_us)}.{moment.id}"
    extension = PurePosixPath(of).suffix
    fits = len(f"{name}{extension}".encode()) <= limits.SEGMENT_BYTES
    return f"{name}{extension}" if fits else name
