"""PostgreSQL: a pool of connections; a writer locks its store's row, so writers do not queue here."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import URL, Connection
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError

from memstore.model.errors import Unavailable
from memstore.storage.engine import Committed, Duplicate, Settled
from memstore.storage.statement import Tx

T = TypeVar("T")

POLL_SECONDS = 0.1
"""How often the commits of other processes are looked for, while somebody listens."""


class PostgresqlEngine:
    """One database; every thread brings its own transaction."""

    def __init__(self, url: URL, committed: Committed) -> None:
        self._engine = create_engine(
            url.set(drivername="postgresql+psycopg"), pool_pre_ping=True, pool_size=16
        )
        self.keys: Any = None
        self.settled: Settled = lambda intent: None
        self._committed = committed

    def _refusal(self, error: Exception) -> Unavailable:
        """The sentence for a failure of the database itself, without its credentials."""
        cause = type(getattr(error, "orig", None) or error).__name__
        return Unavailable(f"The PostgreSQL database cannot answer now ({cause}); try again.")

    def open_read(self) -> tuple[Tx, Callable[[], None]]:
        """A REPEATABLE READ transaction that lasts until the function returned is called."""
        try:
            connection = self._engine.raw_connection()
            connection.cursor().execute(
                "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY"
            )
        except Exception as error:
            raise self._refusal(error) from error
        return Tx(connection.driver_connection, self._engine.dialect, self.keys), connection.close

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """A reading whose statements all see one moment."""
        tx, end = self.open_read()
        try:
            yield tx
        except self._engine.dialect.loaded_dbapi.Error as error:
            raise self._refusal(error) from error
        finally:
            end()

    def write(self, work: Callable[[Tx], T]) -> T:
        """Run `work` in a transaction of its own."""
        begun: list[str] = []
        try:
            return self._write(work, begun)
        finally:
            for intent in begun:
                self.settled(intent)

    def _write(self, work: Callable[[Tx], T], begun: list[str]) -> T:
        """The transaction; `begun` gets what it began in the key store."""
        errors: Any = self._engine.dialect.loaded_dbapi
        try:
            connection = self._engine.raw_connection()
        except SQLAlchemyError as error:
            raise self._refusal(error) from error
        try:
            tx = Tx(connection.driver_connection, self._engine.dialect, self.keys)
            tx.settle = begun
            result = work(tx)
            connection.commit()
        except errors.IntegrityError as error:
            connection.rollback()
            raise Duplicate(str(error)) from error
        except errors.Error as error:
            connection.invalidate()
            raise self._refusal(error) from error
        except BaseException:
            connection.rollback()
            raise
        finally:
            connection.close()
        if tx.touched:
            self._committed(tx.touched)
        return result

    def watch_others(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Ask for changes at a steady pace."""
        stop = threading.Event()

        def poll() -> None:
            while not stop.wait(POLL_SECONDS):
                try:
                    changed()
                except Unavailable:
                    continue

        threading.Thread(target=poll, name="memstore-watch", daemon=True).start()
        return stop.set

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        """A transaction under an advisory lock, which keeps other migrating processes out."""
        try:
            with self._engine.begin() as connection:
                connection.execute(text("SELECT pg_advisory_xact_lock(7238462)"))
                yield connection
        except (DBAPIError, IntegrityError) as error:
            raise self._refusal(error) from error

    def schema_revision(self) -> str | None:
        """What the migrations left in `alembic_version`."""
        try:
            with self._engine.connect() as connection:
                if not inspect(connection).has_table("alembic_version"):
                    return None
                found = connection.execute(text("SELECT version_num FROM alembic_version"))
                return found.scalar()
        except DBAPIError as error:
            raise self._refusal(error) from error

    def integrity(self) -> list[str]:
        """PostgreSQL keeps its pages and foreign keys itself."""
        return []

    def scrub(self) -> None:
        """Nothing: PostgreSQL empties its log itself, and it holds sealed records only."""

    def compact(self) -> None:
        """Rewrite every table."""
        with self._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM FULL"))

    def close(self) -> None:
        """Release every connection."""
        self._engine.dispose()
        if self.keys is not None:
            self.keys.close()
