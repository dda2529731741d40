"""Deleting files and directories."""

from __future__ import annotations

import errno
import time
from collections.abc import Iterator
from contextlib import contextmanager

from fuse_mount.vfs.buffer import Buffer
from fuse_mount.vfs.commit import Saver
from fuse_mount.vfs.inodes import RECALLED, Dir, File
from fuse_mount.vfs.interface import Later
from fuse_mount.vfs.names import normal, refusal
from fuse_mount.vfs.remote import Remote
from fuse_mount.vfs.state import State, later
from memstore.model import errors

_ATTEMPTS = 20


class Removing:
    """unlink and rmdir.

    A delete carries the hash of the text that is known here. When the memory has changed
    meanwhile the delete is asked again with the newest hash: whoever removes a name removes
    whatever is there, as on any file system, and its history keeps every text.
    """

    def __init__(self, state: State, saver: Saver, remote: Remote) -> None:
        self._state, self._saver, self._remote = state, saver, remote

    def unlink(self, parent: int, name: str) -> Later[None] | None:
        """See `Filesystem.unlink`."""
        state = self._state
        with state.lock:
            node = state.tree.directory(parent).children.get(normal(name))
            if node is None:
                raise refusal(errno.ENOENT)
            if state.options.read_only:
                raise refusal(errno.EROFS)
            if isinstance(node, Dir):
                raise refusal(errno.EISDIR)
            if node.local:
                self.unlinked_locked(node)
                return None
            file = node
        return later(lambda: self._unlink(file))

    def _unlink(self, file: File) -> None:
        with self._state.busy(file), self.deleting(file):
            self.delete_busy(file)
            with self._state.lock:
                if file.parent is not None:
                    self.unlinked_locked(file)

    @contextmanager
    def deleting(self, *files: File) -> Iterator[None]:
        """Have the feed leave these files' names alone: they end here, not elsewhere."""
        state = self._state
        ids = {file.memory_id for file in files if file.memory_id}
        with state.lock:
            state.deleting |= ids
        try:
            yield
        finally:
            with state.lock:
                state.deleting -= ids
                for memory_id in ids:
                    if memory_id in state.ended:
                        self._remote.deleted_locked(memory_id)

    def delete_busy(self, file: File) -> None:
        """Delete a file's memory, if it has one."""
        state, deadline = self._state, self._state.deadline()
        for _ in range(_ATTEMPTS):
            memory_id, sha = file.memory_id, file.sha
            if not memory_id:
                return
            try:
                state.call(
                    lambda memory_id=memory_id, sha=sha: state.backend.delete_memory(  # type: ignore[misc]
                        state.store_id, memory_id, expected_content_sha256=sha
                    ),
                    deadline,
                )
            except errors.PreconditionFailed:
                self._saver.catch_up(file, deadline)
            except errors.NotFound:
                return
            else:
                return
        raise refusal(errno.EIO)

    def unlinked_locked(self, file: File) -> None:
        """Take a file's name away here; open handles keep its text."""
        state, parent = self._state, file.parent
        if (
            (file.opens or file.nlookup >= RECALLED)
            and file.buffer is None
            and file.text is not None
        ):
            file.buffer = Buffer(file.text, b"", "")
        if file.opens:
            state.keep_text_locked(file)
        if file.memory_id:
            state.ended.add(file.memory_id)
            state.awaited.pop(file.memory_id, None)
            state.unbind_locked(file)
        state.held.pop(file.ino, None)
        file.lost_path = ""
        if not file.opens and file.nlookup < RECALLED:
            if file.local and file.buffer is not None:
                state.scratch_used -= len(file.buffer.data)
            file.buffer = None
            state.cache.drop(file)
        state.tree.detach(file)
        file.nlink = 0
        if parent is not None:
            self.left_locked(parent)
            state.note_foreign(parent, file.name)
        state.tree.free(file)

    def left_locked(self, parent: Dir) -> None:
        """A name left a directory by a change made here; an empty one stays in this mount."""
        parent.touch(time.time_ns())
        if not parent.children:
            parent.kept = True

    def rmdir(self, parent: int, name: str) -> None:
        """See `Filesystem.rmdir`."""
        state = self._state
        with state.lock:
            where = state.tree.directory(parent)
            node = where.children.get(normal(name))
            if node is None:
                raise refusal(errno.ENOENT)
            if state.options.read_only:
                raise refusal(errno.EROFS)
            if isinstance(node, File):
                raise refusal(errno.ENOTDIR)
            if node.children:
                raise refusal(errno.ENOTEMPTY)
            state.tree.detach(node)
            node.nlink = 0
            self.left_locked(where)
            state.note_foreign(where, node.name)
            state.tree.free(node)
