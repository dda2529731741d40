"""A driver that is killed is replaced on the same mount, and who works there goes on."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.mount.conftest import WAIT_SECONDS, Desk, driver_of, shows, supervisor_of
from tests.support.waiting import until

EDIT = os.O_RDWR
ALONE = """
import os, sys
os.chdir(sys.argv[1])
file = os.open("a.md", os.O_RDONLY)
print("ready", flush=True)
for line in sys.stdin:
    os.lseek(file, 0, os.SEEK_SET)
    print(os.read(file, 100).decode().strip(), sorted(os.listdir(".")), os.getcwd(), flush=True)
"""


def test_an_idle_mount_goes_on(desk: Desk) -> None:
    """After SIGKILL the same mount serves, what was saved is there and new saves reach the store."""
    place = desk.mount()
    (place / "a.md").write_text("saved before\n")
    supervisor, device = supervisor_of(place), os.stat(place).st_dev
    inode = os.stat(place / "a.md").st_ino
    desk.kill_driver()
    assert (place / "a.md").read_text() == "saved before\n"
    assert os.stat(place).st_dev == device and supervisor_of(place) == supervisor
    assert os.stat(place / "a.md").st_ino == inode
    (place / "b.md").write_text("saved after\n")
    assert desk.texts() == {"/a.md": "saved before\n", "/b.md": "saved after\n"}


def test_a_process_inside_goes_on(desk: Desk) -> None:
    """Its working directory, its open file and its listing mean the same as before."""
    place = desk.mount()
    (place / "deep/er").mkdir(parents=True)
    (place / "deep/er/a.md").write_text("inside\n")
    inside = subprocess.Popen(
        [sys.executable, "-c", ALONE, str(place / "deep/er")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert inside.stdin is not None and inside.stdout is not None
    assert inside.stdout.readline() == "ready\n"
    for _ in range(3):
        desk.kill_driver()
        inside.stdin.write("again\n")
        inside.stdin.flush()
        assert inside.stdout.readline() == f"inside ['a.md'] {place}/deep/er\n"
    inside.communicate(timeout=WAIT_SECONDS)
    assert inside.returncode == 0


def test_a_reader_in_flight_gets_its_answer(desk: Desk) -> None:
    """A request that the driver had not answered when it was killed is answered by the next."""
    desk.backend.create_memory(desk.store_id, path="/a.md", content="for the reader\n")
    place = desk.mount()
    driver, answers = desk.driver(), []
    os.kill(driver, signal.SIGSTOP)

    def read() -> None:
        answers.append((place / "a.md").read_text())

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    supervisor = int(Path(f"/proc/{driver}/stat").read_text().rpartition(")")[2].split()[1])
    os.kill(driver, signal.SIGKILL)
    until(lambda: driver_of(supervisor) not in (0, driver), "another driver")
    reader.join(WAIT_SECONDS)
    assert answers == ["for the reader\n"]


def test_open_files_go_on(desk: Desk) -> None:
    """Descriptors that were open read and write the same file; what they save is one version."""
    place = desk.mount()
    (place / "a.md").write_text("one\n")
    reader = os.open(place / "a.md", os.O_RDONLY)
    writer = os.open(place / "a.md", os.O_WRONLY | os.O_APPEND)
    fresh = os.open(place / "new.md", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    desk.kill_driver()
    assert os.pread(reader, 100, 0) == b"one\n"
    os.write(writer, b"two\n")
    os.close(writer)
    os.write(fresh, b"first words\n")
    os.fsync(fresh)
    os.close(fresh)
    assert os.pread(reader, 100, 0) == b"one\ntwo\n"
    os.close(reader)
    assert desk.texts() == {"/a.md": "one\ntwo\n", "/new.md": "first words\n"}


@pytest.mark.parametrize("call", [os.fsync, os.close, lambda file: os.write(file, b"more")])
def test_bytes_that_died_with_the_driver_are_told(desk: Desk, call: object) -> None:
    """A descriptor whose bytes no close or fsync had acknowledged says EIO, and saves nothing."""
    place = desk.mount()
    (place / "a.md").write_text("as saved\n")
    file = os.open(place / "a.md", os.O_WRONLY | os.O_TRUNC)
    os.write(file, b"never acknowledged\n")
    desk.kill_driver()
    with pytest.raises(OSError) as refusal:
        call(file)  # type: ignore[operator]
    assert refusal.value.errno == errno.EIO
    if call is not os.close:
        with pytest.raises(OSError):
            os.close(file)
    assert (place / "a.md").read_text() == "as saved\n"
    assert desk.texts() == {"/a.md": "as saved\n"}
    (place / "a.md").write_text("written again\n")
    assert desk.texts() == {"/a.md": "written again\n"}


def test_a_new_file_that_was_never_saved_is_told(desk: Desk) -> None:
    """Its writer hears EIO; the name, which the store never had, is gone."""
    place = desk.mount()
    file = os.open(place / "a.md", os.O_CREAT | os.O_WRONLY)
    os.write(file, b"never acknowledged\n")
    desk.kill_driver()
    with pytest.raises(OSError) as refusal:
        os.close(file)
    assert refusal.value.errno == errno.EIO
    assert os.listdir(place) == [] and desk.texts() == {}


def test_acknowledged_bytes_of_an_open_file_stay(desk: Desk) -> None:
    """After an fsync a descriptor has nothing to lose and goes on."""
    place = desk.mount()
    file = os.open(place / "a.md", os.O_CREAT | os.O_WRONLY)
    os.write(file, b"acknowledged\n")
    os.fsync(file)
    desk.kill_driver()
    os.write(file, b"and more\n")
    os.close(file)
    assert desk.texts() == {"/a.md": "acknowledged\nand more\n"}


def test_what_is_only_in_this_mount_stays(desk: Desk) -> None:
    """Closed temporary and litter files, empty directories and modes are there as before."""
    place = desk.mount("-o", "temp_hold_s=1000")
    (place / "draft.tmp").write_text("held back\n")
    (place / ".a.md.swp").write_bytes(b"\0swap")
    (place / "empty/inner").mkdir(parents=True)
    (place / "a.md").write_text("text\n")
    (place / "a.md").chmod(0o600)
    desk.kill_driver()
    assert (place / "draft.tmp").read_text() == "held back\n"
    assert (place / ".a.md.swp").read_bytes() == b"\0swap"
    assert os.listdir(place / "empty") == ["inner"]
    assert os.stat(place / "a.md").st_mode & 0o777 == 0o600
    (place / "draft.tmp").rename(place / "b.md")
    assert desk.texts() == {"/a.md": "text\n", "/b.md": "held back\n"}


def test_a_file_deleted_while_open_is_still_read(desk: Desk) -> None:
    """Its text is kept for whoever has it open."""
    place = desk.mount()
    (place / "a.md").write_text("deleted\n")
    file = os.open(place / "a.md", os.O_RDONLY)
    (place / "a.md").unlink()
    desk.kill_driver()
    assert os.pread(file, 100, 0) == b"deleted\n"
    os.close(file)
    assert os.listdir(place) == []


def test_a_listing_goes_on_where_it_was(desk: Desk) -> None:
    """A directory that is being read shows every name once, the driver's end in between."""
    place = desk.mount()
    names = sorted(f"{number:04}-{'x' * 200}.md" for number in range(400))
    for name in names:
        desk.backend.create_memory(desk.store_id, path=f"/{name}", content="x")
    until(lambda: len(os.listdir(place)) == len(names), "all names")
    with os.scandir(place) as entries:
        seen = [next(entries).name]
        desk.kill_driver()
        seen += [entry.name for entry in entries]
    assert sorted(seen) == names


