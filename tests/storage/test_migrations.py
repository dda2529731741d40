"""Databases of older versions are migrated forward with all they hold."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memstore.model.errors import Invalid
from memstore.service import Service
from memstore.service.database import check
from memstore.storage.migrations import REVISIONS
from tests.support.old_databases import TEXTS, old_database

ROOT = Path(__file__).parents[2]


def goes_on(file: Path, store: str, memory: str) -> None:
    """What it held is there, nothing of it in plain, and all is true."""
    service = Service(f"sqlite:///{file}")
    backend = service.backend_for(service.operator())
    assert backend.get_memory(store, memory).content == TEXTS[1]
    history = backend.list_versions(store, view="full").data
    assert [one.content for one in history] == [TEXTS[1], TEXTS[0]]
    for write in backend.list_rejected_writes(store, view="full").data:
        assert write.content == TEXTS[1]
        backend.apply_rejected_write(store, write.id)
    assert service.check() == []
    backend.redact_version(store, history[1].id)
    for path in file.parent.iterdir():
        assert b"plain-text-marker" not in path.read_bytes(), path.name
    backend.delete_store(store)
    assert service.check() == []
    service.close()


@pytest.mark.parametrize("old", REVISIONS[:-1])
def test_an_older_database_goes_on(tmp_path: Path, old: str) -> None:
    """Opening it migrates it: what it held is there and sealed, what is new works, all is true."""
    file = tmp_path / "memstore.db"
    store, memory = old_database(f"sqlite:///{file}", old)
    with pytest.raises(Invalid, match="migrate"):
        check(f"sqlite:///{file}")
    goes_on(file, store, memory)


KILLED = """
import os, signal, sys
from memstore.service.database import open_database
from memstore.storage import crypto, keyring
from memstore.storage.dialects.sqlite import SqliteEngine
place = sys.argv[2]
die = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)
if place == "sealing":
    keyring.Keyring.seal = die
elif place == "before the rejected":
    keyring.Keyring.destroy_orphan = die
elif place == "committed":
    SqliteEngine.compact = die
open_database(sys.argv[1])
"""


@pytest.mark.parametrize("place", ["sealing", "before the rejected", "committed"])
def test_a_migration_that_is_killed_is_done_again(tmp_path: Path, place: str) -> None:
    """SIGKILL in the middle of the sealing, or right after: the next start has it all."""
    file = tmp_path / "memstore.db"
    store, memory = old_database(f"sqlite:///{file}", "0002")
    code = [sys.executable, "-c", KILLED, f"sqlite:///{file}", place]
    done = subprocess.run(code, cwd=ROOT, env={**os.environ}, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    goes_on(file, store, memory)
