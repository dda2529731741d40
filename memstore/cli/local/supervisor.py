"""`memstore up`: a service, its mounts, and their orderly end."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memstore.cli import names
from memstore.cli.exits import UNAVAILABLE, UNEXPECTED, Stop
from memstore.cli.local import points
from memstore.cli.local.child import Child
from memstore.cli.local.mounts import Mounts
from memstore.cli.local.place import Place
from memstore.cli.service import unix_url
from memstore.client.backend import RemoteBackend
from memstore.model.errors import MemstoreError
from memstore.settings import Settings

READY_S = 60.0
"""A first start makes the database, and a later one may migrate it."""
MOUNT_S = 30.0
"""How long the first mounts are waited for before the others are announced."""
STOP_S = 20.0
LOOK_S = 1.0
FIRST_STORE = "notes"
_ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True, slots=True)
class Plan:
    """What to start: the settings, and where stores are mounted."""

    settings: Settings
    root: Path

    @property
    def place(self) -> Place:
        """The run files."""
        return Place(self.settings.data_dir)


class Supervisor:
    """Runs the service and the mounts until told to end. Lives in a process's main thread."""

    def __init__(
        self,
        plan: Plan,
        report: Callable[[str], None],
        tell: Callable[[str], None],
        ready: Callable[[dict[str, Any]], None],
    ) -> None:
        self._plan = plan
        self._place = plan.place
        self._report = report
        self._announce = ready
        self._ending = False
        self._wake, self._woken = socket.socketpair()
        self._urls: list[str] = []
        self._environment = self._environment_of_children()
        self._service = self._make_service()
        self._mounts = Mounts(plan.root, self._place.logs, self._environment, report, tell)
        self._backend: RemoteBackend | None = None
        self._has_fuse = points.FUSE_DEVICE.exists()

    def run(self) -> None:
        """Start everything, say so, keep it running, and end it in order. Stop when it cannot be."""
        self._place.prepare()
        lock = self._place.take()
        try:
            with self._signals():
                try:
                    self._start()
                    self._announce(self.state())
                    while not self._ending:
                        self._look()
                        self._pause(LOOK_S)
                finally:
                    self._end()
        finally:
            self._place.state.unlink(missing_ok=True)
            os.close(lock)
            self._wake.close()
            self._woken.close()

    def state(self) -> dict[str, Any]:
        """What `status` shows of this process."""
        settings = self._plan.settings
        return {
            "pid": os.getpid(),
            "urls": self._urls,
            "socket": str(self._place.socket),
            "data_dir": str(settings.data_dir),
            "key_file": str(settings.admin_key_file),
            "root": str(self._plan.root),
            "problem": None if self._has_fuse else points.NO_FUSE,
            "service": {"pid": self._service.pid},
            "mounts": self._mounts.states(),
        }

    def _make_service(self) -> Child:
        settings = self._plan.settings
        command = [sys.executable, "-m", "memstore.cli", "serve"]
        command += ["--data-dir", str(settings.data_dir), "--database", settings.database_url]
        addresses = settings.get("listen").split(",")
        if self._place.has_socket:
            addresses.append(f"unix:{self._place.socket}")
        for address in addresses:
            command += ["--listen", address.strip()]
        log = self._place.logs / "service.log"
        return Child("the service", command, self._environment, log, self._report)

    def _environment_of_children(self) -> dict[str, str]:
        """Ours, with the place of this service instead of another's that may be set."""
        environment = {k: v for k, v in os.environ.items() if k != "MEMSTORE_API_KEY"}
        environment.pop("MEMSTORE_BASE_URL", None)
        environment["MEMSTORE_DATA_DIR"] = str(self._plan.settings.data_dir)
        environment["PYTHONUNBUFFERED"] = "1"
        return environment

    def _start(self) -> None:
        self._wait_for_predecessor()
        self._service.start()
        deadline = time.monotonic() + READY_S
        while self._service.ready is None:
            if self._ending:
                return
            self._service.look()
            if not self._service.running:
                raise Stop(
                    self._service.exit_status or UNEXPECTED,
                    f"The service does not start: {self._service.problem}.",
                )
            if time.monotonic() > deadline:
                raise Stop(
                    UNAVAILABLE,
                    f"The service was not ready after {READY_S:g} s: see {self._place.logs}.",
                )
            self._pause(0.1)
        self._urls = self._said_urls()
        self._connect()
        self._first_store()
        self._first_mounts()

    def _wait_for_predecessor(self) -> None:
        """Children of an `up` that was killed end by themselves; they still hold the port."""
        deadline = time.monotonic() + STOP_S
        while time.monotonic() < deadline and not self._ending:
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(str(self._place.socket))
                except OSError:
                    return
            self._pause(0.1)

    def _said_urls(self) -> list[str]:
        """The service's own words name where it listens: `memstore is ready at URL and URL`."""
        words = (self._service.ready or "").split()
        return [word for word in words if word.startswith(("http://", "https://"))]

    def _connect(self) -> None:
        settings = self._plan.settings
        try:
            key = settings.admin_key_file.read_text().strip()
        except OSError as error:
            raise Stop(
                UNAVAILABLE, f"{settings.admin_key_file} cannot be read: {error.strerror}."
            ) from None
        url = unix_url(self._place.socket) if self._place.has_socket else self._urls[0]
        self._environment |= {"MEMSTORE_API_KEY": key, "MEMSTORE_BASE_URL": url}
        self._backend = RemoteBackend(url, key=key, timeout=5.0, patience=0.0)

    def _first_store(self) -> None:
        """A fresh service gets a store to begin with."""
        assert self._backend is not None
        if not self._backend.list_stores(include_archived=True, limit=1).data:
            self._backend.create_store(name=FIRST_STORE)

    def _first_mounts(self) -> None:
        if not self._has_fuse:
            self._report(points.NO_FUSE)
        deadline = time.monotonic() + MOUNT_S
        self._look()
        while not (self._ending or self._mounts.settled()) and time.monotonic() < deadline:
            self._pause(0.1)
            self._mounts.look()
        self._place.write_state(self.state())

    def _look(self) -> None:
        """One round: children that ended, stores that came and went."""
        self._service.look()
        if self._service.due:
            self._service.start()
        if self._has_fuse and self._service.ready is not None and self._backend is not None:
            # Trouble of the service is its own affair; the next round sees.
            with contextlib.suppress(MemstoreError):
                self._mounts.follow(names.all_stores(self._backend, archived=True))
        if self._has_fuse:
            self._mounts.look()
        state = self.state()
        if state != self._place.read_state():
            self._place.write_state(state)

    def _pause(self, seconds: float) -> None:
        """Until a signal, a child's word, or the time."""
        outputs = [self._woken.fileno(), *self._mounts.outputs()]
        if self._service.output is not None:
            outputs.append(self._service.output)
        readable, _, _ = select.select(outputs, [], [], seconds)
        if self._woken.fileno() in readable:
            self._woken.recv(64)

    def _end(self) -> None:
        """Mounts first: they still have something to tell the service."""
        self._mounts.close()
        if self._backend is not None:
            self._backend.close()
        self._service.terminate()
        if not self._service.finish(time.monotonic() + STOP_S):
            self._report(f"the service did not end within {STOP_S:g} s and was killed.")

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """SIGINT, SIGTERM and SIGHUP end the loop; also in the middle of a wait."""

        def end(number: int, frame: object) -> None:
            self._ending = True
            self._wake.send(b"!")

        before = {number: signal.signal(number, end) for number in _ENDINGS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
