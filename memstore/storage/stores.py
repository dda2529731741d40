"""Rows of stores."""

from __future__ import annotations

import json
from dataclasses import dataclass

from sqlalchemy import and_, bindparam, delete, or_, select, update

from memstore.model import clock
from memstore.model.stores import Store
from memstore.storage.crypto import Epoch
from memstore.storage.schema import (
    deleted_stores,
    events,
    memories,
    rejected_writes,
    stores,
    versions,
)
from memstore.storage.statement import Row, Statement, Tx, insert_into
from memstore.storage.versions import EPOCH_SPAN

_P = bindparam
_OWN = and_(stores.c.id == _P("id"), stores.c.workspace_id == _P("workspace"))
_FIELDS = (
    stores.c.id,
    stores.c.name,
    stores.c.description,
    stores.c.metadata,
    stores.c.created_at_us,
    stores.c.updated_at_us,
    stores.c.archived_at_us,
)

_ONE = Statement(select(*_FIELDS).where(_OWN))
_COUNTERS = Statement(
    select(
        stores.c.memory_count,
        stores.c.total_bytes,
        stores.c.max_memories,
        stores.c.max_bytes,
        stores.c.last_seq,
    ).where(_OWN)
)
_LOCK = Statement(
    select(
        stores.c.last_seq,
        stores.c.last_at_us,
        stores.c.memory_count,
        stores.c.total_bytes,
        stores.c.max_memories,
        stores.c.max_bytes,
        stores.c.archived_at_us,
        stores.c.epoch_id,
        stores.c.epoch_seq,
    )
    .where(_OWN)
    .with_for_update()
)
_SAVE = Statement(
    update(stores)
    .where(stores.c.id == _P("id"))
    .values(
        last_seq=_P("seq"),
        last_at_us=_P("at"),
        memory_count=_P("count"),
        total_bytes=_P("bytes"),
        epoch_id=_P("epoch"),
        epoch_seq=_P("epoch_seq"),
    )
)
_SET_FIELDS = Statement(
    update(stores)
    .where(stores.c.id == _P("own"))
    .values(
        name=_P("new_name"),
        description=_P("new_description"),
        metadata=_P("new_metadata"),
        updated_at_us=_P("at"),
    )
)
_ARCHIVE = Statement(
    update(stores)
    .where(stores.c.id == _P("own"))
    .values(updated_at_us=_P("at"), archived_at_us=_P("at"))
)
_PAGE = Statement(
    select(*_FIELDS)
    .where(
        stores.c.workspace_id == _P("workspace"),
        stores.c.created_at_us >= _P("low"),
        stores.c.created_at_us <= _P("high"),
        or_(stores.c.created_at_us < _P("at"), stores.c.id < _P("before")),
        or_(stores.c.archived_at_us.is_(None), _P("archived") == 1),
    )
    .order_by(stores.c.created_at_us.desc(), stores.c.id.desc())
    .limit(_P("limit"))
)
_LOCK_ANY = Statement(
    select(stores.c.id, stores.c.workspace_id).where(stores.c.id == _P("id")).with_for_update()
)
_EPOCH = Statement(select(stores.c.epoch_id).where(stores.c.id == _P("id")))
_HEADS = Statement(select(stores.c.id, stores.c.last_seq).where(stores.c.id == _P("id")))
_INSERT = insert_into(stores)
_BURY = insert_into(deleted_stores)
_REMOVE = (
    Statement(delete(events).where(events.c.store_id == _P("id"))),
    Statement(delete(memories).where(memories.c.store_id == _P("id"))),
    Statement(delete(rejected_writes).where(rejected_writes.c.store_id == _P("id"))),
    Statement(delete(versions).where(versions.c.store_id == _P("id"))),
    Statement(delete(stores).where(stores.c.id == _P("id"))),
)
_TOMBSTONE = Statement(
    select(
        deleted_stores.c.seq,
        deleted_stores.c.deleted_at_us,
        deleted_stores.c.actor_kind,
        deleted_stores.c.actor_id,
    ).where(deleted_stores.c.id == _P("id"), deleted_stores.c.workspace_id == _P("workspace"))
)


@dataclass(slots=True)
class LockedStore:
    """A store's counters while one writing transaction has the store to itself."""

    id: str
    last_seq: int
    last_at_us: int
    memory_count: int
    total_bytes: int
    max_memories: int | None
    max_bytes: int | None
    archived_at_us: int | None
    epoch_id: str | None
    epoch_seq: int | None

    def epoch(self, tx: Tx) -> Epoch:
        """The epoch for a version of the last seq; a new one when it has been long enough.

        The old one may be gone where a backup was restored.
        """
        if self.epoch_id is not None and self.last_seq - (self.epoch_seq or 0) < EPOCH_SPAN:
            found = tx.keys.epoch(self.epoch_id)
            if found is not None:
                return found
        epoch = tx.keys.new_epoch(self.id, self.last_seq)
        self.epoch_id, self.epoch_seq = epoch.id, epoch.first_seq
        return epoch

    def stamp(self) -> tuple[int, int]:
        """The next seq, and a moment later than every one before it in this store."""
        self.last_seq += 1
        now = clock.now_us()
        self.last_at_us = now if now > self.last_at_us else self.last_at_us + 1
        return self.last_seq, self.last_at_us

    def save(self, tx: Tx) -> None:
        """Write the counters back, and let the store's feeds be woken after the commit."""
        tx.run(
            _SAVE,
            {
                "id": self.id,
                "seq": self.last_seq,
                "at": self.last_at_us,
                "count": self.memory_count,
                "bytes": self.total_bytes,
                "epoch": self.epoch_id,
                "epoch_seq": self.epoch_seq,
            },
        )
        tx.touched[self.id] = self.last_seq


