"""A text that lost a conflict is kept, never dropped.

Where the server records rejected writes it is one, and a file of this mount beside the winner;
elsewhere it is an ordinary memory beside the winner, so that it outlives the mount.
"""

from __future__ import annotations

from fuse_mount.vfs.buffer import Buffer
from fuse_mount.vfs.conflicts import losing_name
from fuse_mount.vfs.inodes import Dir, File
from fuse_mount.vfs.remote import Remote, of_memory
from fuse_mount.vfs.state import State, log
from memstore.backend import NotSupported
from memstore.model.clock import now_us
from memstore.model.errors import MemstoreError


class Loss(Exception):
    """An edit cannot be merged and the policy is to tell the loser."""

    def __init__(self, winner: File, where: Dir | None, text: bytes, base_sha: str) -> None:
        super().__init__()
        self.winner, self.where, self.text, self.base_sha = winner, where, text, base_sha


class Losers:
    """Keeps what lost."""

    def __init__(self, state: State, remote: Remote) -> None:
        self._state, self._remote = state, remote

    def keep(self, loss: Loss, deadline: float) -> None:
        """Keep a text in the store and beside the winner; call without the lock."""
        state = self._state
        with state.lock:
            winner, where = loss.winner, loss.where or state.tree.root
            name = losing_name(winner.name, set(where.children))
            path, directory = state.tree.path_of(winner), state.tree.path_of(where)
            memory_id = winner.memory_id or None
        text = loss.text.decode()
        log.warning("conflict: %s lost to another edit; kept beside it as %s", path, name)
        try:
            state.call(
                lambda: state.backend.record_rejected_write(
                    state.store_id,
                    path=path,
                    content=text,
                    memory_id=memory_id,
                    base_content_sha256=loss.base_sha or None,
                ),
                deadline,
            )
        except NotSupported:
            if self._keep_as_memory(f"{directory}/{name}", text, deadline):
                return
        except MemstoreError as error:
            log.warning("%s: the losing text is kept in this mount only: %s", path, error)
        with state.lock:
            self._keep_here_locked(where, name, loss.text)

    def _keep_as_memory(self, path: str, text: str, deadline: float) -> bool:
        state = self._state
        try:
            memory = state.call(
                lambda: state.backend.create_memory(
                    state.store_id, path=path, content=text, view="full"
                ),
                deadline,
            )
        except MemstoreError as error:
            log.warning("%s is kept in this mount only: %s", path, error)
            return False
        with state.lock:
            self._remote.answer_locked(of_memory(memory), own=True)
        return True

    def _keep_here_locked(self, where: Dir, name: str, text: bytes) -> None:
        state = self._state
        kept = state.tree.new_file(now_us() * 1000)
        kept.local = True
        kept.buffer = Buffer(text, b"", "")
        kept.size = len(text)
        state.scratch_used += kept.size
        state.keep_text_locked(kept)
        state.tree.attach(where, name, kept)
        state.note_entry(where, name)
