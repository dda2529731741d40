"""What a save does: one buffer becomes one version of one memory, or a refusal that is told.

A save is planned under the lock, sent without it, and landed under the lock again. When the
store answers that the memory is not what was believed, the newest state is taken in and the
save is planned anew, so every plan is made from what is known, never from a guess.

A refused save drops the buffer: the file reads as stored again, and the handles that wrote it
say the same errno until they are closed. While the server is away nothing is dropped as long as
a handle is open: a later fsync or close tries again.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from fuse_mount.vfs.buffer import Buffer
from fuse_mount.vfs.conflicts import resolve
from fuse_mount.vfs.errors import TRANSIENT, as_oserror
from fuse_mount.vfs.inodes import File
from fuse_mount.vfs.losers import Losers, Loss
from fuse_mount.vfs.names import check_path, refusal
from fuse_mount.vfs.remote import Known, Remote, of_memory
from fuse_mount.vfs.state import State
from memstore.backend import NotSupported
from memstore.model import content, errors
from memstore.model.clock import now_us, to_us
from memstore.model.memories import Memory
from memstore.model.preconditions import ContentIs

_ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class _Plan:
    """One call to the store.

    `memory_id` "" creates. `text` None leaves the content (a rename alone). `mine` and `stamp`
    are the buffer's bytes and state the plan was made from. `owner` is the file whose lineage
    the save takes over.
    """

    memory_id: str
    path: str | None
    text: bytes | None
    mine: bytes
    stamp: int
    expected: str
    owner: File | None


class Saver:
    """Commits files."""

    def __init__(self, state: State, remote: Remote) -> None:
        self._state, self._remote = state, remote
        self._losers = Losers(state, remote)

    def save(self, file: File, *, keep: bool = False) -> None:
        """Commit what waits in a file; nothing when there is nothing.

        A refusal is raised; it also drops the buffer, unless `keep`.
        """
        with self._state.busy(file):
            self.save_busy(file, keep=keep)

    def save_busy(
        self,
        file: File,
        *,
        path: str | None = None,
        onto: File | None = None,
        keep: bool = False,
        landing: Callable[[], None] = lambda: None,
    ) -> None:
        """As `save`, for files already busy; under another path, or onto another file's lineage.

        `landing` runs under the lock once the store has answered, before the answer is taken in.
        """
        deadline = self._state.deadline()
        for _ in range(_ATTEMPTS):
            try:
                with self._state.lock:
                    plan = self._plan_locked(file, path, onto)
            except _Unread as unread:
                self.catch_up(unread.file, deadline)
                continue
            except Loss as loss:
                self._losers.keep(loss, deadline)
                raise self._refused(file, refusal(errno.ESTALE), keep) from loss
            except (OSError, errors.MemstoreError) as error:
                raise self._refused(file, error, keep) from error
            if plan is None:
                return
            memory = self._sent(file, plan, deadline, keep)
            if memory is not None:
                with self._state.lock:
                    landing()
                    self._land_locked(file, plan, memory)
                return
        raise refusal(errno.EIO)

    def _sent(self, file: File, plan: _Plan, deadline: float, keep: bool) -> Memory | None:
        """The store's answer; None when it told something new and the save is planned anew."""
        try:
            return self._state.call(lambda: self._send(plan), deadline)
        except errors.PreconditionFailed:
            self.catch_up(plan.owner or file, deadline)
        except errors.NotFound:
            self._lost(plan)
        except errors.PathConflict as error:
            told = self.occupied(plan.path or error.path, error, deadline)
            if told.errno != errno.ESTALE:
                raise self._refused(file, told, keep) from error
        except TRANSIENT:
            raise
        except errors.MemstoreError as error:
            raise self._refused(file, error, keep) from error
        return None

    # Planning

    def _plan_locked(self, file: File, path: str | None, onto: File | None) -> _Plan | None:
        state, buffer = self._state, file.buffer
        if file.local and path is None:
            return None
        if file.parent is None:
            return None
        here = check_path(path or state.tree.path_of(file))
        if buffer is None:
            if not file.away:
                return None
            return _Plan(file.memory_id, here, None, b"", 0, file.sha, None)
        mine = bytes(buffer.data)
        content.decode(mine)
        if file.memory_id:
            return self._plan_update_locked(file, buffer, mine, here if file.away else None)
        away = state.tree.away.get(here)
        if onto is None and away is None:
            return _Plan("", here, mine, mine, buffer.stamp, "", None)
        if onto is not None and onto.memory_id:
            base, base_sha = self._shown_locked(onto, file.born)
            owner = onto
        elif away is not None:
            base, base_sha, owner = away.text, away.sha, away.file
        else:
            return _Plan("", here, mine, mine, buffer.stamp, "", None)
        text = mine
        if base_sha != owner.sha:
            text = self._resolve_locked(owner, base, base_sha, mine, None, file)
        return _Plan(owner.memory_id, None, text, mine, buffer.stamp, owner.sha, owner)

    def _plan_update_locked(
        self, file: File, buffer: Buffer, mine: bytes, path: str | None
    ) -> _Plan | None:
        text = mine
        if buffer.base_sha and mine == buffer.base:
            unchanged = True
        else:
            if buffer.base_sha != file.sha:
                text = self._resolve_locked(
                    file, buffer.base, buffer.base_sha, mine, buffer.appended(), file
                )
            unchanged = text == file.text
        if unchanged and path is None:
            self.settled_locked(file, mine)
            return None
        kept = None if unchanged else text
        return _Plan(file.memory_id, path, kept, mine, buffer.stamp, file.sha, None)

    def _shown_locked(self, file: File, born: int) -> tuple[bytes, str]:
        """The text of a file that a tool could have read before it began to write its own."""
        for former in self._state.former:
            if former.file is file and former.change > born:
                return former.text, former.sha
        if file.text is None:
            return b"", file.sha
        return file.text, file.sha

    def _resolve_locked(
        self,
        owner: File,
        base: bytes,
        base_sha: str,
        mine: bytes,
        appended: bytes | None,
        file: File,
    ) -> bytes:
        """The text to save when the memory is not what the edit was based on."""
        if owner.text is None:
            raise _Unread(owner)
        text = resolve(base, mine, owner.text, appended)
        if text is None:
            if self._state.options.conflict == "overwrite":
                return mine
            raise Loss(owner, owner.parent or file.parent, mine, base_sha)
        content.decode(text)
        return text

    # Sending

    def _send(self, plan: _Plan) -> Memory:
        backend, store_id = self._state.backend, self._state.store_id
        text = None if plan.text is None else plan.text.decode()
        if not plan.memory_id:
            assert plan.path is not None
            return backend.create_memory(store_id, path=plan.path, content=text or "")
        return backend.update_memory(
            store_id,
            plan.memory_id,
            content=text,
            path=plan.path,
            precondition=ContentIs(plan.expected) if text is not None else None,
        )

    # When the store is not as believed

    def catch_up(self, file: File, deadline: float) -> None:
        """Take in the newest state of a file's memory, its text included."""
        state = self._state
        memory_id = file.memory_id
        if not memory_id:
            return
        try:
            memory = state.call(
                lambda: state.backend.get_memory(state.store_id, memory_id), deadline
            )
        except errors.NotFound:
            with state.lock:
                self._remote.deleted_locked(memory_id)
            return
        with state.lock:
            self._remote.answer_locked(of_memory(memory))

    def _lost(self, plan: _Plan) -> None:
        """The memory was deleted meanwhile: the next plan creates it."""
        if not plan.memory_id:
            raise refusal(errno.EIO)
        with self._state.lock:
            self._remote.deleted_locked(plan.memory_id)

    def occupied(self, path: str, error: errors.PathConflict, deadline: float) -> OSError:
        """Someone else holds the path: take their memory in, if it is at the very path.

        ESTALE then, upon which the kernel looks again and repeats the call; ENOTDIR or EISDIR
        when the path is a directory's there, or runs through a file.
        """
        state = self._state
        other = error.conflicting_path
        if other and other != path:
            return refusal(errno.ENOTDIR if path.startswith(f"{other}/") else errno.EISDIR, path)
        memory = state.call(lambda: self.find_memory(path), deadline)
        if memory is not None:
            with state.lock:
                self._remote.answer_locked(of_memory(memory))
        return refusal(errno.ESTALE, path)

    def find_memory(self, path: str) -> Memory | None:
        """The memory at a path as the store has it, None when it is free."""
        state = self._state
        try:
            return state.backend.get_memory_at(state.store_id, path)
        except errors.NotFound:
            return None
        except NotSupported:
            pass
        page: str | None = None
        prefix = path.rsplit("/", 1)[0] + "/"
        while True:
            found = state.backend.list_memories(
                state.store_id, path_prefix=prefix, depth=1, view="full", page=page
            )
            for item in found.data:
                if isinstance(item, Memory) and item.path == path:
                    return item
            page = found.next_page
            if page is None:
                return None

    def _refused(self, file: File, error: OSError | errors.MemstoreError, keep: bool) -> OSError:
        with self._state.lock:
            if isinstance(error, errors.StoreArchived):
                self._state.archived = True
            told = error if isinstance(error, OSError) else as_oserror(error)
            if not keep:
                self.refuse_locked(file, told.errno or errno.EIO)
        return told

    def refuse_locked(self, file: File, code: int) -> None:
        """Drop what was written: the file reads as stored, its writers hear `code` until closed."""
        state = self._state
        for handle in state.handles_of_locked(file):
            if handle.wrote:
                state.settled_handle_locked(handle, code)
        file.buffer = None
        state.drop_text_locked(file)
        if file.memory_id:
            file.size = file.stored
        else:
            file.text, file.size = b"", 0
        file.touch(now_us() * 1000)
        state.held.pop(file.ino, None)
        state.note_inode(file)

    # Landing

    def _land_locked(self, file: File, plan: _Plan, memory: Memory) -> None:
        state = self._state
        if plan.owner is not None:
            self.take_over_locked(file, plan.owner)
        elif not plan.memory_id and file.memory_id != memory.id:
            twin = state.tree.memories.get(memory.id)
            if twin is not None and twin is not file:
                state.tree.detach(twin)
            state.bind_locked(file, memory.id)
        if plan.path is not None and file.away:
            state.tree.away.pop(file.away, None)
            file.away = ""
        text = file.text if plan.text is None else plan.text
        known = Known(
            memory.id,
            memory.version_id,
            memory.path,
            text,
            memory.content_size_bytes,
            memory.content_sha256,
            to_us(memory.updated_at),
        )
        mtime_ns, mode = file.mtime_ns, file.mode
        self._remote.answer_locked(known, own=True)
        file.mtime_ns, file.mode, file.local = mtime_ns, mode, False
        at = file.parent
        while at is not None:
            at.kept, at = at.parent is None, at.parent
        buffer = file.buffer
        if buffer is not None and text is not None:
            if buffer.stamp == plan.stamp:
                self.settled_locked(file, plan.mine)
            else:
                buffer.rebase(plan.mine, hashlib.sha256(plan.mine).hexdigest())
        state.held.pop(file.ino, None)

    def settled_locked(self, file: File, mine: bytes) -> None:
        """Nothing waits any more; readers see the stored text."""
        state = self._state
        file.buffer = None
        state.drop_text_locked(file)
        file.size = file.stored
        for handle in state.handles_of_locked(file):
            handle.seen, handle.seen_sha = file.text, file.sha
            state.settled_handle_locked(handle)
        if file.text is not None and file.text != mine:
            file.touch(now_us() * 1000)
            state.note_inode(file)
        state.held.pop(file.ino, None)

    def take_over_locked(self, file: File, owner: File) -> None:
        """A file becomes the view of another's memory; the other keeps its text, for this mount."""
        state = self._state
        memory_id, version_id, sha = owner.memory_id, owner.version_id, owner.sha
        stored, updated_us, text = owner.stored, owner.updated_us, owner.text
        away = state.tree.away.get(owner.away)
        state.unbind_locked(owner)
        state.bind_locked(file, memory_id)
        state.know_locked(file, version_id=version_id, sha=sha, size=stored, updated_us=updated_us)
        if text is not None:
            state.cache.put(file, text)
        file.st_ino, owner.st_ino = owner.st_ino, file.st_ino
        if state.journal is not None:
            state.journal.meta(file)
            state.journal.meta(owner)
        if away is not None and owner.parent is not None:
            # Not `text`: the feed may have told of this very save already.
            owner.buffer = owner.buffer or Buffer(away.text, b"", "")
            owner.size = len(owner.buffer.data)
            owner.buffer.base, owner.buffer.base_sha = b"", ""
            owner.buffer.written = True
            state.cache.drop(owner)
            state.held.setdefault(owner.ino, (owner, state.monotonic()))
            state.keep_text_locked(owner)
        state.note_inode(file)
        state.note_inode(owner)


class _Unread(Exception):
    """A plan needs the newest text of a file that is not in memory."""

    def __init__(self, file: File) -> None:
        super().__init__()
        self.file = file
