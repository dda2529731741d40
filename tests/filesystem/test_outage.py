"""When the server is away, or answers get lost."""

from __future__ import annotations

import os
import threading

from memstore.model.errors import Unauthenticated, Unavailable
from tests.support.faults import FaultyBackend
from tests.support.files import append, read, refused, save
from tests.support.mounted import Place, hides, shows
from tests.support.waiting import until


def test_cached_reads_go_on_and_saves_fail_in_the_end(place: Place) -> None:
    """EIO after the bounded time; the file reads as stored, and nothing is saved later."""
    place.put("/a", "old")
    backend = FaultyBackend(place.backend)
    files = place.mount(backend, retry_s=0.05)  # type: ignore[arg-type]
    backend.go_away()

    assert read(files, "a") == b"old"
    assert files.listdir() == ["a"]
    assert refused(save, files, "a", "new") == "EIO"
    assert refused(save, files, "b", "new") == "EIO"

    shows(files, "a", "old")
    until(lambda: files.listdir() == ["a"], "the file that was not saved to go")
    backend.come_back()
    place.put("/c", "1")
    shows(files, "c", "1")
    assert place.texts() == {"/a": "old", "/c": "1"}
    save(files, "a", "newer")
    assert place.texts()["/a"] == "newer"


def test_a_write_is_refused_while_the_server_stays_away(place: Place) -> None:
    """A shell checks write(2) and not close(2), so an outage is told there; nothing is saved later."""
    place.put("/a", "old")
    backend = FaultyBackend(place.backend)
    files = place.mount(backend, retry_s=0.05)  # type: ignore[arg-type]
    fd = files.open("a", os.O_WRONLY | os.O_TRUNC)
    backend.go_away()

    until(lambda: refused(files.write, fd, b"new") == "EIO", "the write to be refused")
    assert refused(files.close, fd) == "EIO"
    backend.come_back()

    shows(files, "a", "old")
    place.put("/c", "1")
    shows(files, "c", "1")
    assert place.texts() == {"/a": "old", "/c": "1"}


def test_temporary_and_local_files_are_written_while_the_server_is_away(place: Place) -> None:
    """What the store need not take yet is not held up; the rename that saves it is refused."""
    place.put("/a", "old")
    backend = FaultyBackend(place.backend)
    files = place.mount(backend, retry_s=0.05)  # type: ignore[arg-type]
    backend.go_away()
    until(lambda: refused(save, files, "b", "new") == "EIO", "the outage to be noticed")

    save(files, "a.tmp", "new")
    save(files, ".a.swp", "swap")

    assert refused(files.rename, "a.tmp", "a") == "EIO"
    backend.come_back()
    files.rename("a.tmp", "a")
    assert place.texts() == {"/a": "new"}


def test_a_save_waits_for_the_server(place: Place) -> None:
    """A short outage is not noticed but for the wait."""
    place.put("/a", "old")
    backend = FaultyBackend(place.backend)
    files = place.mount(backend, retry_s=20.0)  # type: ignore[arg-type]
    backend.go_away()
    saver = threading.Thread(target=save, args=(files, "a", "new"))
    saver.start()
    until(
        lambda: backend.calls.count("update_memory") + backend.calls.count("get_store") > 3,
        "the save to be tried again",
    )

    backend.come_back()
    saver.join()

    assert place.texts() == {"/a": "new"}
    assert len(place.history()) == 2


def test_a_failed_fsync_can_be_repeated(place: Place) -> None:
    """The text is kept as long as the file is open; the fsync that succeeds has saved it."""
    backend = FaultyBackend(place.backend)
    files = place.mount(backend, retry_s=0.01)  # type: ignore[arg-type]
    fd = files.open("a", os.O_WRONLY | os.O_CREAT)
    files.write(fd, b"text")
    backend.go_away()
    assert refused(files.fsync, fd) == "EIO"

    backend.come_back()
    files.fsync(fd)

    assert place.texts() == {"/a": "text"}
    files.close(fd)
    assert len(place.history()) == 1


def test_a_lost_answer_makes_no_second_version(place: Place) -> None:
    """The save was carried out but the answer was lost: repeating it changes nothing."""
    place.put("/a", "old")
    backend = FaultyBackend(place.backend)
    files = place.mount(backend)  # type: ignore[arg-type]
    lost: list[str] = []

    def after(verb: str) -> None:
        if verb in ("update_memory", "create_memory") and lost.count(verb) < 2:
            lost.append(verb)
            raise Unavailable

    backend.after = after
    save(files, "a", "new")
    append(files, "a", "er")
    save(files, "b", "created")

    assert sorted(lost) == ["create_memory", "update_memory", "update_memory"]
    assert place.texts() == {"/a": "newer", "/b": "created"}
    assert len(place.history()) == 4
    assert read(files, "b") == b"created"


def test_what_was_missed_is_caught_up_with(place: Place) -> None:
    """After an outage of the feed the mount shows what happened meanwhile."""
    gone = place.put("/gone", "1")
    place.put("/a", "1")
    backend = FaultyBackend(place.backend)
    files = place.mount(backend)  # type: ignore[arg-type]
    backend.go_away()
    place.put("/a", "2")
    place.put("/new", "1")
    place.backend.delete_memory(place.store_id, gone.id)
    assert read(files, "a") == b"1"

    backend.come_back()

    shows(files, "a", "2")
    shows(files, "new", "1")
    hides(files, "gone")


def test_a_lost_feed_is_asked_for_in_every_polling_interval(place: Place) -> None:
    """However long an outage lasts, what was missed is seen within the polling interval after it."""
    backend = FaultyBackend(place.backend)
    place.mount(backend, poll_interval_s=0.05)  # type: ignore[arg-type]
    backend.go_away()
    asked = len(backend.calls)

    until(lambda: len(backend.calls) > asked + 40, "the service to be asked again and again")


def test_a_revoked_key_is_told(place: Place) -> None:
    """EACCES at the save; what is in memory can still be read, and nothing was written."""
    place.put("/a", "old")
    backend = FaultyBackend(place.backend)
    files = place.mount(backend)  # type: ignore[arg-type]
    backend.refuse = Unauthenticated()

    assert refused(save, files, "a", "new") == "EACCES"
    assert refused(save, files, "b", "new") == "EACCES"
    assert refused(files.unlink, "a") == "EACCES"
    assert refused(files.rename, "a", "c") == "EACCES"

    assert read(files, "a") == b"old"
    assert files.listdir() == ["a"]
    assert place.texts() == {"/a": "old"}


def test_unmounting_while_the_server_is_away_reports_what_is_lost(place: Place) -> None:
    """The paths that could not be saved, after the bounded time."""
    backend = FaultyBackend(place.backend)
    files = place.mount(backend, retry_s=0.05)  # type: ignore[arg-type]
    fd = files.open("a", os.O_WRONLY | os.O_CREAT)
    files.write(fd, b"text")
    save(files, "b.tmp", "text")
    backend.go_away()

    assert sorted(place.unmount(files)) == ["/a", "/b.tmp"]
