"""unlink(2)."""

from __future__ import annotations

import os

import pytest

from tests.support.files import read, refused, save
from tests.support.mounted import Place, shows


def test_unlink_deletes_the_memory(place: Place) -> None:
    """One `deleted`; the history stays."""
    memory = place.put("/a", "1")
    files = place.mount()

    files.unlink("a")

    assert place.texts() == {}
    assert [version.operation for version in place.history(memory.id)] == ["created", "deleted"]
    assert refused(files.stat, "a") == "ENOENT"
    assert refused(files.unlink, "a") == "ENOENT"


@pytest.mark.requires("nameless files")
def test_an_open_file_outlives_its_name(place: Place) -> None:
    """It is read and written through its handle, and nothing of that is saved."""
    place.put("/a", "old")
    files = place.mount()
    fd = files.open("a", os.O_RDWR)

    files.unlink("a")

    assert files.pread(fd, 100, 0) == b"old"
    files.pwrite(fd, b"newer", 0)
    assert files.pread(fd, 100, 0) == b"newer"
    files.fsync(fd)
    assert files.fstat(fd).st_nlink == 0
    files.close(fd)
    assert place.texts() == {}
    assert len(place.history()) == 2


def test_a_new_file_deleted_while_open_was_never_there(place: Place) -> None:
    """The store does not hear of it."""
    files = place.mount()
    fd = files.open("a", os.O_RDWR | os.O_CREAT)
    files.write(fd, b"text")

    files.unlink("a")
    files.close(fd)

    assert place.history() == []


def test_deleting_and_creating_makes_a_new_memory(place: Place) -> None:
    """`rm f; echo > f` is `deleted` and `created`."""
    before = place.put("/a", "1")
    files = place.mount()
    files.unlink("a")

    save(files, "a", "2")

    assert place.memory("/a").id != before.id
    assert [operation for operation, _ in place.operations()] == ["created", "deleted", "created"]


def test_rm_wins_over_a_change_not_seen_yet(place: Place) -> None:
    """Whoever removes a name removes what is there; the history keeps the other text."""
    from tests.support.faults import FaultyBackend

    backend = FaultyBackend(place.backend)
    place.put("/a", "1")
    files = place.mount(backend)  # type: ignore[arg-type]
    changed = []

    def before(verb: str) -> None:
        if verb == "delete_memory" and not changed:
            changed.append(place.put("/a", "unseen"))

    backend.before = before
    files.unlink("a")

    assert changed
    assert place.texts() == {}
    assert [operation for operation, _ in place.operations()] == ["created", "modified", "deleted"]


def test_a_refused_delete_leaves_the_file(place: Place) -> None:
    """When the store cannot be asked the file is still there."""
    from tests.support.faults import FaultyBackend

    backend = FaultyBackend(place.backend)
    place.put("/a", "1")
    files = place.mount(backend, retry_s=0.05)  # type: ignore[arg-type]
    backend.go_away()

    assert refused(files.unlink, "a") == "EIO"
    assert read(files, "a") == b"1"

    backend.come_back()
    files.unlink("a")
    assert place.texts() == {}


def test_a_file_created_elsewhere_after_the_delete_appears(place: Place) -> None:
    """A delete here says nothing of a later memory at the same path."""
    place.put("/a", "1")
    files = place.mount()
    files.unlink("a")

    place.put("/a", "2")

    shows(files, "a", "2")
