"""The one writer of a process: waiting works share a transaction, and so one fsync.

A work that waits alone is begun at once; while its commit waits for the disk others gather, and
the next transaction takes them all. Each has a savepoint of its own, so that one refusal undoes
nothing of its neighbours. Nobody is answered before the commit.
"""

from __future__ import annotations

import queue
import sqlite3
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from sqlalchemy.engine.interfaces import Dialect

from memstore.model.errors import Unavailable
from memstore.storage.engine import Duplicate, Settled
from memstore.storage.statement import Tx

T = TypeVar("T")

GROUP = 64
"""Works in one transaction at most, so that the first of them does not wait for ever."""


class _Job:
    """A work and, after its commit, its answer."""

    __slots__ = ("done", "error", "result", "settle", "tx", "work")

    def __init__(self, work: Callable[[Tx], Any]) -> None:
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None
        self.tx: Tx | None = None
        self.settle: list[str] = []
        self.done = threading.Lock()
        self.done.acquire()


class Home(Protocol):
    """The engine, as its writer sees it."""

    keys: Any
    settled: Settled

    @property
    def dialect(self) -> Dialect:
        """How statements are said."""

    def connect(self) -> sqlite3.Connection:
        """A new connection."""

    def refusal(self, error: sqlite3.Error) -> Exception:
        """What a failure of the database is to the caller."""

    def committed(self, touched: Mapping[str, int]) -> None:
        """Tell of a commit."""


class Writer:
    """Owns the writing connection and the thread that uses it."""

    def __init__(self, engine: Home) -> None:
        self._engine = engine
        self._connection = engine.connect()
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        self._gate = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name="memstore-writer", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[Tx], T]) -> T:
        """Hand over a work and wait for its answer."""
        job = _Job(work)
        with self._gate:
            if self._closed:
                raise Unavailable("The database is closed.")
            self._queue.put(job)
        job.done.acquire()
        if job.error is not None:
            raise job.error
        result: T = job.result
        return result

    def close(self) -> None:
        """Finish the works handed over, then end the thread and close the connection."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _serve(self) -> None:
        """Take what waits, commit it, answer; until closed."""
        open_ = True
        while open_:
            jobs = []
            job = self._queue.get()
            while True:
                if job is None:
                    open_ = False
                    break
                jobs.append(job)
                if len(jobs) == GROUP:
                    break
                try:
                    job = self._queue.get_nowait()
                except queue.Empty:
                    break
            if jobs:
                self._commit(jobs)
        self._connection.close()

    def _commit(self, jobs: list[_Job]) -> None:
        """One transaction for all the jobs; then their answers."""
        try:
            self._attempt(jobs)
        except BaseException as error:
            with suppress(sqlite3.Error):
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
            for job in jobs:
                db = isinstance(error, sqlite3.Error)
                job.error = self._engine.refusal(error) if db else error  # type: ignore[arg-type]
                job.tx = None
        touched: dict[str, int] = {}
        scrub = False
        for job in jobs:
            if job.error is None and job.tx is not None:
                touched.update(job.tx.touched)
                scrub = scrub or job.tx.scrub
        for job in jobs:
            self._settle(job)
        if scrub:
            empty_log(self._connection)
        for job in jobs:
            job.done.release()
        if touched:
            self._engine.committed(touched)

    def _attempt(self, jobs: list[_Job]) -> None:
        """Run the jobs and commit; raises when the transaction as a whole failed."""
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        alone = len(jobs) == 1
        for job in jobs:
            if not alone:
                execute("SAVEPOINT work")
            tx = Tx(self._connection, self._engine.dialect, self._engine.keys)
            job.settle = tx.settle
            try:
                job.result = job.work(tx)
                job.tx = tx
            except sqlite3.IntegrityError as error:
                job.error = Duplicate(str(error))
            except sqlite3.Error:
                raise
            except Exception as error:
                job.error = error
            if alone:
                break
            if job.error is not None:
                execute("ROLLBACK TO work")
            execute("RELEASE work")
        if alone and jobs[0].error is not None:
            execute("ROLLBACK")
        else:
            execute("COMMIT")

    def _settle(self, job: _Job) -> None:
        """End what the job began in the key store."""
        for intent in job.settle:
            try:
                self._engine.settled(intent)
            except Exception as error:
                job.error = job.error or error


def empty_log(connection: sqlite3.Connection) -> None:
    """Fold the log into the file and empty it; a reader in the way only delays that."""
    with suppress(sqlite3.Error):
        connection.execute("PRAGMA busy_timeout=200")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    with suppress(sqlite3.Error):
        connection.execute("PRAGMA busy_timeout=5000")
