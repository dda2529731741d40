"""The service's processes: bind, open the database, serve, end cleanly.

With one worker this process serves. With more, it binds the sockets and watches over workers that
share them: each opens the database itself, one that dies is replaced, all end with this process.
"""

from __future__ import annotations

import asyncio
import multiprocessing as mp
import os
import resource
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path

import uvicorn

from api import logs
from api.app import create_app
from api.feeds import HEARTBEAT_SECONDS
from memstore.model import limits
from memstore.model.errors import Unavailable
from memstore.service import Service
from memstore.settings import KeySource

GRACE_SECONDS = 10
"""How long requests in flight may take to finish at the end."""
KEEP_ALIVE_SECONDS = 120
"""Idle connections are kept longer than drivers and clients pause between requests."""
_ENDINGS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class Options:
    """How to serve: the database's URL, the caps of a store, and what is offered."""

    database_url: str
    max_memories: int = limits.STORE_MEMORIES
    max_bytes: int = limits.STORE_BYTES
    extensions: bool = True
    heartbeat: float = HEARTBEAT_SECONDS
    log_level: str = "warning"
    keys: KeySource | None = None

    def open(self) -> Service:
        """The service over the database."""
        return Service(
            self.database_url,
            max_memories=self.max_memories,
            max_bytes=self.max_bytes,
            keys=self.keys,
        )


class Server(uvicorn.Server):
    """Uvicorn that also serves Unix sockets, ends its streams, and leaves signals' fate to us."""

    def __init__(self, service: Service, options: Options, ready: Callable[[], None]) -> None:
        self._service_app = create_app(
            service, extensions=options.extensions, heartbeat=options.heartbeat
        )
        self._ready = ready
        super().__init__(
            uvicorn.Config(
                self._service_app,
                loop="uvloop",
                http="httptools",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen on every socket, then say so."""
        given = sockets or []
        await super().startup([one for one in given if one.family != socket.AF_UNIX])
        loop = asyncio.get_running_loop()
        for one in given:
            if one.family == socket.AF_UNIX:
                self.servers.append(await loop.create_unix_server(self._protocol, sock=one))
        self._ready()

    def _protocol(self) -> asyncio.Protocol:
        """A connection's protocol, as Uvicorn makes it for TCP."""
        return self.config.http_protocol_class(  # type: ignore[call-arg]
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams first: nothing else would, and the server waits for them."""
        self._service_app.state.feeds.close()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """End on SIGTERM and SIGINT, and let the process finish its own way afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {ending: signal.signal(ending, self.handle_exit) for ending in _ENDINGS}
        try:
            yield
        finally:
            for ending, handler in before.items():
                signal.signal(ending, handler)


def serve(
    options: Options, sockets: Sequence[socket.socket], workers: int, ready: Callable[[], None]
) -> None:
    """Serve on bound sockets until SIGTERM or SIGINT; `ready` is called once, when it can answer."""
    _raise_file_limit()
    _leave_no_core()
    logs.setup(options.log_level)
    if workers > 1:
        _supervise(options, sockets, workers, ready)
    else:
        _serve(options, sockets, ready)


def prepare(options: Options, admin_key_file: Path) -> None:
    """Make or migrate the database, and at the first start the admin key's file (mode 0600)."""
    service = options.open()
    try:
        service.bootstrap(lambda secret: _write_private(admin_key_file, f"{secret}\n"))
    finally:
        service.close()


def _serve(options: Options, sockets: Sequence[socket.socket], ready: Callable[[], None]) -> None:
    """Serve in this process."""
    service = options.open()
    try:
        Server(service, options, ready).run(list(sockets))
    finally:
        service.close()


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner reads; it is whole, and on disk, or not there."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(file, text.encode())
            os.fsync(file)
        finally:
            os.close(file)
        draft.replace(path)
    except OSError as error:
        raise Unavailable(f"{path} cannot be written: {error.strerror}.") from None


def _leave_no_core() -> None:
    """A core dump would hold texts and keys in plain: write none."""
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _raise_file_limit() -> None:
    """A connection is a descriptor: allow as many as the system lets us."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


class _Worker:
    """A process that serves; its pipe says when it is ready, and tells it that we are gone."""

    def __init__(self, options: Options, sockets: Sequence[socket.socket]) -> None:
        context = mp.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(options, list(sockets), theirs))
        self.process.start()
        theirs.close()

    def wait_ready(self) -> None:
        """Return when it serves; Unavailable when it ended instead."""
        try:
            self.pipe.recv()
        except EOFError:
            raise Unavailable("A worker could not start; see the lines above.") from None

    def end(self) -> None:
        """Stop it, gently first."""
        self.process.terminate()
        self.process.join(GRACE_SECONDS + 5)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
        self.pipe.close()


def _work(options: Options, sockets: list[socket.socket], pipe: Connection) -> None:
    """A worker's life."""
    logs.setup(options.log_level)
    service = options.open()
    server = Server(service, options, lambda: pipe.send(True))

    def follow() -> None:
        with suppress(EOFError, OSError):
            pipe.recv()
        server.should_exit = True

    threading.Thread(target=follow, daemon=True).start()
    try:
        server.run(sockets)
    finally:
        service.close()


def _supervise(
    options: Options, sockets: Sequence[socket.socket], count: int, ready: Callable[[], None]
) -> None:
    """Keep `count` workers serving until we are told to end."""
    ending = threading.Event()
    wake, waker = mp.Pipe(duplex=False)

    def end(number: int, frame: object) -> None:
        ending.set()
        waker.send_bytes(b"")

    before = {number: signal.signal(number, end) for number in _ENDINGS}
    workers: list[_Worker] = []
    try:
        workers += [_Worker(options, sockets) for _ in range(count)]
        for worker in workers:
            worker.wait_ready()
        ready()
        while not ending.is_set():
            wait([wake, *(worker.process.sentinel for worker in workers)])
            for index, worker in enumerate(workers):
                if not ending.is_set() and not worker.process.is_alive():
                    worker.pipe.close()
                    workers[index] = _Worker(options, sockets)
                    workers[index].wait_ready()
    finally:
        for worker in workers:
            worker.end()
        for number, handler in before.items():
            signal.signal(number, handler)
