"""Two edits of one text: merged where they can be, else told to the loser, and never lost."""

from __future__ import annotations

import os
import re

import pytest

from tests.support.files import append, read, refused
from tests.support.mounted import Place, shows
from tests.support.waiting import together, until

BASE = "one\ntwo\nthree\nfour\n"


def _losers(names: list[str], name: str = "a.md") -> list[str]:
    return [one for one in names if re.fullmatch(rf"{name}\.conflict-\d+T\d+\.\d+Z", one)]


def test_equal_edits_make_one_version(place: Place) -> None:
    """When both wrote the same text the second save makes no version and succeeds."""
    place.put("/a.md", "old")
    files = place.mount()
    fd = files.open("a.md", os.O_RDWR)
    files.ftruncate(fd, 0)
    files.pwrite(fd, b"new", 0)
    place.put("/a.md", "new")

    files.close(fd)

    assert len(place.history()) == 2


def test_an_append_goes_to_the_newest_text(place: Place) -> None:
    """What was appended is added to the text somebody else wrote meanwhile."""
    place.put("/a.md", "one\n")
    files = place.mount()
    fd = files.open("a.md", os.O_WRONLY | os.O_APPEND)
    files.write(fd, b"mine\n")
    place.put("/a.md", "another\n")

    files.close(fd)

    assert place.texts() == {"/a.md": "another\nmine\n"}
    shows(files, "a.md", "another\nmine\n")


def test_an_append_without_the_flag_counts_too(place: Place) -> None:
    """Writing at the end is appending, whatever the flags."""
    place.put("/a.md", "one\n")
    files = place.mount()
    fd = files.open("a.md", os.O_RDWR)
    files.pwrite(fd, b"mine\n", 4)
    place.put("/a.md", "another\n")

    files.close(fd)

    assert place.texts() == {"/a.md": "another\nmine\n"}


def test_two_mounts_appending_at_once_lose_nothing(place: Place) -> None:
    """Every line of every writer is there in the end."""
    place.put("/log", "")
    mounts = [place.mount() for _ in range(3)]

    def work(number: int) -> None:
        for line in range(15):
            append(mounts[number], "log", f"{number}:{line}\n")

    assert together(work, 3) == [None, None, None]

    lines = (place.texts()["/log"] or "").splitlines()
    assert sorted(lines) == sorted(f"{who}:{line}" for who in range(3) for line in range(15))


def test_edits_of_different_lines_are_merged(place: Place) -> None:
    """Both edits are in the text, saved as one version."""
    place.put("/a.md", BASE)
    files = place.mount()
    fd = files.open("a.md", os.O_RDWR)
    files.pwrite(fd, b"ONE", 0)
    place.put("/a.md", BASE.replace("four", "FOUR"))

    files.close(fd)

    merged = "ONE\ntwo\nthree\nFOUR\n"
    assert place.texts() == {"/a.md": merged}
    assert len(place.history()) == 3
    shows(files, "a.md", merged)


@pytest.mark.requires("rejected writes")
def test_the_loser_is_told_and_its_text_is_kept(place: Place) -> None:
    """Close fails with ESTALE, the file shows the winner's text, the other one is beside it."""
    before = place.put("/d/a.md", BASE)
    files, other = place.mount(), place.mount()
    fd = files.open("d/a.md", os.O_RDWR)
    files.pwrite(fd, b"ONE", 0)
    place.put("/d/a.md", BASE.replace("one", "uno"))

    assert refused(files.close, fd) == "ESTALE"

    assert place.texts() == {"/d/a.md": BASE.replace("one", "uno")}
    assert read(files, "d/a.md") == BASE.replace("one", "uno").encode()
    (loser,) = _losers(files.listdir("d"))
    assert read(files, f"d/{loser}") == BASE.replace("one", "ONE").encode()
    assert other.listdir("d") == ["a.md"]
    (write,) = place.backend.list_rejected_writes(place.store_id, view="full").data
    assert (write.state, write.path, write.memory_id) == ("open", "/d/a.md", before.id)
    assert write.content == BASE.replace("one", "ONE")
    assert write.base_content_sha256 == before.content_sha256
    files.unlink(f"d/{loser}")
    assert len(place.history()) == 2


@pytest.mark.requires("rejected writes")
def test_fsync_tells_a_conflict_and_close_repeats_it(place: Place) -> None:
    """After ESTALE at fsync nothing of the half-known text is saved by the close."""
    place.put("/a.md", "one\n")
    files = place.mount()
    fd = files.open("a.md", os.O_RDWR)
    files.pwrite(fd, b"ONE", 0)
    place.put("/a.md", "uno\n")

    assert refused(files.fsync, fd) == "ESTALE"
    assert refused(files.pwrite, fd, b"!", 3) == "ESTALE"
    assert refused(files.close, fd) == "ESTALE"

    assert place.texts() == {"/a.md": "uno\n"}
    assert len(_losers(files.listdir())) == 1


def test_overwrite_lets_the_last_writer_win(place: Place) -> None:
    """With `conflict=overwrite` the other text stays one version back."""
    memory = place.put("/a.md", "one\n")
    files = place.mount(conflict="overwrite")
    fd = files.open("a.md", os.O_RDWR)
    files.pwrite(fd, b"ONE", 0)
    place.put("/a.md", "uno\n")

    files.close(fd)

    assert place.texts() == {"/a.md": "ONE\n"}
    texts = [
        place.backend.get_version(place.store_id, version.id).content
        for version in place.history(memory.id)
    ]
    assert texts == ["one\n", "uno\n", "ONE\n"]


