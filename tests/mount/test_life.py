"""A mount comes up, works, goes, and comes back after every kind of death."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from fuse_mount.kernel import mounting
from tests.mount.conftest import WAIT_SECONDS, Desk, shows
from tests.support.waiting import until


def test_a_daemon_is_ready_when_the_command_returns(desk: Desk) -> None:
    """What the store holds can be read at once, and what is written is in the store at close."""
    desk.backend.create_memory(desk.store_id, path="/before.md", content="there\n")
    place = desk.mount()
    assert (place / "before.md").read_text() == "there\n"
    (place / "after.md").write_text("written\n")
    assert desk.texts()["/after.md"] == "written\n"


def test_umount_leaves_nothing(desk: Desk) -> None:
    """After `umount` the mount, its process and the directory made for it are gone."""
    place = desk.mount()
    pid = int(os.getxattr(place, "user.memstore.driver").split()[0])
    desk.umount()
    assert not desk.mounts()
    assert not place.exists()
    state = Path(f"/proc/{pid}/stat")
    assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_directory_that_was_there_stays(desk: Desk) -> None:
    """A mount point the user made is not removed."""
    desk.place.mkdir()
    desk.mount()
    desk.umount()
    assert desk.place.is_dir()


def test_the_default_place_is_the_slug_below_the_root(desk: Desk) -> None:
    """Without DIR a store is mounted at its slug below the mount root."""
    store = desk.backend.update_store(desk.store_id, name="Team Notes!")
    done = desk.run("mount", store.id)
    assert done.returncode == 0, done.stderr
    place = desk.path / "root" / "team-notes"
    assert place.is_dir() and desk.mounts() == [place]
    desk.umount(place)


def test_memstore_store_names_the_store(desk: Desk) -> None:
    """Without STORE the environment's MEMSTORE_STORE is mounted."""
    done = desk.run("mount", MEMSTORE_STORE=desk.store_id)
    assert done.returncode == 0, done.stderr
    for place in desk.mounts():
        desk.umount(place)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_drains_and_unmounts(desk: Desk, number: int) -> None:
    """A foreground mount that is told to end saves what it held back and leaves no mount."""
    process = desk.mount_here("-o", "temp_hold_s=1000")
    (desk.place / "draft.tmp").write_text("held back\n")
    assert "/draft.tmp" not in desk.texts()
    assert desk.end(process, number) == 0
    assert desk.texts()["/draft.tmp"] == "held back\n"
    assert not desk.mounts()


def test_the_kernels_umount_drains_too(desk: Desk) -> None:
    """umount(8) ends the driver after it has saved what it held back."""
    process = desk.mount_here("-o", "temp_hold_s=1000")
    (desk.place / "draft.tmp").write_text("held back\n")
    subprocess.run(["umount", str(desk.place)], check=True)
    process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 0
    assert desk.texts()["/draft.tmp"] == "held back\n"


def test_umount_of_a_busy_mount_ends(desk: Desk) -> None:
    """An open file does not keep `umount` from ending; what was written to it is saved."""
    place = desk.mount()
    file = os.open(place / "open.md", os.O_CREAT | os.O_WRONLY)
    try:
        os.write(file, b"unsaved so far\n")
        desk.umount()
        assert not desk.mounts()
        with pytest.raises(OSError) as refusal:
            os.write(file, b"too late")
        assert refusal.value.errno in (errno.ENOTCONN, errno.ECONNABORTED)
    finally:
        with contextlib.suppress(OSError):
            os.close(file)
    assert desk.texts()["/open.md"] == "unsaved so far\n"


def test_a_killed_driver_is_replaced(desk: Desk) -> None:
    """After SIGKILL the next mount at the place clears the dead one; acknowledged saves are there."""
    process = desk.mount_here()
    (desk.place / "kept.md").write_text("acknowledged\n")
    desk.kill_all()
    process.communicate(timeout=WAIT_SECONDS)
    with pytest.raises(OSError) as refusal:
        os.listdir(desk.place)
    assert refusal.value.errno == errno.ENOTCONN
    desk.mount()
    assert (desk.place / "kept.md").read_text() == "acknowledged\n"
    desk.umount()


def test_a_dead_mount_is_noticed_though_the_kernel_remembers_it(desk: Desk) -> None:
    """Mounting again works at once, while stat(2) of the dead mount is still answered from memory."""
    process = desk.mount_here()
    (desk.place / "kept.md").write_text("acknowledged\n")
    os.stat(desk.place)
    process.kill()
    process.communicate(timeout=WAIT_SECONDS)
    desk.mount()
    assert (desk.place / "kept.md").read_text() == "acknowledged\n"
    desk.umount()


