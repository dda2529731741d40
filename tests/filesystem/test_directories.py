"""Directories: implied by paths, kept here when empty, and listed completely."""

from __future__ import annotations

import os
import stat

from tests.support.files import read, refused, save
from tests.support.mounted import Place, hides, shows
from tests.support.waiting import until


def test_paths_imply_directories(place: Place) -> None:
    """A memory deep down makes every directory above it."""
    place.put("/a/b/c.md", "text")
    files = place.mount()

    assert files.listdir() == ["a"]
    assert files.listdir("a") == ["b"]
    assert stat.S_ISDIR(files.stat("a/b").st_mode)
    assert read(files, "a/b/c.md") == b"text"


def test_mkdir_lives_in_this_mount(place: Place) -> None:
    """An empty directory is here and nowhere else; with a file in it, it is everywhere."""
    files, other = place.mount(), place.mount()
    files.mkdir("d")
    assert files.listdir() == ["d"]
    assert other.listdir() == []

    save(files, "d/a", "1")

    shows(other, "d/a", "1")
    assert len(place.history()) == 1


def test_rmdir_of_an_empty_directory(place: Place) -> None:
    """It goes; one that holds something stays."""
    files = place.mount()
    files.mkdir("d")
    files.rmdir("d")
    assert files.listdir() == []

    place.put("/e/a", "1")
    shows(files, "e/a", "1")
    assert refused(files.rmdir, "e") == "ENOTEMPTY"
    assert refused(files.rmdir, "nothing") == "ENOENT"
    assert refused(files.rmdir, "e/a") == "ENOTDIR"


def test_deleting_the_last_file_leaves_the_directory(place: Place) -> None:
    """`rm d/e/a; ls d/e; rmdir d/e; rmdir d` works as anywhere."""
    place.put("/d/e/a", "1")
    files, other = place.mount(), place.mount()

    files.unlink("d/e/a")

    assert files.listdir("d/e") == []
    hides(other, "d")
    files.rmdir("d/e")
    assert files.listdir("d") == []
    files.rmdir("d")
    assert files.listdir() == []


def test_renaming_the_last_file_away_leaves_the_directory(place: Place) -> None:
    """The directory a file was moved out of stays here."""
    place.put("/d/a", "1")
    files = place.mount()

    files.rename("d/a", "b")

    assert files.listdir("d") == []


def test_a_directory_emptied_elsewhere_goes(place: Place) -> None:
    """Directories that only memories implied end with them."""
    memory = place.put("/d/e/a", "1")
    files = place.mount()
    assert files.listdir("d") == ["e"]

    place.backend.delete_memory(place.store_id, memory.id)

    hides(files, "d")


def test_a_made_directory_that_held_a_memory_goes_with_it(place: Place) -> None:
    """mkdir keeps a directory until a file is put into it."""
    files = place.mount()
    files.mkdir("d")
    memory = place.put("/d/a", "1")
    shows(files, "d/a", "1")

    place.backend.delete_memory(place.store_id, memory.id)

    hides(files, "d")


def test_a_memory_takes_the_place_of_an_empty_directory(place: Place) -> None:
    """A file that appears elsewhere at that path wins over a local empty directory."""
    files = place.mount()
    files.mkdir("d")

    place.put("/d", "now a file")

    until(lambda: refused(files.listdir, "d") == "ENOTDIR", "the file to take the place")
    shows(files, "d", "now a file")


def test_a_path_is_a_file_or_a_directory(place: Place) -> None:
    """The usual refusals."""
    place.put("/f", "1")
    place.put("/d/a", "1")
    files = place.mount()

    assert refused(files.mkdir, "f") == "EEXIST"
    assert refused(files.mkdir, "d") == "EEXIST"
    assert refused(files.mkdir, "f/x") == "ENOTDIR"
    assert refused(files.open, "f/x", os.O_WRONLY | os.O_CREAT) == "ENOTDIR"
    assert refused(files.open, "d", os.O_WRONLY) == "EISDIR"
    assert refused(files.unlink, "d") == "EISDIR"
    assert refused(files.listdir, "f") == "ENOTDIR"
    assert refused(files.mkdir, "nothing/x") == "ENOENT"


def test_a_clash_with_a_path_made_elsewhere_is_told(place: Place) -> None:
    """A file put into a local directory whose path is a memory by now is refused at close."""
    files = place.mount()
    files.mkdir("d")
    fd = files.open("d/a", os.O_WRONLY | os.O_CREAT)
    files.write(fd, b"1")
    place.put("/d", "a file")

    assert refused(files.close, fd) in ("ENOTDIR", "nothing")

    assert place.texts() == {"/d": "a file"}
    shows(files, "d", "a file")


def test_a_big_directory_is_listed_completely(place: Place) -> None:
    """Thousands of entries, each once."""
    from memstore.model.memories import CreateMemory

    for start in range(0, 3_000, 1_000):
        place.backend.apply_changes(
            place.store_id,
            [CreateMemory(f"/d/{number:05}", "x") for number in range(start, start + 1_000)],
        )
    files = place.mount()

    assert sorted(files.listdir("d")) == [f"{number:05}" for number in range(3_000)]


def test_ordinary_modes(place: Place) -> None:
    """Files are 0644 and directories 0755, of the owner the mount was made for."""
    place.put("/d/a", "1")
    files = place.mount(uid=1000, gid=1001)
    save(files, "b", "1")

    for path, mode in (("d", 0o755), ("d/a", 0o644), ("b", 0o644)):
        told = files.stat(path)
        assert stat.S_IMODE(told.st_mode) == mode
        assert (told.st_uid, told.st_gid) == (1000, 1001)


def test_a_repository_is_refused(place: Place) -> None:
    """What git keeps in `.git` is no text: the directory is not made."""
    files = place.mount()

    assert refused(files.mkdir, ".git") == "EPERM"
    assert files.listdir() == []
