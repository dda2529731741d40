"""A backend that is away when a test says so, or lacks what only our own server offers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from memstore.backend import Backend, Feed, NotSupported
from memstore.model.errors import MemstoreError, Unavailable
from memstore.model.events import Event

EXTENSIONS = frozenset(
    {
        "whoami",
        "store_usage",
        "get_memory_at",
        "apply_changes",
        "snapshot",
        "list_events",
        "watch",
        "create_session_token",
        "record_rejected_write",
    }
)


class FaultyBackend:
    """Every verb of the backend below, unless it is to fail.

    `refuse` is raised by every verb while it is set; `before` is called with the verb's name
    before each, `after` once it is done, so that a test can step in between.
    """

    def __init__(self, backend: Backend, *, without: frozenset[str] = frozenset()) -> None:
        self._backend = backend
        self.without = without
        self._feeds: list[_Feed] = []
        self._lock = threading.Lock()
        self.refuse: MemstoreError | None = None
        self.before: Callable[[str], None] = lambda verb: None
        self.after: Callable[[str], None] = lambda verb: None
        self.calls: list[str] = []

    def __getattr__(self, verb: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            self.calls.append(verb)
            if verb in self.without:
                raise NotSupported
            self.before(verb)
            if self.refuse is not None:
                raise self.refuse
            answer = getattr(self._backend, verb)(*arguments, **options)
            if verb == "watch":
                answer = self._watched(answer)
            self.after(verb)
            return answer

        return call

    def _watched(self, feed: Feed) -> _Feed:
        watched = _Feed(feed)
        with self._lock:
            self._feeds.append(watched)
            if self.refuse is not None:
                watched.lose()
        return watched

    def go_away(self) -> None:
        """Every verb is Unavailable from now on, and the feeds are lost."""
        with self._lock:
            self.refuse = Unavailable()
            for feed in self._feeds:
                feed.lose()
            self._feeds.clear()

    def come_back(self) -> None:
        """The server answers again."""
        self.refuse = None


class _Feed:
    """A feed whose connection can be lost."""

    def __init__(self, feed: Feed) -> None:
        self._feed, self._lost = feed, False

    def __iter__(self) -> Iterator[Event | None]:
        for event in self._feed:
            if self._lost:
                break
            yield event
        if self._lost:
            raise Unavailable

    def lose(self) -> None:
        self._lost = True
        self._feed.close()

    def close(self) -> None:
        self._feed.close()
