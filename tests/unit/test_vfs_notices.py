"""What the kernel is told to forget, and what it need not be told."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuse_mount.vfs.filesystem import Vfs
from fuse_mount.vfs.interface import ROOT_INO, Filesystem, now
from fuse_mount.vfs.options import Options
from tests.support.files import ME, VfsFiles
from tests.support.mounted import Place
from tests.support.waiting import until


class Listener:
    """A kernel that writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, int, str]] = []

    def inval_inode(self, ino: int) -> None:
        """Attributes and pages."""
        self.told.append(("inode", ino, ""))

    def inval_entry(self, parent: int, name: str) -> None:
        """A name."""
        self.told.append(("entry", parent, name))

    def deleted(self, parent: int, ino: int, name: str) -> None:
        """A name with its node."""
        self.told.append(("deleted", parent, name))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A store."""
    place = Place(tmp_path, VfsFiles)
    yield place
    place.close()


@pytest.fixture
def listener() -> Listener:
    """The kernel's side."""
    return Listener()


@pytest.fixture
def vfs(place: Place, listener: Listener) -> Iterator[Filesystem]:
    """The store with one memory, mounted and looked at."""
    place.put("/a", "1")
    vfs: Filesystem = Vfs(place.backend, place.store_id, Options(temp_hold_s=1e6), listener)
    vfs.start()
    now(vfs.lookup(ROOT_INO, "a"))
    yield vfs
    vfs.stop()


def _mark(place: Place, listener: Listener) -> None:
    """Wait until the feed has come past everything that was done so far."""
    place.put("/mark", str(len(listener.told)))
    until(lambda: ("entry", ROOT_INO, "mark") in listener.told, "the mark to be told")


def test_a_remote_change_invalidates_the_inode(
    place: Place, vfs: Filesystem, listener: Listener
) -> None:
    """Its pages and attributes, not its name."""
    ino = now(vfs.lookup(ROOT_INO, "a")).ino
    place.put("/a", "2")

    until(lambda: ("inode", ino, "") in listener.told, "the change to be told")

    assert [entry for entry in listener.told if entry[2] == "a"] == []


def test_names_that_come_and_go_elsewhere_are_told(
    place: Place, vfs: Filesystem, listener: Listener
) -> None:
    """Also the ones that the kernel only knows as missing, in any normal form."""
    decomposed = "cafe\u0301"
    with pytest.raises(FileNotFoundError):
        now(vfs.lookup(ROOT_INO, decomposed))
    place.put("/caf\u00e9", "1")
    place.backend.delete_memory(place.store_id, place.memory("/a").id)

    until(lambda: ("deleted", ROOT_INO, "a") in listener.told, "the delete to be told")

    assert ("entry", ROOT_INO, "caf\u00e9") in listener.told
    assert ("entry", ROOT_INO, decomposed) in listener.told


def test_a_save_here_invalidates_nothing(place: Place, vfs: Filesystem, listener: Listener) -> None:
    """The kernel's pages already hold what was written through it."""
    ino = now(vfs.lookup(ROOT_INO, "a")).ino
    opened = now(vfs.open(ino, os.O_WRONLY | os.O_TRUNC, ME))
    now(vfs.write(opened.handle, 0, b"mine"))
    rest = vfs.flush(opened.handle)
    assert rest is not None
    rest.run()
    vfs.release(opened.handle)
    _mark(place, listener)

    assert ("inode", ino, "") not in listener.told
    assert ("entry", ROOT_INO, "a") not in listener.told
    assert place.texts()["/a"] == "mine"


def test_an_inode_nobody_knows_is_not_told(
    place: Place, vfs: Filesystem, listener: Listener
) -> None:
    """What the kernel forgot it need not forget again."""
    ino = now(vfs.lookup(ROOT_INO, "a")).ino
    vfs.forget(ino, 2)
    place.put("/a", "2")
    _mark(place, listener)

    assert ("inode", ino, "") not in listener.told


def test_a_deleted_node_lives_until_it_is_forgotten(
    place: Place, vfs: Filesystem, listener: Listener
) -> None:
    """Its number answers while the kernel holds it, and not after."""
    ino = now(vfs.lookup(ROOT_INO, "a")).ino
    rest = vfs.unlink(ROOT_INO, "a")
    assert rest is not None
    rest.run()
    assert now(vfs.getattr(ino)).nlink == 0

    vfs.forget(ino, 2)

    with pytest.raises(OSError):
        now(vfs.getattr(ino))


def test_timeouts_are_long_while_the_feed_is_connected(vfs: Filesystem) -> None:
    """An hour; the feed invalidates."""
    until(lambda: vfs.timeouts().entry == 3600.0, "the feed to be connected")


def test_a_cookie_goes_on_where_it_was_whatever_changes(
    place: Place, vfs: Filesystem, listener: Listener
) -> None:
    """Entries that stay are listed exactly once, though others come and go during the scan."""
    for number in range(20):
        place.put(f"/n{number:02}", "x")
    until(lambda: ("entry", ROOT_INO, "n19") in listener.told, "the last one to be told")
    handle = vfs.opendir(ROOT_INO)
    first = [next(entries) for entries in [vfs.readdir(handle, 0)] for _ in range(10)]
    for number in range(0, 20, 2):
        place.backend.delete_memory(place.store_id, place.memory(f"/n{number:02}").id)
    place.put("/zz", "x")
    until(lambda: ("entry", ROOT_INO, "zz") in listener.told, "the new one to be told")

    rest = list(vfs.readdir(handle, first[-1][2]))
    vfs.releasedir(handle)

    names = [name for name, _, _ in first + rest]
    odd = {f"n{number:02}" for number in range(1, 20, 2)} | {"a"}
    assert len(names) == len(set(names))
    assert odd <= set(names)
