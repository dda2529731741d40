"""rename(2)."""

from __future__ import annotations

import os

import pytest

from tests.support.files import append, read, refused, save
from tests.support.mounted import Place, hides, shows
from tests.support.waiting import together

NOREPLACE, EXCHANGE = 1, 2


def test_rename_keeps_id_and_history(place: Place) -> None:
    """A rename is one `modified` of the same memory."""
    before = place.put("/a", "1")
    files = place.mount()

    files.rename("a", "b")

    assert place.texts() == {"/b": "1"}
    assert place.memory("/b").id == before.id
    assert place.operations() == [("created", "/a"), ("modified", "/b")]
    assert files.listdir() == ["b"]
    assert read(files, "b") == b"1"


def test_rename_into_another_directory(place: Place) -> None:
    """Directories appear and stay as they should."""
    place.put("/d/a", "1")
    files = place.mount()
    files.mkdir("e")

    files.rename("d/a", "e/b")

    assert place.texts() == {"/e/b": "1"}
    assert files.listdir("d") == []
    assert files.listdir("e") == ["b"]


def test_rename_onto_a_memory_goes_on_with_its_lineage(place: Place) -> None:
    """The destination gets one `modified` with the source's text, the source is `deleted`."""
    source, target = place.put("/a", "new"), place.put("/b", "old")
    files = place.mount()

    files.rename("a", "b")

    assert place.texts() == {"/b": "new"}
    assert place.memory("/b").id == target.id
    assert sorted(
        (version.operation, version.memory_id) for version in place.history()[2:]
    ) == sorted([("modified", target.id), ("deleted", source.id)])
    assert files.listdir() == ["b"]
    assert read(files, "b") == b"new"


def test_an_open_destination_is_still_read(place: Place) -> None:
    """Whoever has the replaced file open reads what it was."""
    place.put("/a", "new")
    place.put("/b", "old")
    files = place.mount()
    fd = files.open("b")

    files.rename("a", "b")

    assert files.pread(fd, 100, 0) == b"old"
    files.close(fd)
    assert read(files, "b") == b"new"


def test_writes_to_a_replaced_file_are_not_saved(place: Place) -> None:
    """They go to the text that has no name any more."""
    place.put("/a", "new")
    place.put("/b", "old")
    files = place.mount()
    fd = files.open("b", os.O_RDWR)
    files.rename("a", "b")

    files.pwrite(fd, b"OLD", 0)
    assert files.pread(fd, 100, 0) == b"OLD"
    files.close(fd)

    assert place.texts() == {"/b": "new"}


def test_a_renamed_file_that_is_being_written_is_saved_under_its_new_name(place: Place) -> None:
    """The buffer goes along."""
    place.put("/a", "old")
    files = place.mount()
    fd = files.open("a", os.O_WRONLY)
    files.pwrite(fd, b"new", 0)

    files.rename("a", "b")
    files.close(fd)

    assert place.texts() == {"/b": "new"}


@pytest.mark.requires("RENAME_NOREPLACE")
def test_noreplace_and_exchange(place: Place) -> None:
    """RENAME_NOREPLACE refuses what exists; RENAME_EXCHANGE is EINVAL and harms nothing."""
    place.put("/a", "1")
    place.put("/b", "2")
    files = place.mount()

    assert refused(files.rename, "a", "b", NOREPLACE) == "EEXIST"
    assert refused(files.rename, "a", "b", EXCHANGE) == "EINVAL"
    files.rename("a", "c", NOREPLACE)

    assert place.texts() == {"/b": "2", "/c": "1"}


def test_rename_to_itself_changes_nothing(place: Place) -> None:
    """Not even a version."""
    place.put("/a", "1")
    files = place.mount()

    files.rename("a", "a")

    assert len(place.history()) == 1


def test_a_directory_takes_everything_along(place: Place) -> None:
    """Every memory below is renamed; ids, texts and local files stay."""
    ids = {name: place.put(f"/d/{name}", name).id for name in ("a", "b", "s/c")}
    files = place.mount()
    save(files, "d/.a.swp", b"\0litter")
    files.mkdir("d/empty")

    files.rename("d", "e")

    assert place.texts() == {"/e/a": "a", "/e/b": "b", "/e/s/c": "s/c"}
    assert {name: place.memory(f"/e/{name}").id for name in ids} == ids
    assert sorted(files.listdir("e")) == [".a.swp", "a", "b", "empty", "s"]
    assert files.listdir() == ["e"]
    assert read(files, "e/s/c") == b"s/c"


