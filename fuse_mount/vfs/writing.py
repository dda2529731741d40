"""Opening, reading, writing and closing files.

Writes go to the one buffer of a file. A close commits what was written; a bare truncation waits
for a write and is committed when the last writer is gone, since shells close duplicated
descriptors early. What only exists here under a temporary name is held back for the rename that
usually follows.
"""

from __future__ import annotations

import errno
import os
import time

from fuse_mount.vfs.buffer import Buffer, check_text
from fuse_mount.vfs.commit import Saver
from fuse_mount.vfs.errors import TRANSIENT
from fuse_mount.vfs.handles import Handle
from fuse_mount.vfs.inodes import Dir, File
from fuse_mount.vfs.interface import Later, OpenFile, Requester
from fuse_mount.vfs.names import check_path, new_name, refusal
from fuse_mount.vfs.state import State, later, log
from memstore.model import content, limits
from memstore.model.errors import InvalidContent, MemstoreError, NotFound


class Writing:
    """Operations on open files."""

    def __init__(self, state: State, saver: Saver) -> None:
        self._state, self._saver = state, saver

    # Opening

    def open(self, ino: int, flags: int, who: Requester) -> OpenFile | Later[OpenFile]:
        """See `Filesystem.open`."""
        state = self._state
        with state.lock:
            file = state.tree.file(ino)
            if flags & os.O_ACCMODE != os.O_RDONLY or flags & os.O_TRUNC:
                self._may_write_locked(file, who)
            if file.visible is None:
                return later(lambda: self._fetched(file, flags))
            return self._opened_locked(file, flags)

    def _opened_locked(self, file: File, flags: int) -> OpenFile:
        state = self._state
        number, handle = state.open_locked(file, flags)
        state.cache.used(file)
        if flags & os.O_TRUNC:
            self._truncate_locked(file, 0, handle)
        return OpenFile(number, file.previous is None, not handle.writable)

    def _fetched(self, file: File, flags: int) -> OpenFile:
        """Open once the text is in memory; it stays there while a handle is open."""
        state = self._state
        while True:
            self.fetch(file)
            with state.lock:
                if file.visible is not None:
                    return self._opened_locked(file, flags)

    def fetch(self, file: File) -> None:
        """Bring a file's text into memory; ESTALE when its memory is gone."""
        with self._state.busy(file):
            if file.visible is None and file.memory_id:
                self._saver.catch_up(file, self._state.deadline())
        if not file.memory_id and file.visible is None:
            raise refusal(errno.ESTALE)

    def _may_write_locked(self, file: File, who: Requester) -> None:
        if self._state.options.read_only:
            raise refusal(errno.EROFS)
        if self._state.archived and not file.local:
            raise refusal(errno.EROFS)
        if not file.mode & 0o222 and who.uid != 0:
            raise refusal(errno.EACCES)

    def create_locked(self, parent: Dir, name: str, mode: int, flags: int) -> tuple[File, OpenFile]:
        """A new file with a handle; the store hears of it with its first text or its last close."""
        state = self._state
        if state.options.read_only:
            raise refusal(errno.EROFS)
        name = new_name(name)
        if not state.tree.is_attached(parent):
            raise refusal(errno.ENOENT)
        path = check_path(f"{state.tree.path_of(parent)}/{name}")
        kind = state.scratch.kind(name)
        if kind != "litter" and state.archived:
            raise refusal(errno.EROFS)
        if kind == "memory" and path not in state.tree.away and self._full_locked():
            raise refusal(errno.EDQUOT)
        file = state.tree.new_file(time.time_ns())
        if not mode & 0o200:
            file.mode &= ~0o222
        file.local = kind == "litter"
        file.born = state.changes
        file.buffer = Buffer(b"", b"", "")
        away = state.tree.away.get(path)
        if away is not None:
            file.born = min(file.born, away.file.born)
        state.tree.attach(parent, name, file)
        state.note_foreign(parent, name)
        parent.touch(time.time_ns())
        number, _ = state.open_locked(file, flags)
        return file, OpenFile(number, True, False)

    def _full_locked(self) -> bool:
        state = self._state
        waiting = sum(1 for handle in state.handles.values() if not handle.file.memory_id)
        return (
            len(state.tree.memories) + state.skipped + waiting >= state.caps.max_memories
            or state.stored_bytes >= state.caps.max_bytes
        )

    # Reading

    def read(self, number: int, offset: int, size: int) -> bytes | Later[bytes]:
        """See `Filesystem.read`."""
        handle = self._state.handles.get(number)
        if handle is None:
            return self._read_recalled(number, offset, size)
        file = handle.file
        if file.buffer is None:
            previous = file.previous
            if previous is not None:
                return previous[offset : offset + size]
            text = file.text
            if text is not None:
                handle.seen, handle.seen_sha = text, file.sha
                return text if not offset and size >= len(text) else text[offset : offset + size]
        with self._state.lock:
            return bytes((file.visible or b"")[offset : offset + size])

    def _read_recalled(self, number: int, offset: int, size: int) -> bytes | Later[bytes]:
        """The first read through a handle that was opened in a process before this one."""
        state = self._state
        with state.lock:
            handle = state.handle_locked(number)
            if handle is None:
                raise refusal(errno.EBADF if state.recalled is None else errno.ESTALE)
            file = handle.file
            if file.visible is not None:
                return bytes(file.visible[offset : offset + size])

        def fetched() -> bytes:
            self.fetch(file)
            return bytes((file.visible or b"")[offset : offset + size])

        return later(fetched)

    # Writing

    def write(
        self, number: int, offset: int, data: bytes | memoryview, *, placed: bool = False
    ) -> int | Later[int]:
        """See `Filesystem.write`. While the service is away it is waited for here: a shell hears
        what write(2) says, and not what close(2) says."""
        state = self._state
        if state.away:
            with state.lock:
                handle = state.handle_locked(number)
                if handle is not None and handle.writable and self._awaits_locked(handle):
                    return later(
                        lambda: self._write_once_back(handle, number, offset, data, placed)
                    )
        return self._write(number, offset, data, placed)

    def _awaits_locked(self, handle: Handle) -> bool:
        """Whether the store must take what is written now."""
        file, state = handle.file, self._state
        if file.local or file.parent is None or handle.refused:
            return False
        return state.scratch.kind(file.name) != "temporary"

    def _write_once_back(
        self, handle: Handle, number: int, offset: int, data: bytes | memoryview, placed: bool
    ) -> int:
        state = self._state
        try:
            state.call(lambda: state.backend.get_store(state.store_id), state.deadline())
        except TRANSIENT:
            with state.lock:
                state.wrote_locked(handle)
                self._saver.refuse_locked(handle.file, errno.EIO)
            raise
        return self._write(number, offset, data, placed)

    def _write(self, number: int, offset: int, data: bytes | memoryview, placed: bool) -> int:
        state = self._state
        with state.lock:
            handle = state.handle_locked(number)
            if handle is None or not handle.writable:
                raise refusal(errno.EBADF)
            if handle.refused:
                raise refusal(handle.refused)
            file = handle.file
            buffer = self._buffer_locked(file, handle)
            end = len(buffer.data)
            appends = handle.append and not placed
            at = end if appends else offset
            self._check_locked(file, handle, buffer, at, data)
            buffer.write(at, data)
            state.wrote_locked(handle)
            self._resized_locked(file, end)
            if appends and at != offset:
                state.note_inode(file)
            return len(data)

    def _check_locked(
        self, file: File, handle: Handle, buffer: Buffer, at: int, data: bytes | memoryview
    ) -> None:
        """Refuse what can never be saved, at the call a tool checks."""
        state, end = self._state, len(buffer.data)
        if file.local:
            grown = max(0, at + len(data) - end)
            if state.scratch_used + grown > state.options.scratch_bytes:
                raise refusal(errno.ENOSPC)
            return
        if file.parent is None:
            if at + len(data) > limits.CONTENT_BYTES:
                raise refusal(errno.EFBIG)
            return
        try:
            if at + len(data) > limits.CONTENT_BYTES:
                raise refusal(errno.EFBIG)
            sequential = at == end
            before = buffer.data[max(0, at - 3) : at] if sequential else b""
            check_text(before, data, strict=sequential)
        except OSError as error:
            state.wrote_locked(handle)
            self._saver.refuse_locked(file, error.errno or errno.EIO)
            raise

    def _buffer_locked(self, file: File, handle: Handle | None) -> Buffer:
        """The file's buffer; a new one holds the newest text.

        Its base is what the writer was shown: for a handle that can read, what it read last. So
        one that read, waited and rewrites does not undo in silence what came in between.
        """
        if file.parent is None and file.lost_path:
            self._revive_locked(file)
        if file.buffer is None:
            text = file.text or b""
            base, base_sha = text, file.sha
            if handle is not None and handle.readable and handle.seen is not None:
                base, base_sha = handle.seen, handle.seen_sha
            file.buffer = Buffer(text, base, base_sha if file.memory_id else "")
            file.previous = None
        return file.buffer

    def _revive_locked(self, file: File) -> None:
        """A file deleted elsewhere is written here: it has its path again, if that is free."""
        state = self._state
        parent_path, _, name = file.lost_path.rpartition("/")
        parent = state.tree.find(parent_path) if parent_path else state.tree.root
        file.lost_path = ""
        if not isinstance(parent, Dir) or name in parent.children:
            raise refusal(errno.ESTALE)
        state.tree.attach(parent, name, file)
        state.note_entry(parent, name)

    def _resized_locked(self, file: File, before: int) -> None:
        assert file.buffer is not None
        file.size = len(file.buffer.data)
        if file.local:
            self._state.scratch_used += file.size - before
        file.touch(time.time_ns())

    # Truncating

    def truncate(self, file: File, size: int, number: int | None) -> Later[None] | None:
        """Cut or extend; by path (no handle) it is a save of its own."""
        state = self._state
        with state.lock:
            handle = None if number is None else state.handle_locked(number)
            if handle is not None and handle.refused and size:
                raise refusal(handle.refused)
            if file.visible is None:
                return later(lambda: self._truncate_fetched(file, size))
            self._truncate_locked(file, size, handle)
            if handle is None and (file.local or self._holds_locked(file)):
                self._state.acknowledged_locked(file)
            if handle is not None or file.local or self._holds_locked(file):
                return None
        return later(lambda: self._saver.save(file))

    def _truncate_fetched(self, file: File, size: int) -> None:
        self.fetch(file)
        with self._state.lock:
            self._truncate_locked(file, size, None)
            if self._holds_locked(file):
                self._state.acknowledged_locked(file)
                return
        self._saver.save(file)

    def _truncate_locked(self, file: File, size: int, handle: Handle | None) -> None:
        state = self._state
        if size > (state.options.scratch_bytes if file.local else limits.CONTENT_BYTES):
            raise refusal(errno.EFBIG)
        if handle is not None and not size:
            handle.refused = 0
        if not size and not file.memory_id:
            file.born = state.changes
        if len(file.visible or b"") == size:
            return
        buffer = self._buffer_locked(file, handle)
        before = len(buffer.data)
        buffer.truncate(size)
        if handle is not None:
            state.wrote_locked(handle)
        self._resized_locked(file, before)

    # Closing

    def flush(self, number: int) -> Later[None] | None:
        """See `Filesystem.flush`."""
        state = self._state
        with state.lock:
            handle = state.handle_locked(number)
            if handle is None:
                raise refusal(errno.EBADF)
            file = handle.file
            if handle.refused:
                self._drop_unstored_locked(file)
                raise refusal(handle.refused)
            if file.local and handle.writable:
                self._state.acknowledged_locked(file)
            if file.buffer is None or file.local or file.parent is None or not handle.writable:
                return None
            if not file.buffer.written:
                _check_truncated(file.buffer)
                return None
            if self._holds_locked(file):
                self._complete_locked(file)
                self._state.acknowledged_locked(file)
                return None
        return later(lambda: self._saver.save(file))

    def fsync(self, number: int) -> Later[None] | None:
        """See `Filesystem.fsync`."""
        state = self._state
        with state.lock:
            handle = state.handle_locked(number)
            if handle is None:
                raise refusal(errno.EBADF)
            file = handle.file
            if handle.refused:
                raise refusal(handle.refused)
            if file.local and handle.writable:
                self._state.acknowledged_locked(file)
            if file.buffer is None or file.local or file.parent is None:
                return None
            if self._holds_locked(file):
                self._complete_locked(file)
                self._state.acknowledged_locked(file)
                return None
        return later(lambda: self._saver.save(file))

    def release(self, number: int) -> Later[None] | None:
        """See `Filesystem.release`."""
        state = self._state
        with state.lock:
            handle = state.closed_locked(number)
            if handle is None:
                return None
            file = handle.file
            if not file.local and file.parent is not None and handle.writable:
                return self._closed_locked(file, handle)
            self._gone_locked(file, handle)
            return None

    def _closed_locked(self, file: File, handle: Handle) -> Later[None] | None:
        """A writer is gone: what is left to do for what it, or an earlier one, began."""
        state, buffer = self._state, file.buffer
        if handle.refused:
            self._gone_locked(file, handle)
            self._drop_unstored_locked(file)
            return None
        waits = buffer is not None and (
            (buffer.written and handle.wrote)
            or (file.writers == 1 and (buffer.dirty or not file.memory_id))
        )
        if not waits:
            self._gone_locked(file, handle)
            return None
        if self._holds_locked(file):
            self._state.acknowledged_locked(file)
            self._gone_locked(file, handle)
            state.held[file.ino] = (file, state.monotonic())
            return None
        return later(lambda: self._save_last(file, handle))

    def _save_last(self, file: File, handle: Handle) -> None:
        """Commit after the last close. Nobody hears a refusal here, so it is logged.

        What was written meanwhile, a truncation by path, is for its own save.
        """
        failed, stamp = False, file.buffer.stamp if file.buffer is not None else 0
        try:
            self._saver.save(file)
        except (OSError, MemstoreError) as error:
            failed = True
            with self._state.lock:
                path = self._state.tree.path_of(file)
            if not isinstance(error, NotFound):
                log.warning("%s could not be saved at its last close: %s", path, error)
        finally:
            with self._state.lock:
                self._gone_locked(file, handle)
                buffer = file.buffer
                stale = failed and buffer is not None and buffer.stamp == stamp
                if stale and not file.writers and not file.local:
                    self._saver.refuse_locked(file, errno.EIO)
                self._drop_unstored_locked(file)

    def _gone_locked(self, file: File, handle: Handle) -> None:
        state = self._state
        file.opens -= 1
        file.writers -= handle.writable
        if not file.opens and file.parent is None:
            if file.local and file.buffer is not None:
                state.scratch_used -= len(file.buffer.data)
            file.buffer = None
            state.cache.drop(file)
            state.tree.free(file)

    def _drop_unstored_locked(self, file: File) -> None:
        """A file whose first save was refused was never there."""
        state, parent = self._state, file.parent
        if parent is None or file.memory_id or file.buffer is not None or file.local:
            return
        state.tree.detach(file)
        state.note_entry(parent, file.name)
        state.tree.free(file)

    def _holds_locked(self, file: File) -> bool:
        """Whether a save is held back for the rename that usually follows."""
        state = self._state
        if file.parent is None or state.scratch.kind(file.name) != "temporary":
            return False
        state.held.setdefault(file.ino, (file, state.monotonic()))
        return True

    def _complete_locked(self, file: File) -> None:
        """A close that is held back refuses what a commit would refuse."""
        assert file.buffer is not None
        try:
            content.decode(bytes(file.buffer.data))
        except MemstoreError:
            self._saver.refuse_locked(file, errno.EILSEQ)
            self._drop_unstored_locked(file)
            raise refusal(errno.EILSEQ) from None


def _check_truncated(buffer: Buffer) -> None:
    """EILSEQ when what a truncation left is no text: extended with NULs, or cut in a character.

    Its commit waits for the last close, whose refusal nobody hears, so this close tells. The
    buffer stays: a program may still write, through a mapping too, what makes it a text.
    """
    if buffer.truncated:
        try:
            content.decode(bytes(buffer.data))
        except InvalidContent:
            raise refusal(errno.EILSEQ) from None
