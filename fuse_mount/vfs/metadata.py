"""Attributes: what can be changed for this mount, what can be read of a memory, what is left."""

from __future__ import annotations

import errno
import stat
import time
from collections.abc import Callable

from fuse_mount.vfs.inodes import Entry, File
from fuse_mount.vfs.interface import AttrChange, Later, Requester, Usage
from fuse_mount.vfs.names import refusal
from fuse_mount.vfs.state import State, later
from fuse_mount.vfs.writing import Writing
from memstore.model import limits
from memstore.model.clock import rfc3339_us

BLOCK = 4096

_ATTRIBUTES: dict[str, Callable[[File], str]] = {
    "user.memstore.id": lambda file: file.memory_id,
    "user.memstore.version_id": lambda file: file.version_id,
    "user.memstore.sha256": lambda file: file.sha,
    "user.memstore.updated_at": lambda file: rfc3339_us(file.updated_us),
}
_CREATED_BY = "user.memstore.created_by"


class Metadata:
    """chmod, chown, utimens, extended attributes, statfs."""

    def __init__(self, state: State, writing: Writing) -> None:
        self._state, self._writing = state, writing

    def change(self, ino: int, change: AttrChange, who: Requester) -> Entry | Later[Entry]:
        """See `Filesystem.setattr`. All but the size holds for this mount only."""
        state = self._state
        with state.lock:
            node = state.tree.node(ino)
            if state.options.read_only:
                raise refusal(errno.EROFS)
            if change.size is None:
                self._set_locked(node, change)
                return node
            if not isinstance(node, File):
                raise refusal(errno.EISDIR)
            if state.archived and not node.local:
                raise refusal(errno.EROFS)
            if change.handle is None and not node.mode & 0o222 and who.uid != 0:
                raise refusal(errno.EACCES)
            file, rest = node, self._writing.truncate(node, change.size, change.handle)
            if rest is None:
                self._set_locked(node, change)
                return node
            waiting = rest

        def run() -> Entry:
            waiting.run()
            with state.lock:
                self._set_locked(file, change)
            return file

        return Later(run)

    def _set_locked(self, node: Entry, change: AttrChange) -> None:
        if change.mode is not None:
            node.mode = stat.S_IFMT(node.mode) | stat.S_IMODE(change.mode)
            if self._state.journal is not None:
                self._state.journal.meta(node)
        if change.uid is not None:
            node.uid = change.uid
        if change.gid is not None:
            node.gid = change.gid
        if change.atime_ns is not None:
            node.atime_ns = change.atime_ns
        if change.mtime_ns is not None:
            node.mtime_ns = change.mtime_ns
        node.ctime_ns = max(time.time_ns(), node.ctime_ns + 1000)

    def getxattr(self, ino: int, name: str) -> bytes | Later[bytes]:
        """See `Filesystem.getxattr`."""
        state = self._state
        with state.lock:
            node = state.tree.node(ino)
            if not isinstance(node, File) or not node.memory_id:
                raise refusal(errno.ENODATA)
            read = _ATTRIBUTES.get(name)
            if read is not None:
                return read(node).encode()
            if name != _CREATED_BY:
                raise refusal(errno.ENODATA)
            version_id = node.version_id

        def author() -> bytes:
            version = state.call(
                lambda: state.backend.get_version(state.store_id, version_id, view="basic"),
                state.deadline(),
            )
            actor = version.created_by
            return b"" if actor is None else f"{actor.kind}:{actor.id}".encode()

        return later(author)

    def listxattr(self, ino: int) -> list[str]:
        """See `Filesystem.listxattr`."""
        node = self._state.tree.node(ino)
        if not isinstance(node, File) or not node.memory_id:
            return []
        return [*_ATTRIBUTES, _CREATED_BY]

    def statfs(self) -> Usage:
        """See `Filesystem.statfs`."""
        state = self._state
        with state.lock:
            caps = state.caps
            used = -(-state.stored_bytes // BLOCK)
            blocks = caps.max_bytes // BLOCK
            count = len(state.tree.memories) + state.skipped
        return Usage(
            block_size=BLOCK,
            blocks=blocks,
            blocks_free=max(0, blocks - used),
            files=caps.max_memories,
            files_free=max(0, caps.max_memories - count),
            name_max=limits.SEGMENT_BYTES,
        )
