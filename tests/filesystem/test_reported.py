"""Failures that users of other mounted stores have met, tried here on every way to mount."""

from __future__ import annotations

import os
import random
import threading

import pytest

from tests.support.files import Files, append, read, refused, save
from tests.support.mounted import Place, hides, shows

WRITE = os.O_WRONLY | os.O_CREAT


def test_a_shorter_text_leaves_no_tail(place: Place) -> None:
    """Writing less in place and cutting the rest off stores the short text alone."""
    place.put("/a", "a long text\n")
    files = place.mount()
    fd = files.open("a", os.O_RDWR)
    files.pwrite(fd, b"short\n", 0)
    files.ftruncate(fd, 6)
    files.close(fd)

    assert read(files, "a") == b"short\n"
    assert place.texts() == {"/a": "short\n"}


def test_appending_after_a_truncation_leaves_no_hole(place: Place) -> None:
    """A file emptied by one open is empty for the appender after it, whatever stat said before."""
    place.put("/a", "a long text\n")
    files = place.mount()
    files.stat("a")
    files.close(files.open("a", os.O_WRONLY | os.O_TRUNC))

    append(files, "a", "new\n")

    assert read(files, "a") == b"new\n"
    assert files.stat("a").st_size == 4


def test_size_is_right_as_soon_as_it_is_asked(place: Place) -> None:
    """While a file is written and right after its close, stat tells what was written so far."""
    files = place.mount()
    for size in range(1, 20):
        fd = files.open("a", WRITE | os.O_TRUNC)
        files.write(fd, b"x" * size)
        assert files.fstat(fd).st_size == files.stat("a").st_size == size
        files.close(fd)
        assert files.stat("a").st_size == len(read(files, "a")) == size


def test_a_lock_file_is_renamed_into_place_again_and_again(place: Place) -> None:
    """The same temporary name, made exclusively, grows, replaces, and now and then is given up."""
    files = place.mount()
    for generation in range(20):
        fd = files.open("config.lock", WRITE | os.O_EXCL)
        files.write(fd, b"line\n" * (generation + 1))
        files.close(fd)
        if generation % 4 == 3:
            files.unlink("config.lock")
            continue
        files.rename("config.lock", "config")
        assert read(files, "config") == b"line\n" * (generation + 1)
        assert files.stat("config").st_size == 5 * (generation + 1)
    assert files.listdir() == ["config"]


def test_a_name_that_was_deleted_can_be_made_exclusively(place: Place) -> None:
    """O_EXCL never meets the ghost of a deleted file."""
    files = place.mount()
    for _ in range(20):
        fd = files.open("a", WRITE | os.O_EXCL)
        files.write(fd, b"x")
        files.close(fd)
        files.unlink("a")
        assert refused(files.stat, "a") == "ENOENT"
    assert files.listdir() == []


def test_a_file_without_write_permission_is_written_by_its_maker(place: Place) -> None:
    """Creating with mode 0444 and writing through that descriptor works: `cp`, `install`, git."""
    files = place.mount()
    fd = files.open("a", WRITE | os.O_EXCL, 0o444)
    files.write(fd, b"text")
    files.close(fd)

    assert place.texts() == {"/a": "text"}


def test_permissions_taken_away_can_be_given_back(place: Place) -> None:
    """`chmod a-rwx` and `chmod u+rw` leave a file that can be read and written."""
    place.put("/a", "old")
    files = place.mount()
    files.chmod("a", 0)
    files.chmod("a", 0o600)
    save(files, "a", "new")
    assert place.texts() == {"/a": "new"}


def test_writes_go_on_after_a_child_closed_its_copy(place: Place) -> None:
    """A descriptor inherited by processes that end is not the end of the file."""
    files = place.mount()
    fd = files.open("a", WRITE)
    for part in range(5):
        files.write(fd, b"%d\n" % part)
        files.close(files.dup(fd))
    files.close(fd)

    assert place.texts() == {"/a": "0\n1\n2\n3\n4\n"}


