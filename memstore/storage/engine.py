"""The database as the layers above see it: short readings, one writing transaction a change.

Only `dialects/` knows which database it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from sqlalchemy.engine import Connection, make_url
from sqlalchemy.exc import ArgumentError

from memstore.model.errors import Invalid, Unavailable
from memstore.storage.statement import Tx

T = TypeVar("T")

Committed = Callable[[Mapping[str, int]], None]
"""Told after a commit: the stores it changed, with their last seq."""


Settled = Callable[[str], None]
"""Finishes an intent of the key store, or undoes it, by what the database says."""


class Duplicate(Exception):
    """A unique constraint refused a row; the transaction's work so far is undone."""


class Engine(Protocol):
    """One database, used from many threads.

    Every method raises Unavailable, with a sentence that says what to do, when the database cannot
    answer: locked, full, damaged, unreachable.

    `keys` is the keyring each Tx carries, `settled` what ends an intent of the key store; both are
    given after the engine was made.
    """

    keys: Any
    settled: Settled

    def read(self) -> AbstractContextManager[Tx]:
        """A reading whose statements all see one moment. Never waits for a writer."""
        ...

    def open_read(self) -> tuple[Tx, Callable[[], None]]:
        """The same, for a stream: the second item ends it."""
        ...

    def write(self, work: Callable[[Tx], T]) -> T:
        """Run `work` in a writing transaction; answer only after its commit, or undo it all.

        What `work` raises is raised here. It may run beside other works in one commit, so it
        touches nothing but its Tx.
        """
        ...

    def watch_others(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call `changed` soon after other processes commit, until the function returned is called."""
        ...

    def migrating(self) -> AbstractContextManager[Connection]:
        """A connection inside the one transaction that may change the schema."""
        ...

    def schema_revision(self) -> str | None:
        """The migration this database stands at; None for a new one."""
        ...

    def integrity(self) -> list[str]:
        """What the database itself finds damaged; empty when nothing."""
        ...

    def scrub(self) -> None:
        """Let what was overwritten leave the log, as far as nobody is in the way."""
        ...

    def compact(self) -> None:
        """Rewrite the whole database, so that no free space holds what was there."""
        ...

    def close(self) -> None:
        """Finish what was begun and release every connection. Safe to call twice."""
        ...


def open_engine(url: str, committed: Committed, *, create: bool = True) -> Engine:
    """The engine of a `sqlite:///FILE` or `postgresql://...` URL; Invalid for any other.

    Without `create`, Unavailable when there is no such file.
    """
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise Invalid("The database is not a URL such as sqlite:///FILE.") from None
    backend = parsed.get_backend_name()
    if backend == "sqlite":
        from memstore.storage.dialects.sqlite import SqliteEngine

        return SqliteEngine(parsed, committed, create=create)
    if backend == "postgresql":
        try:
            from memstore.storage.dialects.postgresql import PostgresqlEngine
        except ModuleNotFoundError:
            raise Unavailable(
                "PostgreSQL needs psycopg: pip install 'memstore[postgres]'."
            ) from None

        return PostgresqlEngine(parsed, committed)
    raise Invalid(f"A database is sqlite:///FILE or postgresql://..., not {backend}.")
