"""Destroying what was sealed: one act over two databases, finished or undone after any crash.

A version is sealed under a key of its own; that key is wrapped by an epoch key that only the key
store has. To destroy the version for good, also where a copy of the database was kept, its epoch
key must go; the other versions of the epoch, the survivors, are wrapped anew under a new one. A
survivor's key stays in the key store too, for backups that have it under the destroyed epoch key.

==  ==================================================  ======================================
    The act, step by step (each step is on disk)        Killed after it: who repairs, and how
==  ==================================================  ======================================
0   nothing yet                                         nobody: nothing happened
1   key store: the new epoch key, and an intent         `recover` at the next start undoes both:
                                                        the database does not say "redacted"
2   database, one commit: survivors wrapped anew,       `recover` finishes: it does step 3 from
    the version emptied, its event written              the intent and the database
3   key store, one commit: the old epoch key, the       nobody: it is done; what of the log was
    version's kept key and the intent go; survivors'    not emptied holds only records whose key
    keys and the receipt are kept                       is gone, and the next start empties it
4   both logs emptied, the caller answered              nobody
==  ==================================================  ======================================

Deleting a store (all its keys) and resolving a rejected write (its one key) go the same way
without survivors: intent, commit, destruction. Recovery holds the store while it looks, so that
it never mistakes another process's act in progress for one that was killed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from memstore.model import clock, ids
from memstore.model.actors import Actor
from memstore.model.versions import Version
from memstore.storage import rejected_writes, stores, versions
from memstore.storage.engine import Engine
from memstore.storage.keystore import Intent
from memstore.storage.statement import Tx
from memstore.storage.stores import LockedStore


def redact(tx: Tx, store: LockedStore, version_id: str, at_us: int, actor: Actor) -> None:
    """Destroy a version of a held store, with its key once the transaction is committed."""
    old_id = versions.epoch_of(tx, store.id, version_id) or ""
    old = tx.keys.epoch(old_id)
    kept = tx.keys.store.survivor(version_id) if old is None else None
    if kept is not None:  # a restored database: others hold the version under this epoch
        old_id = kept.epoch_id
        old = tx.keys.epoch(old_id)
    new_id = ids.new(ids.EPOCH)
    intent = Intent(new_id, "version", store.id, version_id, old_id)
    first_seq = store.last_seq if old is None else old.first_seq
    new = tx.keys.new_epoch(store.id, first_seq, id=new_id, intent=intent)
    tx.settle.append(new_id)
    if old is not None:
        for id, wrapped in versions.under(tx, old):
            if id != version_id:
                key = tx.keys.key(id, store.id, old_id, wrapped)
                versions.rewrap(tx, id, new_id, tx.keys.wrap(new, id, key))
    if store.epoch_id == old_id:
        store.epoch_id = new_id
    versions.redact(tx, version_id, at_us, actor)


def resume(tx: Tx, version_id: str) -> None:
    """Finish, after this transaction, what was begun for a version and could not be ended."""
    tx.settle.extend(intent.id for intent in tx.keys.store.intents(version_id))


def settle(engine: Engine, intent_id: str) -> None:
    """Finish an intent, or undo it, by what the database says now. Again does nothing."""
    intent = engine.keys.store.intent(intent_id)
    if intent is None:
        return
    with engine.read() as tx:
        if intent.kind == "version":
            _settle_version(tx, intent)
        elif intent.kind == "store":
            _end(tx, intent, gone=stores.last_seq(tx, intent.store_id) is None)
        else:
            _end(tx, intent, gone=not rejected_writes.is_open(tx, intent.target_id))


def _end(tx: Tx, intent: Intent, *, gone: bool) -> None:
    """An act without survivors."""
    if gone:
        tx.keys.finish(intent, ())
    else:
        tx.keys.store.undo(intent)


def _settle_version(tx: Tx, intent: Intent) -> None:
    """A redaction."""
    version = versions.get(tx, intent.store_id, intent.target_id, "basic")
    new = tx.keys.epoch(intent.id)
    kept = [] if new is None else versions.under(tx, new)
    if version is not None and version.redacted_at is not None:
        receipt = tx.keys.sign(_receipt(version, intent, len(kept)))
        tx.keys.finish(intent, kept, json.dumps(receipt))
    elif kept or stores.epoch_of(tx, intent.store_id) == intent.id:
        tx.keys.finish(intent, kept)  # the redacted row is gone since; its neighbours are not
    else:
        tx.keys.store.undo(intent)
        tx.keys.forget(intent.id)


def _receipt(version: Version, intent: Intent, survivors: int) -> dict[str, Any]:
    """What was destroyed where, when and by whom; nothing of what the version said."""
    by, at = version.redacted_by, version.redacted_at
    return {
        "type": "redaction_receipt",
        "store_id": version.store_id,
        "version_id": version.id,
        "memory_id": version.memory_id,
        "operation": version.operation,
        "redacted_at": None if at is None else clock.rfc3339(at),
        "redacted_by": None if by is None else by.to_wire(),
        "destroyed": [
            {"where": "database", "what": "path, size, hash and text of the version; its key"},
            {"where": "key store", "what": "the epoch key", "id": intent.old_epoch},
        ],
        "kept": {"epoch_id": intent.id, "versions": survivors},
    }


def recover(engine: Engine) -> None:
    """Finish or undo what processes that are gone had begun."""
    for intent in engine.keys.store.intents():

        def work(tx: Tx, intent: Intent = intent) -> None:
            stores.lock_any(tx, intent.store_id)
            settle(engine, intent.id)

        engine.write(work)


def contradictions(tx: Tx, receipt: Mapping[str, Any]) -> list[str]:
    """Where the live database and key store are not as a receipt says, one sentence each."""
    store_id, version_id = str(receipt["store_id"]), str(receipt["version_id"])
    found = []
    if versions.is_there(tx, store_id, version_id):
        if versions.epoch_of(tx, store_id, version_id) is not None:
            return [f"The version {version_id} is in the database, and is not redacted."]
        version = versions.get(tx, store_id, version_id, "full")
        if version is None or version.redacted_at is None or version.path or version.content:
            found.append(f"The version {version_id} still says something.")
    for one in receipt["destroyed"]:
        if "id" in one and tx.keys.store.epoch(str(one["id"])) is not None:
            found.append(f"The epoch key {one['id']} is still in the key store.")
    if tx.keys.store.survivor(version_id) is not None:
        found.append(f"The key store has a key of the version {version_id}.")
    return found
