"""SQLite: WAL, every commit on disk before it is answered, readers that never wait."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import create_engine, event
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.engine import URL, Connection
from sqlalchemy.pool import NullPool

from memstore.model.errors import Invalid, MemstoreError, Unavailable
from memstore.storage.dialects.sqlite_writer import Writer, empty_log
from memstore.storage.engine import Committed, Settled
from memstore.storage.statement import Tx

T = TypeVar("T")

BUSY_SECONDS = 5.0
"""How long a write waits for another process that holds the database."""
POLL_SECONDS = 0.025
"""How often the commits of other processes are looked for, while somebody listens."""
IDLE_READERS = 32
"""Connections kept open between readings."""

_ADVICE = {
    sqlite3.SQLITE_BUSY: "is locked by another process; try again, or stop that process",
    sqlite3.SQLITE_LOCKED: "is locked by another process; try again, or stop that process",
    sqlite3.SQLITE_FULL: "lies on a full disk; free some space and try again",
    sqlite3.SQLITE_IOERR: "cannot be read or written; look at the disk and its free space",
    sqlite3.SQLITE_CORRUPT: "is damaged; restore a backup of it",
    sqlite3.SQLITE_NOTADB: "is not a memstore database; name another file or restore a backup",
    sqlite3.SQLITE_READONLY: "cannot be written; look at the owner and mode of it and its folder",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; look at the owner and mode of it and its folder",
    sqlite3.SQLITE_PERM: "cannot be opened; look at the owner and mode of it and its folder",
}


def refusal(error: sqlite3.Error, path: str) -> Exception:
    """The sentence for a failure of the database itself; a fault of ours stays as it is."""
    if isinstance(error, sqlite3.ProgrammingError | sqlite3.InterfaceError):
        return error
    code = (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
    advice = _ADVICE.get(code)
    if advice is None:
        return Unavailable(f"The database {path} failed: {error}.")
    return Unavailable(f"The database {path} {advice}.")


class SqliteEngine:
    """One database file: a pool of reading connections and one writer."""

    def __init__(self, url: URL, committed: Committed, *, create: bool = True) -> None:
        if not url.database or url.database == ":memory:":
            raise Invalid("A SQLite database needs a file: sqlite:///FILE.")
        self.path = url.database
        self.dialect = SQLiteDialect_pysqlite(paramstyle="named")
        self.keys: Any = None
        self.settled: Settled = lambda intent: None
        self._committed = committed
        self._idle: deque[sqlite3.Connection] = deque()
        self._closed = False
        self._lock = threading.Lock()
        self._writer: Writer | None = None
        _make_private(Path(self.path), create=create)
        self._idle.append(self._connect())

    def connect(self) -> sqlite3.Connection:
        """A new connection, for the writer."""
        return self._connect()

    def _connect(self) -> sqlite3.Connection:
        """A connection set up the one way that all of them are."""
        try:
            connection = sqlite3.connect(
                self.path,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
        except sqlite3.Error as error:
            raise refusal(error, self.path) from error
        try:
            if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                connection.execute("PRAGMA journal_mode=WAL")
            for pragma in (
                "synchronous=FULL",
                "foreign_keys=ON",
                "secure_delete=ON",
                "temp_store=MEMORY",
                "cache_size=-16384",
                "journal_size_limit=67108864",
                "wal_autocheckpoint=4000",
            ):
                connection.execute(f"PRAGMA {pragma}")
        except sqlite3.Error as error:
            connection.close()
            raise refusal(error, self.path) from error
        return connection

    def open_read(self) -> tuple[Tx, Callable[[], None]]:
        """A reading that lasts until the function returned is called (twice does no harm)."""
        if self._closed:
            raise Unavailable("The database is closed.")
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        try:
            connection.execute("BEGIN")
        except sqlite3.Error as error:
            connection.close()
            raise refusal(error, self.path) from error
        done = False

        def end() -> None:
            nonlocal done
            if done:
                return
            done = True
            try:
                connection.execute("ROLLBACK")
            except sqlite3.Error:
                connection.close()
                return
            if self._closed or len(self._idle) >= IDLE_READERS:
                connection.close()
            else:
                self._idle.append(connection)

        return Tx(connection, self.dialect, self.keys), end

    @contextmanager
    def read(self) -> Iterator[Tx]:
        """A reading whose statements all see one moment."""
        tx, end = self.open_read()
        try:
            yield tx
        except sqlite3.Error as error:
            raise refusal(error, self.path) from error
        finally:
            end()

    def write(self, work: Callable[[Tx], T]) -> T:
        """Run `work` on the writer, in a commit it may share with others."""
        writer = self._writer
        if writer is None:
            with self._lock:
                if self._closed:
                    raise Unavailable("The database is closed.")
                if self._writer is None:
                    self._writer = Writer(self)
                writer = self._writer
        return writer.run(work)

    def watch_others(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Poll `PRAGMA data_version`, which moves when another connection commits."""
        stop = threading.Event()

        def poll() -> None:
            while not stop.is_set():  # a failing connection is replaced, not given up
                with suppress(sqlite3.Error, MemstoreError):
                    self._poll(stop, changed)
                stop.wait(POLL_SECONDS)

        thread = threading.Thread(target=poll, name="memstore-watch", daemon=True)
        thread.start()
        return stop.set

    def _poll(self, stop: threading.Event, changed: Callable[[], None]) -> None:
        """Watch over one connection, which must stay the same for its numbers to be compared."""
        connection = self._connect()
        try:
            known = None
            while not stop.wait(POLL_SECONDS):
                seen = connection.execute("PRAGMA data_version").fetchone()[0]
                if seen != known:
                    changed()
                    known = seen
        finally:
            connection.close()

    @contextmanager
    def migrating(self) -> Iterator[Connection]:
        """SQLAlchemy's connection inside BEGIN IMMEDIATE, which keeps other processes out."""
        engine = create_engine("sqlite://", creator=self._connect, poolclass=NullPool)
        event.listen(engine, "begin", lambda c: c.exec_driver_sql("BEGIN IMMEDIATE"))
        try:
            with engine.begin() as connection:
                yield connection
        finally:
            engine.dispose()

    def schema_revision(self) -> str | None:
        """What the migrations left in `alembic_version`."""
        with self.read() as tx:
            query = tx._connection.execute
            if not query("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchone():
                return None
            row = query("SELECT version_num FROM alembic_version").fetchone()
            return None if row is None else str(row[0])

    def integrity(self) -> list[str]:
        """SQLite's own check of its pages, indexes and foreign keys."""
        with self.read() as tx:
            query = tx._connection.execute
            found = [str(row[0]) for row in query("PRAGMA integrity_check(20)") if row[0] != "ok"]
            broken = query("PRAGMA foreign_key_check").fetchmany(20)
        return [f"The file is damaged: {text}." for text in found] + [
            f"A row of {table} refers to a row of {parent} that is not there."
            for table, _, parent, _ in broken
        ]

    def refusal(self, error: sqlite3.Error) -> Exception:
        """What a failure of the database is to the caller."""
        return refusal(error, self.path)

    def committed(self, touched: Mapping[str, int]) -> None:
        """Tell of a commit."""
        self._committed(touched)

    def scrub(self) -> None:
        """Fold a log that a crash or another process left into the file, and empty it."""
        with suppress(OSError):
            if Path(f"{self.path}-wal").stat().st_size:
                connection = self._connect()
                try:
                    empty_log(connection)
                finally:
                    connection.close()

    def compact(self) -> None:
        """VACUUM, then empty the log."""
        connection = self._connect()
        try:
            connection.execute("VACUUM")
            empty_log(connection)
        except sqlite3.Error as error:
            raise refusal(error, self.path) from error
        finally:
            connection.close()

    def close(self) -> None:
        """Let the writer finish, then close every connection."""
        with self._lock:
            self._closed = True
            writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
        while self._idle:
            self._idle.pop().close()
        if self.keys is not None:
            self.keys.close()


def _make_private(path: Path, *, create: bool) -> None:
    """The file, mode 0600, and its folder, 0700, when they are not there yet."""
    try:
        if create:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o600))
    except OSError as error:
        raise Unavailable(
            f"The database {path} cannot be opened: {error.strerror}. "
            "Look at the owner and mode of it and its folder."
        ) from None
