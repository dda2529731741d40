"""What the parts of one mounted store share: its tree, handles, texts and what is to be told.

Locks, in the order in which they may be taken:

1. `State.busy(files...)`: a worker that is about to talk to the store about these files. Taken
   all at once, never while holding another lock; operations that answer at once never take it.
2. `State.feed_gate`: held by the feed while it applies an event, and shared by renames, so that
   the feed does not come between a rename and its answer.
3. `State.lock`: everything in memory. Held briefly, never during a call to the backend and never
   while the kernel is told something.

Methods and functions whose name ends in `_locked`, and all of `Tree`, `TextCache` and `Buffer`,
need `State.lock`.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import TypeVar

from fuse_mount.vfs import inodes
from fuse_mount.vfs.cache import TextCache
from fuse_mount.vfs.errors import TRANSIENT, as_oserror
from fuse_mount.vfs.handles import Handle, number_for, read_only_ino
from fuse_mount.vfs.inodes import Dir, Entry, File
from fuse_mount.vfs.interface import Later
from fuse_mount.vfs.journal import Journal, Recalled
from fuse_mount.vfs.options import Options
from fuse_mount.vfs.scratch import Scratch
from fuse_mount.vfs.tree import Tree
from memstore.backend import Backend
from memstore.model import limits
from memstore.model.errors import MemstoreError, RateLimited
from memstore.model.events import Event
from memstore.model.stores import StoreUsage

log = logging.getLogger("memstore.mount")

Answer = TypeVar("Answer")

_REMEMBERED = 16_384
_REMEMBERED_TEXTS = 256


class Recent:
    """The last so many strings; asked whether one is among them."""

    __slots__ = ("_items",)

    def __init__(self) -> None:
        self._items: OrderedDict[str, None] = OrderedDict()

    def add(self, item: str) -> None:
        """Remember one more, forget the oldest."""
        self._items[item] = None
        if len(self._items) > _REMEMBERED:
            self._items.popitem(last=False)

    def __contains__(self, item: str) -> bool:
        return item in self._items


@dataclass(frozen=True, slots=True)
class Former:
    """The text a file had before a change that was not made here; `change` counts those."""

    change: int
    file: File
    text: bytes
    sha: str
    version_id: str


class Gate:
    """Many renames, or one event of the feed. A waiting event is let through before new renames."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._renames = 0
        self._feeding = False

    @contextmanager
    def rename(self) -> Iterator[None]:
        """Keep the feed back."""
        with self._changed:
            while self._feeding:
                self._changed.wait()
            self._renames += 1
        try:
            yield
        finally:
            with self._changed:
                self._renames -= 1
                self._changed.notify_all()

    @contextmanager
    def feed(self) -> Iterator[None]:
        """Wait for the renames under way, and keep new ones back. For one thread at a time."""
        with self._changed:
            self._feeding = True
            while self._renames:
                self._changed.wait()
        try:
            yield
        finally:
            with self._changed:
                self._feeding = False
                self._changed.notify_all()


Note = tuple[str, File | Dir | None, int, int, str]
"""What to tell the kernel: which notification, whose `previous` it settles, its arguments."""


