"""What is committed anywhere is seen in every mount, whole."""

from __future__ import annotations

import os
import threading
from itertools import pairwise

from tests.support.files import read, save
from tests.support.mounted import Place, hides, shows
from tests.support.waiting import until


def test_everything_there_at_the_start_is_read(place: Place) -> None:
    """Texts, sizes and times as the store has them."""
    memory = place.put("/d/a", "käse")
    files = place.mount()

    assert read(files, "d/a") == "käse".encode()
    told = files.stat("d/a")
    assert told.st_size == 5
    assert told.st_mtime_ns // 1000 == memory.updated_at.timestamp() * 1_000_000 // 1


def test_a_change_through_the_api_is_seen(place: Place) -> None:
    """Created, changed, moved, deleted."""
    files = place.mount()
    memory = place.put("/a", "1")
    shows(files, "a", "1")

    place.put("/a", "two")
    shows(files, "a", "two")
    until(lambda: files.stat("a").st_size == 3, "the size to be the new text's")

    place.backend.update_memory(place.store_id, memory.id, path="/d/b")
    shows(files, "d/b", "two")
    hides(files, "a")

    place.backend.delete_memory(place.store_id, memory.id)
    hides(files, "d/b")


def test_two_mounts_see_each_other(place: Place) -> None:
    """A save in one mount is read in the other."""
    one, other = place.mount(), place.mount()
    save(one, "a", "1")
    shows(other, "a", "1")

    save(other, "a", "2")
    shows(one, "a", "2")

    one.rename("a", "b")
    shows(other, "b", "2")
    hides(other, "a")


def test_inodes_are_stable_and_not_shared(place: Place) -> None:
    """A memory keeps its inode number through saves and renames, here and elsewhere."""
    place.put("/a", "1")
    place.put("/b", "2")
    files = place.mount()
    inode, other = files.stat("a").st_ino, files.stat("b").st_ino
    assert inode != other

    save(files, "a", "new")
    place.put("/a", "newer")
    shows(files, "a", "newer")
    assert files.stat("a").st_ino == inode

    files.rename("a", "c")
    assert files.stat("c").st_ino == inode
    place.backend.update_memory(place.store_id, place.memory("/c").id, path="/d/e")
    shows(files, "d/e", "newer")
    assert files.stat("d/e").st_ino == inode

    files.rename("d/e", "b")
    assert files.stat("b").st_ino == other


def test_the_time_rises_with_every_version(place: Place) -> None:
    """Two saves are never of the same mtime."""
    files = place.mount()
    times = []
    for number in range(20):
        place.put("/a", f"{number}")
        shows(files, "a", f"{number}")
        times.append(files.stat("a").st_mtime_ns)

    assert all(early < late for early, late in pairwise(times))


def test_a_read_never_mixes_two_texts(place: Place) -> None:
    """While a text changes, every read is one text, as long as the size it was told with."""
    texts = [character * size for character, size in (("a", 500), ("b", 90_000), ("c", 20))]
    place.put("/a", texts[0])
    files = place.mount()
    whole = {text.encode() for text in texts}
    wrong: list[bytes] = []
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            fd = files.open("a")
            text = files.pread(fd, 100_000, 0)
            files.close(fd)
            if text not in whole:
                wrong.append(text[:10])

    watcher = threading.Thread(target=watch)
    watcher.start()
    for number in range(60):
        place.put("/a", texts[number % 3])
    done.set()
    watcher.join()

    assert wrong == []


def test_a_handle_open_since_before_a_change_reads_one_text(place: Place) -> None:
    """Old or new, but whole."""
    place.put("/a", "old" * 100)
    files = place.mount()
    fd = files.open("a")
    place.put("/a", "new" * 50)

    shows(files, "a", "new" * 50)

    assert files.pread(fd, 1000, 0) in (b"old" * 100, b"new" * 50)
    files.close(fd)


def test_an_open_file_deleted_elsewhere_is_still_read(place: Place) -> None:
    """Its text stays reachable through the handle."""
    memory = place.put("/a", "text")
    files = place.mount()
    fd = files.open("a")
    place.backend.delete_memory(place.store_id, memory.id)
    hides(files, "a")

    assert files.pread(fd, 100, 0) == b"text"
    files.close(fd)


def test_writing_to_a_file_deleted_elsewhere_creates_it_again(place: Place) -> None:
    """The save after a remote delete re-creates the path, also when it was seen before the write."""
    memory = place.put("/a", "text")
    files = place.mount()
    fd = files.open("a", os.O_RDWR)
    place.backend.delete_memory(place.store_id, memory.id)
    hides(files, "a")

    files.pwrite(fd, b"TEXT", 0)
    files.close(fd)

    assert place.texts() == {"/a": "TEXT"}


def test_texts_beyond_the_cache_are_fetched(place: Place) -> None:
    """A cache too small for the store costs time, not truth."""
    for number in range(10):
        place.put(f"/{number}", f"{number}" * 1_000)
    files = place.mount(cache_bytes=2_500)

    for _ in range(2):
        for number in range(10):
            assert read(files, f"{number}") == f"{number}".encode() * 1_000
    save(files, "3", "new")
    files.truncate("4", 2)
    files.rename("5", "6")
    assert read(files, "3") == b"new"
    assert read(files, "4") == b"44"
    assert read(files, "6") == b"5" * 1_000
