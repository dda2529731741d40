"""Rows of rejected writes."""

from __future__ import annotations

from typing import Any

from sqlalchemy import bindparam, func, null, or_, select, update
from sqlalchemy.sql.expression import ColumnElement

from memstore.model.actors import Actor
from memstore.model.clock import from_us
from memstore.model.rejected_writes import RejectedWrite
from memstore.storage.crypto import Facts
from memstore.storage.schema import rejected_writes, versions
from memstore.storage.statement import Row, Statement, Tx, insert_into
from memstore.storage.versions import SEALED

_P = bindparam
_R, _V = rejected_writes.c, versions.c
_FIELDS: tuple[ColumnElement[Any], ...] = (
    _R.id,
    _R.store_id,
    _R.seq,
    _R.state,
    _R.reason,
    _R.memory_id,
    _R.version_id,
    _R.created_at_us,
    _R.actor_kind,
    _R.actor_id,
    _R.resolved_at_us,
    _R.resolved_by_kind,
    _R.resolved_by_id,
    _R.wrapped_key,
    _R.facts,
    *SEALED,
)
_TEXTS: dict[str, tuple[ColumnElement[Any], ...]] = {
    "basic": (null(), null()),
    "full": (_V.text, _R.text),
}
_SOURCE = rejected_writes.outerjoin(versions, _V.id == _R.version_id)
_ONE = {
    view: Statement(
        select(*_FIELDS, *texts)
        .select_from(_SOURCE)
        .where(_R.id == _P("id"), _R.store_id == _P("store"))
    )
    for view, texts in _TEXTS.items()
}
_TWINS = Statement(
    select(_R.id, _R.wrapped_key, _R.facts).where(
        _R.store_id == _P("store"),
        _R.state == "open",
        func.coalesce(_R.memory_id, "") == _P("memory"),
        _R.actor_kind == _P("kind"),
        _R.actor_id == _P("actor"),
    )
)
_STATE = Statement(select(_R.state).where(_R.id == _P("id")))
_COUNT = Statement(select(func.count()).where(_R.store_id == _P("store"), _R.state == "open"))
_PAGE = {
    view: Statement(
        select(*_FIELDS, *texts)
        .select_from(_SOURCE)
        .where(
            _R.store_id == _P("store"),
            _R.seq < _P("before"),
            or_(_R.state == _P("state"), _P("every") == 1),
        )
        .order_by(_R.seq.desc())
        .limit(_P("limit"))
    )
    for view, texts in _TEXTS.items()
}
_RESOLVE = Statement(
    update(rejected_writes)
    .where(_R.id == _P("own"))
    .values(
        state=_P("new_state"),
        memory_id=_P("memory"),
        version_id=_P("version"),
        wrapped_key=None,
        facts=None,
        text=None,
        resolved_at_us=_P("at"),
        resolved_by_kind=_P("kind"),
        resolved_by_id=_P("by"),
    )
)
_INSERT = insert_into(rejected_writes)


def from_row(tx: Tx, row: Row) -> RejectedWrite:
    """A rejected write of a row: its fields, its sealed record, and that of its version."""
    (id, store_id, seq, state, reason, memory_id, version_id) = row[:7]
    (created, kind, by, resolved, resolved_kind, resolved_by, key, sealed) = row[7:15]
    facts, text = tx.keys.open(id, store_id, (id, key, sealed, row[19]))
    if version_id is not None:
        facts, text = tx.keys.open(version_id, store_id, row[15:19])
    return RejectedWrite(
        id=id,
        store_id=store_id,
        seq=seq,
        state=state,
        reason=reason,
        memory_id=memory_id,
        path=facts.path,
        base_content_sha256=facts.base_sha256,
        content=None if text is None else text.decode(),
        content_size_bytes=facts.size,
        content_sha256=facts.sha256,
        version_id=version_id,
        created_at=from_us(created),
        created_by=None if kind is None else Actor(kind, by),
        resolved_at=None if resolved is None else from_us(resolved),
        resolved_by=None if resolved_kind is None else Actor(resolved_kind, resolved_by),
    )


def add(
    tx: Tx,
    *,
    id: str,
    store_id: str,
    seq: int,
    at_us: int,
    reason: str,
    memory_id: str | None,
    path: str,
    base_sha256: str | None,
    content: bytes,
    sha256: str,
    actor: Actor,
) -> None:
    """A new, open one's row, sealed under an epoch key of its own, which is destroyed with it."""
    epoch = tx.keys.new_epoch(store_id, seq, id=id)
    sealed = tx.keys.seal(epoch, id, Facts(path, len(content), sha256, base_sha256), content)
    tx.run(
        _INSERT,
        {
            "id": id,
            "store_id": store_id,
            "seq": seq,
            "state": "open",
            "reason": reason,
            "memory_id": memory_id,
            "version_id": None,
            "created_at_us": at_us,
            "actor_kind": actor.kind,
            "actor_id": actor.id,
            "resolved_at_us": None,
            "resolved_by_kind": None,
            "resolved_by_id": None,
            "wrapped_key": sealed.wrapped_key,
            "facts": sealed.facts,
            "text": sealed.text,
        },
    )


def get(tx: Tx, store_id: str, id: str, view: str) -> RejectedWrite | None:
    """The rejected write of an id."""
    row = tx.one(_ONE[view], {"id": id, "store": store_id})
    return None if row is None else from_row(tx, row)


def is_open(tx: Tx, id: str) -> bool:
    """Whether it is there and still holds its text."""
    row = tx.one(_STATE, {"id": id})
    return row is not None and row[0] == "open"


def open_twin(
    tx: Tx, store_id: str, *, path: str, memory_id: str | None, sha256: str, actor: Actor
) -> str | None:
    """The id of an open one that says the same of the same author."""
    rows = tx.all(
        _TWINS,
        {
            "store": store_id,
            "memory": memory_id or "",
            "kind": actor.kind,
            "actor": actor.id,
        },
    )
    for id, key, sealed in rows:
        facts, _ = tx.keys.open(id, store_id, (id, key, sealed, None))
        if (facts.path, facts.sha256) == (path, sha256):
            return str(id)
    return None


def count_open(tx: Tx, store_id: str) -> int:
    """How many of a store are open."""
    row = tx.one(_COUNT, {"store": store_id})
    return int(row[0]) if row else 0


def page(
    tx: Tx, store_id: str, *, state: str | None, before: int, view: str, limit: int
) -> list[RejectedWrite]:
    """Those below a seq, newest first, in one state or (None) in all."""
    parameters = {
        "store": store_id,
        "before": before,
        "state": state or "",
        "every": int(state is None),
        "limit": limit,
    }
    return [from_row(tx, row) for row in tx.all(_PAGE[view], parameters)]


def resolve(
    tx: Tx,
    store_id: str,
    id: str,
    *,
    state: str,
    memory_id: str | None,
    version_id: str | None,
    at_us: int,
    by: Actor,
) -> None:
    """Applied or dismissed: what it said goes from this row, and its key from the key store."""
    tx.run(
        _RESOLVE,
        {
            "own": id,
            "new_state": state,
            "memory": memory_id,
            "version": version_id,
            "at": at_us,
            "kind": by.kind,
            "by": by.id,
        },
    )
    tx.destroy("rejected", store_id, id, id)
