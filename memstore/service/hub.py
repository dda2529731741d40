"""Who is to be woken when a store changes, in this process or by another one."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping

from memstore.storage import stores
from memstore.storage.engine import Engine

Wake = Callable[[], None]

_log = logging.getLogger(__name__)


class Hub:
    """Subscriptions to stores. A wake is a hint to read the feed: there may be nothing new.

    Wakes are called from other threads, after the commit, and must be quick: set an event, or
    `loop.call_soon_threadsafe`.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._wakes: dict[str, list[Wake]] = {}
        self._seen: dict[str, int | None] = {}
        self._engine: Engine | None = None
        self._stop_watching: Callable[[], None] | None = None
        self.closed = False

    def open(self, engine: Engine) -> None:
        """Watch this database for the commits of other processes, while anybody listens."""
        self._engine = engine

    def subscribe(self, store_id: str, wake: Wake) -> Callable[[], None]:
        """Call `wake` after each change of the store, until the function returned is called.

        `wake` is also called when the service closes.
        """
        with self._lock:
            self._wakes.setdefault(store_id, []).append(wake)
            if self._stop_watching is None and self._engine is not None and not self.closed:
                self._stop_watching = self._engine.watch_others(self._look)
        done = False

        def unsubscribe() -> None:
            nonlocal done
            with self._lock:
                if done:
                    return
                done = True
                wakes = self._wakes[store_id]
                wakes.remove(wake)
                if not wakes:
                    del self._wakes[store_id]
                    self._seen.pop(store_id, None)
                if not self._wakes and self._stop_watching is not None:
                    self._stop_watching()
                    self._stop_watching = None

        return unsubscribe

    def committed(self, touched: Mapping[str, int]) -> None:
        """Wake the feeds of stores changed here; called by the engine after each commit."""
        if not self._wakes:
            return
        with self._lock:
            wakes = [wake for id in touched for wake in self._wakes.get(id, ())]
            for store_id, seq in touched.items():
                if store_id in self._wakes:
                    self._seen[store_id] = seq
        _call(wakes)

    def _look(self) -> None:
        """Wake the feeds of stores whose seq moved without our knowing; another process did it."""
        with self._lock:
            watched = {store_id: self._seen.get(store_id, -1) for store_id in self._wakes}
        if self._engine is None or not watched:
            return
        with self._engine.read() as tx:
            found = {store_id: stores.last_seq(tx, store_id) for store_id in watched}
        moved = [store_id for store_id, seq in found.items() if seq != watched[store_id]]
        with self._lock:
            for store_id in moved:
                if store_id in self._wakes:
                    self._seen[store_id] = found[store_id]
            wakes = [wake for store_id in moved for wake in self._wakes.get(store_id, ())]
        _call(wakes)

    def close(self) -> None:
        """Wake everyone a last time; feeds see `closed` and end."""
        with self._lock:
            self.closed = True
            if self._stop_watching is not None:
                self._stop_watching()
                self._stop_watching = None
            wakes = [wake for group in self._wakes.values() for wake in group]
        _call(wakes)


def _call(wakes: Iterable[Wake]) -> None:
    """Call each; one that fails is logged and harms neither the writer nor the others."""
    for wake in wakes:
        try:
            wake()
        except Exception:
            _log.exception("a subscriber could not be woken")
