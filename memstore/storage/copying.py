"""A whole service from one database into another, keys and all, and the proof that it arrived."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Table, func, select

from memstore.model.errors import Invalid, Unavailable
from memstore.settings import KeySource
from memstore.storage import keyring, master
from memstore.storage.engine import Engine
from memstore.storage.keystore import KeyStore
from memstore.storage.migrations import REVISIONS, migrate
from memstore.storage.schema import metadata
from memstore.storage.statement import Row, Statement, Tx, insert_into

CHUNK = 200
"""Rows in memory at once; a text has at most 100 kB."""

TABLES: tuple[Table, ...] = tuple(metadata.sorted_tables)
"""Every table, each after those it refers to."""

_ROWS = {table.name: Statement(select(table)) for table in TABLES}
_INSERTS = {table.name: insert_into(table) for table in TABLES}
_COUNTS = {table.name: Statement(select(func.count()).select_from(table)) for table in TABLES}


def copy(origin: Engine, origin_keys: KeySource, target: Engine, keys: KeySource) -> dict[str, int]:
    """Fill an empty database with everything of another; how many rows of each table.

    The origin, unlocked, takes no changes of SQLite's users meanwhile. Safe to repeat after it
    was killed. Invalid when the target holds anything; Unavailable when what arrived differs.
    """
    _refuse_unless_empty(target)
    key = keyring.unlocked(keys_beside(origin_keys, keys), origin.keys.store)

    def work(tx: Tx) -> dict[str, int]:
        if keys.store != origin_keys.store:
            _copy_keys(origin.keys.store, keys, key)
        target.keys = keyring.open_keyring(keys, data=True)
        migrate(target)
        target.write(lambda to: _fill(tx, to))
        return _compare(tx, target)

    return origin.write(work)


def keys_beside(origin: KeySource, target: KeySource) -> KeySource:
    """Where the master key is: at the target's place, else, for a file not there yet, the origin's."""
    if target.is_file and not target.master_file.exists():
        return origin
    return target


def _refuse_unless_empty(target: Engine) -> None:
    """Invalid, nothing touched, when there is anything in the database."""
    revision = target.schema_revision()
    if revision is None:
        return  # somebody else's tables are found by `migrate`
    if revision == REVISIONS[-1]:
        with target.read() as tx:
            if _is_empty(tx):
                return
    raise Invalid("The database to copy to is not empty: name a new one.")


def _is_empty(tx: Tx) -> bool:
    return not any(tx.one(query, {}) != (0,) for query in _COUNTS.values())


def _copy_keys(origin: KeyStore, keys: KeySource, key: bytes) -> None:
    """The key store, under the same master key; its file too, when it was at the origin's only."""
    if keys.is_file and not keys.master_file.exists():
        keys.master_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        master.write(keys.master_file, key)
        master.sync_folder(keys.master_file.parent)
    store = KeyStore(keys.store)
    try:
        store.prepare()
        if not store.take(origin.give()):
            raise Invalid(f"The key store ({store.where}) holds other keys: name a new database.")
    finally:
        store.close()


def _fill(origin: Tx, target: Tx) -> None:
    """Every row, in one transaction."""
    if not _is_empty(target):
        raise Invalid("The database to copy to is not empty: name a new one.")
    for table in TABLES:
        names = [column.name for column in table.columns]
        for rows in _chunks(origin, table):
            given = [dict(zip(names, row, strict=True)) for row in rows]
            target.many(_INSERTS[table.name], given)


def _chunks(tx: Tx, table: Table) -> Iterator[list[Row]]:
    cursor = tx.cursor(_ROWS[table.name], {})
    try:
        while rows := cursor.fetchmany(CHUNK):
            yield rows
    finally:
        cursor.close()


def _compare(origin: Tx, target: Engine) -> dict[str, int]:
    """Count and hash both; Unavailable when a table differs."""
    counts = {}
    with target.read() as tx:
        for table in TABLES:
            found = _digest(tx, table)
            if found != _digest(origin, table):
                raise Unavailable(f"The copy differs in {table.name}: drop it and copy again.")
            counts[table.name] = found[0]
    return counts


def _digest(tx: Tx, table: Table) -> tuple[int, int]:
    """How many rows, and a sum of their hashes, which does not depend on their order."""
    count = total = 0
    for rows in _chunks(tx, table):
        count += len(rows)
        for row in rows:
            total += int.from_bytes(hashlib.sha256(_said(row)).digest(), "big")
    return count, total % (1 << 256)


def _said(row: Row) -> bytes:
    values: list[Any] = [bytes(one) if isinstance(one, memoryview) else one for one in row]
    return repr(values).encode()
