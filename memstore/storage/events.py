"""Rows of the change feed."""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, select
from sqlalchemy.sql.expression import ColumnElement

from memstore.model.actors import Actor
from memstore.model.clock import from_us
from memstore.model.events import Event
from memstore.storage.schema import events, versions
from memstore.storage.statement import Row, Statement, Tx, insert_into
from memstore.storage.versions import SEALED, TEXT

_P = bindparam
_E, _V = events.c, versions.c
_FIELDS: tuple[ColumnElement[Any], ...] = (
    _E.store_id,
    _E.seq,
    _E.kind,
    _E.created_at_us,
    _E.actor_kind,
    _E.actor_id,
    _E.memory_id,
    _E.version_id,
    *SEALED,
)
_AFTER = {
    view: Statement(
        select(*_FIELDS, text)
        .select_from(events.outerjoin(versions, _V.id == _E.version_id))
        .where(_E.store_id == _P("store"), _E.seq > _P("after"))
        .order_by(_E.seq)
        .limit(_P("limit"))
    )
    for view, text in TEXT.items()
}
_INSERT = insert_into(events)


def add(
    tx: Tx,
    *,
    store_id: str,
    seq: int,
    at_us: int,
    kind: str,
    by: Actor,
    memory_id: str | None = None,
    version_id: str | None = None,
) -> None:
    """A new event's row."""
    tx.run(
        _INSERT,
        {
            "store_id": store_id,
            "seq": seq,
            "kind": kind,
            "version_id": version_id,
            "memory_id": memory_id,
            "created_at_us": at_us,
            "actor_kind": by.kind,
            "actor_id": by.id,
        },
    )


def actor(kind: str | None, id: str | None) -> Actor | None:
    """The actor of a row's pair of columns."""
    return None if kind is None or id is None else Actor(kind, id)  # type: ignore[arg-type]


def from_row(tx: Tx, row: Row) -> Event:
    """An event of a row of its fields and its version's sealed record."""
    store_id, seq, kind, at_us, actor_kind, actor_id, memory_id, version_id = row[:8]
    facts, text = tx.keys.open(version_id, store_id, row[8:])
    return Event(
        store_id=store_id,
        seq=seq,
        kind=kind,
        created_at=from_us(at_us),
        created_by=actor(actor_kind, actor_id),
        memory_id=memory_id,
        version_id=version_id,
        path=facts.path,
        content=None if text is None else text.decode(),
        content_size_bytes=facts.size,
        content_sha256=facts.sha256,
    )


def after(tx: Tx, store_id: str, seq: int, *, view: str, limit: int) -> list[Event]:
    """Events above a seq, oldest first."""
    rows = tx.all(_AFTER[view], {"store": store_id, "after": seq, "limit": limit})
    return [from_row(tx, row) for row in rows]