def test_umount_clears_a_dead_mount(desk: Desk) -> None:
    """`umount` removes what a killed driver left."""
    process = desk.mount_here()
    desk.kill_all()
    process.communicate(timeout=WAIT_SECONDS)
    desk.umount()
    assert not desk.mounts()


def test_umount_cuts_off_a_driver_that_hangs(desk: Desk) -> None:
    """A stopped driver does not make `umount` wait for ever."""
    process = desk.mount_here()
    driver = desk.driver()
    os.kill(driver, signal.SIGSTOP)
    done = desk.run("umount", str(desk.place))
    assert done.returncode == 0 and "did not answer" in done.stderr
    assert not desk.mounts()
    process.kill()
    os.kill(driver, signal.SIGKILL)


def test_two_mounts_see_each_others_saves(desk: Desk) -> None:
    """What is saved through one mount is soon read through the other."""
    desk.mount()
    other = desk.path / "other"
    assert desk.run("mount", desk.store_id, str(other)).returncode == 0
    (other / "a.md").write_text("one\n")
    shows(desk.place / "a.md", "one\n")
    (desk.place / "a.md").write_text("two, longer\n")
    shows(other / "a.md", "two, longer\n")
    assert os.stat(other / "a.md").st_size == len("two, longer\n")


@pytest.mark.parametrize("words", [(), ("--read-only",)])
def test_a_change_through_the_api_is_seen(desk: Desk, words: tuple[str, ...]) -> None:
    """Text, size, new names and deletions come to the mount, although the kernel remembers."""
    memory = desk.backend.create_memory(desk.store_id, path="/d/a.md", content="old\n")
    place = desk.mount(*words)
    assert (place / "d/a.md").read_text() == "old\n"
    assert os.listdir(place / "d") == ["a.md"]
    assert not (place / "d/b.md").exists()
    desk.backend.update_memory(desk.store_id, memory.id, content="new and longer\n")
    shows(place / "d/a.md", "new and longer\n")
    assert os.stat(place / "d/a.md").st_size == len("new and longer\n")
    desk.backend.create_memory(desk.store_id, path="/d/b.md", content="b\n")
    shows(place / "d/b.md", "b\n")
    assert sorted(os.listdir(place / "d")) == ["a.md", "b.md"]
    desk.backend.delete_memory(desk.store_id, memory.id)
    until(lambda: os.listdir(place / "d") == ["b.md"], "the deleted name to go")
    assert not (place / "d/a.md").exists()


def test_a_listing_shows_local_changes_at_once(desk: Desk) -> None:
    """A cached listing never hides what was just created, renamed or removed here."""
    place = desk.mount()
    for number in range(20):
        name = f"f{number}.md"
        (place / name).write_text("x\n")
        assert name in os.listdir(place)
        (place / name).rename(place / f"g{number}.md")
        assert name not in os.listdir(place) and f"g{number}.md" in os.listdir(place)
        (place / f"g{number}.md").unlink()
        assert os.listdir(place) == []


def test_a_read_only_mount_refuses_writes(desk: Desk) -> None:
    """EROFS for every change, and a remount does not open the store."""
    desk.backend.create_memory(desk.store_id, path="/a.md", content="text\n")
    place = desk.mount("--read-only")
    for change in (
        lambda: (place / "new.md").write_text("x"),
        lambda: (place / "a.md").write_text("x"),
        lambda: (place / "a.md").unlink(),
        lambda: (place / "a.md").rename(place / "b.md"),
        lambda: (place / "d").mkdir(),
    ):
        with pytest.raises(OSError) as refusal:
            change()
        assert refusal.value.errno == errno.EROFS
    subprocess.run(["mount", "-o", "remount,rw", str(place)], capture_output=True)
    with pytest.raises(OSError):
        (place / "new.md").write_text("x")
    assert desk.texts() == {"/a.md": "text\n"}


def test_a_read_only_mounts_own_session_ends_with_it(desk: Desk) -> None:
    """The session made for a read-only mount is open while it lives, and ended after it."""
    desk.mount("--read-only")
    (session,) = desk.backend.list_sessions(store_id=desk.store_id).data
    assert session.stores[0].access == "read_only"
    desk.umount()
    assert desk.backend.get_session(session.id).archived_at is not None


