"""The engine: grouped commits, refusals that stay alone, readers that never wait."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memstore.model.errors import Unavailable
from memstore.service.database import open_database
from memstore.storage import access
from memstore.storage.dialects import sqlite
from memstore.storage.engine import Duplicate, Engine
from memstore.storage.statement import Tx
from tests.support.waiting import together, until


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """A migrated database."""
    engine = open_database(f"sqlite:///{tmp_path / 'memstore.db'}")
    yield engine
    engine.close()


def add(name: str, then: Exception | None = None):
    """A work that adds a workspace and, maybe, fails."""

    def work(tx: Tx) -> str:
        access.add_workspace(tx, f"wrkspc_{name}", name, 1)
        if then is not None:
            raise then
        return name

    return work


def names(engine: Engine) -> set[str]:
    """The workspaces that are there."""
    with engine.read() as tx:
        rows = [access.workspace_id(tx, f"n{n}") for n in range(100)]
    return {row.removeprefix("wrkspc_") for row in rows if row}


def held(engine: Engine) -> tuple[threading.Event, threading.Thread]:
    """A work that keeps the writer busy until the event is set, so that others gather."""
    begun, release = threading.Event(), threading.Event()

    def work(tx: Tx) -> None:
        begun.set()
        assert release.wait(20)

    thread = threading.Thread(target=lambda: engine.write(work))
    thread.start()
    assert begun.wait(20)
    return release, thread


def test_a_work_is_all_or_nothing(engine: Engine) -> None:
    """What a failed work wrote is not there, and its own exception comes back."""
    assert engine.write(add("n1")) == "n1"
    with pytest.raises(KeyError):
        engine.write(add("n2", KeyError("mine")))
    assert names(engine) == {"n1"}


def test_a_refusal_in_a_group_stays_alone(engine: Engine) -> None:
    """Works that share a commit do not share a failure."""
    release, thread = held(engine)
    results: list[object] = []
    threads = []
    for n in range(20):
        failing = ValueError(str(n)) if n % 3 == 0 else None

        def run(n: int = n, failing: Exception | None = failing) -> None:
            try:
                results.append(engine.write(add(f"n{n}", failing)))
            except ValueError as error:
                results.append(error)

        threads.append(threading.Thread(target=run))
        threads[-1].start()
    release.set()
    for one in [thread, *threads]:
        one.join(20)
    assert len(results) == 20
    assert names(engine) == {f"n{n}" for n in range(20) if n % 3}


def test_waiting_works_share_a_commit(engine: Engine) -> None:
    """Works that gathered while one was being written are committed together."""
    seen: list[int] = []
    release, thread = held(engine)

    def work(tx: Tx) -> None:
        seen.append(id(tx._connection))
        counts.append(tx._connection.total_changes)

    counts: list[int] = []
    threads = [threading.Thread(target=lambda: engine.write(work)) for _ in range(10)]
    for one in threads:
        one.start()
    writer = engine._writer  # type: ignore[attr-defined]
    until(lambda: writer._queue.qsize() == 10, "ten works to gather")
    statements: list[str] = []
    writer._connection.set_trace_callback(statements.append)
    release.set()
    for one in [thread, *threads]:
        one.join(20)
    writer._connection.set_trace_callback(None)
    assert len(set(seen)) == 1 and len(counts) == 10
    assert statements.count("BEGIN IMMEDIATE") == 1
    assert statements.count("SAVEPOINT work") == 10


def test_a_unique_constraint_is_a_duplicate(engine: Engine) -> None:
    """A row that is there already refuses the work, not the engine."""
    engine.write(add("n1"))
    with pytest.raises(Duplicate):
        engine.write(add("n1"))
    assert engine.write(add("n2")) == "n2"


def test_a_reader_does_not_wait_for_a_writer(engine: Engine) -> None:
    """While a write is under way a reading sees the state before it, at once."""
    engine.write(add("n1"))
    begun, release = threading.Event(), threading.Event()

    def work(tx: Tx) -> None:
        access.add_workspace(tx, "wrkspc_n2", "n2", 1)
        begun.set()
        assert release.wait(20)

    thread = threading.Thread(target=lambda: engine.write(work))
    thread.start()
    assert begun.wait(20)
    assert names(engine) == {"n1"}
    release.set()
    thread.join(20)
    assert names(engine) == {"n1", "n2"}


def test_a_reading_sees_one_moment(engine: Engine) -> None:
    """Two statements of one reading agree, whatever is committed between them."""
    with engine.read() as tx:
        assert access.workspace_id(tx, "n1") is None
        engine.write(add("n1"))
        assert access.workspace_id(tx, "n1") is None
    assert names(engine) == {"n1"}


def test_a_fault_of_a_work_is_not_called_the_databases(engine: Engine) -> None:
    """A wrong statement of ours surfaces as what it is."""
    with pytest.raises(sqlite3.ProgrammingError):
        engine.write(lambda tx: tx._connection.execute("SELECT :missing", {}))


def test_commits_of_another_process_are_noticed(engine: Engine, tmp_path: Path) -> None:
    """Whoever watches is called after a commit on another connection, and not once stopped."""
    calls: list[int] = []
    stop = engine.watch_others(lambda: calls.append(1))
    until(lambda: calls, "the first look")
    before = len(calls)
    with sqlite3.connect(tmp_path / "memstore.db") as other:
        other.execute("INSERT INTO workspaces VALUES ('wrkspc_x', 'x', 1)")
    other.close()
    until(lambda: len(calls) > before, "the commit to be noticed")
    stop()
    until(
        lambda: not any(t.name == "memstore-watch" for t in threading.enumerate()),
        "the watcher to end",
    )


def test_a_closed_engine_says_so(engine: Engine) -> None:
    """After close, reading and writing are refused; closing twice is fine."""
    engine.write(add("n1"))
    engine.close()
    engine.close()
    with pytest.raises(Unavailable, match="closed"):
        engine.write(add("n2"))
    with pytest.raises(Unavailable, match="closed"), engine.read():
        pass


def test_works_begun_before_close_are_answered(tmp_path: Path) -> None:
    """Closing under load answers every work: with its result or with a refusal."""
    engine = open_database(f"sqlite:///{tmp_path / 'memstore.db'}")

    def work(n: int) -> str:
        if n == 7:
            engine.close()
            return "closed"
        return engine.write(add(f"n{n}"))

    results = together(work, 16)
    assert all(isinstance(result, str | Unavailable) for result in results)
    again = open_database(f"sqlite:///{tmp_path / 'memstore.db'}")
    written = {result for result in results if isinstance(result, str)} - {"closed"}
    assert written <= names(again)
    again.close()


def test_a_database_locked_by_another_process_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write waits for a bounded time, then says what is wrong; later it works again."""
    monkeypatch.setattr(sqlite, "BUSY_SECONDS", 0.1)
    engine = open_database(f"sqlite:///{tmp_path / 'memstore.db'}")
    other = sqlite3.connect(tmp_path / "memstore.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="locked by another process"):
        engine.write(add("n1"))
    with engine.read() as tx:
        assert access.workspace_id(tx, "n1") is None
    other.execute("ROLLBACK")
    other.close()
    assert engine.write(add("n1")) == "n1"
    engine.close()
