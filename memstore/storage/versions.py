"""Rows of versions."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import lru_cache
from typing import Any

from sqlalchemy import bindparam, func, null, select, update
from sqlalchemy.sql.expression import ColumnElement

from memstore.model.actors import Actor
from memstore.model.clock import from_us
from memstore.model.versions import Version
from memstore.storage.crypto import Epoch, Facts
from memstore.storage.schema import versions
from memstore.storage.statement import Row, Statement, Tx, insert_into

EPOCH_SPAN = 1000
"""Versions of one epoch have seqs less than this apart: so many keys a redaction wraps anew."""

_P = bindparam
_V = versions.c
_FIELDS: tuple[ColumnElement[Any], ...] = (
    _V.id,
    _V.memory_id,
    _V.store_id,
    _V.seq,
    _V.operation,
    _V.created_at_us,
    _V.actor_kind,
    _V.actor_id,
    _V.redacted_at_us,
    _V.redacted_by_kind,
    _V.redacted_by_id,
)
SEALED: tuple[ColumnElement[Any], ...] = (_V.epoch_id, _V.wrapped_key, _V.facts)
"""The sealed record but for its text, as `Keyring.open` takes it."""
TEXT: dict[str, ColumnElement[Any]] = {"basic": null(), "full": _V.text}
"""The sealed text, read only for the full view."""
_ONE = {
    view: Statement(
        select(*_FIELDS, *SEALED, text).where(_V.id == _P("id"), _V.store_id == _P("store"))
    )
    for view, text in TEXT.items()
}
_REDACT = Statement(
    update(versions)
    .where(_V.id == _P("own"))
    .values(
        epoch_id=None,
        wrapped_key=None,
        facts=None,
        text=None,
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
    query = select(*_FIELDS, *SEALED, TEXT[view]).where(
        _V.store_id == _P("store"),
        _V.seq < _P("before"),
        _V.seq > _P("after"),
        *(_FILTERS[name] for name in filters),
    )
    return Statement(query.order_by(_V.seq.desc()).limit(_P("limit")))


def from_row(tx: Tx, row: Row) -> Version:
    """A version of a row of the version's fields and its sealed record."""
    id, memory_id, store_id, seq, operation, created, kind, by = row[:8]
    redacted, redacted_kind, redacted_by = row[8:11]
    facts, text = tx.keys.open(id, store_id, row[11:])
    return Version(
        id=id,
        memory_id=memory_id,
        store_id=store_id,
        seq=seq,
        operation=operation,
        path=facts.path,
        content=None if text is None else text.decode(),
        content_size_bytes=facts.size,
        content_sha256=facts.sha256,
        created_at=from_us(created),
        created_by=None if kind is None else Actor(kind, by),
        redacted_at=None if redacted is None else from_us(redacted),
        redacted_by=None if redacted_kind is None else Actor(redacted_kind, redacted_by),
    )


def add(
    tx: Tx,
    *,
    id: str,
    epoch: Epoch,
    memory_id: str,
    seq: int,
    at_us: int,
    operation: str,
    path: str,
    content: bytes | None,
    sha256: str | None,
    actor: Actor,
) -> None:
    """A new version's row, sealed; without content it is a `deleted` one."""
    facts = Facts(path, None if content is None else len(content), sha256)
    sealed = tx.keys.seal(epoch, id, facts, content)
    tx.run(
        _INSERT,
        {
            "id": id,
            "store_id": epoch.store_id,
            "memory_id": memory_id,
            "seq": seq,
            "operation": operation,
            "created_at_us": at_us,
            "actor_kind": actor.kind,
            "actor_id": actor.id,
            "redacted_at_us": None,
            "redacted_by_kind": None,
            "redacted_by_id": None,
            "epoch_id": sealed.epoch_id,
            "wrapped_key": sealed.wrapped_key,
            "facts": sealed.facts,
            "text": sealed.text,
        },
    )


def get(tx: Tx, store_id: str, version_id: str, view: str) -> Version | None:
    """The version of an id."""
    row = tx.one(_ONE[view], {"id": version_id, "store": store_id})
    return None if row is None else from_row(tx, row)


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
    return [from_row(tx, row) for row in tx.all(_page(view, tuple(sorted(filters))), parameters)]


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