def test_a_truncation_by_path_reaches_open_files(place: Place) -> None:
    """What one descriptor had not saved yet is gone when the path is truncated; nothing old returns."""
    place.put("/a", "OLD OLD OLD")
    files = place.mount()
    fd = files.open("a", os.O_RDWR)
    files.pwrite(fd, b"XY", 0)

    files.truncate("a", 0)

    assert files.fstat(fd).st_size == 0
    assert files.pread(fd, 20, 0) == b""
    files.pwrite(fd, b"new", 0)
    files.close(fd)
    assert place.texts() == {"/a": "new"}


def test_writing_again_after_cutting_to_nothing(place: Place) -> None:
    """Write, cut to zero, write on one descriptor: only the second text is stored, as one version."""
    files = place.mount()
    fd = files.open("a", WRITE)
    files.write(fd, b"the first text")
    files.ftruncate(fd, 0)
    files.lseek(fd, 0)
    files.write(fd, b"second")
    files.close(fd)

    assert place.texts() == {"/a": "second"}
    assert len(place.history()) == 1


def test_saving_twice_at_once_does_not_conflict_with_itself(place: Place) -> None:
    """Saves right after one another, of changed and unchanged texts, are never refused."""
    files = place.mount()
    for turn in range(40):
        save(files, f"n{turn % 3}", f"{turn}\n")
        save(files, f"n{turn % 3}", f"{turn} again\n")
        save(files, f"n{turn % 3}", f"{turn} again\n")
        assert read(files, f"n{turn % 3}") == b"%d again\n" % turn
    assert len(place.history()) == 80


def test_saving_what_another_mount_just_saved(place: Place) -> None:
    """Once a change made elsewhere is seen, overwriting it is an ordinary save in either mount."""
    one, two = place.mount(), place.mount()
    for turn in range(5):
        save(one, "a", f"one {turn}")
        shows(two, "a", f"one {turn}")
        save(two, "a", f"two {turn}")
        shows(one, "a", f"two {turn}")
    assert len(place.history()) == 10


def test_a_directory_name_is_used_again(place: Place) -> None:
    """Move a directory away, remove it, and make its old name and what was in it again."""
    files = place.mount()
    for turn in range(3):
        files.mkdir("d")
        save(files, "d/a", f"{turn}")
        files.rename("d", "e")
        assert refused(files.stat, "d/a") == "ENOENT"
        files.unlink("e/a")
        files.rmdir("e")
    assert place.texts() == {}


def test_files_deep_below_a_renamed_directory(place: Place) -> None:
    """They are read and written below the new name at once, open ones too; the old name is gone."""
    place.put("/d/x/y/a", "old")
    files = place.mount()
    fd = files.open("d/x/y/a", os.O_RDWR)

    files.rename("d", "e")

    assert read(files, "e/x/y/a") == b"old"
    assert refused(files.stat, "d/x/y/a") == "ENOENT"
    files.pwrite(fd, b"new", 0)
    files.close(fd)
    save(files, "e/x/y/b", "beside")
    assert place.texts() == {"/e/x/y/a": "new", "/e/x/y/b": "beside"}


def test_deleting_while_listing_misses_nothing(place: Place) -> None:
    """`rm *` of 250 files leaves none, and the directory can be removed."""
    files = place.mount()
    files.mkdir("d")
    for number in range(250):
        save(files, f"d/n{number}", "")
    for name in files.listdir("d"):
        files.unlink(f"d/{name}")
    assert files.listdir("d") == []
    files.rmdir("d")
    assert place.texts() == {}


def test_an_open_deleted_file_does_not_keep_its_directory(place: Place) -> None:
    """rmdir works at once when the last file of a directory was deleted while open."""
    files = place.mount()
    files.mkdir("d")
    fd = files.open("d/a", os.O_RDWR | os.O_CREAT)
    files.write(fd, b"x")
    files.unlink("d/a")
    files.rmdir("d")
    assert files.pread(fd, 10, 0) == b"x"
    files.close(fd)
    assert files.listdir() == []


def test_a_path_changes_its_kind_elsewhere(place: Place) -> None:
    """A file replaced by a directory and back, made through another mount, is followed."""
    one, two = place.mount(), place.mount()
    save(one, "n", "file")
    shows(two, "n", "file")
    for turn in range(2):
        one.unlink("n")
        hides(two, "n")
        one.mkdir("n")
        save(one, "n/in", f"{turn}")
        shows(two, "n/in", f"{turn}")
        assert two.listdir("n") == ["in"]
        one.unlink("n/in")
        one.rmdir("n")
        hides(two, "n")
        save(one, "n", f"file {turn}")
        shows(two, "n", f"file {turn}")


