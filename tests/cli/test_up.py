"""up, down, status: the service and real mounts together, each test with its own directories."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memstore.cli.local.points import table
from memstore.service.database import check
from tests.support.commands import DEADLINE_SECONDS, PROGRAM, Command
from tests.support.waiting import until


class Machine:
    """A data directory, a mount root, and the command for them."""

    def __init__(self, folder: Path) -> None:
        self.data_dir, self.root = folder / "data", folder / "root"
        self.memstore = Command(
            MEMSTORE_DATA_DIR=str(self.data_dir),
            MEMSTORE_MOUNT_ROOT=str(self.root),
            MEMSTORE_LISTEN="127.0.0.1:0",
        )

    def status(self) -> dict[str, Any]:
        """What `status --json` prints, whether or not the service answers."""
        ran = self.memstore.run("status", "--json")
        assert ran.status in (0, 6), ran
        found: dict[str, Any] = ran.json
        return found

    def mounted(self) -> list[str]:
        """Names below the root that are mounts, by the kernel's table."""
        root = os.path.realpath(self.root) + "/"
        return sorted(point.removeprefix(root) for point, _ in table() if point.startswith(root))

    def end(self) -> None:
        """Nothing stays behind: no process, no mount, no broken database."""
        self.memstore.run("down")
        assert self.mounted() == []
        database = self.data_dir / "memstore.db"
        if database.exists():
            assert check(f"sqlite:///{database}") == []


@pytest.fixture
def machine() -> Iterator[Machine]:
    """A fresh machine, in a folder short enough for a socket's path."""
    assert Path("/dev/fuse").exists(), "/dev/fuse is missing: these tests need real mounts"
    folder = Path(tempfile.mkdtemp(prefix="memstore-up-"))
    machine = Machine(folder)
    yield machine
    machine.end()
    shutil.rmtree(folder)


def test_up_status_down(machine: Machine) -> None:
    """A fresh machine gets a service, the store `notes`, its mount; down leaves nothing behind."""
    memstore = machine.memstore
    said = memstore.good("up", "--detach").out
    assert "http://127.0.0.1:" in said and str(machine.data_dir / "admin.key") in said
    assert str(machine.root / "notes") in said
    (machine.root / "notes" / "a.md").write_text("by mount")
    assert memstore.good("cat", "notes", "a.md").out == "by mount"
    memstore.good("put", "notes", "b.md", stdin="by command")
    until(lambda: (machine.root / "notes" / "b.md").exists(), "the change to be seen")
    assert (machine.root / "notes" / "b.md").read_text() == "by command"

    found = machine.status()
    assert found["service"]["answers"] and found["service"]["version"]
    assert [(m["name"], m["answers"]) for m in found["mounts"]] == [("notes", True)]
    assert "answers" in memstore.good("status").out
    for path in (machine.data_dir, machine.data_dir / "run"):
        assert path.stat().st_mode & 0o777 == 0o700
    assert (machine.data_dir / "run" / "memstore.sock").stat().st_mode & 0o077 == 0

    sentence = memstore.bad(5, "up", "--detach")
    assert str(found["pid"]) in sentence and "memstore down" in sentence
    assert str(found["pid"]) in memstore.bad(5, "up")

    assert memstore.good("down").out == "memstore is down.\n"
    assert machine.mounted() == [] and list(machine.root.iterdir()) == []
    assert memstore.good("down").out == "memstore is not up.\n"
    assert not machine.status()["service"]["answers"]


def test_stores_are_mounted_and_unmounted_as_they_come_and_go(machine: Machine) -> None:
    """A store made while `up` runs is mounted, a second of its name beside it; deleted ones go."""
    memstore = machine.memstore
    memstore.good("up", "--detach")
    first, _ = (memstore.good("store", "create", "My Store").out.strip() for _ in range(2))
    names = ["my-store", "my-store-2", "notes"]
    until(lambda: machine.mounted() == names, "the new stores to be mounted")
    memstore.good("store", "delete", first, "--yes")
    until(lambda: len(machine.mounted()) == 2, "the deleted store to be unmounted")
    assert "notes" in machine.mounted()


