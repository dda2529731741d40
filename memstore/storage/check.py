"""Is the database true to itself? Each invariant is one query whose rows are its violations."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from sqlalchemy import and_, case, func, or_, select
from sqlalchemy.sql.expression import ColumnElement

from memstore.model.errors import Unavailable
from memstore.storage.crypto import Facts
from memstore.storage.engine import Engine
from memstore.storage.schema import (
    deleted_stores,
    events,
    keys,
    memories,
    rejected_writes,
    session_stores,
    session_tokens,
    sessions,
    stores,
    versions,
    workspaces,
)
from memstore.storage.statement import Statement, Tx
from memstore.storage.versions import SEALED

_SHOWN = 20
"""Violations of one invariant that are listed; the rest are counted by running it again."""

_M, _V, _E, _S = memories.c, versions.c, events.c, stores.c
_R = rejected_writes.c
_OTHER = memories.alias("other")
_LIVE = select(_M.id).where(_M.id == _V.memory_id).exists()
_LATER = versions.alias("later")


def _count(operation: str) -> ColumnElement[int]:
    """How many versions of a group are of an operation."""
    return func.coalesce(func.sum(case((_V.operation == operation, 1), else_=0)), 0)


def _seq(operation: str) -> ColumnElement[int]:
    """The seq of a group's version of an operation."""
    return func.max(case((_V.operation == operation, _V.seq)))


_HEAD = memories.outerjoin(
    versions,
    and_(_V.id == _M.version_id, _V.memory_id == _M.id, _V.store_id == _M.store_id),
)
_COUNTED = select(_M.store_id, func.count().label("number")).group_by(_M.store_id).subquery()
_LINEAGE = select(_V.memory_id).group_by(_V.memory_id)
_SAID = (_V.epoch_id, _V.wrapped_key, _V.facts, _V.text)

_INVARIANTS = {
    "a live memory's head is its own version": select(_M.id)
    .select_from(_HEAD)
    .where(_V.id.is_(None)),
    "a head has the memory's seq and time": select(_M.id)
    .select_from(_HEAD)
    .where(
        or_(
            _V.seq != _M.seq,
            _V.created_at_us != _M.updated_at_us,
            _V.operation == "deleted",
            _V.redacted_at_us.is_not(None),
        )
    ),
    "a head is its memory's latest version": select(_M.id).where(
        select(_LATER.c.id).where(_LATER.c.memory_id == _M.id, _LATER.c.seq > _M.seq).exists()
    ),
    "no live path is above another": select(_M.store_id, _M.id, _OTHER.c.id).where(
        _OTHER.c.store_id == _M.store_id,
        _OTHER.c.path >= _M.path + "/",
        _OTHER.c.path < _M.path + "0",
    ),
    "a store's counters are right": select(_S.id)
    .select_from(stores.outerjoin(_COUNTED, _COUNTED.c.store_id == _S.id))
    .where(_S.memory_count != func.coalesce(_COUNTED.c.number, 0)),
    "no version is above its store's last seq and time": select(_V.id)
    .select_from(versions.join(stores, _S.id == _V.store_id))
    .where(or_(_V.seq > _S.last_seq, _V.seq < 1, _V.created_at_us > _S.last_at_us)),
    "no event is above its store's last seq and time": select(_E.store_id, _E.seq)
    .select_from(events.join(stores, _S.id == _E.store_id))
    .where(or_(_E.seq > _S.last_seq, _E.seq < 1, _E.created_at_us > _S.last_at_us)),
    "times rise with seq": select(_V.id)
    .select_from(versions.join(_LATER, _LATER.c.memory_id == _V.memory_id))
    .where(_LATER.c.seq > _V.seq, _LATER.c.created_at_us <= _V.created_at_us),
    "a lineage begins with its one `created`": _LINEAGE.having(
        or_(_count("created") != 1, _seq("created") != func.min(_V.seq))
    ),
    "a lineage ends with its `deleted`, if any": _LINEAGE.having(
        or_(
            _count("deleted") > 1,
            and_(_count("deleted") == 1, _seq("deleted") != func.max(_V.seq)),
        )
    ),
    "a memory with a `deleted` version is not live": select(_V.memory_id).where(
        _V.operation == "deleted", _LIVE
    ),
    "a memory without a `deleted` version is live": _LINEAGE.where(~_LIVE).having(
        _count("deleted") == 0
    ),
    "a redacted version says nothing": select(_V.id).where(
        _V.redacted_at_us.is_not(None), or_(*(column.is_not(None) for column in _SAID))
    ),
    "a `deleted` version has a path and no text": select(_V.id).where(
        _V.operation == "deleted",
        _V.redacted_at_us.is_(None),
        or_(*(column.is_(None) for column in _SAID[:-1]), _V.text.is_not(None)),
    ),
    "any other version has path, size, hash and text": select(_V.id).where(
        _V.operation != "deleted",
        _V.redacted_at_us.is_(None),
        or_(*(column.is_(None) for column in _SAID)),
    ),
    "an operation is one of three": select(_V.id).where(
        and_(*(_V.operation != name for name in ("created", "modified", "deleted")))
    ),
    "every version has its event": select(_V.id)
    .select_from(versions.outerjoin(events, and_(_E.store_id == _V.store_id, _E.seq == _V.seq)))
    .where(
        or_(
            _E.seq.is_(None),
            _E.version_id.is_(None),
            _E.version_id != _V.id,
            _E.kind != "memory." + _V.operation,
        )
    ),
    "every memory's event has its version": select(_E.store_id, _E.seq)
    .select_from(events.outerjoin(versions, _V.id == _E.version_id))
    .where(
        or_(
            and_(_E.version_id.is_not(None), _V.id.is_(None)),
            and_(
                _E.version_id.is_(None),
                _E.kind.not_like("store.%"),
                _E.kind != "write.rejected",
            ),
            _V.store_id != _E.store_id,
            _V.memory_id != _E.memory_id,
        )
    ),
    "a redaction has its event": select(_V.id).where(
        _V.redacted_at_us.is_not(None),
        ~select(_E.seq)
        .where(
            _E.store_id == _V.store_id,
            _E.version_id == _V.id,
            _E.kind == "version.redacted",
        )
        .exists(),
    ),
    "an open rejected write has path, size, hash and text": select(_R.id).where(
        _R.state == "open",
        or_(
            *(column.is_(None) for column in (_R.wrapped_key, _R.facts, _R.text)),
            _R.version_id.is_not(None),
            _R.resolved_at_us.is_not(None),
        ),
    ),
    "a resolved rejected write keeps no text": select(_R.id).where(
        _R.state != "open",
        or_(
            *(column.is_not(None) for column in (_R.wrapped_key, _R.facts, _R.text)),
            _R.resolved_at_us.is_(None),
        ),
    ),
    "an applied rejected write, and no other, names a version": select(_R.id).where(
        or_(
            and_(_R.state == "applied", _R.version_id.is_(None)),
            and_(_R.state == "dismissed", _R.version_id.is_not(None)),
            and_(*(_R.state != name for name in ("open", "applied", "dismissed"))),
        )
    ),
    "every rejected write has its event": select(_R.id)
    .select_from(
        rejected_writes.outerjoin(events, and_(_E.store_id == _R.store_id, _E.seq == _R.seq))
    )
    .where(or_(_E.seq.is_(None), _E.kind != "write.rejected")),
    "a deleted store left nothing": select(_S.id).where(_S.id == deleted_stores.c.id),
    "everything is in a workspace": select(_S.id)
    .where(_S.workspace_id.not_in(select(workspaces.c.id)))
    .union_all(
        select(keys.c.id).where(keys.c.workspace_id.not_in(select(workspaces.c.id))),
        select(sessions.c.id).where(sessions.c.workspace_id.not_in(select(workspaces.c.id))),
    ),
    "everything else is in a store": select(_M.id)
    .where(_M.store_id.not_in(select(_S.id)))
    .union_all(
        select(_V.id).where(_V.store_id.not_in(select(_S.id))),
        select(_E.store_id).where(_E.store_id.not_in(select(_S.id))),
        select(_R.id).where(_R.store_id.not_in(select(_S.id))),
    ),
    "attachments and tokens are of a session": select(session_stores.c.session_id)
    .where(session_stores.c.session_id.not_in(select(sessions.c.id)))
    .union_all(
        select(session_tokens.c.session_id).where(
            session_tokens.c.session_id.not_in(select(sessions.c.id))
        )
    ),
}
"""By the sentence that must be true; the ids of what breaks it."""

