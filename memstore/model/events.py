"""The change feed: what happened in a store, in the order of its commits."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memstore.model.actors import Actor

EventKind = Literal[
    "memory.created",
    "memory.modified",
    "memory.deleted",
    "version.redacted",
    "write.rejected",
    "store.updated",
    "store.archived",
    "store.deleted",
]
EVENT_KINDS: tuple[EventKind, ...] = (
    "memory.created",
    "memory.modified",
    "memory.deleted",
    "version.redacted",
    "write.rejected",
    "store.updated",
    "store.archived",
    "store.deleted",
)


@dataclass(frozen=True, slots=True)
class Event:
    """One change of a store. `seq` is the cursor: strictly rising in commit order within a store.

    The memory fields describe the version the event speaks of; they are None for store events (a
    `write.rejected` names the memory it lost to, if any) and for a version that has been redacted
    since (so a replayed feed tells nothing that was destroyed). `content` is set only where a
    full view was asked for.
    """

    store_id: str
    seq: int
    kind: EventKind
    created_at: datetime
    created_by: Actor | None = None
    memory_id: str | None = None
    version_id: str | None = None
    path: str | None = None
    content: str | None = None
    content_size_bytes: int | None = None
    content_sha256: str | None = None


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events after a cursor, oldest first. `cursor` continues; `more` says to ask again at once."""

    events: tuple[Event, ...]
    cursor: int
    more: bool
