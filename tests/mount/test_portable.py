"""The portable binding as an operator meets it: `memstore mount -o binding=portable`."""

from __future__ import annotations

import errno
import os
import signal
from pathlib import Path

import pytest

from fuse_mount.kernel import mounting
from tests.mount.conftest import Desk, driver_of, shows

PORTABLE = ("-o", "binding=portable")


def test_it_mounts_saves_and_leaves_nothing(desk: Desk) -> None:
    """What is there is read, what is written is saved at close, and `umount` ends it all."""
    desk.backend.create_memory(desk.store_id, path="/before.md", content="there\n")
    place = desk.mount(*PORTABLE)

    assert (place / "before.md").read_text() == "there\n"
    (place / "after.md").write_text("written\n")
    assert desk.texts()["/after.md"] == "written\n"

    desk.umount()
    assert not desk.mounts()
    assert not place.exists()


def test_what_is_held_back_is_committed_at_the_end(desk: Desk) -> None:
    """SIGTERM drains: a temporary name that nobody renamed is saved before the mount goes."""
    process = desk.mount_here(*PORTABLE)
    (desk.place / "draft.tmp").write_text("kept\n")
    assert "/draft.tmp" not in desk.texts()

    assert desk.end(process) == 0

    assert desk.texts() == {"/draft.tmp": "kept\n"}
    assert not desk.mounts()


def test_a_read_only_mount_refuses(desk: Desk) -> None:
    """It is mounted `ro`, and writing is EROFS."""
    desk.backend.create_memory(desk.store_id, path="/a.md", content="text\n")
    place = desk.mount("--read-only", *PORTABLE)

    assert [each.read_only for each in mounting.mounts() if each.path == place] == [True]
    with pytest.raises(OSError) as refused:
        (place / "a.md").write_text("no")
    assert refused.value.errno == errno.EROFS
    assert (place / "a.md").read_text() == "text\n"


def test_a_change_made_elsewhere_is_seen(desk: Desk) -> None:
    """A change through the API shows without remounting."""
    memory = desk.backend.create_memory(desk.store_id, path="/a.md", content="one\n")
    place = desk.mount(*PORTABLE)
    assert (place / "a.md").read_text() == "one\n"

    desk.backend.update_memory(desk.store_id, memory.id, content="another\n")

    shows(place / "a.md", "another\n")


def test_programs_started_by_the_driver_inherit_no_mount(desk: Desk) -> None:
    """libfuse's descriptor of the mount is close-on-exec."""
    process = desk.mount_here(*PORTABLE)

    driver = driver_of(process.pid)
    folder = Path(f"/proc/{driver}/fd")
    mounts = [fd for fd in folder.iterdir() if os.readlink(fd) == "/dev/fuse"]
    assert mounts
    for fd in mounts:
        (line,) = [
            line
            for line in Path(f"/proc/{driver}/fdinfo/{fd.name}").read_text().splitlines()
            if line.startswith("flags:")
        ]
        assert int(line.split()[1], 8) & os.O_CLOEXEC
    assert desk.end(process) == 0


def test_a_killed_driver_is_mounted_over(desk: Desk) -> None:
    """After SIGKILL the place is taken again, and every acknowledged save is there."""
    process = desk.mount_here(*PORTABLE)
    (desk.place / "a.md").write_text("saved\n")
    desk.end(process, signal.SIGKILL)

    place = desk.mount(*PORTABLE)

    assert (place / "a.md").read_text() == "saved\n"


def test_a_missing_library_is_named(desk: Desk, tmp_path: Path) -> None:
    """Without libfuse the command says what to install, and mounts nothing."""
    missing = tmp_path / "libfuse.so.2"

    done = desk.run(
        "mount", desk.store_id, str(desk.place), *PORTABLE, FUSE_LIBRARY_PATH=str(missing)
    )

    assert done.returncode == 6
    assert "Install the package libfuse2" in done.stderr
    assert not desk.mounts()


def test_an_inherited_descriptor_is_refused(desk: Desk) -> None:
    """`/dev/fd/N` belongs to the Linux binding; the sentence says what to do."""
    prefix = ("bash", "-c", 'exec "$@" 9<>/dev/fuse', "bash")

    done = desk.run("mount", desk.store_id, "/dev/fd/9", *PORTABLE, prefix=prefix)

    assert done.returncode == 2
    assert "binding=portable" in done.stderr