class State:
    """The memory of one mount.

    `awaited` maps a memory to its newest version known from an answer while the feed has not
    come to it: events of that memory before it are older than what is shown. `seen` holds the
    versions the feed has brought, so that an answer that comes later is not newer than the feed.
    `ended` holds memories known to be deleted, whose earlier events may still come; `deleting`
    those whose delete is under way here.
    """

    def __init__(
        self,
        backend: Backend,
        store_id: str,
        options: Options,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.backend, self.store_id, self.options = backend, store_id, options
        self.monotonic = monotonic
        self.lock = threading.RLock()
        self.feed_gate = Gate()
        self.stopping = threading.Event()
        self.tree = Tree(
            uid=options.uid,
            gid=options.gid,
            dir_mode=inodes.DIR_MODE_READ_ONLY if options.read_only else inodes.DIR_MODE,
            file_mode=inodes.FILE_MODE_READ_ONLY if options.read_only else inodes.FILE_MODE,
            time_ns=time.time_ns(),
        )
        self.cache = TextCache(options.cache_bytes)
        self.scratch = Scratch(options)
        self.handles: dict[int, Handle] = {}
        self.held: dict[int, tuple[File, float]] = {}
        self.awaited: dict[str, tuple[str, int]] = {}
        self.seen, self.ended = Recent(), Recent()
        self.deleting: set[str] = set()
        self.former: deque[Former] = deque(maxlen=_REMEMBERED_TEXTS)
        self.changes = 0
        self.observers: list[Callable[[Event | None], None]] = []
        """Told each event once it is applied, and None when events may have been missed."""
        self.notes: SimpleQueue[Note | None] = SimpleQueue()
        self.foreign: dict[tuple[int, str], set[str]] = {}
        self.drain_until: float | None = None
        self.archived = False
        self.connected = False
        self.away = False
        """Whether the service was away when it was last asked for what is new."""
        self.skipped = 0
        self.stored_bytes = 0
        self.scratch_used = 0
        self.caps = StoreUsage(0, 0, limits.STORE_MEMORIES, limits.STORE_BYTES)
        self._busy: set[int] = set()
        self._idle = threading.Condition()
        self._last_handle = 0
        self.journal: Journal | None = None
        """What another process would need to go on; None while nothing is noted."""
        self.recalled: Recalled | None = None
        """What a process before this one noted of the same mount."""

    # Serialising what is done to one file

    @contextmanager
    def busy(self, *files: File) -> Iterator[None]:
        """Have these files for oneself while talking to the store about them."""
        inos = {file.ino for file in files}
        with self._idle:
            while self._busy & inos:
                self._idle.wait()
            self._busy |= inos
        try:
            yield
        finally:
            with self._idle:
                self._busy -= inos
                self._idle.notify_all()

    def is_busy(self, *files: File) -> bool:
        """Whether a worker has one of the files; it may let go at any moment."""
        busy = self._busy
        return bool(busy) and any(file.ino in busy for file in files)

    # Calling the store

    def call(self, verb: Callable[[], Answer], deadline: float) -> Answer:
        """Call a verb, again and again while the server is away and there is time.

        Refusals come through; the transient ones only when the deadline has passed.
        """
        pause = 0.02
        while True:
            try:
                return verb()
            except TRANSIENT as error:
                left = deadline - time.monotonic()
                if left <= 0 or self.stopping.is_set():
                    raise
                wait = error.retry_after if isinstance(error, RateLimited) else pause
                self.stopping.wait(min(wait, left))
                pause = min(pause * 2, 1.0)

    def deadline(self) -> float:
        """Until when a call started now may be retried."""
        own = time.monotonic() + self.options.retry_s
        return own if self.drain_until is None else min(own, self.drain_until)

    # Handles

    def open_locked(self, file: File, flags: int) -> tuple[int, Handle]:
        """A new handle on a file."""
        writable = flags & os.O_ACCMODE != os.O_RDONLY
        while True:
            self._last_handle += 1
            number = number_for(file.ino, self._last_handle, writable=writable)
            if number not in self.handles:
                break
        handle = Handle(file, flags, number)
        self.handles[number] = handle
        file.opens += 1
        if writable:
            file.writers += 1
            if self.journal is not None:
                self.journal.opened(handle)
        return number, handle

    def handle_locked(self, number: int) -> Handle | None:
        """An open handle; one that only reads and was opened in a process before this is made
        known again."""
        handle = self.handles.get(number)
        if handle is None and self.recalled is not None:
            file = self.tree.nodes.get(read_only_ino(number))
            if isinstance(file, File):
                handle = self.handles[number] = Handle(file, os.O_RDONLY, number)
                file.opens += 1
        return handle

    def wrote_locked(self, handle: Handle) -> None:
        """Bytes that nobody has acknowledged were written through a handle."""
        handle.wrote = True
        if self.journal is not None and not handle.noted and handle.writable:
            handle.noted = True
            self.journal.handle(handle)

    def settled_handle_locked(self, handle: Handle, code: int = 0) -> None:
        """What was written through a handle is saved, or refused with an errno."""
        noted = handle.noted or bool(code)
        handle.wrote = handle.noted = False
        if code:
            handle.refused = code
        if noted and self.journal is not None and handle.writable:
            self.journal.handle(handle)

    def closed_locked(self, number: int) -> Handle | None:
        """A handle is closed."""
        handle = self.handles.pop(number, None)
        if handle is not None and handle.writable and self.journal is not None:
            self.journal.closed(number)
        return handle

    # What another process would need

    def keep_text_locked(self, file: File) -> None:
        """Note a text that is acknowledged though the store does not have it."""
        if self.journal is not None and file.visible is not None:
            stamp = 0 if file.buffer is None else file.buffer.stamp
            self.journal.text(file.ino, file.local, file.visible, stamp)

    def acknowledged_locked(self, file: File) -> None:
        """A close or fsync of a text that only this mount has returns: its writers have nothing to
        lose any more."""
        if self.journal is None:
            return
        self.keep_text_locked(file)
        for handle in self.handles_of_locked(file):
            if handle.noted:
                handle.noted = False
                self.journal.handle(handle)

    def drop_text_locked(self, file: File) -> None:
        """The store has the text now, or it was given up."""
        if self.journal is not None:
            self.journal.no_text(file.ino)

    def begin_journal_locked(self) -> None:
        """Write the journal from its beginning."""
        if self.journal is None:
            return
        root = self.tree.root
        files = [node for node in self.tree.nodes.values() if isinstance(node, File)]
        self.journal.begin(
            (node for node in self.tree.nodes.values() if node is not root),
            (handle for handle in self.handles.values() if handle.writable),
            [
                (file, file.local, bytes(file.visible))
                for file in files
                if file.visible is not None
                and (file.local or file.ino in self.held or (file.opens and file.parent is None))
            ],
            self.tree.last_ino,
        )

    def handles_of_locked(self, file: File) -> list[Handle]:
        """The open handles of a file."""
        return [handle for handle in self.handles.values() if handle.file is file]

    # What the store knows of a file

    def know_locked(
        self, file: File, *, version_id: str, sha: str, size: int, updated_us: int
    ) -> None:
        """Note the newest version of a file's memory."""
        self.stored_bytes += size - file.stored
        file.version_id, file.sha, file.stored = version_id, sha, size
        file.updated_us = updated_us

    def bind_locked(self, file: File, memory_id: str) -> None:
        """A file is the view of that memory from now on."""
        if file.memory_id and self.tree.memories.get(file.memory_id) is file:
            del self.tree.memories[file.memory_id]
        file.memory_id = memory_id
        self.tree.memories[memory_id] = file
        if self.journal is not None:
            self.journal.memory(file.ino, memory_id)

    def unbind_locked(self, file: File) -> None:
        """The store knows a file no longer."""
        if self.tree.memories.get(file.memory_id) is file:
            del self.tree.memories[file.memory_id]
        self.stored_bytes -= file.stored
        file.memory_id = file.version_id = file.sha = ""
        file.stored = 0
        if self.journal is not None:
            self.journal.memory(file.ino, "")
        if file.away:
            self.tree.away.pop(file.away, None)
            file.away = ""

    # Telling the kernel (a thread of its own takes the notes; see Vfs)

    def note_inode(self, node: Entry) -> None:
        """Attributes and pages of a node are outdated."""
        if node.nlookup > 0:
            settles = node if isinstance(node, File) else None
            self.notes.put(("inode", settles, node.ino, 0, ""))
        elif isinstance(node, File):
            node.previous = None

    def note_entry(self, parent: Dir, name: str) -> None:
        """A name came, went or means another node; so the directory's listing is outdated."""
        if parent.nlookup > 0:
            self.notes.put(("entry", None, parent.ino, 0, name))
            self.notes.put(("inode", None, parent.ino, 0, ""))
            self.note_foreign(parent, name)

    def note_foreign(self, parent: Dir, name: str) -> None:
        """A name changed: the kernel may also know it, present or missing, in other normal forms."""
        if name.isascii():
            return
        for form in self.foreign.pop((parent.ino, name), ()):
            self.notes.put(("entry", None, parent.ino, 0, form))

    def note_deleted(self, parent: Dir, node: Entry, name: str) -> None:
        """A name is gone with its node."""
        if parent.nlookup > 0:
            self.notes.put(("deleted", None, parent.ino, node.ino, name))
            self.notes.put(("inode", None, parent.ino, 0, ""))
            self.note_foreign(parent, name)


def later(run: Callable[[], Answer]) -> Later[Answer]:
    """The blocking rest of an operation; a refusal of the store comes out as its errno."""

    def translated() -> Answer:
        try:
            return run()
        except MemstoreError as error:
            raise as_oserror(error) from error

    return Later(translated)