def test_what_a_mount_may_be_made_on(desk: Desk, make_desk: Callable[[], Desk]) -> None:
    """A file, a full directory and a mounted one are refused with a sentence that says what to do."""
    desk.place.write_text("a file")
    refused = desk.run("mount", desk.store_id, str(desk.place))
    assert refused.returncode == 2 and "not a directory" in refused.stderr
    full = make_desk()
    (full.place / "inside").mkdir(parents=True)
    refused = full.run("mount", full.store_id, str(full.place))
    assert refused.returncode == 2 and "not empty" in refused.stderr
    twice = make_desk()
    twice.mount()
    refused = twice.run("mount", twice.store_id, str(twice.place))
    assert refused.returncode == 2 and "umount" in refused.stderr


def test_an_unknown_store_and_option_are_refused(desk: Desk) -> None:
    """3 for a store that is not there, 2 for an option that is not known; nothing is mounted."""
    assert desk.run("mount", "no such store").returncode == 3
    refused = desk.run("mount", desk.store_id, str(desk.place), "-o", "colour=blue")
    assert refused.returncode == 2 and "colour" in refused.stderr
    assert desk.run("umount", str(desk.path)).returncode == 2
    assert not desk.mounts() and not desk.place.exists()


def test_an_absent_service_is_said(desk: Desk) -> None:
    """6 when nothing answers; no mount and no directory is left."""
    done = desk.run("mount", desk.store_id, str(desk.place), MEMSTORE_BASE_URL="http://127.0.0.1:9")
    assert done.returncode == 6 and "cannot be reached" in done.stderr
    assert not desk.mounts() and not desk.place.exists()


def test_without_the_device_a_sentence_says_what_to_do(desk: Desk) -> None:
    """6 and advice where there is no /dev/fuse."""
    script = 'mount -t tmpfs none /dev && mknod /dev/null c 1 3 && exec "$@"'
    done = desk.run(
        "mount", desk.store_id, str(desk.place), prefix=("unshare", "-m", "sh", "-c", script, "sh")
    )
    assert done.returncode == 6 and "modprobe fuse" in done.stderr, done.stderr
    assert not desk.place.exists()


def test_an_sqlite_url_needs_no_service(desk: Desk, tmp_path: Path) -> None:
    """A database's URL is mounted in process."""
    url = f"sqlite:///{tmp_path}/own.db"
    from memstore.urls import connect

    backend = connect(url)
    store = backend.create_store(name="own")
    backend.close()
    done = desk.run("mount", store.id, str(desk.place), MEMSTORE_BASE_URL=url, MEMSTORE_API_KEY="")
    assert done.returncode == 0, done.stderr
    (desk.place / "a.md").write_text("in process\n")
    desk.umount()
    backend = connect(url)
    assert backend.get_memory_at(store.id, "/a.md").content == "in process\n"
    backend.close()


def test_relative_places_are_the_users_own(desk: Desk) -> None:
    """DIR, --root and an SQLite URL are relative to where the command is typed, not to the daemon."""
    made = desk.run("mount", desk.store_id, "here", cwd=desk.path)
    below = desk.run("mount", desk.store_id, "--root", "below", cwd=desk.path)
    url = {"MEMSTORE_BASE_URL": "sqlite:///own.db", "MEMSTORE_API_KEY": ""}
    assert desk.run("store", "create", "own", cwd=desk.path, **url).returncode == 0
    local = desk.run("mount", "own", "local", cwd=desk.path, **url)
    for done in (made, below, local):
        assert done.returncode == 0, done.stderr
    assert desk.path / "here" in desk.mounts()
    assert desk.path / "below" in {place.parent for place in desk.mounts()}
    assert desk.path / "local" in desk.mounts()
    (desk.path / "local" / "a.md").write_text("mine\n")
    told = desk.run("cat", "own", "a.md", cwd=desk.path, **url)
    assert told.stdout == "mine\n"
    for place in desk.mounts():
        desk.umount(place)


def test_the_mount_table_tells_the_store(desk: Desk) -> None:
    """`mount` shows type, source and the safe options."""
    desk.mount()
    (entry,) = [each for each in mounting.mounts() if each.path == desk.place]
    assert entry.fstype == "fuse.memstore" and entry.source.startswith("memstore:")
    flags = os.statvfs(desk.place).f_flag
    assert flags & os.ST_NOSUID and flags & os.ST_NODEV
