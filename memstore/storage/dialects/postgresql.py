"""PostgreSQL: a pool of connections; a writer locks its store's row, so writers do not queue here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from sqlalchemy import create_engine, event, inspect, text
from sqlalchemy.engine import URL, Connection
from sqlalchemy.engine.interfaces import Dialect
from sqlalchemy.exc import SQLAlchemyError

from memstore.model.errors import Unavailable
from memstore.storage.dialects.postgresql_listener import Listener, notify
from memstore.storage.engine import Committed, Duplicate, Settled
from memstore.storage.statement import Row, Statement, Tx

T = TypeVar("T")

CONNECTED: dict[str, Any] = {
    "connect_timeout": 5,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""A server that went away without a word is noticed; what the URL says comes before these."""
POOL = 16
"""Connections kept open to the data; at most `POOL_BURST` more while there is much to do."""
POOL_BURST = 10
ATTEMPTS = 3
"""How often a transaction is tried that the server undid for the sake of another."""

_DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') = 'off'"
)


def connect_options(url: URL) -> dict[str, Any]:
    """How a connection is made."""
    return {name: value for name, value in CONNECTED.items() if name not in url.query}


def refusal(error: BaseException, what: str = "PostgreSQL database") -> Unavailable:
    """The sentence for a failure of the database itself, without its credentials."""
    cause = type(getattr(error, "orig", None) or error).__name__
    return Unavailable(f"The {what} cannot answer now ({cause}); try again.")


class _Stream:
    """A cursor in the server: the driver's own would hold every row here."""

    def __init__(self, connection: Any, name: str, query: str, parameters: Any) -> None:
        self._connection, self._name = connection, name
        connection.execute(f"DECLARE {name} NO SCROLL CURSOR FOR {query}", parameters)

    def fetchmany(self, size: int) -> list[Row]:
        """The next rows; none at the end."""
        rows: list[Row] = self._connection.execute(f"FETCH {size} FROM {self._name}").fetchall()
        return rows

    def close(self) -> None:
        """Nothing: it ends with its transaction."""


class _Tx(Tx):
    """A transaction whose open cursors are in the server."""

    __slots__ = ("_streams",)

    def __init__(self, connection: Any, dialect: Dialect, keys: Any) -> None:
        super().__init__(connection, dialect, keys)
        self._streams = 0

    def cursor(self, statement: Statement, parameters: Mapping[str, Any]) -> Any:
        """An open cursor."""
        query, constants = statement.compiled(self._dialect)
        self._streams += 1
        name = f"stream{self._streams}"
        return _Stream(self._connection, name, query, {**constants, **parameters})


class PostgresqlEngine:
    """One database; every thread brings its own transaction."""

    def __init__(self, url: URL, committed: Committed) -> None:
        self._url = url.set(drivername="postgresql+psycopg")
        self._engine = create_engine(
            self._url,
            pool_pre_ping=True,
            pool_size=POOL,
            max_overflow=POOL_BURST,
            pool_use_lifo=True,
            connect_args=connect_options(url),
        )
        event.listen(self._engine, "connect", _prepare)
        self.keys: Any = None
        self.settled: Settled = lambda intent: None
        self._committed = committed
        self._closed = False
        self._listener = Listener(self._url, connect_options(url), committed)

    def _connection(self, *, read_only: bool) -> Any:
        """A connection of the pool whose next transaction is of that kind."""
        if self._closed:
            raise Unavailable("The database is closed.")
        try:
            connection = self._engine.raw_connection()
        except (SQLAlchemyError, psycopg.Error) as error:
            raise refusal(error) from error
        own: Any = connection.driver_connection
        level = psycopg.IsolationLevel
        own.isolation_level = level.REPEATABLE_READ if read_only else level.READ_COMMITTED
        own.read_only = read_only
        return connection

    def open_read(self) -> tuple[Tx, Callable[[], None]]:
        """A REPEATABLE READ transaction that lasts until the function returned is called."""
        connection = self._connection(read_only=True)
        own = connection.driver_connection
        return _Tx(own, self._engine.dialect, self.keys), lambda: _release(connection, own)

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """A reading whose statements all see one moment."""
        tx, end = self.open_read()
        try:
            yield tx
        except psycopg.Error as error:
            raise refusal(error) from error
        finally:
            end()

    def write(self, work: Callable[[Tx], T]) -> T:
        """Run `work` in a transaction of its own."""
        begun: list[str] = []
        try:
            for _ in range(ATTEMPTS - 1):
                with suppress(psycopg.errors.TransactionRollback):
                    return self._write(work, begun)
            return self._write(work, begun)
        except psycopg.Error as error:
            raise refusal(error) from error
        finally:
            for intent in begun:
                self.settled(intent)

    def _write(self, work: Callable[[Tx], T], begun: list[str]) -> T:
        """The transaction; `begun` gets what it began in the key store."""
        connection = self._connection(read_only=False)
        own = connection.driver_connection
        try:
            tx = _Tx(own, self._engine.dialect, self.keys)
            tx.settle = begun
            with own.pipeline():  # changes wait for no answer of their own, only readings do
                result = work(tx)
                if tx.touched:
                    notify(own, self._listener.name, tx.touched)
                own.commit()
            if own.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                own.commit()  # inside, it had not begun as far as the driver knew
        except psycopg.IntegrityError as error:
            raise Duplicate(str(error)) from error
        finally:
            _release(connection, own)
        if tx.touched:
            self._committed(tx.touched)
        return result

    def watch_others(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Listen to what other processes tell of in their transactions."""
        return self._listener.start(changed)

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        """A transaction under an advisory lock, which keeps other migrating processes out."""
        try:
            with self._engine.begin() as connection:
                connection.execute(text("SELECT pg_advisory_xact_lock(7238462)"))
                yield connection
        except SQLAlchemyError as error:
            raise refusal(error) from error

    def schema_revision(self) -> str | None:
        """What the migrations left in `alembic_version`."""
        if self._closed:
            raise Unavailable("The database is closed.")
        try:
            with self._engine.connect() as connection:
                if not inspect(connection).has_table("alembic_version"):
                    return None
                found = connection.execute(text("SELECT version_num FROM alembic_version"))
                return found.scalar()
        except SQLAlchemyError as error:
            raise refusal(error) from error

    def integrity(self) -> list[str]:
        """PostgreSQL keeps its pages and foreign keys itself."""
        return []

    def scrub(self) -> None:
        """Nothing: PostgreSQL empties its log itself, and it holds sealed records only."""

    def compact(self) -> None:
        """Rewrite every table."""
        try:
            with self._engine.connect().execution_options(
                isolation_level="AUTOCOMMIT"
            ) as connection:
                connection.execute(text("VACUUM FULL"))
        except SQLAlchemyError as error:
            raise refusal(error) from error

    def close(self) -> None:
        """Release every connection."""
        self._closed = True
        self._listener.close()
        self._engine.dispose()
        if self.keys is not None:
            self.keys.close()


def _prepare(connection: Any, record: Any) -> None:
    """A commit is on disk when it is answered, also where the server's default is otherwise."""
    connection.execute(_DURABLE)
    connection.commit()


def _release(connection: Any, own: Any) -> None:
    """Give a connection back without its transaction; one that cannot be rolled back is dropped."""
    if connection.dbapi_connection is None:
        return  # given back before
    try:
        own.rollback()
        own.isolation_level = own.read_only = None
    except psycopg.Error:
        connection.invalidate()
    connection.close()
