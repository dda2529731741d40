"""Names to nodes: the directories that paths imply, and the local ones.

Every method needs the vfs lock. The tree changes names only; what a change means for the store
and what the kernel must forget is decided by its callers.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from dataclasses import dataclass

from fuse_mount.vfs.inodes import FIRST_COOKIE, Dir, Entry, File
from fuse_mount.vfs.interface import ROOT_INO
from fuse_mount.vfs.journal import Journal
from fuse_mount.vfs.names import refusal


@dataclass(frozen=True, slots=True)
class Away:
    """A memory whose rename to a temporary name is held back, and its text at that moment."""

    file: File
    text: bytes
    sha: str


class Tree:
    """The nodes of one mount."""

    def __init__(self, *, uid: int, gid: int, dir_mode: int, file_mode: int, time_ns: int) -> None:
        self._uid, self._gid = uid, gid
        self._dir_mode, self._file_mode = dir_mode, file_mode
        self.last_ino = ROOT_INO
        self.journal: Journal | None = None
        self.root = Dir(ROOT_INO, dir_mode, uid, gid, time_ns)
        self.root.nlookup = 1
        self.root.kept = True
        self.nodes: dict[int, Entry] = {ROOT_INO: self.root}
        self.memories: dict[str, File] = {}
        self.away: dict[str, Away] = {}

    # Making and freeing nodes

    def new_file(self, time_ns: int, ino: int = 0) -> File:
        """A file without a name; `ino` is a number it had before."""
        file = File(ino or self._next_ino(), self._file_mode, self._uid, self._gid, time_ns)
        self.nodes[file.ino] = file
        return file

    def new_dir(self, time_ns: int, ino: int = 0) -> Dir:
        """A directory without a name; `ino` is a number it had before."""
        made = Dir(ino or self._next_ino(), self._dir_mode, self._uid, self._gid, time_ns)
        self.nodes[made.ino] = made
        return made

    def _next_ino(self) -> int:
        self.last_ino += 1
        return self.last_ino

    def free(self, node: Entry) -> None:
        """Drop a node nobody can reach: no name, no handle, no lookup count."""
        if node.parent is None and node.nlookup <= 0 and node is not self.root:
            if isinstance(node, File) and node.opens:
                return
            self.nodes.pop(node.ino, None)

    # Names

    def attach(self, parent: Dir, name: str, node: Entry) -> None:
        """Give a node a name that is free."""
        node.parent, node.name = parent, name
        node.cookie = parent.next_cookie
        parent.next_cookie += 1
        parent.children[name] = node
        parent.listing = None
        if isinstance(node, Dir):
            parent.nlink += 1
        if self.journal is not None:
            self.journal.node(node)

    def detach(self, node: Entry) -> None:
        """Take a node's name away; the node itself lives on while something holds it."""
        parent = node.parent
        if parent is None:
            return
        if parent.children.get(node.name) is node:
            del parent.children[node.name]
            parent.listing = None
            if isinstance(node, Dir):
                parent.nlink -= 1
        node.parent = None
        if self.journal is not None:
            self.journal.detached(node.ino)

    def path_of(self, node: Entry) -> str:
        """The store path of a named node; the root is ""."""
        parts: list[str] = []
        at: Entry = node
        while at.parent is not None:
            parts.append(at.name)
            at = at.parent
        parts.append("")
        return "/".join(reversed(parts))

    def is_attached(self, node: Entry) -> bool:
        """Whether the node can be reached from the root."""
        at: Entry = node
        while at.parent is not None:
            at = at.parent
        return at is self.root

    def find(self, path: str) -> Entry | None:
        """The node at a store path."""
        at: Entry | None = self.root
        for segment in path[1:].split("/"):
            if not isinstance(at, Dir):
                return None
            at = at.children.get(segment)
        return at

    def directory(self, ino: int) -> Dir:
        """The directory of that number; ENOTDIR for a file, ESTALE for an unknown one."""
        node = self.nodes.get(ino)
        if isinstance(node, Dir):
            return node
        raise refusal(errno.ESTALE if node is None else errno.ENOTDIR)

    def file(self, ino: int) -> File:
        """The file of that number; EISDIR for a directory, ESTALE for an unknown one."""
        node = self.nodes.get(ino)
        if isinstance(node, File):
            return node
        raise refusal(errno.ESTALE if node is None else errno.EISDIR)

    def node(self, ino: int) -> Entry:
        """The node of that number; ESTALE for an unknown one."""
        node = self.nodes.get(ino)
        if node is None:
            raise refusal(errno.ESTALE)
        return node

    # Listings

    def entries(self, where: Dir, after: int) -> Iterator[tuple[str, Entry, int]]:
        """Entries after a cookie with their own cookies, `.` and `..` first; iterate unlocked.

        A name keeps its cookie while it stays, so whatever is there during a whole scan is seen
        exactly once, whatever comes and goes.
        """
        listing = where.listing
        if listing is None:
            listing = [(child.cookie, name, child) for name, child in where.children.items()]
            where.listing = listing
        return _entries(where, where.parent or where, listing, after)

    def files_below(self, where: Dir) -> list[File]:
        """Every file under a directory."""
        found: list[File] = []
        waiting = [where]
        while waiting:
            for child in waiting.pop().children.values():
                if isinstance(child, Dir):
                    waiting.append(child)
                else:
                    found.append(child)
        return found


def _entries(
    where: Dir, above: Dir, listing: list[tuple[int, str, Entry]], after: int
) -> Iterator[tuple[str, Entry, int]]:
    if after < 1:
        yield ".", where, 1
    if after < 2:
        yield "..", above, 2
    for at in range(_first_after(listing, after), len(listing)):
        cookie, name, child = listing[at]
        yield name, child, cookie


def _first_after(listing: list[tuple[int, str, Entry]], cookie: int) -> int:
    """The index of the first entry whose cookie is greater; cookies rise along the listing."""
    if cookie < FIRST_COOKIE:
        return 0
    low, high = 0, len(listing)
    while low < high:
        middle = (low + high) // 2
        if listing[middle][0] <= cookie:
            low = middle + 1
        else:
            high = middle
    return low