def test_a_missing_name_is_not_missing_for_ever(place: Place) -> None:
    """A name that was asked for in vain appears when it is made elsewhere, again and again."""
    one, two = place.mount(), place.mount()
    for turn in range(3):
        assert refused(two.stat, "a") == "ENOENT"
        save(one, "a", f"{turn}")
        shows(two, "a", f"{turn}")
        one.unlink("a")
        hides(two, "a")


@pytest.mark.parametrize(
    "name",
    [
        "with space",
        "quo'te\"",
        "*",
        "-rf",
        "back\\slash",
        "50%",
        "#1",
        "?",
        "%2e%2e%2fup",
        "\u00e9\U0001f600",
    ],
)
def test_odd_names_are_ordinary(place: Place, name: str) -> None:
    """They are listed, read, renamed and deleted as they are; nothing decodes or expands them."""
    files = place.mount()
    save(files, name, "text")
    assert place.texts() == {f"/{name}": "text"}
    assert files.listdir() == [name]
    files.rename(name, f"{name}.md")
    assert read(files, f"{name}.md") == b"text"
    files.unlink(f"{name}.md")
    assert place.texts() == {}


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffmark\n",
        "a\r\nb\r",
        "no end",
        "\n\n",
        "e\u0301\u00e9",
        "\x85\u2028\t\x07",
        "\U0001f469\u200d\U0001f4bb",
    ],
)
def test_texts_are_kept_to_the_byte(place: Place, text: str) -> None:
    """No line end, mark or composed character is changed, here and in another mount."""
    one, two = place.mount(), place.mount()
    save(one, "a", text)
    assert read(one, "a") == text.encode()
    shows(two, "a", text)
    assert place.texts() == {"/a": text}


def test_one_file_many_appenders(place: Place) -> None:
    """Threads that open, append and close, and one that keeps its descriptor: no line is lost."""
    files = place.mount()
    save(files, "log", "")
    errors: list[BaseException] = []

    def run(call: object) -> None:
        try:
            call()  # type: ignore[operator]
        except BaseException as error:
            errors.append(error)

    def each(writer: int) -> None:
        for number in range(10):
            append(files, "log", f"{writer}-{number}\n")

    def kept() -> None:
        fd = files.open("log", os.O_WRONLY | os.O_APPEND)
        for number in range(10):
            files.write(fd, b"k-%d\n" % number)
        files.close(fd)

    calls = [lambda writer=writer: each(writer) for writer in range(3)] + [kept]
    threads = [threading.Thread(target=run, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert errors == []
    wanted = {f"{who}-{number}" for who in ("0", "1", "2", "k") for number in range(10)}
    lines = read(files, "log").decode().splitlines()
    assert sorted(lines) == sorted(wanted)


@pytest.mark.parametrize("seed", [1, 2])
def test_old_descriptors_survive_random_renames(place: Place, seed: int) -> None:
    """Create, replace, rename and delete at random with readers left open: each still reads its own."""
    files: Files = place.mount()
    chance = random.Random(seed)
    model: dict[str, bytes] = {}
    readers: list[tuple[int, bytes]] = []
    for step in range(150):
        name, move = f"n{chance.randrange(8)}", chance.randrange(4)
        other = chance.choice(sorted(model)) if model else ""
        if move == 0 or not model:
            with_new = b"%d" % step
            if name in model:
                files.unlink(name)
            save(files, name, with_new)
            model[name] = with_new
        elif move == 1:
            files.rename(other, name)
            model[name] = model.pop(other)
        elif move == 2:
            files.unlink(other)
            del model[other]
        else:
            readers.append((files.open(other), model[other]))
    for fd, text in readers:
        assert files.pread(fd, 20, 0) == text
        files.close(fd)
    assert {name: read(files, name) for name in files.listdir()} == model
    assert place.texts() == {f"/{name}": text.decode() for name, text in model.items()}