def test_changes_made_meanwhile_are_seen(desk: Desk) -> None:
    """What the store learnt while no driver ran is seen, though the kernel remembers the old."""
    place = desk.mount()
    (place / "a.md").write_text("old\n")
    (place / "gone.md").write_text("old\n")
    assert (place / "a.md").read_text() == "old\n"
    assert not (place / "new.md").exists() and len(os.listdir(place)) == 2
    supervisor, driver = supervisor_of(place), desk.driver()
    os.kill(driver, signal.SIGSTOP)
    memories = {each.path: each.id for each in desk.backend.snapshot(desk.store_id).memories}
    desk.backend.update_memory(desk.store_id, memories["/a.md"], content="new and longer\n")
    desk.backend.delete_memory(desk.store_id, memories["/gone.md"])
    desk.backend.create_memory(desk.store_id, path="/new.md", content="new\n")
    os.kill(driver, signal.SIGKILL)
    until(lambda: driver_of(supervisor) not in (0, driver), "another driver")
    shows(place / "a.md", "new and longer\n")
    shows(place / "new.md", "new\n")
    until(lambda: sorted(os.listdir(place)) == ["a.md", "new.md"], "the listing")
    until(lambda: not (place / "gone.md").exists(), "the deleted name to go")


def test_a_writer_loses_nothing_acknowledged(desk: Desk) -> None:
    """While drivers are killed, each save either succeeds and is there, or says EIO."""
    place = desk.mount()
    done: dict[str, bool] = {}
    stop = threading.Event()

    def write() -> None:
        for number in range(2000):
            if stop.is_set():
                return
            name = f"f{number}.md"
            try:
                (place / name).write_text(f"{name}\n")
            except OSError as error:
                assert error.errno == errno.EIO, error
                done[name] = False
            else:
                done[name] = True

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(4):
            before = len(done)
            until(lambda before=before: len(done) > before + 5, "some saves")  # type: ignore[misc]
            desk.kill_driver()
    finally:
        stop.set()
        writer.join(WAIT_SECONDS)
    assert not writer.is_alive()
    texts = desk.texts()
    saved = [name for name, acknowledged in done.items() if acknowledged]
    assert len(saved) > 20
    assert [name for name in saved if texts.get(f"/{name}") != f"{name}\n"] == []
    (place / "last.md").write_text("still works\n")


