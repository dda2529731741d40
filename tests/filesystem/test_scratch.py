"""Litter stays here, temporary names wait."""

from __future__ import annotations

import os

import pytest

from tests.support.files import read, refused, save
from tests.support.mounted import Place, shows
from tests.support.waiting import until

LITTER = [
    ".a.md.swp",
    ".a.md.swo",
    ".a.md.swpx",
    "4913",
    ".#a.md",
    "#a.md#",
    ".goutputstream-AB12",
    ".nfs0001",
    ".fuse_hidden01",
    ".DS_Store",
    "._a.md",
    ".~lock.a.odt#",
]


@pytest.mark.parametrize("name", LITTER)
def test_litter_never_reaches_the_store(place: Place, name: str) -> None:
    """It may hold any bytes, is listed here, and is nowhere else."""
    files, other = place.mount(), place.mount()
    save(files, name, b"\0\xff" * 1_000)

    assert files.listdir() == [name]
    assert read(files, name) == b"\0\xff" * 1_000
    assert other.listdir() == []
    files.unlink(name)
    assert files.listdir() == []
    assert place.unmount(files) == []
    assert place.history() == []


def test_litter_may_be_larger_than_a_memory(place: Place) -> None:
    """It has a bound of its own."""
    files = place.mount(scratch_bytes=300_000)
    save(files, ".a.swp", b"x" * 200_000)

    assert refused(save, files, ".b.swp", b"x" * 200_000) == "ENOSPC"
    files.unlink(".a.swp")
    save(files, ".b.swp", b"x" * 200_000)


def test_the_lists_are_options(place: Place) -> None:
    """Other litter, other temporary names."""
    files = place.mount(litter=("*.cache",), temporary=())
    save(files, "a.cache", "1")
    save(files, "a.tmp", "2")
    save(files, ".a.swp", "3")

    assert place.texts() == {"/a.tmp": "2", "/.a.swp": "3"}


def test_a_temporary_name_waits(place: Place) -> None:
    """It is read here, survives fsync, and is not in the store."""
    files, other = place.mount(), place.mount()
    fd = files.open("a.tmp", os.O_WRONLY | os.O_CREAT)
    files.write(fd, b"text")
    files.fsync(fd)
    files.close(fd)

    assert read(files, "a.tmp") == b"text"
    assert place.texts() == {}
    assert other.listdir() == []
    files.unlink("a.tmp")
    assert place.history() == []


def test_a_temporary_name_that_stays_is_committed_as_itself(place: Place) -> None:
    """So that nothing that was meant to be kept is lost in silence."""
    files = place.mount(temp_hold_s=0.01)
    save(files, "a.tmp", "text")

    until(lambda: place.texts() == {"/a.tmp": "text"}, "the temporary name to be committed")

    assert place.operations() == [("created", "/a.tmp")]
    save(files, "a.tmp", "more")
    until(lambda: place.texts() == {"/a.tmp": "more"}, "its next text to be committed")
    files.rename("a.tmp", "a")
    assert place.texts() == {"/a": "more"}


def test_an_open_temporary_name_waits_for_its_close(place: Place) -> None:
    """The time counts from the last close."""
    files = place.mount(temp_hold_s=0.01)
    fd = files.open("a.tmp", os.O_WRONLY | os.O_CREAT)
    files.write(fd, b"te")
    files.fsync(fd)
    save(files, "b.tmp", "other")
    until(lambda: "/b.tmp" in place.texts(), "the other one to be committed")
    assert "/a.tmp" not in place.texts()

    files.write(fd, b"xt")
    files.close(fd)

    until(lambda: place.texts().get("/a.tmp") == "text", "the closed one to be committed")
    assert len(place.history()) == 2


def test_unmounting_commits_temporary_names(place: Place) -> None:
    """Nothing is lost by leaving."""
    files = place.mount()
    save(files, "a.tmp", "text")

    assert place.unmount(files) == []

    assert place.texts() == {"/a.tmp": "text"}


def test_unmounting_commits_what_is_open(place: Place) -> None:
    """A dirty buffer is saved, though nobody closed it."""
    place.put("/a", "old")
    files = place.mount()
    fd = files.open("a", os.O_WRONLY)
    files.pwrite(fd, b"new", 0)

    assert place.unmount(files) == []

    assert place.texts() == {"/a": "new"}


def test_a_temporary_name_that_cannot_be_committed_is_reported(place: Place) -> None:
    """When the store is full, leaving says which path was not saved."""
    files = place.mount()
    save(files, "a.tmp", "text")
    place.backend.archive_store(place.store_id)

    assert place.unmount(files) == ["/a.tmp"]


def test_a_held_text_is_seen_while_it_is_replaced(place: Place) -> None:
    """A temporary name can be written again and again; the last text counts."""
    place.put("/a", "0")
    files = place.mount()
    for turn in range(3):
        save(files, "a.tmp", f"{turn}")
    files.rename("a.tmp", "a")

    assert place.texts() == {"/a": "2"}
    assert len(place.history()) == 2
    shows(files, "a", "2")