def from_row(row: Row) -> Store:
    """A store of a row of the store's fields."""
    id, name, description, metadata, created, updated, archived = row
    return Store(
        id=id,
        name=name,
        description=description,
        metadata=json.loads(metadata),
        created_at=clock.from_us(created),
        updated_at=clock.from_us(updated),
        archived_at=None if archived is None else clock.from_us(archived),
    )


def get(tx: Tx, workspace_id: str, store_id: str) -> Store | None:
    """The store, when it is in the workspace."""
    row = tx.one(_ONE, {"id": store_id, "workspace": workspace_id})
    return None if row is None else from_row(row)


def counters(tx: Tx, workspace_id: str, store_id: str) -> Row | None:
    """Memories, bytes, both caps (None: the setting's) and the last seq."""
    return tx.one(_COUNTERS, {"id": store_id, "workspace": workspace_id})


def lock(tx: Tx, workspace_id: str, store_id: str) -> LockedStore | None:
    """The store, held until the transaction ends, when it is in the workspace."""
    row = tx.one(_LOCK, {"id": store_id, "workspace": workspace_id})
    return None if row is None else LockedStore(store_id, *row)


def lock_any(tx: Tx, store_id: str) -> LockedStore | None:
    """The store, held likewise, of whichever workspace."""
    row = tx.one(_LOCK_ANY, {"id": store_id})
    return None if row is None else lock(tx, row[1], row[0])


def epoch_of(tx: Tx, store_id: str) -> str | None:
    """The epoch that the store's next version is sealed under."""
    row = tx.one(_EPOCH, {"id": store_id})
    return None if row is None else row[0]


def last_seq(tx: Tx, store_id: str) -> int | None:
    """The store's last seq; None when there is no such store."""
    row = tx.one(_HEADS, {"id": store_id})
    return None if row is None else int(row[1])


def add(tx: Tx, workspace_id: str, store: Store) -> None:
    """A new store's row."""
    created = clock.to_us(store.created_at)
    tx.run(
        _INSERT,
        {
            "id": store.id,
            "workspace_id": workspace_id,
            "name": store.name,
            "description": store.description,
            "metadata": json.dumps(dict(store.metadata)),
            "created_at_us": created,
            "updated_at_us": created,
            "archived_at_us": None,
            "last_seq": 0,
            "last_at_us": created,
            "memory_count": 0,
            "total_bytes": 0,
            "max_memories": None,
            "max_bytes": None,
            "epoch_id": None,
            "epoch_seq": None,
        },
    )


def set_fields(tx: Tx, store: Store) -> None:
    """Write name, description, metadata and updated_at."""
    tx.run(
        _SET_FIELDS,
        {
            "own": store.id,
            "new_name": store.name,
            "new_description": store.description,
            "new_metadata": json.dumps(dict(store.metadata)),
            "at": clock.to_us(store.updated_at),
        },
    )


def archive(tx: Tx, store_id: str, at_us: int) -> None:
    """Mark the store archived."""
    tx.run(_ARCHIVE, {"own": store_id, "at": at_us})


def page(
    tx: Tx,
    workspace_id: str,
    *,
    low: int,
    high: int,
    archived: bool,
    before: tuple[int, str],
    limit: int,
) -> list[Store]:
    """Stores before a (created, id) key, newest first."""
    rows = tx.all(
        _PAGE,
        {
            "workspace": workspace_id,
            "low": low,
            "high": min(high, before[0]),
            "at": before[0],
            "before": before[1],
            "archived": int(archived),
            "limit": limit,
        },
    )
    return [from_row(row) for row in rows]


def remove(tx: Tx, workspace_id: str, store: LockedStore, actor: tuple[str, str]) -> None:
    """Everything of the store, for ever; its tombstone stays for the feeds."""
    seq, at_us = store.stamp()
    for statement in _REMOVE:
        tx.run(statement, {"id": store.id})
    tx.run(
        _BURY,
        {
            "id": store.id,
            "workspace_id": workspace_id,
            "seq": seq,
            "deleted_at_us": at_us,
            "actor_kind": actor[0],
            "actor_id": actor[1],
        },
    )
    tx.touched[store.id] = seq
    tx.destroy("store", store.id, store.id)


def tombstone(tx: Tx, workspace_id: str, store_id: str) -> Row | None:
    """seq, moment, actor kind and id of a store's deletion, if it was deleted."""
    return tx.one(_TOMBSTONE, {"id": store_id, "workspace": workspace_id})
