"""SIGKILL at each step of a destruction or a rotation: the next start finishes or undoes it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memstore.model.errors import NotFound
from memstore.service import Service
from memstore.service.database import rotate_master, verify_receipt
from memstore.settings import Settings
from memstore.storage import keyring

ROOT = Path(__file__).parents[2]

CHILD = """
import json, os, signal, sys
from memstore.service import Service
from memstore.storage import destruction, keystore
from memstore.storage.dialects import sqlite, sqlite_writer

url, act, step = sys.argv[1:]
asked = json.loads(sys.stdin.read())

def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

def dying_after(owner, name):
    real = getattr(owner, name)
    def wrapper(*args, **kwargs):
        real(*args, **kwargs)
        die()
    setattr(owner, name, wrapper)

service = Service(url)
backend = service.backend_for(service.operator())
backend.list_versions(asked["store"])
if step == "before the intent":
    keystore.KeyStore.add_epoch = keystore.KeyStore.intend = die
elif step == "after the intent":
    dying_after(keystore.KeyStore, "add_epoch")
    dying_after(keystore.KeyStore, "intend")
elif step == "before the commit":
    from memstore.storage import stores
    dying_after(stores.LockedStore, "save")
    dying_after(stores, "remove")
elif step == "after the commit":
    service._engine.settled = die
elif step == "in the key store":
    from contextlib import contextmanager
    finish, real = keystore.KeyStore.finish, keystore.KeyStore.transaction
    @contextmanager
    def transaction(self):
        with real(self) as connection:
            yield connection
            die()
    def finishing(self, *args, **kwargs):
        keystore.KeyStore.transaction = transaction
        finish(self, *args, **kwargs)
    keystore.KeyStore.finish = finishing
elif step == "after the keys":
    dying_after(keystore.KeyStore, "finish")
elif step == "after the log":
    dying_after(sqlite_writer, "empty_log")
if act == "version":
    backend.redact_version(asked["store"], asked["version"])
elif act == "store":
    backend.delete_store(asked["store"])
else:
    backend.dismiss_rejected_write(asked["store"], asked["write"])
"""

STEPS = {
    "before the intent": False,
    "after the intent": False,
    "before the commit": False,
    "after the commit": True,
    "in the key store": True,
    "after the keys": True,
    "after the log": True,
}
"""Whether the next start finds it done."""


def killed(code: str, *arguments: str, given: str = "") -> None:
    """Run a child that kills itself."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        env={**os.environ},
        input=given,
        text=True,
        timeout=60,
        check=False,
        capture_output=True,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize("act", ["version", "store", "rejected"])
@pytest.mark.parametrize("step", STEPS)
def test_a_killed_destruction(tmp_path: Path, act: str, step: str) -> None:
    """It is as if it never began, or it is done, keys and receipt and all; the rest is readable."""
    url = f"sqlite:///{tmp_path / 'memstore.db'}"
    service = Service(url)
    backend = service.backend_for(service.operator())
    store = backend.create_store(name="n").id
    memory = backend.create_memory(store, path="/m", content="one")
    backend.update_memory(store, memory.id, content="two")
    write = backend.record_rejected_write(store, path="/m", content="lost").id
    service.close()
    asked = {"store": store, "version": memory.version_id, "write": write}
    killed(CHILD, url, act, step, given=json.dumps(asked))

    service = Service(url)
    backend = service.backend_for(service.operator())
    keys = service._engine.keys
    assert service.check() == []
    assert keys.store.intents() == []
    done = STEPS[step]
    if act == "store":
        if done:
            with pytest.raises(NotFound):
                backend.get_store(store)
            assert keys.store.epoch(write) is None
        else:
            assert backend.get_memory(store, memory.id).content == "two"
    elif act == "rejected":
        found = backend.get_rejected_write(store, write)
        assert (found.state, found.content) == (("dismissed", None) if done else ("open", "lost"))
        assert (keys.store.epoch(write) is None) == done
    else:
        version = backend.get_version(store, memory.version_id)
        assert version.content == (None if done else "one")
        assert backend.get_memory(store, memory.id).content == "two"
        if not done:
            backend.redact_version(store, memory.version_id)
        receipt = backend.redaction_receipt(store, memory.version_id)
        service.close()
        assert verify_receipt(url, Settings().key_source_of(url), receipt) == []
        service = Service(url)
        backend = service.backend_for(service.operator())
        assert backend.get_memory(store, memory.id).content == "two"
    service.close()


ROTATING = """
import os, signal, sys
from memstore.service.database import rotate_master
from memstore.settings import Settings
from memstore.storage import keyring, keystore, master

url, step = sys.argv[1:3]
new_file = sys.argv[3] if len(sys.argv) > 3 else None

def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)

if step == "before the new key":
    master.write = die
elif step == "before the keys":
    keyring._rewrap = die
elif step == "among the keys":
    keystore._set_fact = die
elif step == "after the keys":
    master.promote = die
elif step == "after the rename":
    master.sync_folder, kept = (lambda f, n=[0]: die() if n[0] else n.__setitem__(0, 1)), None
rotate_master(Settings().key_source_of(url), new_file)
"""


@pytest.mark.parametrize(
    "step",
    [
        "before the new key",
        "before the keys",
        "among the keys",
        "after the keys",
        "after the rename",
    ],
)
def test_a_killed_rotation(tmp_path: Path, step: str) -> None:
    """Wherever it was killed, the service starts, reads and writes, and the rotation can be repeated."""
    url = f"sqlite:///{tmp_path / 'memstore.db'}"
    service = Service(url)
    backend = service.backend_for(service.operator())
    store = backend.create_store(name="n").id
    memory = backend.create_memory(store, path="/m", content="one")
    service.close()
    killed(ROTATING, url, step)
    for _ in range(2):
        service = Service(url)
        backend = service.backend_for(service.operator())
        assert backend.get_memory(store, memory.id).content == "one"
        backend.create_memory(store, path=f"/{len(backend.list_memories(store).data)}", content="x")
        assert service.check() == []
        service.close()
        source = Settings().key_source_of(url)
        before = source.master_file.read_text()
        rotate_master(source)
        assert source.master_file.read_text() != before
        assert not source.master_file.with_name("master.key.new").exists()
    keyring.open_keyring(source, data=True).close()


def test_rotating_under_a_running_service(tmp_path: Path) -> None:
    """A service that runs meanwhile reads and writes on, also what needs a new epoch."""
    url = f"sqlite:///{tmp_path / 'memstore.db'}"
    service = Service(url)
    backend = service.backend_for(service.operator())
    store = backend.create_store(name="n").id
    memory = backend.create_memory(store, path="/m", content="one")
    rotate_master(Settings().key_source_of(url))
    service._engine.keys.forget()
    assert backend.get_memory(store, memory.id).content == "one"
    rotate_master(Settings().key_source_of(url))
    other = backend.create_store(name="other").id
    made = backend.create_memory(other, path="/m", content="two")
    assert backend.get_memory(other, made.id).content == "two"
    service.close()
