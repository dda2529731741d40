"""A database restored from before a redaction: the redaction is done again, from its receipt.

The keys are gone already, so the texts cannot be read; the rows are made to say so. A memory whose
head it is was not live in that form when it was redacted: it is deleted, by a version whose path
is `REDACTED_PATH`, for its own was redacted too.
"""

from __future__ import annotations

import json
from typing import Any

from memstore.model import ids
from memstore.model.actors import Actor
from memstore.model.errors import Unavailable
from memstore.storage import events, memories, stores, versions
from memstore.storage.engine import Engine
from memstore.storage.statement import Tx
from memstore.storage.stores import LockedStore

REDACTED_PATH = "/redacted"
_CHUNK = 100


def replay(engine: Engine) -> int:
    """Redact again what the key store knows to be redacted; how many were.

    Receipts are gone through from the newest to the first that the database knows of: a backup
    lacks the latest ones only.
    """
    number, done = None, 0
    while True:
        rows = engine.keys.store.redacted_before(number, _CHUNK)
        for row, version_id, text in rows:
            number = row
            receipt = json.loads(text)
            with engine.read() as tx:
                known = _is_redacted(tx, receipt["store_id"], version_id)
            if known:
                return done
            if known is not None:
                engine.write(lambda tx, receipt=receipt: _again(tx, receipt))  # type: ignore[misc]
                done += 1
        if len(rows) < _CHUNK:
            return done


def _is_redacted(tx: Tx, store_id: str, version_id: str) -> bool | None:
    """Whether the row says so; None when there is none."""
    if not versions.is_there(tx, store_id, version_id):
        return None
    return versions.epoch_of(tx, store_id, version_id) is None


def _again(tx: Tx, receipt: dict[str, Any]) -> None:
    store_id, version_id = receipt["store_id"], receipt["version_id"]
    store = stores.lock_any(tx, store_id)
    if store is None or versions.epoch_of(tx, store_id, version_id) is None:
        return
    actor = Actor.from_wire(receipt["redacted_by"]) or Actor("api_actor", "")
    memory_id = receipt["memory_id"]
    live = memories.head_of(tx, store_id, memory_id) == version_id
    seq, at_us = store.stamp()
    versions.redact(tx, version_id, at_us, actor)
    event = {"store_id": store_id, "at_us": at_us, "by": actor, "memory_id": memory_id}
    events.add(tx, seq=seq, kind="version.redacted", version_id=version_id, **event)
    if live:
        _bury(tx, store, memory_id, actor)
    store.save(tx)


def _bury(tx: Tx, store: LockedStore, memory_id: str, actor: Actor) -> None:
    """A memory without a head is not live."""
    memories.remove(tx, memory_id)
    seq, at_us = store.stamp()
    id = ids.new(ids.VERSION)
    versions.add(
        tx,
        id=id,
        epoch=store.epoch(tx),
        memory_id=memory_id,
        seq=seq,
        at_us=at_us,
        operation="deleted",
        path=REDACTED_PATH,
        content=None,
        sha256=None,
        actor=actor,
    )
    events.add(
        tx,
        store_id=store.id,
        seq=seq,
        at_us=at_us,
        kind="memory.deleted",
        by=actor,
        memory_id=memory_id,
        version_id=id,
    )
    store.memory_count -= 1
    store.total_bytes = _bytes(tx, store.id)


def _bytes(tx: Tx, store_id: str) -> int:
    """The bytes of a store's live memories, but for those whose keys are gone."""
    total = 0
    for id, sealed in memories.heads(tx, store_id):
        try:
            total += tx.keys.open(id, store_id, sealed)[0].size or 0
        except Unavailable:
            continue
    return total
