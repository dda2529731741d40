"""The change feed: pages of it, and a live view."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from memstore.model.access import Caller
from memstore.model.errors import Invalid, NotFound, Unavailable
from memstore.model.events import Event, EventPage
from memstore.service.core import EVER, Core, check_view, judged, reread, see_store
from memstore.service.stores import farewell
from memstore.storage import events

PAGE_EVENTS = 1000
FROM_NOW = -1


@reread
def list_(
    core: Core, caller: Caller, store_id: str, *, after: int, limit: int, view: str
) -> EventPage:
    """Events after a cursor, oldest first."""
    with judged(core, caller, store_id, "read"):
        check_view(view)
        if not 1 <= limit <= PAGE_EVENTS:
            raise Invalid(f"limit must be between 1 and {PAGE_EVENTS}")
        if not FROM_NOW <= after <= EVER:
            raise Invalid("after is a cursor of this feed, 0 for its beginning or -1 for now")
    with core.engine.read() as tx:
        last_seq = see_store(tx, caller, store_id)[-1]
        if after == FROM_NOW:
            return EventPage((), last_seq, False)
        if after >= last_seq:
            return EventPage((), after, False)
        found = events.after(tx, store_id, after, view=view, limit=limit + 1)
    shown = tuple(found[:limit])
    cursor = shown[-1].seq if shown else after
    return EventPage(shown, cursor, len(found) > limit)


class LocalFeed:
    """A live view in process; see `memstore.backend.Feed`."""

    def __init__(self, core: Core, caller: Caller, store_id: str, after: int, view: str) -> None:
        self._core, self._caller, self._store_id, self._view = core, caller, store_id, view
        self._changed = threading.Event()
        self._closed = False
        self._unsubscribe = core.hub.subscribe(store_id, self._changed.set)
        try:
            start = list_(core, caller, store_id, after=after, limit=1, view="basic")
        except BaseException:
            self._unsubscribe()
            raise
        self._cursor = start.cursor if after == FROM_NOW else after

    def close(self) -> None:
        """End the iteration."""
        self._closed = True
        self._unsubscribe()
        self._changed.set()

    def __iter__(self) -> Iterator[Event | None]:
        try:
            while not self._closed:
                self._changed.clear()
                yield from self._news()
                if self._closed:
                    return
                if self._core.hub.closed:
                    raise Unavailable("The service has closed.")
                if not self._changed.wait(self._core.heartbeat):
                    yield None
        finally:
            self.close()

    def _news(self) -> Iterator[Event]:
        """Every event after the cursor; NotFound at the end of a store that is gone."""
        more = True
        while more and not self._closed:
            try:
                page = list_(
                    self._core,
                    self._caller,
                    self._store_id,
                    after=self._cursor,
                    limit=100,
                    view=self._view,
                )
            except NotFound:
                last = farewell(self._core, self._caller, self._store_id)
                if last is not None and last.seq > self._cursor:
                    self._cursor = last.seq
                    yield last
                raise
            for event in page.events:
                if self._closed:
                    return
                self._cursor = event.seq
                yield event
            more = page.more
