"""The key store: rows of wrapped keys, each change one transaction that is on disk when it ends.

SQLite runs here with a rollback journal that each commit removes, `synchronous=EXTRA` and
`secure_delete`: when a transaction that destroyed a key is done, no file holds the key any more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import (
    bindparam,
    create_engine,
    delete,
    event,
    insert,
    inspect,
    select,
    text,
    update,
)
from sqlalchemy.engine import Connection, make_url
from sqlalchemy.exc import IntegrityError, SQLAlchemyError
from sqlalchemy.sql.elements import BindParameter

from memstore.model.errors import Unavailable
from memstore.storage.key_schema import epochs, facts, intents, metadata, receipts, survivors

BUSY_SECONDS = 10
_GONE: BindParameter[str] = bindparam("gone")
_NEXT_NUMBER = text(
    "SELECT setval(pg_get_serial_sequence('memstore_keys.receipts', 'number'), "
    "(SELECT coalesce(max(number), 0) + 1 FROM memstore_keys.receipts), false)"
)


class Intent(NamedTuple):
    """A destruction that was begun."""

    id: str
    kind: str
    store_id: str
    target_id: str
    old_epoch: str


class Survivor(NamedTuple):
    """A version's key under an epoch, for backups that have it under a destroyed one."""

    version_id: str
    store_id: str
    epoch_id: str
    wrapped: bytes


