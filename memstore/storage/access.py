"""Rows of workspaces and keys."""

from __future__ import annotations

from sqlalchemy import bindparam, or_, select, update

from memstore.model.access import Key
from memstore.model.clock import from_us, to_us
from memstore.storage.schema import keys, workspaces
from memstore.storage.statement import Row, Statement, Tx, insert_into

_P = bindparam
_K = keys.c
_FIELDS = (
    _K.id,
    _K.workspace_id,
    workspaces.c.name,
    _K.name,
    _K.scopes,
    _K.created_at_us,
    _K.revoked_at_us,
)
_KEYS = select(*_FIELDS).select_from(keys.join(workspaces, workspaces.c.id == _K.workspace_id))
_ONE = Statement(_KEYS.where(_K.id == _P("id"), _K.workspace_id == _P("workspace")))
_BY_HASH = Statement(
    select(_K.secret_sha256, _K.id, _K.workspace_id, _K.scopes).where(
        _K.secret_sha256 == _P("hash"), _K.revoked_at_us.is_(None)
    )
)
_PAGE = Statement(
    _KEYS.where(
        _K.workspace_id == _P("workspace"),
        _K.created_at_us <= _P("at"),
        or_(_K.created_at_us < _P("at"), _K.id < _P("before")),
    )
    .order_by(_K.created_at_us.desc(), _K.id.desc())
    .limit(_P("limit"))
)
_OLDEST = Statement(
    _KEYS.where(_K.workspace_id == _P("workspace"), _K.revoked_at_us.is_(None)).order_by(
        _K.created_at_us, _K.id
    )
)
_REVOKE = Statement(
    update(keys)
    .where(_K.id == _P("own"), _K.revoked_at_us.is_(None))
    .values(revoked_at_us=_P("at"))
)
_WORKSPACE = Statement(select(workspaces.c.id).where(workspaces.c.name == _P("name")))
_WORKSPACE_NAME = Statement(select(workspaces.c.name).where(workspaces.c.id == _P("id")))
_INSERT_KEY = insert_into(keys)
_INSERT_WORKSPACE = insert_into(workspaces)


def _from_row(row: Row) -> Key:
    """A key of a row of its fields."""
    id, workspace_id, workspace, name, scopes, created, revoked = row
    return Key(
        id=id,
        workspace_id=workspace_id,
        workspace=workspace,
        name=name,
        scopes=tuple(scopes.split(",")),
        created_at=from_us(created),
        revoked_at=None if revoked is None else from_us(revoked),
    )


def workspace_id(tx: Tx, name: str) -> str | None:
    """The id of a workspace by its name."""
    row = tx.one(_WORKSPACE, {"name": name})
    return None if row is None else str(row[0])


def workspace_name(tx: Tx, id: str) -> str | None:
    """The name of a workspace."""
    row = tx.one(_WORKSPACE_NAME, {"id": id})
    return None if row is None else str(row[0])


def add_workspace(tx: Tx, id: str, name: str, at_us: int) -> None:
    """A new workspace's row; Duplicate when the name is taken."""
    tx.run(_INSERT_WORKSPACE, {"id": id, "name": name, "created_at_us": at_us})


def add_key(tx: Tx, key: Key, hash: str) -> None:
    """A new key's row."""
    tx.run(
        _INSERT_KEY,
        {
            "id": key.id,
            "workspace_id": key.workspace_id,
            "name": key.name,
            "scopes": ",".join(key.scopes),
            "secret_sha256": hash,
            "created_at_us": to_us(key.created_at),
            "revoked_at_us": None,
        },
    )


def get_key(tx: Tx, workspace: str, key_id: str) -> Key | None:
    """The key, when it is of the workspace."""
    row = tx.one(_ONE, {"id": key_id, "workspace": workspace})
    return None if row is None else _from_row(row)


def working_keys(tx: Tx, workspace: str) -> list[Key]:
    """The keys of a workspace that are not revoked, oldest first."""
    return [_from_row(row) for row in tx.all(_OLDEST, {"workspace": workspace})]


def page(tx: Tx, workspace: str, *, before: tuple[int, str], limit: int) -> list[Key]:
    """Keys before a (created, id) key, newest first."""
    rows = tx.all(
        _PAGE, {"workspace": workspace, "at": before[0], "before": before[1], "limit": limit}
    )
    return [_from_row(row) for row in rows]


def revoke(tx: Tx, key_id: str, at_us: int) -> None:
    """The key works no more; the first time counts."""
    tx.run(_REVOKE, {"own": key_id, "at": at_us})


def by_hash(tx: Tx, hash: str) -> tuple[str, str, str, tuple[str, ...]] | None:
    """The hash as kept, id, workspace and scopes of a working key."""
    row = tx.one(_BY_HASH, {"hash": hash})
    return None if row is None else (row[0], row[1], row[2], tuple(row[3].split(",")))
