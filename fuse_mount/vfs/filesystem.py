"""The mounted store: every operation of `interface.Filesystem`, dispatched.

Three threads live beside the operations: one follows the change feed, one tells the kernel what
to forget, one commits what was held back long enough.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import cast

from fuse_mount.vfs.commit import Saver
from fuse_mount.vfs.inodes import RECALLED, Dir, File
from fuse_mount.vfs.interface import (
    ROOT_INO,
    AttrChange,
    Later,
    Node,
    Notifier,
    OpenFile,
    Requester,
    Timeouts,
    Usage,
)
from fuse_mount.vfs.journal import Journal
from fuse_mount.vfs.losers import Loss
from fuse_mount.vfs.metadata import Metadata
from fuse_mount.vfs.moving import Moving
from fuse_mount.vfs.names import REPOSITORIES, check_path, new_name, normal, refusal, too_long
from fuse_mount.vfs.options import Options
from fuse_mount.vfs.remote import Remote
from fuse_mount.vfs.removing import Removing
from fuse_mount.vfs.renaming import Renaming
from fuse_mount.vfs.restoring import Restoring
from fuse_mount.vfs.state import State, log
from fuse_mount.vfs.sync import Sync
from fuse_mount.vfs.writing import Writing
from memstore.backend import Backend
from memstore.model.errors import MemstoreError

_LIVE = Timeouts(entry=3600.0, attr=3600.0, negative=3600.0)
_BLIND = Timeouts(entry=1.0, attr=1.0, negative=1.0)
_TICK_S = 0.25
_SETTLE_S = 0.1
"""How long after an invalidation the text before it is still served to reads of its size."""


class Vfs:
    """One store as a directory. See `interface.Filesystem` for the operations."""

    def __init__(
        self,
        backend: Backend,
        store_id: str,
        options: Options,
        notifier: Notifier,
        *,
        journal: Journal | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """With a `journal`, another process can go on with the mount when this one is killed."""
        self.read_only = options.read_only
        self._journal = journal
        self.state = self._state = state = State(backend, store_id, options, monotonic)
        self._notifier = notifier
        self._remote = Remote(state)
        self._saver = Saver(state, self._remote)
        self._removing = Removing(state, self._saver, self._remote)
        self._writing = Writing(state, self._saver)
        moving = Moving(state, self._saver, self._remote)
        self._renaming = Renaming(state, self._saver, self._removing, moving)
        self._metadata = Metadata(state, self._writing)
        self._sync = Sync(state, self._remote)
        self._tree, self._nodes = state.tree, state.tree.nodes
        self._directories: dict[int, tuple[Dir, int]] = {}
        self._threads: list[threading.Thread] = []
        self._settling: deque[tuple[float, File, bytes]] = deque()
        self.read = self._writing.read
        self.write = self._writing.write

    # Life

    def start(self) -> None:
        """See `Filesystem.start`."""
        if self._journal is not None:
            self._state.recalled = self._journal.recall()
        if self._state.recalled is not None:
            self._tree.last_ino = self._state.recalled.last_ino
        self._sync.start(self._loaded)
        for name, run in (("memstore-notify", self._tell), ("memstore-hold", self._tick)):
            thread = threading.Thread(target=run, name=name, daemon=True)
            thread.start()
            self._threads.append(thread)

    def _loaded(self) -> None:
        state = self._state
        if state.recalled is not None:
            Restoring(state, self._saver, state.recalled).run()
        if self._journal is not None:
            with state.lock:
                state.journal = self._tree.journal = self._journal
                state.begin_journal_locked()

    def known_before(self) -> Iterator[tuple[int, int, str]]:
        """See `Filesystem.known_before`."""
        recalled = self._state.recalled
        if recalled is None:
            return
        yield ROOT_INO, 0, ""
        for note in list(recalled.nodes.values()):
            yield note.ino, note.parent, note.name
        with self._state.lock:
            nodes = list(self._nodes.values())
        for node in nodes:
            parent = node.parent
            if parent is not None:
                yield node.ino, parent.ino, node.name

    def stop(self) -> None:
        """See `Filesystem.stop`."""
        state = self._state
        state.stopping.set()
        self._sync.stop()
        state.notes.put(None)
        for thread in self._threads:
            thread.join(timeout=10)

    def timeouts(self) -> Timeouts:
        """See `Filesystem.timeouts`."""
        return _LIVE if self._state.connected else _BLIND

    @property
    def skipped(self) -> int:
        """Memories that cannot be shown, because a segment of their path is too long."""
        return self._state.skipped

    def _tell(self) -> None:
        """Pass the notes on to the kernel."""
        while True:
            note = self._state.notes.get()
            if note is None:
                return
            what, node, ino, other, name = note
            try:
                if what == "inode":
                    self._notifier.inval_inode(ino)
                elif what == "entry":
                    self._notifier.inval_entry(ino, name)
                else:
                    self._notifier.deleted(ino, other, name)
            except Exception:
                log.exception("the kernel could not be told what to forget")
            if isinstance(node, File) and node.previous is not None:
                self._settling.append((time.monotonic() + _SETTLE_S, node, node.previous))

    def _settle(self) -> None:
        """Let go of texts that the kernel no longer asks for.

        Not at once: a read that looked at the size before the invalidation may send its request
        after it. A text that took its place meanwhile is another object, and stays.
        """
        while self._settling and self._settling[0][0] <= time.monotonic():
            _, file, text = self._settling.popleft()
            if file.previous is text:
                file.previous = None

    def _tick(self) -> None:
        while not self._state.stopping.wait(_TICK_S):
            self._settle()
            if self._state.held:
                self.tick(self._state.monotonic())
            if self._journal is not None and self._journal.outgrown:
                with self._state.lock:
                    self._state.begin_journal_locked()

    def tick(self, now: float) -> None:
        """Commit temporary names that nobody renamed for long enough; `now` as `monotonic`."""
        state = self._state
        with state.lock:
            due = [
                file
                for file, since in state.held.values()
                if not file.opens and now - since >= state.options.temp_hold_s
            ]
        for file in due:
            try:
                self._save_as_itself(file)
            except (OSError, MemstoreError) as error:
                with state.lock:
                    state.held[file.ino] = (file, now)
                    path = state.tree.path_of(file)
                log.warning("%s could not be saved as itself yet: %s", path, error)
            else:
                with state.lock:
                    state.held.pop(file.ino, None)

    def _save_as_itself(self, file: File) -> None:
        """Commit what was held back. A text that lost is kept beside it, once: not tried again."""
        try:
            self._saver.save(file, keep=True)
        except OSError as error:
            if isinstance(error.__cause__, Loss):
                with self._state.lock:
                    self._saver.refuse_locked(file, errno.ESTALE)
            raise

    def drain(self, deadline_s: float) -> list[str]:
        """See `Filesystem.drain`."""
        state = self._state
        state.drain_until = time.monotonic() + deadline_s
        with state.lock:
            waiting = [
                node
                for node in self._nodes.values()
                if isinstance(node, File)
                and node.parent is not None
                and not node.local
                and (node.away or (node.buffer is not None and _unsaved(node)))
            ]
        failed = []
        for file in waiting:
            try:
                self._save_as_itself(file)
            except (OSError, MemstoreError) as error:
                with state.lock:
                    path = self._tree.path_of(file)
                log.error("%s could not be saved: %s", path, error)
                failed.append(path)
        return failed

    # Names

    def lookup(self, parent: int, name: str) -> Node:
        """See `Filesystem.lookup`."""
        with self._state.lock:
            where = self._nodes.get(parent)
            if type(where) is not Dir:
                raise refusal(errno.ESTALE if where is None else errno.ENOTDIR)
            node = where.children.get(name)
            if node is None:
                node = self._lookup_other(where, name)
            node.nlookup += 1
            if type(node) is File:
                node.previous = None
            return node

    def _lookup_other(self, where: Dir, name: str) -> File | Dir:
        """A name that is not there as it is written: perhaps in another normal form."""
        if name == ".":
            return where
        if name == "..":
            return where.parent or where
        if too_long(name):
            raise refusal(errno.ENAMETOOLONG)
        form = normal(name)
        if form != name:
            self._state.foreign.setdefault((where.ino, form), set()).add(name)
        node = where.children.get(form)
        if node is None:
            raise refusal(errno.ENOENT)
        return node

    def looked_up(self, ino: int) -> None:
        """See `Filesystem.looked_up`."""
        with self._state.lock:
            node = self._nodes.get(ino)
            if node is not None:
                node.nlookup += 1

    def forget(self, ino: int, nlookup: int) -> None:
        """See `Filesystem.forget`."""
        with self._state.lock:
            node = self._nodes.get(ino)
            if node is not None and node is not self._tree.root:
                if node.nlookup >= RECALLED and node.parent is None:
                    self._forgotten_locked(node)
                    return
                node.nlookup -= nlookup
                if node.nlookup <= 0:
                    node.nlookup = 0
                    self._tree.free(node)

    def _forgotten_locked(self, node: File | Dir) -> None:
        """The kernel lets go of a node without a name that it knew before this process: nobody
        can have it open."""
        node.nlookup = 0
        if isinstance(node, File) and not node.opens:
            if node.local and node.buffer is not None:
                self._state.scratch_used -= len(node.buffer.data)
            node.buffer = None
            self._state.cache.drop(node)
        self._tree.free(node)

    def mkdir(self, parent: int, name: str, mode: int, who: Requester) -> Node:
        """See `Filesystem.mkdir`."""
        state = self._state
        with state.lock:
            where = self._tree.directory(parent)
            if state.options.read_only or state.archived:
                raise refusal(errno.EROFS)
            name = new_name(name)
            if name in where.children:
                raise refusal(errno.EEXIST)
            if name in REPOSITORIES:
                raise refusal(errno.EPERM)
            if not self._tree.is_attached(where):
                raise refusal(errno.ENOENT)
            check_path(f"{self._tree.path_of(where)}/{name}")
            now = time.time_ns()
            made = self._tree.new_dir(now)
            made.kept = True
            self._tree.attach(where, name, made)
            where.touch(now)
            state.note_foreign(where, name)
            made.nlookup += 1
            return made

    def rmdir(self, parent: int, name: str) -> None:
        """See `Filesystem.rmdir`."""
        self._removing.rmdir(parent, name)

    def unlink(self, parent: int, name: str) -> Later[None] | None:
        """See `Filesystem.unlink`."""
        return self._removing.unlink(parent, name)

    def rename(
        self, parent: int, name: str, new_parent: int, new_name: str, flags: int
    ) -> Later[None] | None:
        """See `Filesystem.rename`."""
        return self._renaming.rename(parent, name, new_parent, new_name, flags)

    def refuse_special(self, parent: int, name: str) -> int:
        """See `Filesystem.refuse_special`."""
        return errno.EROFS if self.read_only else errno.EPERM

    # Listings

    def opendir(self, ino: int) -> int:
        """See `Filesystem.opendir`. The handle is the node's own number, so that it means the same
        in another process."""
        with self._state.lock:
            where = self._tree.directory(ino)
            _, opens = self._directories.get(ino, (where, 0))
            self._directories[ino] = where, opens + 1
            return ino

    def readdir(self, handle: int, offset: int) -> Iterator[tuple[str, Node, int]]:
        """See `Filesystem.readdir`."""
        opened = self._directories.get(handle)
        where = self._nodes.get(handle) if opened is None else opened[0]
        if not isinstance(where, Dir):
            raise refusal(errno.EBADF)
        with self._state.lock:
            return cast("Iterator[tuple[str, Node, int]]", self._tree.entries(where, offset))

    def releasedir(self, handle: int) -> None:
        """See `Filesystem.releasedir`."""
        with self._state.lock:
            where, opens = self._directories.pop(handle, (None, 0))
            if where is not None and opens > 1:
                self._directories[handle] = where, opens - 1

    # Attributes

    def getattr(self, ino: int) -> Node:
        """See `Filesystem.getattr`."""
        node = self._nodes.get(ino)
        if node is None:
            raise refusal(errno.ESTALE)
        if type(node) is File:
            node.previous = None
        return node

    def setattr(self, ino: int, change: AttrChange, who: Requester) -> Node | Later[Node]:
        """See `Filesystem.setattr`."""
        return cast("Node | Later[Node]", self._metadata.change(ino, change, who))

    def getxattr(self, ino: int, name: str) -> bytes | Later[bytes]:
        """See `Filesystem.getxattr`."""
        return self._metadata.getxattr(ino, name)

    def listxattr(self, ino: int) -> list[str]:
        """See `Filesystem.listxattr`."""
        return self._metadata.listxattr(ino)

    def statfs(self) -> Usage:
        """See `Filesystem.statfs`."""
        return self._metadata.statfs()

    # Files

    def open(self, ino: int, flags: int, who: Requester) -> OpenFile | Later[OpenFile]:
        """See `Filesystem.open`."""
        return self._writing.open(ino, flags, who)

    def create(
        self, parent: int, name: str, mode: int, flags: int, who: Requester
    ) -> tuple[Node, OpenFile] | Later[tuple[Node, OpenFile]]:
        """See `Filesystem.create`."""
        with self._state.lock:
            where = self._tree.directory(parent)
            there = where.children.get(normal(name))
            if there is None:
                file, opened = self._writing.create_locked(where, name, mode, flags)
                file.nlookup += 1
                return file, opened
            if flags & os.O_EXCL:
                raise refusal(errno.EEXIST)
            if isinstance(there, Dir):
                raise refusal(errno.EISDIR)
            answer = self._writing.open(there.ino, flags, who)
            there.nlookup += 1
            if not isinstance(answer, Later):
                return there, answer
            rest, node = answer, there
        return Later(lambda: (node, rest.run()))

    def flush(self, handle: int) -> Later[None] | None:
        """See `Filesystem.flush`."""
        return self._writing.flush(handle)

    def fsync(self, handle: int) -> Later[None] | None:
        """See `Filesystem.fsync`."""
        return self._writing.fsync(handle)

    def release(self, handle: int) -> Later[None] | None:
        """See `Filesystem.release`."""
        return self._writing.release(handle)


def _unsaved(file: File) -> bool:
    return not file.memory_id or (file.buffer is not None and file.buffer.dirty)