class KeyStore:
    """The database of keys. It sees wrapped keys only; `Keyring` can open them."""

    def __init__(self, url: str) -> None:
        parsed = make_url(url)
        self.where = "the database"
        self._sqlite = parsed.get_backend_name() == "sqlite"
        if self._sqlite:
            path = Path(parsed.database or "")
            self.where = str(path)
            _make_private(path)
            self._engine = create_engine(
                f"sqlite:///{path}", connect_args={"timeout": BUSY_SECONDS}
            )
            event.listen(self._engine, "connect", _prepare)
            event.listen(self._engine, "begin", lambda c: c.exec_driver_sql("BEGIN IMMEDIATE"))
        else:
            from memstore.storage.dialects.postgresql import connect_options

            engine = create_engine(
                parsed.set(drivername="postgresql+psycopg"),
                pool_pre_ping=True,
                pool_size=4,
                connect_args=connect_options(parsed),
            )
            schemas = {"schema_translate_map": {None: "memstore_keys"}}
            self._engine = engine.execution_options(**schemas)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One transaction, alone; on disk when it ends."""
        try:
            with self._engine.begin() as connection:
                if not self._sqlite:
                    connection.execute(text("SELECT pg_advisory_xact_lock(7238463)"))
                yield connection
        except IntegrityError:
            raise
        except SQLAlchemyError as error:
            cause = type(getattr(error, "orig", None) or error).__name__
            raise Unavailable(f"The key store ({self.where}) cannot be used: {cause}.") from error

    def prepare(self) -> None:
        """Make the tables that are not there."""
        with self.transaction() as connection:
            if not self._sqlite:
                connection.execute(text("CREATE SCHEMA IF NOT EXISTS memstore_keys"))
            metadata.create_all(connection)

    def fact(self, name: str) -> bytes | None:
        """A fact of the key store; None before it was prepared."""
        with self.transaction() as connection:
            schema = None if self._sqlite else "memstore_keys"
            if not inspect(connection).has_table(facts.name, schema=schema):
                return None
            return _fact(connection, name)

    def found(self, values: Mapping[str, bytes]) -> bool:
        """Write the first facts, unless another process did; whether these are there now."""
        with self.transaction() as connection:
            if _fact(connection, "mark") is not None:
                return False
            rows = [{"name": name, "value": value} for name, value in values.items()]
            connection.execute(insert(facts), rows)
        return True

    def add_epoch(
        self,
        mark: bytes,
        id: str,
        store_id: str,
        first_seq: int,
        wrapped: bytes,
        intent: Intent | None = None,
    ) -> bool:
        """A new epoch key; False, and nothing done, when the master key is another by now."""
        with self.transaction() as connection:
            if _fact(connection, "mark") != mark:
                return False
            row = {"id": id, "store_id": store_id, "first_seq": first_seq, "wrapped": wrapped}
            connection.execute(insert(epochs), row)
            if intent is not None:
                connection.execute(insert(intents), intent._asdict())
        return True

    def epoch(self, id: str) -> tuple[str, int, bytes] | None:
        """Store, first seq and wrapped key of an epoch; None when it was destroyed."""
        with self.transaction() as connection:
            found = connection.execute(
                select(epochs.c.store_id, epochs.c.first_seq, epochs.c.wrapped).where(
                    epochs.c.id == id
                )
            ).first()
        return None if found is None else (found[0], found[1], bytes(found[2]))

    def remove_epoch(self, id: str) -> None:
        """Destroy one epoch key."""
        with self.transaction() as connection:
            connection.execute(delete(epochs).where(epochs.c.id == id))

    def survivor(self, version_id: str) -> Survivor | None:
        """The kept key of a version."""
        with self.transaction() as connection:
            found = connection.execute(
                select(survivors).where(survivors.c.version_id == version_id)
            ).first()
        return None if found is None else Survivor(*found)

    def survivors_under(self, epoch_id: str) -> list[Survivor]:
        """The kept keys under an epoch."""
        with self.transaction() as connection:
            rows = connection.execute(select(survivors).where(survivors.c.epoch_id == epoch_id))
            return [Survivor(*row) for row in rows]

    def intend(self, intent: Intent) -> None:
        """Note a destruction before its data is gone."""
        with self.transaction() as connection:
            connection.execute(insert(intents), intent._asdict())

    def intents(self, target_id: str | None = None) -> list[Intent]:
        """Destructions begun and not finished, of one target or all."""
        query = select(intents)
        if target_id is not None:
            query = query.where(intents.c.target_id == target_id)
        with self.transaction() as connection:
            return [Intent(*row) for row in connection.execute(query)]

    def intent(self, id: str) -> Intent | None:
        """One of them."""
        with self.transaction() as connection:
            found = connection.execute(select(intents).where(intents.c.id == id)).first()
        return None if found is None else Intent(*found)

    def undo(self, intent: Intent) -> None:
        """Forget a destruction whose data stayed, and the epoch that was made for it."""
        with self.transaction() as connection:
            connection.execute(delete(intents).where(intents.c.id == intent.id))
            if intent.kind == "version":
                connection.execute(delete(epochs).where(epochs.c.id == intent.id))

    def finish(self, intent: Intent, kept: Sequence[Survivor] = (), receipt: str = "") -> None:
        """Destroy the keys; keep the survivors' under their new epoch; file the receipt."""
        with self.transaction() as connection:
            mine = intents.c.id == intent.id
            if connection.execute(select(intents.c.id).where(mine)).first() is None:
                return
            if intent.kind == "store":
                for table in (epochs, survivors):
                    connection.execute(delete(table).where(table.c.store_id == intent.store_id))
            else:
                connection.execute(delete(epochs).where(epochs.c.id == intent.old_epoch))
            if intent.kind == "version":
                own = survivors.c.version_id
                gone = [{"gone": one.version_id} for one in kept] + [{"gone": intent.target_id}]
                connection.execute(delete(survivors).where(own == _GONE), gone)
                old = survivors.c.epoch_id == intent.old_epoch
                connection.execute(delete(survivors).where(old))
                if kept:
                    connection.execute(insert(survivors), [one._asdict() for one in kept])
                if receipt:
                    row = {"version_id": intent.target_id, "store_id": intent.store_id}
                    connection.execute(insert(receipts), {**row, "receipt": receipt})
            connection.execute(delete(intents).where(mine))
        self._sweep()

    def receipt(self, version_id: str) -> str | None:
        """The receipt of a redacted version."""
        with self.transaction() as connection:
            found: str | None = connection.execute(
                select(receipts.c.receipt).where(receipts.c.version_id == version_id)
            ).scalar()
        return found

    def redacted_before(self, number: int | None, limit: int) -> list[tuple[int, str, str]]:
        """Number, version and receipt of redactions, newest first, below a number."""
        query = select(receipts.c.number, receipts.c.version_id, receipts.c.receipt)
        if number is not None:
            query = query.where(receipts.c.number < number)
        with self.transaction() as connection:
            rows = connection.execute(query.order_by(receipts.c.number.desc()).limit(limit))
            return [(row[0], row[1], row[2]) for row in rows]

    def rewrap(self, change: Any, mark: bytes, new_mark: bytes) -> bool:
        """Put everything under another master key; False when it is under another one by now.

        `change` makes a wrapped key and what it is bound to into the new wrapped key.
        """
        with self.transaction() as connection:
            if _fact(connection, "mark") != mark:
                return False
            for id, store_id, wrapped in connection.execute(
                select(epochs.c.id, epochs.c.store_id, epochs.c.wrapped)
            ).fetchall():
                new = change(bytes(wrapped), f"epoch {store_id} {id}".encode())
                connection.execute(update(epochs).where(epochs.c.id == id).values(wrapped=new))
            signing = _fact(connection, "signing_key") or b""
            _set_fact(connection, "signing_key", change(signing, b"signing key"))
            _set_fact(connection, "mark", new_mark)
        self._sweep()
        return True

    def give(self) -> dict[str, list[dict[str, Any]]]:
        """Every row, for another key store; Unavailable while a destruction is not finished."""
        with self.transaction() as connection:
            rows = {
                table.name: [dict(row) for row in connection.execute(select(table)).mappings()]
                for table in metadata.sorted_tables
            }
        if rows[intents.name]:
            raise Unavailable("A redaction is not finished: stop the service, and try again.")
        return rows

    def take(self, rows: Mapping[str, list[dict[str, Any]]]) -> bool:
        """Hold exactly these rows; False, and nothing done, when other keys are here."""
        ours = next(row["value"] for row in rows[facts.name] if row["name"] == "mark")
        with self.transaction() as connection:
            if _fact(connection, "mark") not in (None, bytes(ours)):
                return False
            for table in metadata.sorted_tables:
                connection.execute(delete(table))
                if rows[table.name]:
                    connection.execute(insert(table), rows[table.name])
            if not self._sqlite:
                connection.execute(_NEXT_NUMBER)
        return True

    def _sweep(self) -> None:
        """Let PostgreSQL take rows that were deleted out of its pages; SQLite has done it.

        The keys are gone for everybody already: where this fails, the server's own vacuum does it.
        """
        if self._sqlite:
            return
        engine = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        with suppress(SQLAlchemyError), engine.connect() as connection:
            for table in (epochs, survivors):
                connection.execute(text(f"VACUUM memstore_keys.{table.name}"))

    def close(self) -> None:
        """Release every connection."""
        self._engine.dispose()


def _fact(connection: Connection, name: str) -> bytes | None:
    found = connection.execute(select(facts.c.value).where(facts.c.name == name)).scalar()
    return None if found is None else bytes(found)


def _set_fact(connection: Connection, name: str, value: bytes) -> None:
    connection.execute(update(facts).where(facts.c.name == name).values(value=value))


def _prepare(connection: Any, record: Any) -> None:
    """Set a SQLite connection up; transactions are begun by hand."""
    connection.isolation_level = None
    for pragma in (
        "journal_mode=DELETE",
        "synchronous=EXTRA",
        "secure_delete=ON",
        "temp_store=MEMORY",
    ):
        connection.execute(f"PRAGMA {pragma}").close()


def _make_private(path: Path) -> None:
    """The file, mode 0600, and its folder, 0700, when they are not there yet."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_CREAT, 0o600))
    except OSError as error:
        raise Unavailable(f"The key store {path} cannot be opened: {error.strerror}.") from None
