"""The master key: where it comes from, and what happens without it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from memstore.model.errors import Invalid, Unavailable
from memstore.service import Service
from memstore.service.database import rotate_master
from memstore.settings import KeySource, Settings
from tests.support.commands import Command

KEY = "0123456789abcdef" * 4


def filled(folder: Path, source: KeySource | None = None) -> tuple[str, str, str]:
    """A database with one memory: its URL, store and memory."""
    url = f"sqlite:///{folder / 'memstore.db'}"
    service = Service(url, keys=source)
    backend = service.backend_for(service.operator())
    store = backend.create_store(name="n").id
    memory = backend.create_memory(store, path="/m", content="one").id
    service.close()
    return url, store, memory


def reads(url: str, store: str, memory: str, source: KeySource | None = None) -> None:
    """The memory is read with these keys."""
    service = Service(url, keys=source)
    assert service.backend_for(service.operator()).get_memory(store, memory).content == "one"
    service.close()


def test_it_is_made_once_and_private(tmp_path: Path) -> None:
    """The first start makes a key file and a key store that only their owner reads."""
    where = filled(tmp_path / "data")
    for name in ("master.key", "keys.db"):
        assert stat.S_IMODE((tmp_path / "data" / name).stat().st_mode) == 0o600
    before = (tmp_path / "data" / "master.key").read_text()
    reads(*where)
    assert (tmp_path / "data" / "master.key").read_text() == before
    assert [*(tmp_path / "data").glob(".master*")] == []


@pytest.mark.damaged_database
@pytest.mark.parametrize(
    ("harm", "sentence"),
    [
        (lambda file: file.unlink(), "master.key is missing"),
        (lambda file: file.write_text(KEY), "not the one"),
        (lambda file: file.write_text("rubbish"), "64 hex digits"),
        (lambda file: file.with_name("keys.db").unlink(), "key store"),
    ],
)
def test_without_it_the_service_does_not_start(tmp_path: Path, harm, sentence: str) -> None:
    """Missing, wrong or no key at all: one sentence, status 6 or 7, and nothing is made anew."""
    url, store, memory = filled(tmp_path)
    kept = {name: (tmp_path / name).read_bytes() for name in ("master.key", "keys.db")}
    harm(tmp_path / "master.key")
    with pytest.raises((Unavailable, Invalid), match=sentence):
        Service(url)
    served = Command(MEMSTORE_DATA_DIR=str(tmp_path)).run("serve", "--listen", "127.0.0.1:0")
    assert served.status in (6, 7) and sentence in served.sentence
    assert KEY not in served.err and "rubbish" not in served.err
    for name, content in kept.items():
        (tmp_path / name).write_bytes(content)
    reads(url, store, memory)


def test_from_the_environment_and_from_a_command(tmp_path: Path) -> None:
    """Given another way, no key file is made; what one way sealed, the other opens."""
    url = f"sqlite:///{tmp_path / 'memstore.db'}"
    given = Settings({}, {"MEMSTORE_DATA_DIR": str(tmp_path), "MEMSTORE_MASTER_KEY": KEY})
    where = filled(tmp_path, given.key_source_of(url))
    assert not (tmp_path / "master.key").exists()
    said = {"MEMSTORE_DATA_DIR": str(tmp_path), "MEMSTORE_MASTER_KEY_COMMAND": f"echo {KEY}"}
    reads(*where, Settings({}, said).key_source_of(url))
    (tmp_path / "master.key").write_text(KEY)
    reads(*where)


@pytest.mark.parametrize("command", ["false", "echo short", "/nowhere/at/all", "'"])
def test_a_command_that_fails(tmp_path: Path, command: str) -> None:
    """It is a refusal in one sentence, without what was printed."""
    url = f"sqlite:///{tmp_path / 'memstore.db'}"
    said = {"MEMSTORE_DATA_DIR": str(tmp_path), "MEMSTORE_MASTER_KEY_COMMAND": command}
    with pytest.raises((Unavailable, Invalid), match="MEMSTORE_MASTER_KEY_COMMAND") as caught:
        Service(url, keys=Settings({}, said).key_source_of(url))
    assert "short" not in caught.value.message


def test_rotating_to_another_file(tmp_path: Path) -> None:
    """The new file is made, the old key opens nothing, and an environment's key needs a file."""
    url, store, memory = filled(tmp_path)
    source = Settings().key_source_of(url)
    new = tmp_path / "other" / "new.key"
    rotate_master(source, str(new))
    with pytest.raises(Unavailable, match="not the one"):
        Service(url)
    reads(url, store, memory, KeySource(source.store, new))
    os.replace(new, tmp_path / "master.key")
    reads(url, store, memory)
    with pytest.raises(Invalid, match="name the new one"):
        rotate_master(KeySource(source.store, source.master_file, KEY))


def test_the_command(tmp_path: Path) -> None:
    """`memstore key rotate-master` changes the key's file and leaves the database as it is."""
    url, store, memory = filled(tmp_path)
    before = (tmp_path / "master.key").read_text()
    data = (tmp_path / "memstore.db").read_bytes()
    ran = Command(MEMSTORE_DATA_DIR=str(tmp_path)).run("key", "rotate-master")
    assert ran.status == 0 and "master.key" in ran.out
    assert (tmp_path / "master.key").read_text() != before
    assert (tmp_path / "memstore.db").read_bytes() == data
    reads(url, store, memory)
