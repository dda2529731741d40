"""The change feed over HTTP: server-sent events read from a connection of their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from memstore.client import wire
from memstore.client.errors import refusal
from memstore.client.transport import Stream
from memstore.model.errors import NotFound, Unavailable
from memstore.model.events import EVENT_KINDS, Event

SILENCE_S = 40.0
"""A peer silent for longer is dead: the service sends a heartbeat at least every 15 s."""


class RemoteFeed:
    """`memstore.backend.Feed` over a stream of server-sent events."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._asked_to_end = False

    def close(self) -> None:
        """End the iteration at once, also from another thread."""
        self._asked_to_end = True
        self._stream.close()

    def __iter__(self) -> Iterator[Event | None]:
        try:
            yield from self._events()
        finally:
            self._stream.close()

    def _events(self) -> Iterator[Event | None]:
        for kind, data in messages(self._stream.lines()):
            if self._asked_to_end:
                return
            if kind is None:
                yield None
            elif kind == "error":
                raise refusal(200, wire.loads(data))
            elif kind in EVENT_KINDS:
                event = wire.read(wire.event, wire.loads(data))
                yield event
                if event.kind == "store.deleted":
                    raise NotFound("memory store", event.store_id)
        if not self._asked_to_end:
            raise Unavailable("The change feed's connection was lost; resume after the last event.")


def messages(lines: Iterator[bytes]) -> Iterator[tuple[str | None, bytes]]:
    """Kind and data of each message; kind None for a comment, which is a heartbeat.

    The format is the WHATWG's `text/event-stream`. The id is not read: the data repeats it.
    """
    kind, data = "message", b""
    for line in lines:
        line = line.removesuffix(b"\r")
        if not line:
            if data:
                yield kind, data
            kind, data = "message", b""
            continue
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not name:
            yield None, b""
        elif name == b"event":
            kind = value.decode("utf-8", "replace")
        elif name == b"data":
            data = data + b"\n" + value if data else value


def lines_of_json(stream: Stream) -> Iterator[Any]:
    """The values of a stream of one JSON text a line."""
    for line in stream.lines():
        if line:
            yield wire.loads(line)