_STATEMENTS = {name: Statement(query) for name, query in _INVARIANTS.items()}
_HEADS = Statement(select(_M.version_id, _M.path, _M.store_id))
_TOTALS = Statement(select(_S.id, _S.total_bytes))
_SEALED = {
    "version": Statement(
        select(_V.id, _V.store_id, _V.operation, *SEALED, _V.text).where(_V.facts.is_not(None))
    ),
    "rejected write": Statement(
        select(_R.id, _R.store_id, _R.state, _R.id, _R.wrapped_key, _R.facts, _R.text).where(
            _R.facts.is_not(None)
        )
    ),
}


def check(engine: Engine) -> list[str]:
    """What is wrong, one sentence each; empty when nothing is. Changes nothing."""
    found = engine.integrity()
    with engine.read() as tx:
        for name, statement in _STATEMENTS.items():
            for row in tx.all(statement, {})[:_SHOWN]:
                found.append(f"Not so: {name} ({' '.join(map(str, row))}).")
        found.extend(_wrong_records(tx))
    return found


def _wrong_records(tx: Tx) -> Iterator[str]:
    """What the sealed records say that is not so: each is opened and its text hashed."""
    heads = {row[0]: (row[1], row[2]) for row in tx.all(_HEADS, {})}
    totals: dict[str, int] = {}
    for statement in _SEALED.values():
        cursor = tx.cursor(statement, {})
        while rows := cursor.fetchmany(64):
            for id, store_id, operation, *sealed in rows:
                try:
                    facts, text = tx.keys.open(id, store_id, sealed)
                except Unavailable:
                    yield f"Not so: a record can be opened with its key ({id})."
                    continue
                if operation != "deleted" and not _is_text(text, facts):
                    yield f"Not so: a text has its size and hash ({id})."
                if id in heads:
                    totals[store_id] = totals.get(store_id, 0) + (facts.size or 0)
                    if heads[id][0] != facts.path:
                        yield f"Not so: a head has the memory's path ({id})."
    for store_id, total in tx.all(_TOTALS, {}):
        if totals.get(store_id, 0) != total:
            yield f"Not so: a store's bytes are right ({store_id})."


def _is_text(text: bytes | None, facts: Facts) -> bool:
    """Whether a text is the one the facts tell of."""
    return (
        text is not None
        and len(text) == facts.size
        and hashlib.sha256(text).hexdigest() == facts.sha256
    )
