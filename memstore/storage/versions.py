"""Rows of versions."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sqlalchemy import bindparam, null, select, update
from sqlalchemy.sql.expression import ColumnElement

from memstore.model.actors import Actor
from memstore.model.clock import from_us
from memstore.model.versions import Version
from memstore.storage.schema import versions
from memstore.storage.statement import Row, Statement, Tx, insert_into

_P = bindparam
_V = versions.c
_FIELDS: tuple[ColumnElement[Any], ...] = (
    _V.id,
    _V.memory_id,
    _V.store_id,
    _V.seq,
    _V.operation,
    _V.path,
    _V.size,
    _V.sha256,
    _V.created_at_us,
    _V.actor_kind,
    _V.actor_id,
    _V.redacted_at_us,
    _V.redacted_by_kind,
    _V.redacted_by_id,
)
_TEXT: dict[str, ColumnElement[Any]] = {"basic": null(), "full": _V.content}
_ONE = {
    view: Statement(select(*_FIELDS, text).where(_V.id == _P("id"), _V.store_id == _P("store")))
    for view, text in _TEXT.items()
}
_REDACT = Statement(
    update(versions)
    .where(_V.id == _P("own"))
    .values(
        path=None,
        size=None,
        sha256=None,
        content=None,
        redacted_at_us=_P("at"),
        redacted_by_kind=_P("kind"),
        redacted_by_id=_P("by"),
    )
)
_INSERT = insert_into(versions)
_FILTERS = {
    "memory": _V.memory_id == _P("memory"),
    "operation": _V.operation == _P("operation"),
    "actor": _V.actor_id == _P("actor"),
}
_FROM_SEQ = Statement(
    select(_V.seq, _V.created_at_us)
    .where(_V.store_id == _P("store"), _V.seq >= _P("seq"))
    .order_by(_V.seq)
    .limit(1)
)


@lru_cache(maxsize=128)
def _page(view: str, filters: tuple[str, ...]) -> Statement:
    """Versions between two seqs, newest first, under some of the filters."""
    query = select(*_FIELDS, _TEXT[view]).where(
        _V.store_id == _P("store"),
        _V.seq < _P("before"),
        _V.seq > _P("after"),
        *(_FILTERS[name] for name in filters),
    )
    return Statement(query.order_by(_V.seq.desc()).limit(_P("limit")))


def from_row(row: Row) -> Version:
    """A version of a row of the version's fields and its text."""
    (
        id,
        memory_id,
        store_id,
        seq,
        operation,
        path,
        size,
        sha256,
        created,
        kind,
        by,
        redacted,
        redacted_kind,
        redacted_by,
        content,
    ) = row
    return Version(
        id=id,
        memory_id=memory_id,
        store_id=store_id,
        seq=seq,
        operation=operation,
        path=path,
        content=None if content is None else bytes(content).decode(),
        content_size_bytes=size,
        content_sha256=sha256,
        created_at=from_us(created),
        created_by=None if kind is None else Actor(kind, by),
        redacted_at=None if redacted is None else from_us(redacted),
        redacted_by=None if redacted_kind is None else Actor(redacted_kind, redacted_by),
    )


def add(
    tx: Tx,
    *,
    id: str,
    store_id: str,
    memory_id: str,
    seq: int,
    at_us: int,
    operation: str,
    path: str,
    content: bytes | None,
    sha256: str | None,
    actor: Actor,
) -> None:
    """A new version's row; without content it is a `deleted` one."""
    tx.run(
        _INSERT,
        {
            "id": id,
            "store_id": store_id,
            "memory_id": memory_id,
            "seq": seq,
            "operation": operation,
            "path": path,
            "size": None if content is None else len(content),
            "sha256": sha256,
            "created_at_us": at_us,
            "actor_kind": actor.kind,
            "actor_id": actor.id,
            "redacted_at_us": None,
            "redacted_by_kind": None,
            "redacted_by_id": None,
            "content": content,
        },
    )


def get(tx: Tx, store_id: str, version_id: str, view: str) -> Version | None:
    """The version of an id."""
    row = tx.one(_ONE[view], {"id": version_id, "store": store_id})
    return None if row is None else from_row(row)


def page(
    tx: Tx,
    store_id: str,
    filters: dict[str, Any],
    *,
    before: int,
    after: int = 0,
    view: str,
    limit: int,
) -> list[Version]:
    """Versions between two seqs, newest first; `filters` are some of memory, operation, actor."""
    parameters = {"store": store_id, "before": before, "after": after, "limit": limit, **filters}
    return [from_row(row) for row in tx.all(_page(view, tuple(sorted(filters))), parameters)]


def last_at(tx: Tx, store_id: str, last_seq: int, at_us: int) -> int:
    """The seq of the latest version made at a moment or before it; 0 when there is none.

    Times rise with seq, so some twenty steps find it among a million without an index of times.
    """
    low, high = 0, last_seq
    while low < high:
        middle = (low + high + 1) // 2
        row = tx.one(_FROM_SEQ, {"store": store_id, "seq": middle})
        if row is None or row[1] > at_us:
            high = middle - 1
        else:
            low = int(row[0])
    return low


def redact(tx: Tx, version_id: str, at_us: int, actor: Actor) -> None:
    """Destroy what the version said."""
    tx.run(_REDACT, {"own": version_id, "at": at_us, "kind": actor.kind, "by": actor.id})
    tx.scrub = True