_KEY = Statement(select(_V.epoch_id).where(_V.id == _P("id"), _V.store_id == _P("store")))
_UNDER = Statement(
    select(_V.id, _V.wrapped_key).where(
        _V.store_id == _P("store"),
        _V.seq >= _P("low"),
        _V.seq < _P("high"),
        _V.epoch_id == _P("epoch"),
    )
)
_REWRAP = Statement(
    update(versions)
    .where(_V.id == _P("own"))
    .values(epoch_id=_P("new_epoch"), wrapped_key=_P("new_key"))
)


def epoch_of(tx: Tx, store_id: str, version_id: str) -> str | None:
    """The epoch that wraps a version's key; None once redacted."""
    row = tx.one(_KEY, {"id": version_id, "store": store_id})
    return None if row is None else row[0]


def is_there(tx: Tx, store_id: str, version_id: str) -> bool:
    """Whether there is such a version, redacted or not."""
    return tx.one(_KEY, {"id": version_id, "store": store_id}) is not None


def under(tx: Tx, epoch: Epoch) -> list[tuple[str, bytes]]:
    """Versions under an epoch, and their wrapped keys."""
    low = epoch.first_seq
    rows = tx.all(
        _UNDER,
        {"store": epoch.store_id, "low": low, "high": low + EPOCH_SPAN, "epoch": epoch.id},
    )
    return [(row[0], bytes(row[1])) for row in rows]


def rewrap(tx: Tx, version_id: str, epoch_id: str, wrapped: bytes) -> None:
    """Put a version's key under another epoch."""
    tx.run(_REWRAP, {"own": version_id, "new_epoch": epoch_id, "new_key": wrapped})


def redact(tx: Tx, version_id: str, at_us: int, actor: Actor) -> None:
    """Take from the row what the version said; `destruction` destroys its key."""
    tx.run(_REDACT, {"own": version_id, "at": at_us, "kind": actor.kind, "by": actor.id})
    tx.scrub = True


_TOUCHED = Statement(
    select(_V.memory_id, func.max(_V.seq))
    .where(_V.store_id == _P("store"), _V.seq > _P("after"))
    .group_by(_V.memory_id)
)
_WRITTEN = Statement(
    select(_V.memory_id, func.max(_V.seq))
    .where(_V.store_id == _P("store"), _V.actor_id == _P("actor"))
    .group_by(_V.memory_id)
)
_SKIM = Statement(
    select(_V.seq, _V.memory_id)
    .where(_V.store_id == _P("store"), _V.seq < _P("before"), _V.seq > _P("after"))
    .order_by(_V.seq.desc())
)
_PLACES = Statement(
    select(_V.id, _V.memory_id, *SEALED, null())
    .where(_V.store_id == _P("store"), _V.redacted_at_us.is_(None))
    .order_by(_V.seq)
)


def touched(tx: Tx, store_id: str, after: int) -> dict[str, int]:
    """Memories with versions above a seq, and the last seq of each."""
    return {row[0]: row[1] for row in tx.all(_TOUCHED, {"store": store_id, "after": after})}


def written(tx: Tx, store_id: str, actor_id: str) -> dict[str, int]:
    """Memories with versions of an author, and the last seq of those of each."""
    return {row[0]: row[1] for row in tx.all(_WRITTEN, {"store": store_id, "actor": actor_id})}


def skim(
    tx: Tx, store_id: str, *, before: int, after: int
) -> Generator[tuple[int, str], None, None]:
    """Seq and memory of the versions between two seqs, newest first, a few at a time."""
    cursor = tx.cursor(_SKIM, {"store": store_id, "before": before, "after": after})
    try:
        while rows := cursor.fetchmany(256):
            for row in rows:
                yield row[0], row[1]
    finally:
        cursor.close()


def ever_at(tx: Tx, store_id: str, within: Callable[[str], bool], known: set[str]) -> set[str]:
    """Memories that ever were at a path that is `within`, beside those known.

    Paths of versions lie sealed: each is opened in turn, since no index could have them in plain.
    """
    found = set(known)
    cursor = tx.cursor(_PLACES, {"store": store_id})
    try:
        while rows := cursor.fetchmany(256):
            for row in rows:
                if row[1] in found:
                    continue
                facts, _ = tx.keys.open(row[0], store_id, row[2:])
                if facts.path is not None and within(facts.path):
                    found.add(row[1])
    finally:
        cursor.close()
    return found
