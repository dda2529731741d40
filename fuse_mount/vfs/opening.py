"""A store becomes a file system; with `.versions` at its root where the options say so.

`WithHistory` stands in front of a mount's vfs: what concerns the past is answered by `History`,
all else by the vfs itself, which knows nothing of it. The root's listing does not show
`.versions`; a memory whose path begins so is hidden by it.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator

from fuse_mount.vfs.filesystem import Vfs
from fuse_mount.vfs.history import NAME, History
from fuse_mount.vfs.interface import (
    ROOT_INO,
    AttrChange,
    Filesystem,
    Later,
    Node,
    Notifier,
    OpenFile,
    Requester,
)
from fuse_mount.vfs.journal import Journal
from fuse_mount.vfs.names import refusal
from fuse_mount.vfs.options import Options
from fuse_mount.vfs.past import FIRST_PAST_INO
from memstore.backend import Backend


def open_store(
    backend: Backend,
    store_id: str,
    options: Options,
    notifier: Notifier,
    journal: Journal | None = None,
) -> Filesystem:
    """A store to be mounted; with its history where the options say so."""
    vfs = Vfs(backend, store_id, options, notifier, journal=journal)
    return WithHistory(vfs) if options.versions else vfs


class WithHistory:
    """A mounted store with its past; see `Filesystem` for the operations."""

    def __init__(self, vfs: Vfs) -> None:
        self._vfs, self._history = vfs, History(vfs.state)
        self.read_only = vfs.read_only
        self.start, self.stop, self.drain = vfs.start, vfs.stop, vfs.drain
        self.known_before = vfs.known_before
        self.timeouts, self.statfs, self.write = vfs.timeouts, vfs.statfs, vfs.write

    # Names

    def lookup(self, parent: int, name: str) -> Node | Later[Node]:
        """See `Filesystem.lookup`."""
        if parent >= FIRST_PAST_INO:
            return self._history.lookup(parent, name)
        if _is_entrance(parent, name):
            return self._history.root()
        return self._vfs.lookup(parent, name)

    def forget(self, ino: int, nlookup: int) -> None:
        """See `Filesystem.forget`; the past is not counted, it stays."""
        if ino < FIRST_PAST_INO:
            self._vfs.forget(ino, nlookup)

    def looked_up(self, ino: int) -> None:
        """See `Filesystem.looked_up`."""
        if ino < FIRST_PAST_INO:
            self._vfs.looked_up(ino)

    def mkdir(self, parent: int, name: str, mode: int, who: Requester) -> Node:
        """See `Filesystem.mkdir`."""
        _only_present(parent)
        if _is_entrance(parent, name):
            raise refusal(errno.EEXIST)
        return self._vfs.mkdir(parent, name, mode, who)

    def rmdir(self, parent: int, name: str) -> None:
        """See `Filesystem.rmdir`."""
        _only_present(parent, name)
        self._vfs.rmdir(parent, name)

    def unlink(self, parent: int, name: str) -> Later[None] | None:
        """See `Filesystem.unlink`."""
        _only_present(parent)
        if _is_entrance(parent, name):
            raise refusal(errno.EISDIR)
        return self._vfs.unlink(parent, name)

    def rename(
        self, parent: int, name: str, new_parent: int, new_name: str, flags: int
    ) -> Later[None] | None:
        """See `Filesystem.rename`."""
        _only_present(parent, name)
        _only_present(new_parent, new_name)
        return self._vfs.rename(parent, name, new_parent, new_name, flags)

    def refuse_special(self, parent: int, name: str) -> int:
        """See `Filesystem.refuse_special`."""
        if parent >= FIRST_PAST_INO:
            return errno.EROFS
        return self._vfs.refuse_special(parent, name)

    # Listings

    def opendir(self, ino: int) -> int:
        """See `Filesystem.opendir`."""
        if ino >= FIRST_PAST_INO:
            return self._history.opendir(ino)
        return self._vfs.opendir(ino)

    def readdir(self, handle: int, offset: int) -> Iterator[tuple[str, Node, int]]:
        """See `Filesystem.readdir`."""
        if handle >= FIRST_PAST_INO:
            return self._history.readdir(handle, offset, self._vfs.getattr(ROOT_INO))
        entries = self._vfs.readdir(handle, offset)
        if handle == ROOT_INO:
            return (entry for entry in entries if entry[0] != NAME)
        return entries

    def releasedir(self, handle: int) -> None:
        """See `Filesystem.releasedir`."""
        if handle >= FIRST_PAST_INO:
            self._history.releasedir(handle)
        else:
            self._vfs.releasedir(handle)

    # Attributes

    def getattr(self, ino: int) -> Node | Later[Node]:
        """See `Filesystem.getattr`."""
        return self._history.getattr(ino) if ino >= FIRST_PAST_INO else self._vfs.getattr(ino)

    def setattr(self, ino: int, change: AttrChange, who: Requester) -> Node | Later[Node]:
        """See `Filesystem.setattr`."""
        _only_present(ino)
        return self._vfs.setattr(ino, change, who)

    def getxattr(self, ino: int, name: str) -> bytes | Later[bytes]:
        """See `Filesystem.getxattr`; of a version also `user.memstore.operation`."""
        if ino < FIRST_PAST_INO:
            return self._vfs.getxattr(ino, name)
        found = self._history.xattrs(ino).get(name)
        if found is None:
            raise refusal(errno.ENODATA)
        return found.encode()

    def listxattr(self, ino: int) -> list[str]:
        """See `Filesystem.listxattr`."""
        if ino < FIRST_PAST_INO:
            return self._vfs.listxattr(ino)
        return list(self._history.xattrs(ino))

    # Files

    def open(self, ino: int, flags: int, who: Requester) -> OpenFile | Later[OpenFile]:
        """See `Filesystem.open`."""
        if ino >= FIRST_PAST_INO:
            return self._history.open(ino, flags)
        return self._vfs.open(ino, flags, who)

    def create(
        self, parent: int, name: str, mode: int, flags: int, who: Requester
    ) -> tuple[Node, OpenFile] | Later[tuple[Node, OpenFile]]:
        """See `Filesystem.create`."""
        _only_present(parent)
        if _is_entrance(parent, name):
            raise refusal(errno.EISDIR)
        return self._vfs.create(parent, name, mode, flags, who)

    def read(self, handle: int, offset: int, size: int) -> bytes | memoryview | Later[bytes]:
        """See `Filesystem.read`."""
        if handle >= FIRST_PAST_INO:
            return self._history.read(handle, offset, size)
        return self._vfs.read(handle, offset, size)

    def flush(self, handle: int) -> Later[None] | None:
        """See `Filesystem.flush`."""
        return None if handle >= FIRST_PAST_INO else self._vfs.flush(handle)

    def fsync(self, handle: int) -> Later[None] | None:
        """See `Filesystem.fsync`."""
        return None if handle >= FIRST_PAST_INO else self._vfs.fsync(handle)

    def release(self, handle: int) -> Later[None] | None:
        """See `Filesystem.release`."""
        if handle < FIRST_PAST_INO:
            return self._vfs.release(handle)
        self._history.release(handle)
        return None


def _is_entrance(parent: int, name: str) -> bool:
    return name == NAME and parent == ROOT_INO


def _only_present(ino: int, name: str = "") -> None:
    """EROFS in the past, and for its entrance itself."""
    if ino >= FIRST_PAST_INO or _is_entrance(ino, name):
        raise refusal(errno.EROFS)
