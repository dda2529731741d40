"""Rows of live memories."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import lru_cache
from typing import Any

from sqlalchemy import and_, bindparam, delete, or_, select, union_all, update
from sqlalchemy.sql.expression import ColumnElement

from memstore.model import paths
from memstore.model.clock import from_us
from memstore.model.errors import Unavailable
from memstore.model.memories import Memory
from memstore.storage.schema import memories, versions
from memstore.storage.statement import Row, Statement, Tx, insert_into
from memstore.storage.versions import SEALED, TEXT

_P = bindparam
PATH = 3
"""Where the path is in a row of a memory."""
_FIELDS: tuple[ColumnElement[Any], ...] = (
    memories.c.id,
    memories.c.store_id,
    memories.c.version_id,
    memories.c.path,
    memories.c.created_at_us,
    memories.c.updated_at_us,
)
_WITH_HEAD = memories.join(versions, versions.c.id == memories.c.version_id)


def _views(
    condition: ColumnElement[bool], finish: Callable[[Any], Any] = lambda q: q
) -> dict[str, Statement]:
    """A query in both views; the text is read only for the full one."""
    return {
        view: Statement(
            finish(select(*_FIELDS, *SEALED, text).select_from(_WITH_HEAD).where(condition))
        )
        for view, text in TEXT.items()
    }


_BY_ID = _views(and_(memories.c.id == _P("id"), memories.c.store_id == _P("store")))
_BY_PATH = _views(and_(memories.c.store_id == _P("store"), memories.c.path == _P("path")))
_PAGE = _views(
    and_(
        memories.c.store_id == _P("store"),
        memories.c.path >= _P("low"),
        memories.c.path < _P("high"),
    ),
    lambda q: q.order_by(memories.c.path).limit(_P("limit")),
)
_ALL = _views(memories.c.store_id == _P("store"), lambda q: q.order_by(memories.c.path))
_UPDATE = Statement(
    update(memories)
    .where(memories.c.id == _P("own"))
    .values(
        path=_P("new_path"),
        version_id=_P("new_version"),
        seq=_P("new_seq"),
        updated_at_us=_P("at"),
    )
)
_DELETE = Statement(delete(memories).where(memories.c.id == _P("own")))
_HEAD_OF = Statement(
    select(memories.c.version_id).where(
        memories.c.id == _P("id"), memories.c.store_id == _P("store")
    )
)
_PATHS = Statement(select(memories.c.path, memories.c.id).where(memories.c.store_id == _P("store")))
_INSERT = insert_into(memories)


@lru_cache(maxsize=32)
def _overlap(ancestors: int) -> Statement:
    """Another memory at a path, at one of its ancestors, or below it."""
    here = and_(memories.c.store_id == _P("store"), memories.c.id != _P("own"))
    names: list[Any] = [_P(name) for name in ("path", *(f"above{n}" for n in range(ancestors)))]
    at = select(memories.c.path, memories.c.id).where(
        here, or_(*(memories.c.path == name for name in names))
    )
    below = select(memories.c.path, memories.c.id).where(
        here, memories.c.path >= _P("low"), memories.c.path < _P("high")
    )
    return Statement(union_all(at, below).limit(1))


def from_row(tx: Tx, row: Row) -> Memory:
    """A memory of a row of the memory's fields and its head's sealed record."""
    id, store_id, version_id, path, created, updated = row[:6]
    facts, text = tx.keys.open(version_id, store_id, row[6:])
    if facts.size is None or facts.sha256 is None:
        raise Unavailable(f"Memory {id} is damaged: its head says nothing.")
    return Memory(
        id=id,
        store_id=store_id,
        version_id=version_id,
        path=path,
        content=None if text is None else text.decode(),
        content_size_bytes=facts.size,
        content_sha256=facts.sha256,
        created_at=from_us(created),
        updated_at=from_us(updated),
    )


def get(tx: Tx, store_id: str, memory_id: str, view: str) -> Memory | None:
    """The live memory of an id."""
    row = tx.one(_BY_ID[view], {"id": memory_id, "store": store_id})
    return None if row is None else from_row(tx, row)


def at_path(tx: Tx, store_id: str, path: str, view: str) -> Memory | None:
    """The live memory at a path."""
    row = tx.one(_BY_PATH[view], {"store": store_id, "path": path})
    return None if row is None else from_row(tx, row)


def head_of(tx: Tx, store_id: str, memory_id: str) -> str | None:
    """The id of the head version of a live memory."""
    row = tx.one(_HEAD_OF, {"id": memory_id, "store": store_id})
    return None if row is None else str(row[0])


def overlapping(tx: Tx, store_id: str, path: str, own_id: str = "") -> tuple[str, str] | None:
    """Path and id of a memory, other than `own_id`, that a memory at `path` would overlap."""
    above = paths.ancestors(path)
    low, high = paths.below(path)
    parameters = {"store": store_id, "path": path, "own": own_id, "low": low, "high": high}
    for number, ancestor in enumerate(above):
        parameters[f"above{number}"] = ancestor
    row = tx.one(_overlap(len(above)), parameters)
    return None if row is None else (row[0], row[1])


def add(tx: Tx, memory: Memory, seq: int, at_us: int) -> None:
    """A new memory's row."""
    tx.run(
        _INSERT,
        {
            "id": memory.id,
            "store_id": memory.store_id,
            "path": memory.path,
            "version_id": memory.version_id,
            "seq": seq,
            "created_at_us": at_us,
            "updated_at_us": at_us,
        },
    )


def change(tx: Tx, memory: Memory, seq: int, at_us: int) -> None:
    """Write a memory's new head."""
    tx.run(
        _UPDATE,
        {
            "own": memory.id,
            "new_path": memory.path,
            "new_version": memory.version_id,
            "new_seq": seq,
            "at": at_us,
        },
    )


def remove(tx: Tx, memory_id: str) -> None:
    """A memory is no longer live."""
    tx.run(_DELETE, {"own": memory_id})


def page(tx: Tx, store_id: str, *, low: str, high: str, view: str, limit: int) -> list[Row]:
    """Rows, for `from_row`, of paths from `low` up to, not including, `high`, in byte order."""
    return tx.all(_PAGE[view], {"store": store_id, "low": low, "high": high, "limit": limit})


def stream(tx: Tx, store_id: str) -> Generator[Memory, None, None]:
    """Every live memory with its text, in byte order, a few at a time."""
    cursor = tx.cursor(_ALL["full"], {"store": store_id})
    try:
        while rows := cursor.fetchmany(64):
            for row in rows:
                yield from_row(tx, row)
    finally:
        cursor.close()


def places(tx: Tx, store_id: str) -> dict[str, str]:
    """The path of every live memory, with its id."""
    return {row[0]: row[1] for row in tx.all(_PATHS, {"store": store_id})}


def heads(tx: Tx, store_id: str) -> list[tuple[str, tuple[Any, ...]]]:
    """The head of every live memory: the version's id and its sealed record, without the text."""
    rows = tx.all(_ALL["basic"], {"store": store_id})
    return [(row[2], tuple(row[6:])) for row in rows]
