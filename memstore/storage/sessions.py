"""Rows of sessions, their stores and their tokens."""

from __future__ import annotations

import json

from sqlalchemy import bindparam, delete, exists, or_, select, update

from memstore.model.clock import from_us, to_us
from memstore.model.sessions import AttachedStore, Session
from memstore.storage.schema import session_stores, session_tokens, sessions
from memstore.storage.statement import Row, Statement, Tx, insert_into

_P = bindparam
_S = sessions.c
_FIELDS = (
    _S.id,
    _S.agent,
    _S.environment_id,
    _S.title,
    _S.metadata,
    _S.vault_ids,
    _S.created_at_us,
    _S.updated_at_us,
    _S.archived_at_us,
)
_ONE = Statement(
    select(*_FIELDS).where(_S.id == _P("id"), _S.workspace_id == _P("workspace")).with_for_update()
)
_PEEK = Statement(select(*_FIELDS).where(_S.id == _P("id"), _S.workspace_id == _P("workspace")))
_PAGE_QUERY = (
    select(*_FIELDS)
    .where(
        _S.workspace_id == _P("workspace"),
        _S.created_at_us >= _P("low"),
        _S.created_at_us <= _P("high"),
        or_(_S.created_at_us < _P("at"), _S.id < _P("before")),
        or_(_S.archived_at_us.is_(None), _P("archived") == 1),
        or_(_S.id == _P("only"), _P("only") == ""),
    )
    .order_by(_S.created_at_us.desc(), _S.id.desc())
    .limit(_P("limit"))
)
_PAGE = Statement(_PAGE_QUERY)
_PAGE_OF_STORE = Statement(
    _PAGE_QUERY.where(
        exists().where(
            session_stores.c.store_id == _P("store"), session_stores.c.session_id == _S.id
        )
    )
)
_STORES = Statement(
    select(
        session_stores.c.store_id,
        session_stores.c.access,
        session_stores.c.instructions,
        session_stores.c.name,
        session_stores.c.description,
        session_stores.c.mount_path,
    )
    .where(session_stores.c.session_id == _P("session"))
    .order_by(session_stores.c.position)
)
_ARCHIVE = Statement(
    update(sessions)
    .where(_S.id == _P("own"))
    .values(archived_at_us=_P("at"), updated_at_us=_P("at"))
)
_REMOVE = (
    Statement(delete(session_tokens).where(session_tokens.c.session_id == _P("id"))),
    Statement(delete(session_stores).where(session_stores.c.session_id == _P("id"))),
    Statement(delete(sessions).where(_S.id == _P("id"))),
)
_TOKEN_OWNER = Statement(
    select(session_tokens.c.secret_sha256, _S.id, _S.workspace_id)
    .select_from(session_tokens.join(sessions, _S.id == session_tokens.c.session_id))
    .where(session_tokens.c.secret_sha256 == _P("hash"), _S.archived_at_us.is_(None))
)
_INSERT = insert_into(sessions)
_INSERT_STORE = insert_into(session_stores)
_INSERT_TOKEN = insert_into(session_tokens)


def _attached(tx: Tx, session_id: str) -> tuple[AttachedStore, ...]:
    """The stores of a session, in the order they were attached."""
    return tuple(AttachedStore(*row) for row in tx.all(_STORES, {"session": session_id}))


def _from_row(tx: Tx, row: Row) -> Session:
    """A session of a row of its fields."""
    id, agent, environment_id, title, metadata, vault_ids, created, updated, archived = row
    return Session(
        id=id,
        agent=json.loads(agent),
        environment_id=environment_id,
        title=title,
        metadata=json.loads(metadata),
        vault_ids=tuple(json.loads(vault_ids)),
        stores=_attached(tx, id),
        created_at=from_us(created),
        updated_at=from_us(updated),
        archived_at=None if archived is None else from_us(archived),
    )


def add(tx: Tx, workspace_id: str, session: Session) -> None:
    """A new session's rows."""
    created = to_us(session.created_at)
    tx.run(
        _INSERT,
        {
            "id": session.id,
            "workspace_id": workspace_id,
            "agent": json.dumps(session.agent),
            "environment_id": session.environment_id,
            "title": session.title,
            "metadata": json.dumps(dict(session.metadata)),
            "vault_ids": json.dumps(list(session.vault_ids)),
            "created_at_us": created,
            "updated_at_us": created,
            "archived_at_us": None,
        },
    )
    for position, store in enumerate(session.stores):
        tx.run(
            _INSERT_STORE,
            {
                "session_id": session.id,
                "position": position,
                "store_id": store.store_id,
                "access": store.access,
                "instructions": store.instructions,
                "name": store.name,
                "description": store.description,
                "mount_path": store.mount_path,
            },
        )


def get(tx: Tx, workspace_id: str, session_id: str, *, lock: bool = False) -> Session | None:
    """The session, when it is in the workspace; `lock` holds it until the transaction ends."""
    row = tx.one(_ONE if lock else _PEEK, {"id": session_id, "workspace": workspace_id})
    return None if row is None else _from_row(tx, row)


def page(
    tx: Tx,
    workspace_id: str,
    *,
    store_id: str | None,
    only: str | None,
    low: int,
    high: int,
    archived: bool,
    before: tuple[int, str],
    limit: int,
) -> list[Session]:
    """Sessions before a (created, id) key, newest first; `only` one, with some of the stores."""
    rows = tx.all(
        _PAGE if store_id is None else _PAGE_OF_STORE,
        {
            "workspace": workspace_id,
            "store": store_id,
            "only": only or "",
            "low": low,
            "high": min(high, before[0]),
            "at": before[0],
            "before": before[1],
            "archived": int(archived),
            "limit": limit,
        },
    )
    return [_from_row(tx, row) for row in rows]


def archive(tx: Tx, session_id: str, at_us: int) -> None:
    """The session ended, and its tokens with it."""
    tx.run(_ARCHIVE, {"own": session_id, "at": at_us})


def remove(tx: Tx, session_id: str) -> None:
    """The session, its tokens and its list of stores."""
    for statement in _REMOVE:
        tx.run(statement, {"id": session_id})


def add_token(tx: Tx, workspace_id: str, session_id: str, hash: str, at_us: int) -> None:
    """A token of the session."""
    tx.run(
        _INSERT_TOKEN,
        {
            "secret_sha256": hash,
            "session_id": session_id,
            "workspace_id": workspace_id,
            "created_at_us": at_us,
        },
    )


def of_token(tx: Tx, hash: str) -> tuple[str, str, str, tuple[AttachedStore, ...]] | None:
    """The hash as kept, session, workspace and stores of a working token."""
    row = tx.one(_TOKEN_OWNER, {"hash": hash})
    return None if row is None else (row[0], row[1], row[2], _attached(tx, row[1]))
