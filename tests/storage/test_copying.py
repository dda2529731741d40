"""`memstore copy`: a whole service into another database, and `migrate` on PostgreSQL."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memstore.backend import Backend
from memstore.cli.exits import INVALID
from memstore.model.errors import Invalid, NotFound, Unauthenticated, Unavailable
from memstore.service import Service
from memstore.service.database import check, copy, verify_receipt
from memstore.settings import KeySource, Settings
from memstore.storage.migrations import REVISIONS
from tests.support import postgres
from tests.support.commands import Command
from tests.support.old_databases import TEXTS, old_database
from tests.support.walking import every

ROOT = Path(__file__).parents[2]


@pytest.fixture
def empty() -> Iterator[str]:
    """A PostgreSQL database with nothing in it."""
    with postgres.server().database(empty=True) as url:
        yield url


def keys_of(url: str, data_dir: Path) -> KeySource:
    """Where the keys of a database are for a service of that data directory."""
    return Settings(environ={"MEMSTORE_DATA_DIR": str(data_dir)}).key_source_of(url)


class Filled:
    """A service in use: versions, a redaction, rejected writes, sessions, keys, a deleted store."""

    def __init__(self, data_dir: Path) -> None:
        self.data_dir = data_dir
        self.url = f"sqlite:///{data_dir / 'memstore.db'}"
        self.keys = keys_of(self.url, data_dir)
        service = Service(self.url, keys=self.keys)
        self.secret = service.bootstrap() or ""
        backend = service.backend_for(service.operator())
        self.store = backend.create_store(name="Notes", metadata={"a": "ü"}).id
        gone = backend.create_store(name="Gone").id
        for n in range(250):
            backend.create_memory(self.store, path=f"/n/{n}", content=f"text {n} 日本")
        memory = backend.get_memory_at(self.store, "/n/0")
        backend.update_memory(self.store, memory.id, content="new")
        backend.redact_version(self.store, memory.version_id)
        self.redacted = memory.version_id
        self.receipt = backend.redaction_receipt(self.store, self.redacted)
        backend.record_rejected_write(self.store, path="/n/1", content="lost")
        session = backend.create_session(agent="a", environment_id="e").id
        self.token = backend.create_session_token(session)
        backend.delete_store(gone)
        self.said = said_by(backend, self.store)
        service.close()


def said_by(backend: Backend, store: str) -> list[object]:
    """What the service says of a store."""
    return [
        list(backend.snapshot(store).memories),
        every(backend.list_versions, store, view="full", limit=20),
        backend.list_events(store, limit=1000),
        backend.list_rejected_writes(store, view="full"),
        backend.list_stores(),
        backend.list_keys(),
    ]


def goes_on(filled: Filled, url: str, keys: KeySource) -> None:
    """The service says the same there, and works."""
    service = Service(url, keys=keys)
    backend = service.backend_for(service.authenticate(filled.secret))
    assert said_by(backend, filled.store) == filled.said
    assert service.authenticate(filled.token).grants is not None
    with pytest.raises(Unauthenticated):
        service.authenticate("no such key")
    assert verify_receipt(url, keys, filled.receipt) == []
    memory = backend.get_memory_at(filled.store, "/n/2")
    backend.update_memory(filled.store, memory.id, content="goes on")
    backend.redact_version(filled.store, memory.version_id)
    assert service.check() == []
    service.close()


def test_a_service_moves_to_postgresql_and_back(tmp_path: Path, empty: str) -> None:
    """Everything arrives: texts, history, feed, receipts, keys, tokens; and it moves back as well."""
    filled = Filled(tmp_path / "data")
    there = keys_of(empty, tmp_path / "data")
    counts = copy(filled.url, filled.keys, empty, there)
    assert (counts["stores"], counts["memories"], counts["versions"]) == (1, 250, 251)
    back = f"sqlite:///{tmp_path / 'back' / 'memstore.db'}"
    copy(empty, there, back, keys_of(back, tmp_path / "back"))
    goes_on(filled, empty, there)
    goes_on(filled, back, keys_of(back, tmp_path / "back"))
    goes_on(filled, filled.url, filled.keys)


def test_the_command_copies(tmp_path: Path, empty: str) -> None:
    """`memstore copy --to` says what was copied; a second time it refuses and changes nothing."""
    filled = Filled(tmp_path / "data")
    memstore = Command(MEMSTORE_DATA_DIR=str(filled.data_dir))
    assert memstore.good("copy", "--to", empty).out == (
        "Copied, compared and checked: stores 1, memories 250, versions 251.\n"
    )
    assert "not empty" in memstore.bad(INVALID, "copy", "--from", filled.url, "--to", empty)
    assert memstore.good("check", "--database", empty).out == "The database is in order.\n"
    revision = f"The database is at revision {REVISIONS[-1]}.\n"
    assert memstore.good("migrate", "--database", empty).out == revision
    goes_on(filled, empty, keys_of(empty, filled.data_dir))


def test_another_master_key_is_refused(tmp_path: Path, empty: str) -> None:
    """Where the target's settings name another master key, nothing is copied."""
    filled = Filled(tmp_path / "data")
    with pytest.raises(Unavailable, match="master key is not the one"):
        copy(filled.url, filled.keys, empty, postgres.key_source(empty))
    with pytest.raises(Invalid, match="another version"):
        check(empty, filled.keys)


KILLED = """
import os, signal, sys
from pathlib import Path
from memstore.service.database import copy
from memstore.settings import Settings
from memstore.storage import copying
real = copying.{step}
def dying(*args, **kwargs):
    result = real(*args, **kwargs)
    os.kill(os.getpid(), signal.SIGKILL)
    return result
copying.{step} = dying
own = Settings()
copy(own.database_url, own.key_source, sys.argv[1], own.key_source_of(sys.argv[1]))
"""


@pytest.mark.parametrize("step", ["_copy_keys", "migrate", "_fill"])
def test_a_killed_copy_can_be_repeated(tmp_path: Path, empty: str, step: str) -> None:
    """Killed on the way, it leaves the origin as it was and a target that is begun anew."""
    filled = Filled(tmp_path / "data")
    ended = subprocess.run(
        [sys.executable, "-c", KILLED.format(step=step), empty],
        cwd=ROOT,
        env={**os.environ, "MEMSTORE_DATA_DIR": str(filled.data_dir)},
        capture_output=True,
        timeout=60,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    copy(filled.url, filled.keys, empty, keys_of(empty, filled.data_dir))
    goes_on(filled, empty, keys_of(empty, filled.data_dir))


@pytest.mark.parametrize("old", REVISIONS[:-1])
def test_an_older_postgresql_database_goes_on(tmp_path: Path, empty: str, old: str) -> None:
    """Opening it migrates it: what it held is there and sealed, what is new works, all is true."""
    store, memory = old_database(empty, old)
    keys = keys_of(empty, tmp_path)
    service = Service(empty, keys=keys)
    backend = service.backend_for(service.operator())
    history = backend.list_versions(store, view="full").data
    assert [one.content for one in history] == [TEXTS[1], TEXTS[0]]
    backend.redact_version(store, history[1].id)
    assert backend.get_memory(store, memory).content == TEXTS[1]
    for write in backend.list_rejected_writes(store, view="full").data:
        assert write.content == TEXTS[1]
    assert service.check() == []
    backend.delete_store(store)
    with pytest.raises(NotFound):
        backend.get_store(store)
    service.close()
    assert check(empty, keys) == []
