"""A real `memstore serve` process, and an official client whose async form tests can call plainly."""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import select
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

COMMAND = (sys.executable, "-m", "memstore.cli", "serve")
START_SECONDS = 60.0
STOP_SECONDS = 30.0
_READY = re.compile(r"memstore is ready at (http://\S+)")


class Served:
    """A service on a free port, and whatever else `arguments` say; stop it when done."""

    def __init__(self, data_dir: Path, *arguments: str, **environ: str) -> None:
        self.data_dir = data_dir
        self.log = data_dir.with_name(f"{data_dir.name}.log")
        settings = {k: v for k, v in os.environ.items() if not k.startswith("MEMSTORE_")}
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*COMMAND, "--data-dir", str(data_dir), "--listen", "127.0.0.1:0", *arguments],
                stdout=subprocess.PIPE,
                stderr=log,
                env={**settings, **environ},
            )
        self.url = self._wait_ready()
        self.admin_secret = (data_dir / "admin.key").read_text().strip()

    @property
    def database_url(self) -> str:
        """The URL of its database."""
        return f"sqlite:///{self.data_dir / 'memstore.db'}"

    def _wait_ready(self) -> str:
        assert self.process.stdout is not None
        end = time.monotonic() + START_SECONDS
        said = b""
        while not said.endswith(b"\n"):
            if not select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))[
                0
            ]:
                self.process.kill()
            part = os.read(self.process.stdout.fileno(), 4096)
            if not part:
                self.stop()
                raise AssertionError(f"the service did not start: {self.log.read_text()}")
            said += part
        ready = _READY.match(said.decode())
        assert ready, said
        return ready[1]

    def stop(self) -> int:
        """End it as an operator would; its exit status."""
        self.process.terminate()
        try:
            status = self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            if self.process.stdout is not None:
                self.process.stdout.close()
        return status


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def run(self, awaitable: Any) -> Any:
        """The result of something awaitable."""

        async def settle() -> Any:
            return await awaitable

        return asyncio.run_coroutine_threadsafe(settle(), self._loop).result(60)

    def close(self) -> None:
        """Stop the loop."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()


class Plain:
    """An async SDK object that is used as its sync twin: calls are awaited, pages iterated."""

    def __init__(self, target: Any, loop: Loop) -> None:
        self._target, self._loop = target, loop

    def __getattr__(self, name: str) -> Any:
        return self._wrap(getattr(self._target, name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the call comes to."""
        return self._wrap(self._target(*args, **kwargs))

    def __iter__(self) -> Iterator[Any]:
        async def collect() -> list[Any]:
            return [item async for item in self._target]

        return iter(self._loop.run(collect()))

    def _wrap(self, value: Any) -> Any:
        if inspect.isawaitable(value):
            value = self._loop.run(value)
        is_resource = type(value).__module__.startswith(
            ("anthropic.resources", "anthropic._response")
        )
        if is_resource or hasattr(value, "__aiter__") or inspect.isroutine(value):
            return Plain(value, self._loop)
        return value