def test_a_mount_point_that_cannot_be_used_harms_no_other(machine: Machine) -> None:
    """A file and a directory that is not empty are named in words; the other mounts come up."""
    memstore = machine.memstore
    memstore.good("up", "--detach")
    for name in ("A File", "Full", "Good"):
        memstore.good("store", "create", name)
    until(lambda: len(machine.mounted()) == 4, "all stores to be mounted")
    memstore.good("down")
    (machine.root / "a-file").touch()
    (machine.root / "full" / "inner").mkdir(parents=True)
    ran = memstore.run("up", "--detach")
    assert ran.status == 0 and machine.mounted() == ["good", "notes"]
    assert "a-file is a file" in ran.err and "full is not empty" in ran.err
    problems = {mount["name"]: mount["problem"] for mount in machine.status()["mounts"]}
    assert "file" in problems["A File"] and "empty" in problems["Full"]
    assert problems["Good"] is problems["notes"] is None
    (machine.root / "a-file").unlink()
    until(lambda: "a-file" in machine.mounted(), "the mount point to be tried again")
    assert (machine.root / "full" / "inner").is_dir()


def test_a_busy_port_is_one_sentence(machine: Machine) -> None:
    """The port of another program: exit 6, what to do, and nothing is left running."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        for arguments in (("up", "--detach"), ("up",)):
            sentence = machine.memstore.bad(6, *arguments, "--listen", address)
            assert "in use" in sentence and address in sentence
    assert machine.status()["pid"] is None


def test_children_that_die_are_started_again(machine: Machine) -> None:
    """A killed driver and a killed service come back, the mount with them; what was saved stays."""
    memstore = machine.memstore
    memstore.good("up", "--detach")
    file = machine.root / "notes" / "a"
    file.write_text("saved")
    state = machine.data_dir / "run" / "up.json"

    def pids() -> tuple[int, int]:
        now = json.loads(state.read_text())
        return now["service"]["pid"], now["mounts"][0]["pid"]

    service, driver = pids()
    os.kill(driver, signal.SIGKILL)
    until(lambda: machine.status()["mounts"][0]["answers"] and pids()[1] != driver, "the mount")
    assert file.read_text() == "saved"
    os.kill(service, signal.SIGKILL)
    until(lambda: machine.status()["service"]["answers"] and pids()[0] != service, "the service")
    until(lambda: memstore.run("cat", "notes", "a").out == "saved", "the text")
    log = (machine.data_dir / "logs" / "up.log").read_text()
    assert log.count("ended unexpectedly") == 2


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_saves_unmounts_and_stops(machine: Machine, ending: signal.Signals) -> None:
    """In the foreground: ready in words, then a signal ends everything in order with status 0."""
    process = subprocess.Popen(
        [*PROGRAM, "up"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=machine.memstore.environ,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    with process.stdout, process.stderr:
        lines = [process.stdout.readline() for _ in range(3)]
        assert lines[0].startswith("memstore is up at http://") and "notes" in lines[2]
        file = os.open(machine.root / "notes" / "open.md", os.O_WRONLY | os.O_CREAT)
        os.write(file, b"never closed before the end")
        process.send_signal(ending)
        assert process.wait(DEADLINE_SECONDS) == 0
        with contextlib.suppress(OSError):
            os.close(file)  # Its mount is gone; whether close says so is the kernel's affair.
        assert "Traceback" not in process.stderr.read()
    assert machine.mounted() == []
    machine.memstore.good("up", "--detach")
    assert machine.memstore.good("cat", "notes", "open.md").out == "never closed before the end"


def test_up_after_a_kill(machine: Machine) -> None:
    """When `up` itself is killed its children end, and the next `up` comes up as ever."""
    memstore = machine.memstore
    memstore.good("up", "--detach")
    (machine.root / "notes" / "a").write_text("saved")
    os.kill(machine.status()["pid"], signal.SIGKILL)
    until(lambda: machine.mounted() == [], "the orphaned mount to go")
    memstore.good("up", "--detach")
    assert (machine.root / "notes" / "a").read_text() == "saved"


def test_without_fuse_the_service_still_comes_up(machine: Machine) -> None:
    """A machine without /dev/fuse gets the service, and a sentence that says what to do."""
    program = (
        "import sys; from pathlib import Path; from memstore.cli.local import points\n"
        "points.FUSE_DEVICE = Path('/dev/no-fuse')\n"
        "from memstore.cli.main import main; sys.exit(main(['up']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=machine.memstore.environ,
        text=True,
    )
    assert process.stdout is not None and process.stderr is not None
    with process.stdout, process.stderr:
        assert process.stdout.readline().startswith("memstore is up at http://")
        machine.memstore.good("put", "notes", "/a", stdin="x")
        process.terminate()
        assert process.wait(DEADLINE_SECONDS) == 0
        assert "modprobe fuse" in process.stderr.read()
