"""Redaction that holds against copies: the data of before, with the keys of today."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from memstore.backend import Backend
from memstore.model.errors import NotFound, Unavailable
from memstore.model.memories import UpdateMemory
from memstore.model.versions import Version
from memstore.service import Service
from memstore.service.database import verify_receipt
from memstore.settings import KeySource, Settings
from memstore.storage import keyring


class Place:
    """A service in a folder, to be closed, copied and opened again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "memstore.db"
        self.url = f"sqlite:///{self.file}"
        self.open()

    def open(self) -> None:
        """Start, or start again."""
        self.service = Service(self.url)
        self.backend: Backend = self.service.backend_for(self.service.operator())

    def backup(self, name: str) -> Path:
        """A copy of the data alone, as a backup of it is."""
        copy = self.folder.parent / name
        with sqlite3.connect(self.file) as live, sqlite3.connect(copy) as other:
            live.backup(other)
        live.close()
        other.close()
        return copy

    def restore(self, copy: Path) -> None:
        """Put a copy in the place of the live data; the keys stay."""
        self.service.close()
        for file in self.folder.glob("memstore.db*"):
            file.unlink()
        shutil.copy(copy, self.file)
        self.open()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A service; its database is true to itself afterwards."""
    place = Place(tmp_path / "data")
    yield place
    assert place.service.check() == []
    place.service.close()


def readable(copy: Path, source: KeySource, version: str, store: str) -> str | None:
    """What a copy of the data gives away of a version, with the keys of today."""
    keys = keyring.open_keyring(source, data=True)
    with sqlite3.connect(copy) as data:
        row = data.execute(
            "SELECT epoch_id, wrapped_key, facts, text FROM versions WHERE id = ?", (version,)
        ).fetchone()
    data.close()
    try:
        _, text = keys.open(version, store, row)
        return None if text is None else text.decode()
    except Unavailable:
        return None
    finally:
        keys.close()


def history(place: Place, store: str, count: int) -> list[Version]:
    """A memory of some versions, oldest first."""
    memory = place.backend.create_memory(store, path="/secret/one", content="text 0")
    for number in range(1, count):
        place.backend.update_memory(store, memory.id, content=f"text {number}")
    return list(place.backend.list_versions(store).data)[::-1]


def test_no_copy_of_the_data_gives_a_redacted_text_back(place: Place) -> None:
    """From every backup of before, with the live keys, survivors are read and the redacted not."""
    store = place.backend.create_store(name="n").id
    versions = history(place, store, 6)
    source = Settings().key_source_of(place.url)
    copies = []
    for number in (1, 3):
        copies.append(place.backup(f"before-{number}.copy"))
        place.backend.redact_version(store, versions[number].id)
    for copy in copies:
        for number, version in enumerate(versions):
            expected = None if number in (1, 3) else f"text {number}"
            assert readable(copy, source, version.id, store) == expected
    for number, version in enumerate(versions):
        found = place.backend.get_version(store, version.id)
        assert found.content == (None if number in (1, 3) else f"text {number}")
        assert (found.path is None) == (number in (1, 3))


def test_a_restored_backup_is_redacted_again(place: Place) -> None:
    """Data of before a redaction: what was redacted says so again, the rest is read and written."""
    store = place.backend.create_store(name="n").id
    versions = history(place, store, 3)
    copy = place.backup("before.copy")
    place.backend.redact_version(store, versions[0].id)
    place.restore(copy)
    found = place.backend.get_version(store, versions[0].id)
    assert found.redacted_at is not None and found.path is None and found.content is None
    assert place.backend.get_version(store, versions[1].id).content == "text 1"
    place.backend.update_memory(store, versions[0].memory_id, content="after")
    place.backend.redact_version(store, versions[1].id)
    source = Settings().key_source_of(place.url)
    assert readable(copy, source, versions[1].id, store) is None
    assert readable(copy, source, versions[2].id, store) == "text 2"


def test_a_restored_backup_in_which_it_was_live(place: Place) -> None:
    """A memory whose text was redacted since is not live in the restored data."""
    store = place.backend.create_store(name="n").id
    memory = place.backend.create_memory(store, path="/m", content="secret")
    kept = place.backend.create_memory(store, path="/kept", content="kept")
    copy = place.backup("before.copy")
    place.backend.update_memory(store, memory.id, content="clean")
    place.backend.redact_version(store, memory.version_id)
    place.restore(copy)
    with pytest.raises(NotFound):
        place.backend.get_memory(store, memory.id)
    assert place.backend.get_memory(store, kept.id).content == "kept"
    assert place.backend.store_usage(store).memories == 1
    place.backend.create_memory(store, path="/m", content="again")


def test_a_backup_between_two_redactions_keeps_neither(place: Place) -> None:
    """Restore the first of two backups, redact there: the second gives that text no more either."""
    store = place.backend.create_store(name="n").id
    versions = history(place, store, 4)
    first = place.backup("first.copy")
    place.backend.redact_version(store, versions[0].id)
    second = place.backup("second.copy")
    place.restore(first)
    place.backend.redact_version(store, versions[1].id)
    source = Settings().key_source_of(place.url)
    for copy in (first, second):
        assert readable(copy, source, versions[1].id, store) is None
        assert readable(copy, source, versions[2].id, store) == "text 2"


def test_a_rejected_write_leaves_no_copy(place: Place) -> None:
    """Applied or dismissed, its own sealed text is not opened from a backup any more."""
    store = place.backend.create_store(name="n").id
    writes = [
        place.backend.record_rejected_write(store, path=f"/{n}", content=f"lost {n}").id
        for n in range(3)
    ]
    copy = place.backup("before.copy")
    place.backend.dismiss_rejected_write(store, writes[0])
    place.backend.apply_rejected_write(store, writes[1])
    keys = keyring.open_keyring(Settings().key_source_of(place.url), data=True)
    assert [keys.epoch(write) is None for write in writes] == [True, True, False]
    keys.close()
    assert copy.exists()
    assert place.backend.get_rejected_write(store, writes[2]).content == "lost 2"


def test_a_deleted_store_leaves_no_key(place: Place) -> None:
    """A backup of a store that was deleted since is unreadable."""
    store = place.backend.create_store(name="n").id
    version = history(place, store, 1)[0]
    copy = place.backup("before.copy")
    place.backend.delete_store(store)
    assert readable(copy, Settings().key_source_of(place.url), version.id, store) is None


def test_many_epochs(place: Place) -> None:
    """A history of several epochs: a redaction in an old one leaves all others readable."""
    store = place.backend.create_store(name="n").id
    memory = place.backend.create_memory(store, path="/m", content="0")
    for start in range(1, 2301, 100):
        changes = [UpdateMemory(memory.id, str(n)) for n in range(start, start + 100)]
        place.backend.apply_changes(store, changes)
    old = place.backend.get_version(store, memory.version_id)
    place.backend.redact_version(store, old.id)
    page, count = None, 0
    while True:
        found = place.backend.list_versions(store, view="basic", limit=100, page=page)
        count += sum(one.path == "/m" for one in found.data)
        page = found.next_page
        if page is None:
            break
    assert count == 2300


def test_the_receipt(place: Place) -> None:
    """It is signed, names who and when, tells nothing of the text, and holds for the live data."""
    store = place.backend.create_store(name="n").id
    versions = history(place, store, 3)
    with pytest.raises(NotFound):
        place.backend.redaction_receipt(store, versions[0].id)
    redacted = place.backend.redact_version(store, versions[0].id)
    receipt = place.backend.redaction_receipt(store, versions[0].id)
    assert place.backend.redact_version(store, versions[0].id) == redacted
    assert place.backend.redaction_receipt(store, versions[0].id) == receipt
    assert receipt["version_id"] == versions[0].id and receipt["kept"]["versions"] == 2
    assert redacted.redacted_by is not None
    assert receipt["redacted_by"] == redacted.redacted_by.to_wire()
    assert "secret/one" not in json.dumps(receipt)
    source = Settings().key_source_of(place.url)
    assert verify_receipt(place.url, source, receipt) == []
    for field, value in (("version_id", versions[1].id), ("redacted_at", "2020"), ("kept", {})):
        forged = {**receipt, field: value}
        assert "not signed" in verify_receipt(place.url, source, forged)[0]


def test_a_receipt_that_is_not_so(place: Place, tmp_path: Path) -> None:
    """Signed but untrue, as after data was put back by hand: every contradiction is named."""
    store = place.backend.create_store(name="n").id
    versions = history(place, store, 2)
    copy = place.backup("before.copy")
    place.backend.redact_version(store, versions[0].id)
    receipt = place.backend.redaction_receipt(store, versions[0].id)
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy(copy, other / "data.copy")
    shutil.copy(place.folder / "keys.db", other / "data.keys.db")
    shutil.copy(place.folder / "master.key", other / "master.key")
    url = f"sqlite:///{other / 'data.copy'}"
    found = verify_receipt(url, Settings().key_source_of(url), receipt)
    assert any("not redacted" in sentence for sentence in found)
