"""The places the port is answered from. A conformance test knows only this page."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import memstore
from memstore.backend import Backend
from memstore.model import ids
from memstore.service import Service
from memstore.service.database import check
from tests.support import postgres
from tests.support.serving import Served


class World(Protocol):
    """A service with an empty workspace and its admin key; and one of the workspace `default`."""

    workspace: str
    admin_secret: str
    operator_secret: str

    def connect(self, secret: str) -> Backend:
        """The port for a key or a session's token."""
        ...

    def close(self) -> None:
        """Stop everything that was started."""
        ...


class LocalWorld:
    """The service in this process."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.service = Service(f"sqlite:///{path / 'memstore.db'}", **options)
        self.admin_secret = self.service.bootstrap() or ""
        self.workspace, self.operator_secret = "default", self.admin_secret

    def connect(self, secret: str) -> Backend:
        """The port for a key or a session's token."""
        return self.service.backend_for(self.service.authenticate(secret))

    def close(self) -> None:
        """Close the database."""
        self.service.close()


class Processes:
    """Service processes that tests share, one for each way to start it; ended with the run."""

    def __init__(self) -> None:
        self._served: dict[tuple[int, int, float], tuple[Served, Path]] = {}
        self._folder: Path | None = None
        self._numbers = itertools.count()

    def get(self, max_memories: int, max_bytes: int, heartbeat: float) -> tuple[Served, Path]:
        """The process of these options, and the Unix socket it listens on beside its port."""
        options = max_memories, max_bytes, heartbeat
        if options not in self._served:
            if self._folder is None:
                # A socket's path has 108 bytes; pytest's own folders may be longer.
                self._folder = Path(tempfile.mkdtemp(prefix="memstore-"))
            data_dir = self._folder / str(next(self._numbers))
            socket = data_dir / "run" / "s"
            served = Served(
                data_dir,
                *("--listen", f"unix:{socket}", "--heartbeat", str(heartbeat)),
                MEMSTORE_MAX_MEMORIES=str(max_memories),
                MEMSTORE_MAX_BYTES=str(max_bytes),
            )
            self._served[options] = served, socket
        return self._served[options]

    def close(self) -> None:
        """End them all; each leaves cleanly, with a database that is true to itself."""
        served = [one for one, _ in self._served.values()]
        self._served.clear()
        endings = [(one.stop(), check(one.database_url), one.log.read_text()) for one in served]
        if self._folder is not None:
            shutil.rmtree(self._folder)
        assert all(ending == (0, [], "") for ending in endings), endings


PROCESSES = Processes()


class Databases:
    """A PostgreSQL database that tests share, and a service on it for each set of options."""

    def __init__(self) -> None:
        self._services: dict[tuple[tuple[str, Any], ...], Service] = {}
        self._url = ""
        self.secret = ""

    def get(self, **options: Any) -> Service:
        """The service of these options."""
        self._url = self._url or postgres.server().create()
        known = tuple(sorted(options.items()))
        if known not in self._services:
            service = Service(self._url, keys=postgres.key_source(self._url), **options)
            self._services[known] = service
            self.secret = service.bootstrap() or self.secret
        return self._services[known]

    def close(self) -> None:
        """Close the services; the database is true to itself."""
        for service in self._services.values():
            service.close()
        if self._url:
            found = check(self._url, postgres.key_source(self._url))
            postgres.server().drop(self._url)
            assert found == []
        self._services.clear()
        self._url = self.secret = ""


DATABASES = Databases()


class PostgresqlWorld:
    """A workspace of its own in a PostgreSQL database, served in this process."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.service = DATABASES.get(**options)
        self.workspace, self.operator_secret = ids.new("test"), DATABASES.secret
        admin = self.connect(self.operator_secret)
        _, self.admin_secret = admin.create_key(scopes=("admin",), workspace=self.workspace)

    def connect(self, secret: str) -> Backend:
        """The port for a key or a session's token."""
        return self.service.backend_for(self.service.authenticate(secret))

    def close(self) -> None:
        """The database stays for the next world."""


class RemoteWorld:
    """A workspace of its own in a service process, over TCP or its Unix socket."""

    def __init__(
        self, path: Path, *, unix: bool, max_memories: int, max_bytes: int, heartbeat: float
    ) -> None:
        served, socket = PROCESSES.get(max_memories, max_bytes, heartbeat)
        self._url = f"http+unix://{socket}" if unix else served.url
        self._connected: list[Backend] = []
        self.workspace = ids.new("test")
        self.operator_secret = served.admin_secret
        admin = self.connect(self.operator_secret)
        _, self.admin_secret = admin.create_key(scopes=("admin",), workspace=self.workspace)

    def connect(self, secret: str) -> Backend:
        """The port for a key or a session's token."""
        backend = memstore.connect(self._url, key=secret)
        self._connected.append(backend)
        return backend

    def close(self) -> None:
        """Close the connections; the process goes on."""
        for backend in self._connected:
            backend.close()


WORLDS: dict[str, Callable[..., World]] = {
    "local": LocalWorld,
    "postgresql": PostgresqlWorld,
    "tcp": partial(RemoteWorld, unix=False),
    "unix": partial(RemoteWorld, unix=True),
}
"""Every backend the conformance suite runs on, by the name its tests show."""
