"""The product on the stage: its own service, its stores, its mounts."""

from __future__ import annotations

import http.client
import json
import os
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.harness import (
    BenchError,
    Stage,
    free_port,
    fuse_servers,
    is_mounted,
    run,
    unmount,
    wait_until,
)

MEMSTORE = str(Path(sys.executable).with_name("memstore"))
_CAPS = {"MEMSTORE_MAX_MEMORIES": "1000000", "MEMSTORE_MAX_BYTES": str(1 << 40)}
_BATCH = 500
_IDLE_S = 20.0
"""The service ends idle connections in its own time; one unused for longer is opened anew."""


class Api:
    """One keep-alive connection to the service, in the shapes of the public API."""

    def __init__(self, host: str, port: int, key: str) -> None:
        self._connection = http.client.HTTPConnection(host, port, timeout=60)
        self._headers = {"x-api-key": key, "content-type": "application/json"}
        self._used = time.monotonic()

    def call(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """The answer's object; BenchError for any status but 200."""
        data = None if body is None else json.dumps(body).encode()
        if time.monotonic() - self._used > _IDLE_S:
            self._connection.close()
        self._used = time.monotonic()
        self._connection.request(method, path, body=data, headers=self._headers)
        response = self._connection.getresponse()
        answer = response.read()
        if response.status != 200:
            raise BenchError(f"{method} {path}: {response.status} {answer[:200]!r}")
        return json.loads(answer)

    def create_store(self, name: str) -> str:
        return str(self.call("POST", "/v1/memory_stores", {"name": name})["id"])

    def create(self, store: str, path: str, content: str) -> Any:
        body = {"path": path, "content": content}
        return self.call("POST", f"/v1/memory_stores/{store}/memories", body)

    def update(self, store: str, memory: str, content: str) -> Any:
        path = f"/v1/memory_stores/{store}/memories/{memory}"
        return self.call("POST", path, {"content": content})

    def pages(self, path: str, **query: str) -> list[Any]:
        """Every item of a listing."""
        items: list[Any] = []
        page = None
        while True:
            asked = {**query, "limit": "100", **({"page": page} if page else {})}
            answer = self.call("GET", f"{path}?{urllib.parse.urlencode(asked)}")
            items += answer["data"]
            page = answer.get("next_page")
            if not page:
                return items

    def versions(self, store: str, **where: str) -> list[Any]:
        return self.pages(f"/v1/memory_stores/{store}/memory_versions", **where)

    def memories(self, store: str, **query: str) -> list[Any]:
        return self.pages(f"/v1/memory_stores/{store}/memories", **query)

    def close(self) -> None:
        self._connection.close()


class Service:
    """`memstore serve` on a private data directory."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.data = stage.directory("data")
        self.port = free_port()
        self._socket = self.data / "bench.sock"
        self.log = stage.root / "serve.log"
        command = [MEMSTORE, "serve", "--data-dir", str(self.data)]
        command += ["--listen", f"127.0.0.1:{self.port}", "--listen", f"unix:{self._socket}"]
        environ = {**clean_environ(), **_CAPS, "MEMSTORE_DATA_DIR": str(self.data)}
        self.process = stage.spawn(command, log=self.log, environ=environ)
        wait_until(self._ready, what="the start of memstore serve", deadline_s=30)
        self.key = (self.data / "admin.key").read_text().strip()
        self.api = self.connect()

    def _ready(self) -> bool:
        if self.process.poll() is not None:
            words = " ".join(self.log.read_text(errors="replace").split())
            raise BenchError(f"memstore serve ended: {words[-300:]}")
        probe = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
        try:
            probe.request("GET", "/readyz")
            return probe.getresponse().status == 200
        except OSError:
            return False
        finally:
            probe.close()

    def connect(self) -> Api:
        return Api("127.0.0.1", self.port, self.key)

    @property
    def environ(self) -> dict[str, str]:
        """What a client needs in its environment; it talks to the service's Unix socket."""
        return {
            **clean_environ(),
            "MEMSTORE_DATA_DIR": str(self.data),
            "MEMSTORE_BASE_URL": f"http+unix://{urllib.parse.quote(str(self._socket), safe='')}",
            "MEMSTORE_API_KEY": self.key,
        }

    def store(self, name: str, texts: Mapping[str, str] | None = None) -> str:
        """A new store, filled with texts by relative path."""
        store = self.api.create_store(name)
        if texts:
            self.load(store, texts)
        return store

    def load(self, store: str, texts: Mapping[str, str]) -> None:
        """Fill a store through the batch route of the client; by single creates without one."""
        try:
            self._load_in_batches(store, texts)
        except ImportError:
            self._load_singly(store, texts)

    def _load_in_batches(self, store: str, texts: Mapping[str, str]) -> None:
        import memstore
        from memstore.model.memories import CreateMemory

        backend = memstore.connect(f"http://127.0.0.1:{self.port}", key=self.key)
        try:
            batch: list[CreateMemory] = []
            size = 0
            for path, content in texts.items():
                batch.append(CreateMemory(path=f"/{path}", content=content))
                size += len(content)
                if len(batch) == _BATCH or size > 4_000_000:
                    backend.apply_changes(store, batch)
                    batch, size = [], 0
            if batch:
                backend.apply_changes(store, batch)
        finally:
            backend.close()

    def _load_singly(self, store: str, texts: Mapping[str, str], clients: int = 8) -> None:
        items = list(texts.items())
        failures: list[BaseException] = []

        def create(part: Sequence[tuple[str, str]]) -> None:
            api = self.connect()
            try:
                for path, content in part:
                    api.create(store, f"/{path}", content)
            except BaseException as error:
                failures.append(error)
            finally:
                api.close()

        threads = [
            threading.Thread(target=create, args=(items[offset::clients],))
            for offset in range(clients)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def stop(self) -> None:
        self.api.close()


class Mount:
    """One store mounted at a fresh directory, as `memstore mount` does it; may be remounted."""

    def __init__(
        self,
        stage: Stage,
        store: str,
        environ: Mapping[str, str],
        *,
        read_only: bool = False,
    ) -> None:
        self._stage, self._environ = stage, dict(environ)
        self.path = stage.directory("mount")
        self._command = [MEMSTORE, "mount", store, str(self.path)]
        if read_only:
            self._command.append("--read-only")
        self._unmount: Callable[[], None] = _nothing
        self.pids: tuple[int, ...] = ()
        self.mount()

    def mount(self) -> None:
        """Mount; answers when the first listing is served."""
        self._unmount = self._stage.on_close(lambda: unmount(self.path))
        run(self._command, timeout_s=90, environ=self._environ | {"BENCH_MOUNT": str(self.path)})
        if not is_mounted(self.path):
            raise BenchError("memstore mount returned, but nothing is mounted")
        self.pids = fuse_servers(str(self.path))

    def unmount(self) -> None:
        """Unmount, and wait until the driver is gone."""
        run([MEMSTORE, "umount", str(self.path)], timeout_s=60, environ=self._environ)
        self._unmount()
        self._unmount = _nothing


def local_store(stage: Stage, name: str) -> tuple[str, dict[str, str]]:
    """A store in a database of its own, without a service; and the environment to mount it."""
    data = stage.directory("local")
    url = f"sqlite:///{data}/memstore.db"
    environ = {**clean_environ(), **_CAPS, "MEMSTORE_DATA_DIR": str(data)}
    environ |= {"MEMSTORE_BASE_URL": url, "MEMSTORE_DATABASE_URL": url}
    made = json.loads(run([MEMSTORE, "store", "create", name, "--json"], environ=environ))
    return str(made["id"]), environ


def clean_environ() -> dict[str, str]:
    """No setting of the caller's shell reaches the product."""
    return {name: "" for name in os.environ if name.startswith("MEMSTORE_")}


def _nothing() -> None:
    """Nothing is mounted."""
