"""SQL statements: written once in SQLAlchemy Core, compiled once per dialect, run by the driver.

Going through SQLAlchemy's own execution costs more than SQLite needs for the whole write; the
compiled text given to the driver costs nothing. It works because every column is an integer, a
text or bytes, which both drivers take and give as they are, and both take named parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlalchemy import Table, insert
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.sql.expression import ClauseElement

if TYPE_CHECKING:
    from memstore.storage.keyring import Keyring

Row = tuple[Any, ...]


class Statement:
    """A Core statement whose parameters are named by its `bindparam`s."""

    __slots__ = ("_columns", "_compiled", "_element")

    def __init__(self, element: ClauseElement, columns: Sequence[str] | None = None) -> None:
        self._element = element
        self._columns = columns
        self._compiled: dict[str, tuple[str, dict[str, Any]]] = {}

    def compiled(self, dialect: Dialect) -> tuple[str, dict[str, Any]]:
        """The SQL in a dialect, and the parameters that are constants of the statement."""
        found = self._compiled.get(dialect.name)
        if found is None:
            compiled = self._element.compile(dialect=dialect, column_keys=self._columns)
            constants = {
                name: bind.value
                for name, bind in getattr(compiled, "binds", {}).items()
                if not bind.required
            }
            found = self._compiled[dialect.name] = (str(compiled), constants)
        return found


def insert_into(table: Table) -> Statement:
    """An insert of one row; the parameters are named as the columns."""
    return Statement(insert(table), [column.name for column in table.columns])


class Tx:
    """A transaction, or one consistent reading, on one connection.

    `touched` maps each store changed in it to its last seq, for the feeds to be woken after the
    commit. `scrub` asks that what was overwritten leaves the log and free pages after the commit.
    `settle` names the intents of the key store to be finished, or undone, when the transaction has
    ended, whichever way.
    """

    __slots__ = ("_connection", "_dialect", "keys", "scrub", "settle", "touched")

    def __init__(self, connection: Any, dialect: Dialect, keys: Any = None) -> None:
        self._connection = connection
        self._dialect = dialect
        self.keys: Keyring = keys
        self.settle: list[str] = []
        self.touched: dict[str, int] = {}
        self.scrub = False

    def one(self, statement: Statement, parameters: Mapping[str, Any]) -> Row | None:
        """The first row, or None."""
        cursor = self._execute(statement, parameters)
        row: Row | None = cursor.fetchone()
        return row

    def all(self, statement: Statement, parameters: Mapping[str, Any]) -> list[Row]:
        """Every row."""
        cursor = self._execute(statement, parameters)
        rows: list[Row] = cursor.fetchall()
        return rows

    def cursor(self, statement: Statement, parameters: Mapping[str, Any]) -> Any:
        """An open cursor, for what is too much to hold at once: `fetchmany`, then `close`."""
        return self._execute(statement, parameters)

    def _execute(self, statement: Statement, parameters: Mapping[str, Any]) -> Any:
        """The driver's own cursor."""
        text, constants = statement.compiled(self._dialect)
        if constants:
            parameters = {**constants, **parameters}
        return self._connection.execute(text, parameters)

    def run(self, statement: Statement, parameters: Mapping[str, Any]) -> None:
        """Execute a change; it may be refused as late as at the next reading, or the commit."""
        self._execute(statement, parameters)

    def many(self, statement: Statement, rows: Sequence[Mapping[str, Any]]) -> None:
        """Execute a change once for each of the rows."""
        cursor = self._connection.cursor()
        cursor.executemany(statement.compiled(self._dialect)[0], rows)
        cursor.close()

    def destroy(self, kind: str, store_id: str, target_id: str, old_epoch: str = "") -> None:
        """Have keys destroyed once this transaction is committed; see `storage.destruction`."""
        self.settle.append(self.keys.intend(kind, store_id, target_id, old_epoch))
        self.scrub = True
