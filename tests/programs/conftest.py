"""A real service, one real mount of each binding, and a folder in it for each test."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from fuse_mount.kernel import mounting
from memstore.model.memories import Memory
from memstore.urls import connect
from tests.mount.conftest import Desk
from tests.support.requirements import need
from tests.support.serving import Served
from tests.support.waiting import until

DEV = Path(__file__).parents[2] / "dev"
RUN_SECONDS = 60


def packages() -> dict[str, str]:
    """Program to apt package, as `./dev test` installs them."""
    array = re.search(r"^test_programs=\((.*?)\)", DEV.read_text(), re.S | re.M)
    assert array, "./dev lists the programs that tests drive"
    pairs = (pair.split("=", 1) for pair in array[1].split())
    return dict(pairs)


PACKAGES = packages()


def need_program(name: str) -> None:
    """Skip where a program is missing; fail under CI, naming the package to install."""
    need(shutil.which(name), f"the program {name} (apt-get install {PACKAGES.get(name, name)})")


@dataclass(slots=True)
class Ran:
    """What a program said."""

    status: int
    out: str
    err: str


class Work:
    """A folder of the mount where one test's programs work, and what the store heard of it."""

    def __init__(self, desk: Desk, place: Path, name: str) -> None:
        self.desk, self.name = desk, name
        self.folder = place / name
        self.folder.mkdir()
        self.ids: dict[str, str] = {}
        self._cursor = self._now()

    def _now(self) -> int:
        return self.desk.backend.list_events(self.desk.store_id, after=-1).cursor

    def put(self, texts: dict[str, str]) -> None:
        """Memories that were there before, written through the API; not counted as changes."""
        for name, text in texts.items():
            memory = self.desk.backend.create_memory(
                self.desk.store_id, path=f"/{self.name}/{name}", content=text
            )
            self.ids[name] = memory.id
            until(lambda name=name: (self.folder / name).exists(), f"{name} to be in the mount")  # type: ignore[misc]
        self._cursor = self._now()

    def change(self, name: str, text: str) -> None:
        """A change through the API."""
        self.desk.backend.update_memory(self.desk.store_id, self.ids[name], content=text)

    def run(self, script: str, *, stdin: str | None = None, **environ: str) -> Ran:
        """Run a script with bash in the folder."""
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
            env={**os.environ, "LC_ALL": "C.UTF-8", "HOME": str(self.desk.path), **environ},
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def changes(self) -> list[str]:
        """What the store heard since: `created a`, `modified a`, `deleted a`, in order."""
        found: list[str] = []
        at = self._cursor
        while True:
            page = self.desk.backend.list_events(self.desk.store_id, after=at, limit=1000)
            for event in page.events:
                path = str(event.path).removeprefix(f"/{self.name}/")
                found.append(f"{event.kind.removeprefix('memory.')} {path}")
            if not page.events:
                return found
            at = page.cursor

    def memories(self) -> dict[str, Memory]:
        """The live memories of this folder by name."""
        prefix = f"/{self.name}/"
        snapshot = self.desk.backend.snapshot(self.desk.store_id)
        return {
            memory.path.removeprefix(prefix): memory
            for memory in snapshot.memories
            if memory.path.startswith(prefix)
        }

    def texts(self) -> dict[str, str | None]:
        """What the store holds."""
        return {name: memory.content for name, memory in self.memories().items()}

    def seen(self) -> dict[str, str]:
        """What the mount shows."""
        return {
            str(path.relative_to(self.folder)): path.read_text()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file()
        }


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One service for all programs."""
    served = Served(tmp_path_factory.mktemp("programs") / "data")
    yield served
    served.stop()


@pytest.fixture(scope="session", params=["kernel", "portable"])
def desk(
    request: pytest.FixtureRequest, service: Served, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Desk]:
    """A store and its mount by each binding."""
    need(os.geteuid() == 0 and Path(mounting.DEVICE).exists(), "root and /dev/fuse")
    backend = connect(service.url, key=service.admin_secret)
    store = backend.create_store(name=f"programs {request.param}")
    backend.close()
    made = Desk(service, store.id, store.name, tmp_path_factory.mktemp("desk"))
    try:
        made.mount("-o", f"binding={request.param}")
        yield made
        made.umount()
    finally:
        made.close()


@pytest.fixture
def work(desk: Desk, request: pytest.FixtureRequest) -> Work:
    """An empty folder in the mount."""
    name = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")
    return Work(desk, desk.place, name)
