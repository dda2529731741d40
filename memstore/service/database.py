"""Opening a database, and the service over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from memstore.model import limits
from memstore.model.access import Caller
from memstore.model.errors import Invalid, Unavailable
from memstore.service import access
from memstore.service.backend import LocalBackend
from memstore.service.core import Core
from memstore.service.hub import Hub
from memstore.settings import KeySource, Settings
from memstore.storage import check as storage_check
from memstore.storage import copying, destruction, keyring, restored
from memstore.storage.engine import Committed, Engine, open_engine
from memstore.storage.migrations import REVISIONS, SEALED_SINCE, migrate

HEARTBEAT_SECONDS = 15.0


def open_database(
    url: str,
    committed: Committed = lambda touched: None,
    source: KeySource | None = None,
) -> Engine:
    """The database of a URL, made when there is none, unlocked, and migrated forward.

    What processes that are gone had begun to destroy is finished; what was redacted after the
    backup this may be is redacted again. The keys are where `source` says, else where the
    environment does.

    A SQLite file is made with mode 0600 in a folder of 0700. Unavailable when it cannot be used,
    its keys are missing or others', or, with nothing touched, when a newer memstore wrote it.
    """
    engine = open_engine(url, committed)
    try:
        sealed = _unlock(engine, url, source)
        if migrate(engine) and not sealed:
            engine.compact()
        destruction.recover(engine)
        restored.replay(engine)
        engine.scrub()
    except BaseException:
        engine.close()
        raise
    return engine


def _unlock(engine: Engine, url: str, source: KeySource | None) -> bool:
    """Give the engine its keys; whether the database was sealed already."""
    revision = engine.schema_revision()
    sealed = revision is not None and revision >= SEALED_SINCE
    engine.keys = keyring.open_keyring(source or Settings().key_source_of(url), data=sealed)
    engine.settled = partial(destruction.settle, engine)
    return sealed


def check(url: str, source: KeySource | None = None) -> list[str]:
    """What is wrong in a database, one sentence each; empty when nothing is.

    Unavailable when it cannot be read at all; Invalid when its schema is not this version's.
    """
    engine = open_engine(url, lambda touched: None, create=False)
    try:
        if engine.schema_revision() != REVISIONS[-1]:
            raise Invalid("The database is of another version: run `memstore migrate` first.")
        _unlock(engine, url, source)
        return storage_check.check(engine)
    finally:
        engine.close()


def copy(url: str, source: KeySource, to_url: str, to_source: KeySource) -> dict[str, int]:
    """Move a service into an empty database, keys included; how many rows of each table.

    What arrived is compared with what was sent, then checked. Invalid when the target holds
    anything; Unavailable when it differs, or when either cannot be used.
    """
    origin = open_engine(url, lambda touched: None, create=False)
    try:
        if origin.schema_revision() != REVISIONS[-1]:
            raise Invalid("The database is of another version: run `memstore migrate` first.")
        _unlock(origin, url, source)
        destruction.recover(origin)
        target = open_engine(to_url, lambda touched: None)
        try:
            target.settled = partial(destruction.settle, target)
            counts = copying.copy(origin, source, target, to_source)
            found = storage_check.check(target)
        finally:
            target.close()
    finally:
        origin.close()
    if found:
        raise Unavailable(f"The copy is not true to itself ({found[0]}): drop it.")
    return counts


def rotate_master(source: KeySource, new_file: str | None = None) -> None:
    """Put every key under a new master key; see `memstore.storage.keyring.rotate_master`."""
    keyring.rotate_master(source, new_file)


def verify_receipt(url: str, source: KeySource, receipt: Mapping[str, Any]) -> list[str]:
    """Why a receipt is not to be believed, one sentence each; empty when it is true.

    It must be signed by this database's key store, and the database must still be as it says.
    """
    engine = open_engine(url, lambda touched: None, create=False)
    try:
        if engine.schema_revision() != REVISIONS[-1]:
            raise Invalid("The database is of another version: run `memstore migrate` first.")
        _unlock(engine, url, source)
        if not keyring.is_signed(receipt, engine.keys.public_key):
            return ["The receipt is not signed by this service, or was changed since."]
        with engine.read() as tx:
            return destruction.contradictions(tx, receipt)
    finally:
        engine.close()


class Service:
    """An open database: who a secret stands for, the port for a caller, and the live feeds' hub."""

    def __init__(
        self,
        url: str,
        *,
        max_memories: int = limits.STORE_MEMORIES,
        max_bytes: int = limits.STORE_BYTES,
        heartbeat: float = HEARTBEAT_SECONDS,
        keys: KeySource | None = None,
    ) -> None:
        self.hub = Hub()
        self._engine = open_database(url, self.hub.committed, keys)
        self.hub.open(self._engine)
        self._core = Core(self._engine, self.hub, max_memories, max_bytes, heartbeat)
        self._authenticator = access.Authenticator(self._core)

    def bootstrap(self, deliver: Callable[[str], None] | None = None) -> str | None:
        """Make the workspace `default` and its admin key at the first start; its secret, once.

        None when they are there. `deliver` gets the secret before the commit, to write it to a
        file: when it raises, nothing was made.
        """
        return access.bootstrap(self._core, deliver)

    def authenticate(self, secret: str | None) -> Caller:
        """The caller a secret stands for; Unauthenticated. Revocation counts within 0.5 s."""
        return self._authenticator(secret)

    def recognise(self, secret: str) -> Caller | None:
        """The caller of a secret asked for a moment ago; None otherwise. Never blocks."""
        return self._authenticator.known(secret)

    def ping(self) -> None:
        """Ask the database something; Unavailable when it cannot answer."""
        self._engine.schema_revision()

    def operator(self) -> Caller:
        """The caller for whoever may open the database's file: the admin of `default`."""
        return access.operator(self._core)

    def backend_for(
        self, caller: Caller, *, on_close: Callable[[], None] = lambda: None
    ) -> LocalBackend:
        """The port, bound to a caller."""
        return LocalBackend(
            self._core, caller, revoked=self._authenticator.forget, on_close=on_close
        )

    def check(self) -> list[str]:
        """What is wrong in the database, one sentence each; empty when nothing is."""
        return storage_check.check(self._engine)

    def close(self) -> None:
        """End the live feeds, finish the writes that were begun, release the database."""
        self.hub.close()
        self._engine.close()