def test_a_directory_rename_is_seen_elsewhere(place: Place) -> None:
    """The other mount has the new paths and no rest of the old ones."""
    place.put("/d/a", "1")
    place.put("/d/s/b", "2")
    files, other = place.mount(), place.mount()

    files.rename("d", "e")

    shows(other, "e/a", "1")
    shows(other, "e/s/b", "2")
    hides(other, "d")


def test_a_directory_into_an_empty_one_and_refusals(place: Place) -> None:
    """An empty directory is replaced; the usual refusals otherwise."""
    place.put("/d/a", "1")
    place.put("/e/b", "2")
    place.put("/f", "3")
    files = place.mount()
    files.mkdir("empty")

    assert refused(files.rename, "d", "e") == "ENOTEMPTY"
    assert refused(files.rename, "d", "f") == "ENOTDIR"
    assert refused(files.rename, "f", "e") == "EISDIR"
    assert refused(files.rename, "d", "d/x") == "EINVAL"
    assert refused(files.rename, "nothing", "x") == "ENOENT"
    assert refused(files.rename, "f", "nothing/x") == "ENOENT"
    files.rename("d", "empty")

    assert place.texts() == {"/e/b": "2", "/empty/a": "1", "/f": "3"}


def test_a_clash_elsewhere_makes_a_directory_rename_fail_whole(place: Place) -> None:
    """When one path is taken meanwhile, nothing is renamed."""
    place.put("/d/a", "1")
    place.put("/d/b", "2")
    files = place.mount()
    place.put("/e", "a file")

    outcome = refused(files.rename, "d", "e")

    assert outcome in ("EEXIST", "ENOTDIR")
    assert place.texts() == {"/d/a": "1", "/d/b": "2", "/e": "a file"}
    assert sorted(files.listdir("d")) == ["a", "b"]


def test_a_memory_moved_to_a_temporary_name_is_held_back(place: Place) -> None:
    """The store hears of it when the mount ends, or when it comes back never."""
    place.put("/a", "1")
    files = place.mount()

    files.rename("a", "a~")
    assert read(files, "a~") == b"1"
    assert refused(files.stat, "a") == "ENOENT"
    assert place.texts() == {"/a": "1"}
    files.rename("a~", "a")
    assert len(place.history()) == 1

    files.rename("a", "a~")
    assert place.unmount(files) == []
    assert place.texts() == {"/a~": "1"}
    assert place.operations() == [("created", "/a"), ("modified", "/a~")]


def test_a_memory_moved_away_can_be_deleted(place: Place) -> None:
    """`mv a a~; rm a~` deletes the memory."""
    place.put("/a", "1")
    files = place.mount()
    files.rename("a", "a~")

    files.unlink("a~")

    assert place.texts() == {}


def test_a_memory_moved_away_and_on(place: Place) -> None:
    """`mv a a.tmp; mv a.tmp b` is one rename; another file may take the old name."""
    first = place.put("/a", "1")
    place.put("/c", "2")
    files = place.mount()
    files.rename("a", "a.tmp")
    files.rename("a.tmp", "b")
    assert place.memory("/b").id == first.id
    assert place.operations()[2:] == [("modified", "/b")]

    files.rename("b", "b~")
    files.rename("c", "b")
    assert place.texts() == {"/b": "2", "/b~": "1"}


def test_renames_of_many_files_at_once(place: Place) -> None:
    """Eight writers saving through temporary files, each its own file and all one file."""
    place.put("/all", "")
    files = place.mount(conflict="overwrite")

    def work(number: int) -> None:
        for turn in range(5):
            for name in (f"f{number}", "all"):
                save(files, f"{name}.{number}.tmp", f"{number}:{turn}")
                files.rename(f"{name}.{number}.tmp", name)

    assert together(work, 8) == [None] * 8

    texts = place.texts()
    assert {texts[f"/f{number}"] for number in range(8)} == {f"{number}:4" for number in range(8)}
    assert len(texts) == 9
    assert sorted(files.listdir()) == sorted(path[1:] for path in texts)


@pytest.mark.parametrize("name", [".DS_Store", ".x.swp"])
def test_renaming_to_a_litter_name_leaves_the_store(place: Place, name: str) -> None:
    """The memory is deleted, the file is local; renamed back it is created."""
    place.put("/a", "1")
    files = place.mount()

    files.rename("a", name)
    assert place.texts() == {}
    assert read(files, name) == b"1"

    files.rename(name, "b")
    assert place.texts() == {"/b": "1"}
    append(files, "b", "2")
    assert place.texts() == {"/b": "12"}
