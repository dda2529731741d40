"""Is the database true to itself? Each invariant is one query whose rows are its violations."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from sqlalchemy import and_, case, func, or_, select
from sqlalchemy.sql.expression import ColumnElement

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
_COUNTED = (
    select(_M.store_id, func.count().label("number"), func.sum(_M.size).label("bytes"))
    .group_by(_M.store_id)
    .subquery()
)
_LINEAGE = select(_V.memory_id).group_by(_V.memory_id)
_SAID = (_V.path, _V.size, _V.sha256, _V.content)

_INVARIANTS = {
    "a live memory's head is its own version": select(_M.id)
    .select_from(_HEAD)
    .where(_V.id.is_(None)),
    "a head has the memory's path, hash, size, seq and time": select(_M.id)
    .select_from(_HEAD)
    .where(
        or_(
            _V.path != _M.path,
            _V.sha256 != _M.sha256,
            _V.size != _M.size,
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
    .where(
        or_(
            _S.memory_count != func.coalesce(_COUNTED.c.number, 0),
            _S.total_bytes != func.coalesce(_COUNTED.c.bytes, 0),
        )
    ),
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
        or_(
            _V.path.is_(None),
            _V.size.is_not(None),
            _V.sha256.is_not(None),
            _V.content.is_not(None),
        ),
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
            *(column.is_(None) for column in (_R.path, _R.size, _R.sha256, _R.content)),
            _R.version_id.is_not(None),
            _R.resolved_at_us.is_not(None),
        ),
    ),
    "a resolved rejected write keeps no text": select(_R.id).where(
        _R.state != "open",
        or_(
            *(column.is_not(None) for column in (_R.path, _R.size, _R.sha256, _R.content)),
            _R.base_sha256.is_not(None),
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
_TEXTS = tuple(
    Statement(
        select(table.c.id, table.c.size, table.c.sha256, table.c.content).where(
            table.c.content.is_not(None)
        )
    )
    for table in (versions, rejected_writes)
)


def check(engine: Engine) -> list[str]:
    """What is wrong, one sentence each; empty when nothing is. Changes nothing."""
    found = engine.integrity()
    with engine.read() as tx:
        for name, statement in _STATEMENTS.items():
            for row in tx.all(statement, {})[:_SHOWN]:
                found.append(f"Not so: {name} ({' '.join(map(str, row))}).")
        found.extend(_wrong_texts(tx))
    return found


def _wrong_texts(tx: Tx) -> Iterator[str]:
    """Versions and rejected writes whose text is not the one that was hashed."""
    for statement in _TEXTS:
        cursor = tx.cursor(statement, {})
        while rows := cursor.fetchmany(64):
            for id, size, sha256, content in rows:
                data = bytes(content)
                if len(data) != size or hashlib.sha256(data).hexdigest() != sha256:
                    yield f"Not so: a text has its size and hash ({id})."
