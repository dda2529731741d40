"""Open change feeds: server-sent events without a thread each.

A feed sleeps on an asyncio.Event. The hub's wake, called from a writer's thread, sets it through
`call_soon_threadsafe`; the feed then reads its news on one of a few worker threads. One guard per
process looks after the credentials of all open feeds, so that a revoked one ends within a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from functools import partial

from anyio import CapacityLimiter, to_thread

from api import errors, wire
from api.errors import json_bytes
from memstore.model.errors import MemstoreError, NotFound, Unauthenticated
from memstore.model.events import Event
from memstore.model.memories import View
from memstore.service import LocalBackend, Service

HEARTBEAT_SECONDS = 10.0
GUARD_SECONDS = 0.3
"""Between two looks at the credentials. An answer about one may itself be 0.5 s old."""
READERS = 4
"""Feeds that read at once: a change in a store with many listeners must not stall the verbs."""
READ_EVENTS = 100

_BREAKS = ((b"\xc2\x85", rb"\u0085"), (b"\xe2\x80\xa8", rb"\u2028"), (b"\xe2\x80\xa9", rb"\u2029"))


def line(value: wire.Json) -> bytes:
    """JSON that stays one line for clients that split at Unicode's line breaks too."""
    data = json_bytes(value)
    for raw, escaped in _BREAKS:
        data = data.replace(raw, escaped)
    return data


class _Open:
    """One open feed: its credential, and why it should look up from its sleep."""

    def __init__(self, secret: str) -> None:
        self.secret = secret
        self.changed = asyncio.Event()
        self.ended = False
        self.refusal: MemstoreError | None = None

    def end(self, refusal: MemstoreError | None = None) -> None:
        """Make the feed stop at its next step, and say why when there is a refusal."""
        self.ended, self.refusal = True, refusal
        self.changed.set()


class Feeds:
    """Every open feed of this process. Used in the event loop only."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._open: set[_Open] = set()
        self._guard: asyncio.Task[None] | None = None
        self._limiter: CapacityLimiter | None = None
        self._closing = False

    def close(self) -> None:
        """End every feed, so that a shutdown does not wait for readers that never leave."""
        self._closing = True
        for feed in self._open:
            feed.end()

    async def stream(
        self,
        port: LocalBackend,
        secret: str,
        store_id: str,
        *,
        request_id: str,
        after: int,
        view: View,
        heartbeat: float,
    ) -> AsyncIterator[bytes]:
        """Server-sent events after a cursor; ends with the store, the credential or the service.

        An event `error` with the API's error object comes last when there is something to say.
        """
        feed = _Open(secret)
        loop = asyncio.get_running_loop()

        def wake() -> None:
            loop.call_soon_threadsafe(feed.changed.set)

        unsubscribe = self._service.hub.subscribe(store_id, wake)
        self._admit(feed)
        try:
            yield f": memstore\nretry: 1000\nid: {after}\n\n".encode()
            cursor, more = after, True
            while not feed.ended:
                if more:
                    events, more = await self._news(feed, port, store_id, cursor, view)
                    if events:
                        cursor = events[-1].seq
                        yield b"".join(_frame(event) for event in events)
                    continue
                try:
                    await asyncio.wait_for(feed.changed.wait(), heartbeat)
                    feed.changed.clear()
                    more = True
                except TimeoutError:
                    yield b": heartbeat\n\n"
            if feed.refusal is not None:
                body = bytes(errors.answer(feed.refusal, request_id).body)
                yield b"event: error\ndata: %s\n\n" % body
        finally:
            self._open.discard(feed)
            unsubscribe()

    def _admit(self, feed: _Open) -> None:
        """Count a feed in, and see that the guard is on duty."""
        self._open.add(feed)
        if self._closing or self._service.hub.closed:
            feed.end()
        if self._guard is None or self._guard.done():
            self._guard = asyncio.create_task(self._keep_guard())

    async def _news(
        self, feed: _Open, port: LocalBackend, store_id: str, cursor: int, view: View
    ) -> tuple[tuple[Event, ...], bool]:
        """Events after the cursor, and whether there are more; ends the feed of a lost store."""
        if self._limiter is None:
            self._limiter = CapacityLimiter(READERS)
        try:
            read = partial(port.list_events, store_id, after=cursor, limit=READ_EVENTS, view=view)
            page = await to_thread.run_sync(read, limiter=self._limiter)
            return page.events, page.more
        except NotFound:
            feed.end()
            last = await to_thread.run_sync(port.farewell, store_id, limiter=self._limiter)
            return ((last,) if last is not None and last.seq > cursor else ()), False
        except MemstoreError as refusal:
            feed.end(refusal)
            return (), False

    async def _keep_guard(self) -> None:
        """End feeds whose credential stopped working, while there are any feeds."""
        while self._open:
            await asyncio.sleep(GUARD_SECONDS)
            secrets = {feed.secret for feed in self._open}
            refused = await to_thread.run_sync(self._refused, secrets)
            for feed in self._open:
                if feed.secret in refused:
                    feed.end(refused[feed.secret])

    def _refused(self, secrets: Iterable[str]) -> dict[str, MemstoreError]:
        """Those that are no longer accepted; a database that cannot answer revokes nothing."""
        refused: dict[str, MemstoreError] = {}
        for secret in secrets:
            try:
                self._service.authenticate(secret)
            except Unauthenticated as refusal:
                refused[secret] = refusal
            except MemstoreError:
                continue
        return refused


def _frame(event: Event) -> bytes:
    """One server-sent event."""
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (
        event.seq,
        event.kind.encode(),
        line(wire.event(event)),
    )
