"""The renames that talk to the store."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from fuse_mount.vfs.commit import Saver
from fuse_mount.vfs.inodes import Dir, File
from fuse_mount.vfs.names import refusal
from fuse_mount.vfs.remote import Remote, of_memory
from fuse_mount.vfs.state import State, log
from memstore.backend import NotSupported
from memstore.model import content, errors, limits
from memstore.model.memories import Change, DeleteMemory, Memory, UpdateMemory
from memstore.model.preconditions import ContentIs

_ATTEMPTS = 20

Landing = Callable[[File | None], None]
"""Changes the names here, ending the file that had the new one; run under the lock once the store
has agreed."""


class Moving:
    """Each takes the files to itself, asks the store, then lets the names change."""

    def __init__(self, state: State, saver: Saver, remote: Remote) -> None:
        self._state, self._saver, self._remote = state, saver, remote

    # A file the store does not know: the rename is its save

    def save_as(self, source: File, path: str, *, replace: bool, landing: Landing) -> None:
        """Commit a file under its new name, onto the memory that has it."""
        state = self._state
        with self._alone(source, path, replace) as (target, _):
            if target is not None and target.away:
                self._saver.save_busy(target, keep=True)
            onto = target if target is not None and target.memory_id else None
            if onto is not None and onto.text is None:
                self._saver.catch_up(onto, state.deadline())
            landed = False

            def land() -> None:
                nonlocal landed
                landed = True
                if source.local:
                    state.scratch_used -= source.size
                landing(target)

            self._saver.save_busy(source, path=path, onto=onto, keep=True, landing=land)
            if not landed:
                raise refusal(errno.ENOENT)
            with state.lock:
                self._ended_locked(target)

    @contextmanager
    def _alone(
        self, source: File, path: str, replace: bool
    ) -> Iterator[tuple[File | None, File | None]]:
        """Have the source, the file at the path and the memory held away from it for oneself.

        Other renames may come first; what is at the path is what is there when it is our turn.
        """
        state = self._state
        while True:
            target, away = self._at(path)
            with state.busy(source, *filter(None, (target, away))), state.feed_gate.rename():
                if (target, away) != self._at(path):
                    continue
                if source.parent is None:
                    raise refusal(errno.ENOENT)
                if target is not None and not replace:
                    raise refusal(errno.EEXIST)
                yield target, away
                return

    def _at(self, path: str) -> tuple[File | None, File | None]:
        """The file at a path, and the one whose memory is still there in the store."""
        with self._state.lock:
            target, away = self._state.tree.find(path), self._state.tree.away.get(path)
        if isinstance(target, Dir):
            raise refusal(errno.EISDIR)
        return target, None if away is None else away.file

    def _ended_locked(self, target: File | None) -> None:
        if target is not None and target.parent is None and not target.opens:
            target.buffer = None
            self._state.cache.drop(target)
            self._state.tree.free(target)

    # A memory

    def memory(self, source: File, path: str, *, replace: bool, landing: Landing) -> None:
        """Give a memory another path; onto a memory, that one goes on with this text."""
        with self._alone(source, path, replace) as (target, away):
            for held in (away, target):
                if held is not None and held is not source and held.away:
                    self._saver.save_busy(held, keep=True)
            for _ in range(_ATTEMPTS):
                if not source.memory_id:
                    raise refusal(errno.ENOENT)
                if target is not None and target.memory_id:
                    done = self._onto(source, target, landing)
                else:
                    done = self._to(source, path, target, landing)
                if done:
                    return
        raise refusal(errno.EIO)

    def _to(self, source: File, path: str, target: File | None, landing: Landing) -> bool:
        state, deadline = self._state, self._state.deadline()
        memory_id = source.memory_id
        try:
            memory = state.call(
                lambda: state.backend.update_memory(state.store_id, memory_id, path=path), deadline
            )
        except errors.NotFound:
            self._saver.catch_up(source, deadline)
            return False
        except errors.PathConflict as error:
            raise self._saver.occupied(path, error, deadline) from error
        with state.lock:
            if source.away:
                state.tree.away.pop(source.away, None)
                source.away = ""
                state.held.pop(source.ino, None)
            landing(target)
            self._remote.answer_locked(of_memory(memory), own=True)
        if source.buffer is not None and source.buffer.written and not source.writers:
            self._saver.save_busy(source, keep=True)
        return True

    def _onto(self, source: File, target: File, landing: Landing) -> bool:
        state, deadline = self._state, self._state.deadline()
        if source.text is None:
            self._saver.catch_up(source, deadline)
        with state.lock:
            text, stamp = self._text_locked(source)
            changes: list[Change] = [
                UpdateMemory(
                    target.memory_id, content=text.decode(), precondition=ContentIs(target.sha)
                ),
                DeleteMemory(source.memory_id, source.sha),
            ]
        try:
            answers = state.call(lambda: self._both(changes), deadline)
        except (errors.NotFound, errors.PreconditionFailed):
            self._saver.catch_up(target, deadline)
            self._saver.catch_up(source, deadline)
            return False
        with state.lock:
            landing(target)
            state.ended.add(source.memory_id)
            state.awaited.pop(source.memory_id, None)
            if source.away:
                state.tree.away.pop(source.away, None)
                source.away = ""
                state.held.pop(source.ino, None)
            self._saver.take_over_locked(source, target)
            mtime_ns = source.mtime_ns
            known = of_memory(answers)
            state.cache.put(source, text)
            self._remote.answer_locked(known, own=True)
            source.mtime_ns = mtime_ns
            buffer = source.buffer
            if buffer is not None and buffer.stamp == stamp:
                self._saver.settled_locked(source, text)
            elif buffer is not None:
                buffer.rebase(text, known.sha)
            state.cache.put(source, text)
            self._ended_locked(target)
        return True

    def _text_locked(self, source: File) -> tuple[bytes, int]:
        """What a rename puts in the target's place: what is in the buffer, when that is text."""
        if source.buffer is not None and source.buffer.dirty:
            mine = bytes(source.buffer.data)
            try:
                content.decode(mine)
            except errors.MemstoreError:
                pass
            else:
                return mine, source.buffer.stamp
        return source.text or b"", -1

    def _both(self, changes: list[Change]) -> Memory:
        """Update and delete in one transaction; else in the order that never loses the text."""
        backend, store_id = self._state.backend, self._state.store_id
        update, delete = changes
        assert isinstance(update, UpdateMemory) and isinstance(delete, DeleteMemory)
        try:
            answer = backend.apply_changes(store_id, changes)[0]
            assert answer is not None
            return answer
        except NotSupported:
            pass
        answer = backend.update_memory(
            store_id, update.memory_id, content=update.content, precondition=update.precondition
        )
        backend.delete_memory(
            store_id, delete.memory_id, expected_content_sha256=delete.expected_content_sha256
        )
        return answer

    # A directory

    def directory(
        self, source: Dir, files: list[File], path: str, landing: Callable[[], None]
    ) -> None:
        """Rename every memory below a directory, all of them or none where the server can."""
        state = self._state
        with state.busy(*files), state.feed_gate.rename():
            for file in files:
                if file.away:
                    self._saver.save_busy(file, keep=True)
            for _ in range(_ATTEMPTS):
                with state.lock:
                    old = state.tree.path_of(source)
                    moves = [
                        (
                            file,
                            state.tree.path_of(file),
                            path + state.tree.path_of(file)[len(old) :],
                        )
                        for file in files
                        if file.memory_id and file.parent is not None
                    ]
                try:
                    answers = self._rename_all(moves)
                except errors.NotFound:
                    for file, _, _ in moves:
                        self._saver.catch_up(file, state.deadline())
                    continue
                with state.lock:
                    landing()
                    for answer in answers:
                        self._remote.answer_locked(of_memory(answer), own=True)
                return
        raise refusal(errno.EIO)

    def _rename_all(self, moves: list[tuple[File, str, str]]) -> list[Memory]:
        state, deadline = self._state, self._state.deadline()
        done: list[Memory] = []
        for at in range(0, len(moves), limits.BATCH_CHANGES):
            part = moves[at : at + limits.BATCH_CHANGES]
            changes = [UpdateMemory(file.memory_id, path=new) for file, _, new in part]
            try:
                answers = state.call(
                    lambda changes=changes: state.backend.apply_changes(state.store_id, changes),  # type: ignore[misc]
                    deadline,
                )
            except NotSupported:
                return self._one_by_one(moves)
            except errors.MemstoreError:
                self._undo(moves[:at])
                raise
            done += [answer for answer in answers if answer is not None]
        return done

    def _one_by_one(self, moves: list[tuple[File, str, str]]) -> list[Memory]:
        """Without batches: each in turn; at the first refusal those before it are taken back."""
        state, deadline = self._state, self._state.deadline()
        done: list[Memory] = []
        for number, (file, _, new) in enumerate(moves):
            try:
                done.append(
                    state.call(
                        lambda file=file, new=new: state.backend.update_memory(  # type: ignore[misc]
                            state.store_id, file.memory_id, path=new
                        ),
                        deadline,
                    )
                )
            except errors.MemstoreError:
                self._undo(moves[:number])
                raise
        return done

    def _undo(self, moves: list[tuple[File, str, str]]) -> None:
        for file, old, new in moves:
            try:
                self._state.backend.update_memory(self._state.store_id, file.memory_id, path=old)
            except errors.MemstoreError as error:
                log.error("rename failed half-way: %s stays at %s (%s)", old, new, error)
