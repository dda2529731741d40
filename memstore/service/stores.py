"""Stores: create, read, list, update, archive, delete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from memstore.model import clock, ids, pages
from memstore.model import stores as rules
from memstore.model.access import Caller
from memstore.model.errors import Forbidden, StoreArchived
from memstore.model.events import Event
from memstore.model.stores import Store, StoreUsage
from memstore.service.core import (
    Core,
    created_key,
    find_store,
    judged,
    keys_only,
    lock_store,
    plain_text,
    see_store,
    time_bounds,
)
from memstore.storage import events, stores
from memstore.storage.statement import Tx


def create(
    core: Core,
    caller: Caller,
    *,
    name: str,
    description: str = "",
    metadata: Mapping[str, str] | None = None,
) -> Store:
    """Make a store."""
    keys_only(caller, "write")
    now = clock.from_us(clock.now_us())
    store = Store(
        id=ids.new(ids.STORE),
        name=rules.validate_name(name),
        description=plain_text(rules.validate_description(description), "A description"),
        metadata=_metadata(metadata or {}),
        created_at=now,
        updated_at=now,
        archived_at=None,
    )
    core.engine.write(lambda tx: stores.add(tx, caller.workspace_id, store))
    return store


def _metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """Valid metadata that can be written in UTF-8; else Invalid."""
    for key, value in metadata.items():
        plain_text(key, "A metadata key")
        plain_text(value, "A metadata value")
    return rules.validate_metadata(metadata)


def get(core: Core, caller: Caller, store_id: str) -> Store:
    """One store."""
    with judged(core, caller, store_id, "read"):
        pass
    with core.engine.read() as tx:
        return find_store(tx, caller, store_id)


def list_(
    core: Core,
    caller: Caller,
    *,
    created_from: datetime | None,
    created_to: datetime | None,
    include_archived: bool,
    limit: int,
    page: str | None,
) -> pages.Page[Store]:
    """Stores of the caller, newest first."""
    caller.require("read")
    limit = pages.page_limit(limit)
    low, high = time_bounds(created_from, created_to)
    listing = f"stores {low} {high} {include_archived:d}"
    before = created_key(listing, page)
    with core.engine.read() as tx:
        if caller.grants is None:
            found = stores.page(
                tx,
                caller.workspace_id,
                low=low,
                high=high,
                archived=include_archived,
                before=before,
                limit=limit + 1,
            )
        else:
            found = _granted(tx, caller, low, high, include_archived, before)
    shown = found[:limit]
    if len(found) <= limit:
        return pages.Page(tuple(shown), None)
    last = shown[-1]
    cursor = pages.encode_cursor(listing, [clock.to_us(last.created_at), last.id])
    return pages.Page(tuple(shown), cursor)


def _granted(
    tx: Tx, caller: Caller, low: int, high: int, archived: bool, before: tuple[int, str]
) -> list[Store]:
    """The stores of a session, which are few, in the order of the listing."""
    found = (stores.get(tx, caller.workspace_id, store_id) for store_id in caller.grants or ())
    keyed = {(clock.to_us(store.created_at), store.id): store for store in found if store}
    return [
        keyed[key]
        for key in sorted(keyed, reverse=True)
        if low <= key[0] <= high and key < before and (archived or not keyed[key].archived_at)
    ]


def update(
    core: Core,
    caller: Caller,
    store_id: str,
    *,
    name: str | None,
    description: str | None,
    metadata: Mapping[str, str | None] | None,
) -> Store:
    """Change the fields given; nothing different changes nothing."""
    with judged(core, caller, store_id, "write"):
        keys_only(caller, "write")
        if name is not None:
            rules.validate_name(name)
        if description is not None:
            plain_text(rules.validate_description(description), "A description")
        for key, value in (metadata or {}).items():
            plain_text(key, "A metadata key")
            plain_text(value or "", "A metadata value")

    def work(tx: Tx) -> Store:
        locked = lock_store(tx, caller, store_id)
        old = find_store(tx, caller, store_id)
        wanted = replace(
            old,
            name=old.name if name is None else name,
            description=old.description if description is None else description,
            metadata=rules.patch_metadata(old.metadata, metadata or {}),
        )
        if locked.archived_at_us is not None:
            raise StoreArchived(store_id)
        if wanted == old:
            return old
        at_us = _record(tx, caller, locked, "store.updated")
        store = replace(wanted, updated_at=clock.from_us(at_us))
        stores.set_fields(tx, store)
        return store

    return core.engine.write(work)


def _record(tx: Tx, caller: Caller, locked: stores.LockedStore, kind: str) -> int:
    """Add a store's event; the moment it happened."""
    seq, at_us = locked.stamp()
    events.add(tx, store_id=locked.id, seq=seq, at_us=at_us, kind=kind, by=caller.actor)
    locked.save(tx)
    return at_us


def archive(core: Core, caller: Caller, store_id: str) -> Store:
    """Archive for good; again changes nothing."""
    with judged(core, caller, store_id, "write"):
        keys_only(caller, "write")

    def work(tx: Tx) -> Store:
        locked = lock_store(tx, caller, store_id)
        if locked.archived_at_us is None:
            stores.archive(tx, store_id, _record(tx, caller, locked, "store.archived"))
        return find_store(tx, caller, store_id)

    return core.engine.write(work)


def delete(core: Core, caller: Caller, store_id: str) -> None:
    """Remove a store with all it holds."""
    with judged(core, caller, store_id, "read"):
        if caller.grants is not None or not (caller.may("write") or caller.may("admin")):
            raise Forbidden("This credential may not delete a store.")

    def work(tx: Tx) -> None:
        locked = lock_store(tx, caller, store_id)
        actor = (caller.actor.kind, caller.actor.id)
        stores.remove(tx, caller.workspace_id, locked, actor)

    core.engine.write(work)


def usage(core: Core, caller: Caller, store_id: str) -> StoreUsage:
    """How full a store is."""
    with judged(core, caller, store_id, "read"):
        pass
    with core.engine.read() as tx:
        memories, size, max_memories, max_bytes, _ = see_store(tx, caller, store_id)
    return StoreUsage(
        memories=memories,
        bytes=size,
        max_memories=core.max_memories if max_memories is None else max_memories,
        max_bytes=core.max_bytes if max_bytes is None else max_bytes,
    )


def farewell(core: Core, caller: Caller, store_id: str) -> Event | None:
    """The `store.deleted` event of a store the caller saw, now gone; None when it is not gone."""
    if not ids.is_id(store_id, ids.STORE) or not caller.sees(store_id) or not caller.may("read"):
        return None
    with core.engine.read() as tx:
        row = stores.tombstone(tx, caller.workspace_id, store_id)
    if row is None:
        return None
    seq, at_us, kind, actor = row
    return Event(
        store_id=store_id,
        seq=seq,
        kind="store.deleted",
        created_at=clock.from_us(at_us),
        created_by=events.actor(kind, actor),
    )
