"""Databases of older versions are migrated forward with all they hold."""

from __future__ import annotations

import hashlib
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine

from memstore.model import ids
from memstore.model.errors import Invalid
from memstore.service import Service
from memstore.service.database import check
from memstore.storage import migrations
from memstore.storage.migrations import REVISIONS

ROOT = Path(__file__).parents[2]
TEXTS = ("plain-text-marker one", "plain-text-marker two")


def old_database(file: Path, revision: str) -> tuple[str, str]:
    """A database as an older version left it: a memory of two versions, another redacted."""
    engine = create_engine(f"sqlite:///{file}")
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    engine.dispose()
    workspace, store, memory = ids.new(ids.WORKSPACE), ids.new(ids.STORE), ids.new(ids.MEMORY)
    by = ("api_actor", ids.new(ids.KEY))
    database = sqlite3.connect(file)
    with database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("INSERT INTO workspaces VALUES (?, 'default', 1)", (workspace,))
        database.execute(
            "INSERT INTO stores VALUES (?, ?, 'old', '', '{}', 1, 1, NULL, 4, 9, 1, ?, NULL, NULL)",
            (store, workspace, len(TEXTS[1])),
        )
        for seq, text in enumerate(TEXTS, 1):
            version = ids.new(ids.VERSION)
            digest = hashlib.sha256(text.encode()).hexdigest()
            kind = "created" if seq == 1 else "modified"
            database.execute(
                "INSERT INTO versions (id, store_id, memory_id, seq, operation, path, size, sha256,"
                " created_at_us, actor_kind, actor_id, content) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
                (
                    version,
                    store,
                    memory,
                    seq,
                    kind,
                    "/a",
                    len(text),
                    digest,
                    seq,
                    *by,
                    text.encode(),
                ),
            )
            database.execute(
                "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (store, seq, f"memory.{kind}", version, memory, seq, *by),
            )
        database.execute(
            "INSERT INTO memories VALUES (?, ?, '/a', ?, 2, ?, ?, 1, 2)",
            (memory, store, version, digest, len(text)),
        )
        if revision != "0001":
            database.execute(
                "INSERT INTO rejected_writes (id, store_id, seq, state, reason, path, size, sha256,"
                " created_at_us, actor_kind, actor_id, content) VALUES (?,?,3,'open','conflict',"
                "'/a',?,?,3,?,?,?)",
                (ids.new(ids.REJECTED_WRITE), store, len(text), digest, *by, text.encode()),
            )
            database.execute(
                "INSERT INTO events VALUES (?, 3, 'write.rejected', NULL, NULL, 3, ?, ?)",
                (store, *by),
            )
    database.close()
    return store, memory


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
    store, memory = old_database(file, old)
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
    store, memory = old_database(file, "0002")
    code = [sys.executable, "-c", KILLED, f"sqlite:///{file}", place]
    done = subprocess.run(code, cwd=ROOT, env={**os.environ}, check=False, timeout=60)
    assert done.returncode == -signal.SIGKILL
    goes_on(file, store, memory)