def test_a_read_only_mount_goes_on(desk: Desk) -> None:
    """Files opened without asking the driver are read on."""
    desk.backend.create_memory(desk.store_id, path="/d/a.md", content="text\n")
    place = desk.mount("--read-only")
    file = os.open(place / "d/a.md", os.O_RDONLY)
    desk.kill_driver()
    assert os.pread(file, 100, 0) == b"text\n"
    os.close(file)
    assert os.listdir(place / "d") == ["a.md"]


def test_a_signal_after_a_restart_drains(desk: Desk) -> None:
    """SIGTERM to the supervisor has the second driver save what it holds back and unmount."""
    process = desk.mount_here("-o", "temp_hold_s=1000")
    (desk.place / "before.tmp").write_text("before\n")
    desk.kill_driver()
    (desk.place / "after.tmp").write_text("after\n")
    assert desk.end(process) == 0
    assert desk.texts() == {"/before.tmp": "before\n", "/after.tmp": "after\n"}
    assert not desk.mounts() and not desk.place.exists()


def test_umount_after_a_restart(desk: Desk) -> None:
    """`umount` of a busy mount ends both processes, and an open descriptor fails."""
    place = desk.mount()
    supervisor = supervisor_of(place)
    file = os.open(place / "a.md", os.O_CREAT | os.O_WRONLY)
    desk.kill_driver()
    driver = driver_of(supervisor)
    os.write(file, b"unsaved so far\n")
    desk.umount()
    with pytest.raises(OSError):
        os.write(file, b"too late")
    with pytest.raises(OSError):
        os.close(file)
    assert desk.texts() == {"/a.md": "unsaved so far\n"}
    for pid in (supervisor, driver):
        until(lambda pid=pid: not Path(f"/proc/{pid}/exe").exists(), "its end")  # type: ignore[misc]


def test_a_killed_supervisor_takes_its_driver_along(desk: Desk) -> None:
    """The driver saves what it holds back and unmounts, so the next mount finds nothing stale."""
    process = desk.mount_here("-o", "temp_hold_s=1000")
    (desk.place / "draft.tmp").write_text("held back\n")
    process.kill()
    process.communicate(timeout=WAIT_SECONDS)
    until(lambda: not desk.mounts(), "the driver to unmount")
    until(lambda: "/draft.tmp" in desk.texts(), "the text to be saved")
    assert desk.mount().is_dir()


def test_the_log_tells_of_it(desk: Desk) -> None:
    """The end of a driver and the next one's start are in the log, without any text."""
    log = desk.path / "mount.log"
    place = desk.mount("-o", f"log={log}")
    file = os.open(place / "a.md", os.O_CREAT | os.O_WRONLY)
    os.write(file, b"a secret text\n")
    desk.kill_driver()
    with pytest.raises(OSError):
        os.close(file)
    said = log.read_text()
    assert "signal 9" in said and "going on with the mount" in said
    assert "not yet acknowledged is lost" in said and "secret" not in said


def test_drivers_that_keep_dying_are_given_up(desk: Desk) -> None:
    """After ten in a row the mount ends: whoever waits gets an error, the place is free again."""
    log = desk.path / "mount.log"
    process = desk.mount_here("-o", f"log={log}")
    supervisor = supervisor_of(desk.place)
    file = os.open(desk.place / "a.md", os.O_CREAT | os.O_WRONLY)
    os.write(file, b"never acknowledged\n")

    def dead() -> bool:
        driver = driver_of(supervisor) if process.poll() is None else 0
        if driver:
            os.kill(driver, signal.SIGKILL)
        return process.poll() is not None

    until(dead, "the supervisor to give up")
    with pytest.raises(OSError):
        os.close(file)
    assert process.returncode == 1 and "given up" in log.read_text()
    assert not desk.mounts()
    desk.mount()
