"""What a binding (the Linux kernel loop, fusepy, a plain test) may ask of a mounted store.

A binding translates: bytes to names, `Node` to its own stat structure, `OSError.errno` to its
own refusal. It decides nothing about files. The vfs knows no kernel: it answers these calls and
tells a `Notifier` what the kernel must forget.

Answering now or later. Every operation returns its answer at once when it can be given from
memory, or a `Later`: the part that may block (a commit, a fetch), to be run on any thread; its
`run` returns the answer or raises OSError. A binding with one loop runs it on a worker and
replies when it is done, so that slow requests never hold up fast ones; a binding with a thread
a request runs it in place (`now`). Operations themselves never block and may be called from one
or several threads.

Refusals are OSError with an errno of `filesystem.md`; anything else is a bug and becomes EIO.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

ROOT_INO = 1
"""The root's inode number; the kernel's FUSE_ROOT_ID."""

Answer = TypeVar("Answer")
_Now = TypeVar("_Now")


class Later(Generic[Answer]):
    """The blocking rest of an operation. Run it exactly once."""

    __slots__ = ("run",)

    def __init__(self, run: Callable[[], Answer]) -> None:
        self.run = run


def now(answer: _Now | Later[_Now]) -> _Now:
    """The answer itself, running the blocking rest here when there is one."""
    return answer.run() if isinstance(answer, Later) else answer


class Node(Protocol):
    """A file or directory as a binding sees it; a live object, read its fields when replying.

    `ino` is the node's address in every call here (the kernel's node id) and never changes.
    `st_ino` is the inode number users see: it belongs to the memory, so it moves to another node
    when a file is renamed onto a memory, whose lineage goes on under the new node. Times are
    nanoseconds since 1970. `mode` holds type and permission bits (stat.S_IFREG...).
    """

    ino: int
    st_ino: int
    mode: int
    uid: int
    gid: int
    nlink: int
    size: int
    atime_ns: int
    mtime_ns: int
    ctime_ns: int


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long, in seconds, the kernel may believe an entry, an attribute, a missing name."""

    entry: float
    attr: float
    negative: float


class OpenFile(NamedTuple):
    """An open's answer. `keep_cache`: pages the kernel holds of this inode are still right.

    `noflush`: a handle that cannot write, whose close needs no flush.
    """

    handle: int
    keep_cache: bool
    noflush: bool


@dataclass(frozen=True, slots=True)
class Usage:
    """statfs: the store's caps and what is left. Blocks are of `block_size` bytes."""

    block_size: int
    blocks: int
    blocks_free: int
    files: int
    files_free: int
    name_max: int


@dataclass(frozen=True, slots=True)
class AttrChange:
    """setattr: None leaves a field. Times are absolute; the binding resolves "now" itself."""

    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    size: int | None = None
    atime_ns: int | None = None
    mtime_ns: int | None = None
    handle: int | None = None


@dataclass(frozen=True, slots=True)
class Requester:
    """Who asks: credentials of the calling process, for permission decisions."""

    uid: int
    gid: int
    pid: int


class Notifier(Protocol):
    """What the kernel must forget. Called from the feed's thread and from workers, never from
    inside an operation, and never with a vfs lock held that an operation may wait for."""

    def inval_inode(self, ino: int) -> None:
        """Forget the attributes and all cached pages (for a directory: its cached listing).

        Returns when that is done; it may wait for a page that is being read.
        """
        ...

    def inval_entry(self, parent: int, name: str) -> None:
        """Forget a name in a directory, present or missing; soon, without waiting for it."""
        ...

    def deleted(self, parent: int, ino: int, name: str) -> None:
        """A name is gone and its inode with it; watchers of the file are told (inotify)."""
        ...


