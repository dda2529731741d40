"""Redaction: what a version said is destroyed, with its key; who wrote it and when stays."""

from __future__ import annotations

import json

from memstore.model.access import Caller
from memstore.model.errors import HeadNotRedactable, NotFound
from memstore.model.versions import Receipt, Version
from memstore.service.core import Core, judged, keys_only, lock_store, see_store
from memstore.service.versions import find
from memstore.storage import destruction, events, memories
from memstore.storage.statement import Tx


def redact(core: Core, caller: Caller, store_id: str, version_id: str) -> Version:
    """Destroy a version's text, path, size and hash. Again changes nothing."""
    with judged(core, caller, store_id, "read"):
        keys_only(caller, "redact")

    def work(tx: Tx) -> Version:
        store = lock_store(tx, caller, store_id)
        version = find(tx, store_id, version_id, "basic")
        if version.redacted_at is not None:
            destruction.resume(tx, version_id)
            return version
        if memories.head_of(tx, store_id, version.memory_id) == version_id:
            raise HeadNotRedactable(version_id)
        seq, at_us = store.stamp()
        destruction.redact(tx, store, version_id, at_us, caller.actor)
        events.add(
            tx,
            store_id=store_id,
            seq=seq,
            at_us=at_us,
            kind="version.redacted",
            by=caller.actor,
            memory_id=version.memory_id,
            version_id=version_id,
        )
        store.save(tx)
        return find(tx, store_id, version_id, "basic")

    return core.engine.write(work)


def receipt(core: Core, caller: Caller, store_id: str, version_id: str) -> Receipt:
    """The signed receipt of a redaction."""
    with judged(core, caller, store_id, "read"):
        pass
    with core.engine.read() as tx:
        see_store(tx, caller, store_id)
        find(tx, store_id, version_id, "basic")
        found = tx.keys.store.receipt(version_id)
    if found is None:
        raise NotFound(message=f"Version {version_id} has no receipt: it was not redacted.")
    receipt: Receipt = json.loads(found)
    return receipt
