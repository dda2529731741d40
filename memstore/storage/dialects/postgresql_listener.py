"""What processes on one PostgreSQL database tell each other: LISTEN and NOTIFY.

A writing transaction notifies before it commits, and the server delivers at the commit or not at
all, in the order of the commits. A message is a hint to read the feed, whose rows are the truth:
after a lost connection the listener looks at everything once, so that nothing is missed.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Mapping
from typing import Any

import psycopg
from sqlalchemy.engine import URL

from memstore.model.errors import Unavailable
from memstore.storage.engine import Committed

CHANNEL = "memstore"
WAKE_SECONDS = 0.25
"""How often the listener looks whether it is to end."""
RETRY_SECONDS = 0.5
"""How long it waits before it connects again."""

_log = logging.getLogger(__name__)


def notify(connection: Any, sender: str, touched: Mapping[str, int]) -> None:
    """Tell of the stores that this transaction changes, with their last seq."""
    for store_id, seq in touched.items():
        connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, f"{sender} {store_id} {seq}"))


class Listener:
    """One connection that listens while anybody wants to hear."""

    def __init__(self, url: URL, options: Mapping[str, Any], heard: Committed) -> None:
        plain = url.set(drivername="postgresql")
        self._conninfo = plain.render_as_string(hide_password=False)
        self._options = options
        self._heard = heard
        self.name = secrets.token_hex(6)
        self._threads: list[threading.Thread] = []
        self._stop = threading.Event()

    def start(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Listen until the function returned is called; `changed` when anything may be new."""
        stop = threading.Event()
        self._stop = stop
        thread = threading.Thread(
            target=self._serve, args=(stop, changed), name="memstore-listen", daemon=True
        )
        self._threads = [one for one in self._threads if one.is_alive()] + [thread]
        thread.start()
        return stop.set

    def _serve(self, stop: threading.Event, changed: Callable[[], None]) -> None:
        """Connect again and again."""
        lost = False
        while not stop.is_set():
            try:
                self._listen(stop, changed)
            except (psycopg.Error, Unavailable) as error:
                if not lost:
                    _log.warning("changes of other processes wait: %s", type(error).__name__)
                lost = True
                stop.wait(RETRY_SECONDS)

    def _listen(self, stop: threading.Event, changed: Callable[[], None]) -> None:
        """Hear until stopped; psycopg.Error when the connection is lost."""
        options = {**self._options, "autocommit": True}
        with psycopg.connect(self._conninfo, **options) as connection:
            connection.execute(f"LISTEN {CHANNEL}")
            changed()
            while not stop.is_set():
                for message in connection.notifies(timeout=WAKE_SECONDS):
                    self._take(message.payload)

    def _take(self, payload: str) -> None:
        """Wake who listens to the store; our own commits have done so."""
        sender, _, rest = payload.partition(" ")
        store_id, _, seq = rest.partition(" ")
        if sender != self.name and seq.isdecimal():
            self._heard({store_id: int(seq)})

    def close(self) -> None:
        """End it and wait for the end."""
        self._stop.set()
        for thread in self._threads:
            thread.join(RETRY_SECONDS + 2 * self._options.get("connect_timeout", 5))
        self._threads.clear()