class Filesystem(Protocol):
    """The operations. Names are str, already decoded from UTF-8 (surrogateescape when not)."""

    read_only: bool

    def start(self) -> None:
        """Load the tree and connect the change feed; returns when the first listing is served.

        Raises a refusal of `memstore.model.errors` when the store cannot be loaded.
        """
        ...

    def stop(self) -> None:
        """End the threads; call `drain` first. Safe to call twice."""
        ...

    def known_before(self) -> Iterator[tuple[int, int, str]]:
        """What the kernel may remember from an earlier driver of the same mount: node, parent (0:
        none) and name. Nothing on a mount of our own."""
        ...

    def timeouts(self) -> Timeouts:
        """In force now: long while the change feed is connected, 1 s otherwise."""
        ...

    def lookup(self, parent: int, name: str) -> Node | Later[Node]:
        """The child of that name, or ENOENT; a lookup count is taken on success."""
        ...

    def forget(self, ino: int, nlookup: int) -> None:
        """Give back lookup counts; never raises."""
        ...

    def getattr(self, ino: int) -> Node | Later[Node]:
        """The node, its dirty size included."""
        ...

    def setattr(self, ino: int, change: AttrChange, who: Requester) -> Node | Later[Node]:
        """Truncate, chmod, chown, utimens."""
        ...

    def opendir(self, ino: int) -> int:
        """A handle on a listing. Cookies belong to the directory's entries, not to the handle."""
        ...

    def readdir(self, handle: int, offset: int) -> Iterator[tuple[str, Node, int]]:
        """Entries after a cookie: name, node, next cookie; `.` and `..` are among them.

        Takes no lookup counts: a binding that answers readdirplus calls `looked_up` for each
        entry it really sent (never for `.` and `..`).
        """
        ...

    def looked_up(self, ino: int) -> None:
        """Take one lookup count."""
        ...

    def releasedir(self, handle: int) -> None:
        """Close a listing."""
        ...

    def open(self, ino: int, flags: int, who: Requester) -> OpenFile | Later[OpenFile]:
        """Open a file; O_TRUNC arrives here (the kernel's ATOMIC_O_TRUNC)."""
        ...

    def create(
        self, parent: int, name: str, mode: int, flags: int, who: Requester
    ) -> tuple[Node, OpenFile] | Later[tuple[Node, OpenFile]]:
        """Create and open; a lookup count is taken. Nothing is committed before text or close."""
        ...

    def read(self, handle: int, offset: int, size: int) -> bytes | memoryview | Later[bytes]:
        """Bytes of one text, never a mix of two.

        The kernel keeps one set of pages for all handles of an inode: a binding may serve what
        it read through one handle to another. So clean handles all read the newest text; one
        that must go on reading an older text needs its next `open` answered without
        `keep_cache`. And the kernel cuts what it reads at the size it was last told: a text
        whose size no answer has told yet reads short.
        """
        ...

    def write(
        self, handle: int, offset: int, data: bytes | memoryview, *, placed: bool = False
    ) -> int | Later[int]:
        """Write into the shared buffer; with O_APPEND at the end whatever `offset` says.

        `placed`: pages of a shared mapping come back. The kernel sends them through any handle
        that may write, and they belong at `offset` also when that one appends.

        `data` is the vfs's to keep: a binding hands over bytes it does not reuse.
        """
        ...

    def flush(self, handle: int) -> Later[None] | None:
        """A descriptor is closed: commit what was written. A `Later` left unrun committed nothing;
        the buffer stays dirty for the next flush or release."""
        ...

    def fsync(self, handle: int) -> Later[None] | None:
        """Commit what was written."""
        ...

    def release(self, handle: int) -> Later[None] | None:
        """The last descriptor is closed: commit also a bare truncation; free the handle.

        Nobody waits for the answer: the kernel's close(2) has returned.
        """
        ...

    def unlink(self, parent: int, name: str) -> Later[None] | None:
        """Delete a file; open handles keep working."""
        ...

    def mkdir(self, parent: int, name: str, mode: int, who: Requester) -> Node:
        """Make a directory of this mount; a lookup count is taken."""
        ...

    def rmdir(self, parent: int, name: str) -> None:
        """Remove an empty directory."""
        ...

    def rename(
        self, parent: int, name: str, new_parent: int, new_name: str, flags: int
    ) -> Later[None] | None:
        """renameat2: flags RENAME_NOREPLACE (1); RENAME_EXCHANGE (2) is EINVAL."""
        ...

    def refuse_special(self, parent: int, name: str) -> int:
        """The errno for symlink, link, mknod of anything but a regular file: EPERM, EROFS."""
        ...

    def getxattr(self, ino: int, name: str) -> bytes | Later[bytes]:
        """`user.memstore.*`; ENODATA otherwise."""
        ...

    def listxattr(self, ino: int) -> list[str]:
        """Names of the extended attributes."""
        ...

    def statfs(self) -> Usage | Later[Usage]:
        """The store's caps and pressure."""
        ...

    def drain(self, deadline_s: float) -> list[str]:
        """Commit every dirty buffer and held-back temporary name; the paths that could not be."""
        ...
