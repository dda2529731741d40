"""A store in a real service, its mounts, and what the store itself says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fuse_mount.portable import LIMITS
from fuse_mount.vfs.options import Options
from memstore.backend import Backend
from memstore.model.memories import Memory
from memstore.model.versions import Version, VersionFilter
from memstore.service import Service
from tests.support.faults import EXTENSIONS, FaultyBackend
from tests.support.files import Files, MakeFiles, VfsFiles, read
from tests.support.real_files import LinuxFiles, PortableFiles
from tests.support.waiting import until
from tests.support.walking import every

POLL_S = 0.02


class HostedFiles(VfsFiles):
    """On the bare vfs, over a server that offers the hosted API's own endpoints alone."""

    def __init__(self, backend: Backend, store_id: str, options: Options) -> None:
        hosted: Any = backend
        if not isinstance(backend, FaultyBackend) or not backend.without:
            hosted = FaultyBackend(backend, without=EXTENSIONS)
        interval = min(options.poll_interval_s, POLL_S)
        super().__init__(hosted, store_id, replace(options, poll_interval_s=interval))


MOUNTS: dict[str, MakeFiles] = {
    "vfs": VfsFiles,
    "hosted": HostedFiles,
    "linux": LinuxFiles,
    "portable": PortableFiles,
}
"""Every way to mount that the suite runs on, by the name its tests show."""

HOSTED_LIMITS = {
    "rejected writes": "A losing text is an ordinary memory beside the winner: the server keeps "
    "no rejected writes.",
    "caps": "The store's caps are not told: a save that exceeds them is refused at close, and df "
    "shows the usual ones.",
    "change feed": "A redaction is noticed when a version is opened, not pushed, and polling asks "
    "for versions all the time.",
}
LACKS: dict[str, Mapping[str, str]] = {"portable": LIMITS, "hosted": HOSTED_LIMITS}
"""What each cannot do, and why. A test says what it needs by `@pytest.mark.requires(...)`; where
that is lacking it runs and must fail, so that a limit that is gone is noticed."""

FOREVER = 1_000_000.0


class Place:
    """One store and everything that was mounted of it.

    Temporary names are held for ever unless a test says otherwise, so that it decides when.
    """

    def __init__(
        self,
        path: Path,
        make_files: MakeFiles,
        *,
        max_memories: int = 10_000,
        max_bytes: int = 104_857_600,
    ) -> None:
        self._make_files = make_files
        self.service = Service(
            f"sqlite:///{path / 'memstore.db'}", max_memories=max_memories, max_bytes=max_bytes
        )
        self.service.bootstrap()
        self.backend: Backend = self.service.backend_for(self.service.operator())
        self.store_id = self.backend.create_store(name="Notes").id
        self._mounts: list[Files] = []

    def mount(self, backend: Backend | None = None, **options: Any) -> Files:
        """Mount the store once more."""
        chosen = {"temp_hold_s": FOREVER, **options}
        files = self._make_files(backend or self.backend, self.store_id, Options(**chosen))
        self._mounts.append(files)
        return files

    def unmount(self, files: Files) -> list[str]:
        """Unmount one; the paths that could not be saved."""
        self._mounts.remove(files)
        return files.unmount()

    def close(self) -> None:
        """Unmount everything and close the database."""
        for files in self._mounts:
            files.unmount()
        self.service.close()

    # What the store says

    def put(self, path: str, text: str) -> Memory:
        """Write a memory through the API: create it or replace its text."""
        there = self.find(path)
        if there is None:
            return self.backend.create_memory(self.store_id, path=path, content=text)
        return self.backend.update_memory(self.store_id, there.id, content=text)

    def find(self, path: str) -> Memory | None:
        """The memory at a path."""
        for memory in self.memories():
            if memory.path == path:
                return memory
        return None

    def memory(self, path: str) -> Memory:
        """The memory at a path; it has to be there."""
        memory = self.find(path)
        assert memory is not None, f"no memory at {path}"
        return memory

    def memories(self) -> list[Memory]:
        """Every live memory with its text."""
        return every(self.backend.list_memories, self.store_id, view="full")

    def texts(self) -> dict[str, str | None]:
        """The text of every path."""
        return {memory.path: memory.content for memory in self.memories()}

    def history(self, memory_id: str | None = None) -> list[Version]:
        """Versions, oldest first."""
        where = VersionFilter(memory_id=memory_id)
        return every(self.backend.list_versions, self.store_id, where=where)[::-1]

    def operations(self) -> list[tuple[str, str | None]]:
        """What happened, oldest first: operation and path."""
        return [(version.operation, version.path) for version in self.history()]


def shows(files: Files, path: str, text: str) -> None:
    """Wait until a mount shows a text."""

    def condition() -> bool:
        try:
            return read(files, path) == text.encode()
        except FileNotFoundError:
            return False
        except OSError:
            return False

    until(condition, f"{path} to show {text[:40]!r}")


def hides(files: Files, path: str) -> None:
    """Wait until a mount no longer has a path."""

    def condition() -> bool:
        try:
            files.stat(path)
        except OSError:
            return True
        return False

    until(condition, f"{path} to go")