def test_a_reader_that_rewrites_does_not_undo_what_came_in_between(place: Place) -> None:
    """Read, think, rewrite through one handle: the base is what was read, not what is newest."""
    place.put("/a.md", BASE)
    files = place.mount()
    fd = files.open("a.md", os.O_RDWR)
    text = files.pread(fd, 1000, 0)
    place.put("/a.md", BASE.replace("four", "FOUR"))
    shows(files, "a.md", BASE.replace("four", "FOUR"))

    files.ftruncate(fd, 0)
    files.pwrite(fd, text.replace(b"one", b"ONE"), 0)
    files.close(fd)

    assert place.texts() == {"/a.md": "ONE\ntwo\nthree\nFOUR\n"}


def test_a_temporary_file_is_merged_with_what_came_since_it_was_begun(place: Place) -> None:
    """`sed -i` reads, writes a temporary file, renames: a remote edit in between is kept."""
    place.put("/a.md", BASE)
    files = place.mount()
    fd = files.open("sedAbCdEf", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    place.put("/a.md", BASE.replace("four", "FOUR"))
    shows(files, "a.md", BASE.replace("four", "FOUR"))
    files.write(fd, BASE.replace("one", "ONE").encode())
    files.close(fd)

    files.rename("sedAbCdEf", "a.md")

    assert place.texts() == {"/a.md": "ONE\ntwo\nthree\nFOUR\n"}
    assert len(place.history()) == 3


@pytest.mark.requires("rejected writes")
def test_a_rename_that_loses_is_told(place: Place) -> None:
    """The same with overlapping edits: rename fails with ESTALE and the loser's text is kept."""
    place.put("/a.md", "one\n")
    files = place.mount()
    fd = files.open("a.md.tmp", os.O_WRONLY | os.O_CREAT)
    place.put("/a.md", "uno\n")
    shows(files, "a.md", "uno\n")
    files.write(fd, b"ONE\n")
    files.close(fd)

    assert refused(files.rename, "a.md.tmp", "a.md") == "ESTALE"

    assert place.texts() == {"/a.md": "uno\n"}
    (loser,) = _losers(files.listdir())
    assert read(files, loser) == b"ONE\n"


@pytest.mark.requires("rejected writes")
def test_created_twice_is_a_conflict_unless_equal(place: Place) -> None:
    """Two mounts create one path at once: the second is told, or both wrote the same."""
    files = place.mount()
    fd = files.open("a.md", os.O_WRONLY | os.O_CREAT)
    files.write(fd, b"mine\n")
    place.put("/a.md", "theirs\n")
    assert refused(files.close, fd) == "ESTALE"
    assert place.texts() == {"/a.md": "theirs\n"}

    fd = files.open("b.md", os.O_WRONLY | os.O_CREAT)
    files.write(fd, b"same\n")
    place.put("/b.md", "same\n")
    files.close(fd)
    assert len(place.history()) == 2


def test_deleted_meanwhile_the_save_creates_it_again(place: Place) -> None:
    """A file deleted elsewhere while it is edited comes back as a new memory."""
    before = place.put("/a.md", "old")
    files = place.mount()
    fd = files.open("a.md", os.O_WRONLY)
    files.pwrite(fd, b"new", 0)
    place.backend.delete_memory(place.store_id, before.id)

    files.close(fd)

    assert place.texts() == {"/a.md": "new"}
    assert place.memory("/a.md").id != before.id
    assert [operation for operation, _ in place.operations()] == ["created", "deleted", "created"]


def test_renamed_meanwhile_the_save_follows(place: Place) -> None:
    """A memory moved elsewhere while it is edited is saved at its new path."""
    before = place.put("/a.md", "old")
    files = place.mount()
    fd = files.open("a.md", os.O_WRONLY)
    files.pwrite(fd, b"new", 0)
    place.backend.update_memory(place.store_id, before.id, path="/b/c.md")

    files.close(fd)

    assert place.texts() == {"/b/c.md": "new"}
    shows(files, "b/c.md", "new")
    assert place.memory("/b/c.md").id == before.id


@pytest.mark.requires("rejected writes")
def test_every_conflict_made_is_detected(place: Place) -> None:
    """Of many overlapping edits each either wins or is told; no text is lost."""
    place.put("/a.md", "start\n")
    mounts = [place.mount() for _ in range(3)]
    told: list[int] = [0, 0, 0]

    def work(number: int) -> None:
        for turn in range(10):
            fd = mounts[number].open("a.md", os.O_RDWR)
            mounts[number].pread(fd, 100, 0)
            mounts[number].ftruncate(fd, 0)
            mounts[number].pwrite(fd, f"{number}:{turn}\n".encode(), 0)
            told[number] += refused(mounts[number].close, fd) == "ESTALE"

    assert together(work, 3) == [None, None, None]

    versions = len(place.history()) - 1
    assert versions + sum(told) == 30
    kept = [len(_losers(files.listdir())) for files in mounts]
    assert kept == told


def test_a_held_text_that_lost_is_kept_once(place: Place) -> None:
    """A temporary name that is saved as itself and loses is told of in the log, and settled."""
    place.put("/a.md", "one\n")
    files = place.mount(temp_hold_s=0.0)
    fd = files.open("a.md", os.O_RDWR)
    files.rename("a.md", "a.md.tmp")
    files.pwrite(fd, b"ONE", 0)
    place.put("/a.md", "uno\n")
    files.close(fd)

    until(lambda: "/a.md.tmp" in place.texts(), "the rename to be saved as itself")

    shows(files, "a.md.tmp", "uno\n")
    assert len(_losers(files.listdir(), "a.md.tmp")) == 1
    assert place.unmount(files) == []
