"""A real service, and real `memstore mount` processes on it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fuse_mount.kernel import mounting
from memstore.backend import Backend
from memstore.urls import connect
from tests.support.requirements import need
from tests.support.serving import Served
from tests.support.waiting import until

COMMAND = (sys.executable, "-m", "memstore.cli")
WAIT_SECONDS = 60


class Desk:
    """Someone at a shell, with a service, a store and an empty directory for mounts."""

    def __init__(self, service: Served, store_id: str, name: str, path: Path) -> None:
        self.service, self.store_id, self.name, self.path = service, store_id, name, path
        self.place = path / "notes"
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("MEMSTORE_")},
            "MEMSTORE_DATA_DIR": str(path / "data"),
            "MEMSTORE_BASE_URL": service.url,
            "MEMSTORE_API_KEY": service.admin_secret,
            "MEMSTORE_MOUNT_ROOT": str(path / "root"),
        }
        self.backend: Backend = connect(service.url, key=service.admin_secret)
        self.running: list[subprocess.Popen[str]] = []

    def run(
        self,
        *words: str,
        prefix: tuple[str, ...] = (),
        cwd: Path | None = None,
        **environment: str,
    ) -> subprocess.CompletedProcess[str]:
        """Run `memstore WORDS`."""
        return subprocess.run(
            [*prefix, *COMMAND, *words],
            cwd=cwd,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=WAIT_SECONDS,
        )

    def mount(self, *words: str, **environment: str) -> Path:
        """Mount the store as a daemon; its place."""
        done = self.run("mount", self.store_id, str(self.place), *words, **environment)
        assert done.returncode == 0, done.stderr
        return self.place

    def mount_here(
        self, *words: str, place: Path | None = None, **extra: object
    ) -> subprocess.Popen[str]:
        """Mount the store by a process of this test; returns when it says it is ready."""
        process = subprocess.Popen(
            [*COMMAND, "mount", self.store_id, str(place or self.place), "--foreground", *words],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **extra,  # type: ignore[call-overload]
        )
        self.running.append(process)
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
        assert line.startswith("mounted "), line + process.stderr.read()
        return process

    def end(self, process: subprocess.Popen[str], number: int = signal.SIGTERM) -> int:
        """Signal a process of `mount_here` and wait for it; its exit status."""
        process.send_signal(number)
        process.communicate(timeout=WAIT_SECONDS)
        return process.returncode

    def driver(self, place: Path | None = None) -> int:
        """The process that serves a mount; the child of its supervisor."""
        return driver_of(supervisor_of(place or self.place))

    def kill_driver(self, place: Path | None = None) -> None:
        """SIGKILL the driver and wait until another one is there."""
        supervisor = supervisor_of(place or self.place)
        driver = driver_of(supervisor)
        os.kill(driver, signal.SIGKILL)
        until(lambda: driver_of(supervisor) not in (0, driver), "another driver")

    def kill_all(self, place: Path | None = None) -> None:
        """SIGKILL a mount's supervisor and driver, so that neither can save or clean up."""
        supervisor = supervisor_of(place or self.place)
        driver = driver_of(supervisor)
        os.kill(driver, signal.SIGSTOP)
        os.kill(supervisor, signal.SIGKILL)
        os.kill(driver, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{driver}/exe").exists(), "the driver to be gone")

    def umount(self, place: Path | None = None) -> None:
        """`memstore umount`."""
        done = self.run("umount", str(place or self.place))
        assert done.returncode == 0, done.stderr

    def texts(self) -> dict[str, str | None]:
        """Every live memory's text by its path, as the service has it."""
        snapshot = self.backend.snapshot(self.store_id)
        return {memory.path: memory.content for memory in snapshot.memories}

    def mounts(self) -> list[Path]:
        """What is mounted below this desk."""
        return [each.path for each in mounting.mounts() if self.path in each.path.parents]

    def close(self) -> None:
        """Unmount and end whatever a failed test left."""
        for place in self.mounts():
            self.run("umount", str(place))
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=WAIT_SECONDS)
        left = self.mounts()
        for place in left:
            mounting.unmount(place, lazy=True)
        self.backend.close()
        assert not left, f"mounts were left behind: {left}"


def supervisor_of(place: Path) -> int:
    """The process that keeps a mount."""
    return int(os.getxattr(place, "user.memstore.driver").split()[0])


def driver_of(supervisor: int) -> int:
    """The child of a supervisor; 0 while it has none."""
    children = Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split()
    return int(children[0]) if children else 0


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One service for all tests of mounts; each test has a store of its own."""
    served = Served(tmp_path_factory.mktemp("service") / "data")
    yield served
    served.stop()


@pytest.fixture
def make_desk(service: Served, tmp_path: Path) -> Iterator[Callable[[], Desk]]:
    """More desks, each with its own store."""
    need(os.geteuid() == 0 and Path(mounting.DEVICE).exists(), "root and /dev/fuse")
    need(shutil.which("fusermount3"), "fusermount3")
    made: list[Desk] = []

    def make() -> Desk:
        backend = connect(service.url, key=service.admin_secret)
        name = f"{tmp_path.name} {len(made)}"
        store = backend.create_store(name=name)
        backend.close()
        path = tmp_path / f"desk{len(made)}"
        path.mkdir()
        desk = Desk(service, store.id, name, path)
        made.append(desk)
        return desk

    yield make
    for desk in made:
        desk.close()


@pytest.fixture
def desk(make_desk: Callable[[], Desk]) -> Desk:
    """A store and a place for it."""
    return make_desk()


def shows(path: Path, text: str) -> None:
    """Wait until a file has a text."""

    def condition() -> bool:
        try:
            return path.read_text() == text
        except OSError:
            return False

    until(condition, f"{path} to read {text[:40]!r}")
