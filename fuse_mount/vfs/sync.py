"""Keeping up with the store: everything at the start, then the change feed, or polling.

A server of ours streams its events. One without a stream is asked for pages of events, one
without events for its newest versions: the outcome is the same, only later.
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Callable, Iterator
from datetime import datetime

from fuse_mount.vfs.errors import TRANSIENT
from fuse_mount.vfs.remote import Remote, of_memory
from fuse_mount.vfs.state import State, log
from memstore.backend import Feed, NotSupported
from memstore.model import errors
from memstore.model.clock import from_us, now_us
from memstore.model.events import Event, EventKind
from memstore.model.limits import PAGE_MAX_FULL
from memstore.model.memories import Memory
from memstore.model.versions import Version

_KINDS: dict[str, EventKind] = {
    "created": "memory.created",
    "modified": "memory.modified",
    "deleted": "memory.deleted",
}
_MIN_PAUSE, _MAX_PAUSE = 0.05, 5.0
_GONE_ASKED = 3
"""A store is gone when the server says so that often, a polling interval apart."""
_VERSION_PAGES = 50
"""After so many pages of new versions a whole listing costs less."""


class Sync:
    """Loads the tree, then follows the store in a thread of its own."""

    def __init__(self, state: State, remote: Remote) -> None:
        self._state, self._remote = state, remote
        self._cursor: int | None = None
        self._newest = ""
        self._streams, self._reload = True, False
        self._feed: Feed | None = None
        self._thread = threading.Thread(target=self._follow, name="memstore-feed", daemon=True)

    def start(self, loaded: Callable[[], None]) -> None:
        """Load the tree; when it returns the feed is being followed. `loaded` runs in between."""
        state = self._state
        store = state.call(lambda: state.backend.get_store(state.store_id), state.deadline())
        state.archived = store.archived_at is not None
        with contextlib.suppress(NotSupported):
            state.caps = state.backend.store_usage(state.store_id)
        collecting = gc.isenabled()
        gc.disable()
        try:
            self._remote.load(self._everything())
        finally:
            if collecting:
                gc.enable()
        state.tree.root.touch(state.tree.root.mtime_ns)
        loaded()
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        feed = self._feed
        if feed is not None:
            feed.close()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=10)

    # Everything

    def _everything(self) -> Iterator[Memory]:
        """Every memory with its text, and where to go on from."""
        state = self._state
        try:
            snapshot = state.backend.snapshot(state.store_id)
        except NotSupported:
            return self._listed()
        self._cursor = snapshot.cursor
        return snapshot.memories

    def _listed(self) -> Iterator[Memory]:
        state = self._state
        try:
            self._cursor = state.backend.list_events(state.store_id, after=-1).cursor
        except NotSupported:
            page = state.backend.list_versions(state.store_id, limit=1)
            self._newest = page.data[0].id if page.data else ""
        return self._pages()

    def _pages(self) -> Iterator[Memory]:
        state = self._state
        at: str | None = None
        while True:
            listing = state.backend.list_memories(
                state.store_id, view="full", limit=PAGE_MAX_FULL, page=at
            )
            for item in listing.data:
                if isinstance(item, Memory):
                    yield item
            at = listing.next_page
            if at is None:
                return

    # Following

    def _follow(self) -> None:
        """Follow until stopped. Whatever a round raises is dealt with here, and there is a next."""
        state, pause = self._state, _MIN_PAUSE
        while not state.stopping.is_set():
            try:
                self._round()
                pause = _MIN_PAUSE
                continue
            except NotSupported:
                self._settle_for_less()
                continue
            except errors.NotFound:
                if self._is_gone():
                    return
            except TRANSIENT as error:
                state.away = True
                log.info("the change feed is lost (%s); trying again", error)
                pause = min(pause, state.options.poll_interval_s)
            except errors.Invalid as error:
                log.warning("the change feed cannot go on (%s); loading everything", error)
                self._reload = True
            except errors.MemstoreError as error:
                log.warning("the change feed is refused: %s", error)
                pause = _MAX_PAUSE
            except Exception:
                log.exception("the change feed failed; starting it again")
            state.stopping.wait(pause)
            pause = min(pause * 2, _MAX_PAUSE)

    def _round(self) -> None:
        """Follow in the best way the server is known to offer, until that ends or fails."""
        if self._reload:
            self._again()
            self._reload = False
        if self._cursor is None:
            self._poll_versions()
        elif self._streams:
            self._stream()
        else:
            self._poll()

    def _settle_for_less(self) -> None:
        """From a stream to pages of events, from those to versions."""
        if self._streams and self._cursor is not None:
            self._streams = False
        elif self._cursor is not None:
            self._cursor, self._reload = None, True

    def _stream(self) -> None:
        state = self._state
        assert self._cursor is not None
        feed = state.backend.watch(state.store_id, after=self._cursor, view="full")
        self._feed = feed
        try:
            if state.stopping.is_set():
                return
            state.connected, state.away = True, False
            for event in feed:
                if event is not None:
                    self._remote.event(event)
                    self._cursor = event.seq
        finally:
            state.connected = False
            self._feed = None
            feed.close()

    def _poll(self) -> None:
        """Pages of events, where they cannot be streamed."""
        state = self._state
        while not state.stopping.wait(state.options.poll_interval_s):
            more = True
            while more:
                assert self._cursor is not None
                page = state.backend.list_events(state.store_id, after=self._cursor, view="full")
                state.away = False
                for event in page.events:
                    self._remote.event(event)
                self._cursor, more = page.cursor, page.more

    def _poll_versions(self) -> None:
        """The newest versions, where the server has no events: a feed in reverse."""
        state = self._state
        while not state.stopping.wait(state.options.poll_interval_s):
            news = self._new_versions()
            state.away = False
            for event in news:
                self._remote.event(event)
            store = state.backend.get_store(state.store_id)
            if store.archived_at is not None and not state.archived:
                self._tell("store.archived", store.archived_at)

    def _new_versions(self) -> list[Event]:
        state = self._state
        found: list[Version] = []
        page: str | None = None
        for _ in range(_VERSION_PAGES):
            answer = state.backend.list_versions(
                state.store_id, view="full", limit=PAGE_MAX_FULL, page=page
            )
            for version in answer.data:
                if version.id == self._newest:
                    break
                found.append(version)
            else:
                page = answer.next_page
                if page is not None:
                    continue
            break
        else:
            self._again()
            return []
        if found:
            self._newest = found[0].id
        return [_as_event(version) for version in reversed(found)]

    def _tell(self, kind: EventKind, at: datetime) -> None:
        """Apply what a feed would have told of the store."""
        self._remote.event(Event(self._state.store_id, 0, kind, at))

    def _is_gone(self) -> bool:
        """Whether the store was deleted; its files are gone then, as after the feed's last event.

        It is asked more than once: a proxy in front of the server may say 404 for a moment.
        """
        state = self._state
        for _ in range(_GONE_ASKED):
            try:
                state.backend.get_store(state.store_id)
            except errors.NotFound:
                if state.stopping.wait(state.options.poll_interval_s):
                    return True
            except errors.MemstoreError:
                return False
            else:
                return False
        log.warning("the store is gone")
        self._tell("store.deleted", from_us(now_us()))
        return True

    def _again(self) -> None:
        """Make the tree equal to the store as a whole."""
        self._remote.listing([of_memory(memory) for memory in self._everything()])


def _as_event(version: Version) -> Event:
    return Event(
        store_id=version.store_id,
        seq=version.seq,
        kind=_KINDS[version.operation],
        created_at=version.created_at,
        created_by=version.created_by,
        memory_id=version.memory_id,
        version_id=version.id,
        path=version.path,
        content=version.content,
        content_size_bytes=version.content_size_bytes,
        content_sha256=version.content_sha256,
    )
