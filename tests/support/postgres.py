"""A real PostgreSQL server for the run, and a database of its own for each test that asks."""

from __future__ import annotations

import atexit
import itertools
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from memstore.service import Service
from memstore.settings import KeySource, Settings
from tests.support.requirements import need
from tests.support.waiting import until

ENVIRON = {"MEMSTORE_MASTER_KEY": "7f" * 32, "MEMSTORE_DATA_DIR": "/nonexistent"}
"""What a process needs to open a database made here."""
TEMPLATE = "memstore_template"
STOP_SECONDS = 30.0


def programs() -> Path | None:
    """The folder with `postgres` and `initdb`: what PATH says, else where Debian has them."""
    found = shutil.which("initdb")
    places = [Path(found).resolve().parent] if found else []
    places += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "postgres").exists()), None)


def key_source(url: str) -> KeySource:
    """Where the keys of a database made here are."""
    return Settings(environ=ENVIRON).key_source_of(url)


class Server:
    """One server on the loopback; the file system is asked to keep what it acknowledges."""

    def __init__(self) -> None:
        folder = programs()
        need(folder, "PostgreSQL (Debian's package postgresql)")
        assert folder is not None
        self._programs = folder
        self._who: dict[str, Any] = {}
        self._home = Path(tempfile.mkdtemp(prefix="memstore-pg-"))
        if os.geteuid() == 0:  # the server refuses to run as root
            user = _account()
            self._who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
            os.chown(self._home, user.pw_uid, user.pw_gid)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        self._numbers = itertools.count()
        self._run("initdb", "-U", "memstore", "-A", "trust", "-E", "UTF8", *_LOCALE, "--no-sync")
        self.start()
        atexit.register(self.close)
        self._admin(f"CREATE DATABASE {TEMPLATE}")
        url = self.url(TEMPLATE)
        Service(url, keys=key_source(url)).close()

    @property
    def _data(self) -> Path:
        return self._home / "data"

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [self._programs / program, "-D", self._data, *arguments],
            **self._who,
            cwd=self._home,
            env=_LOCALE_ENVIRON,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        """Start the server and wait until it answers."""
        options = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self._home,
            "max_connections": 250,
            "shared_buffers": "64MB",
            "fsync": "on",
            "synchronous_commit": "on",
        }
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._data]
                + [part for name, value in options.items() for part in ("-c", f"{name}={value}")],
                **self._who,
                cwd=self._home,
                env=_LOCALE_ENVIRON,
                stdout=log,
                stderr=log,
            )
        until(self._answers, "PostgreSQL to start")

    def _answers(self) -> bool:
        assert self._process.poll() is None, (self._home / "log").read_text()
        try:
            self._admin("SELECT 1")
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """End the server: SIGINT cuts every connection, SIGQUIT is a crash."""
        self._process.send_signal(how)
        self._process.wait(STOP_SECONDS)

    def close(self) -> None:
        """End the server and remove what it wrote."""
        atexit.unregister(self.close)
        if self._process.poll() is None:
            self.stop()
        shutil.rmtree(self._home)

    def url(self, name: str) -> str:
        """The URL of a database."""
        return f"postgresql://memstore@127.0.0.1:{self.port}/{name}"

    def _admin(self, statement: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())

    def cut(self, url: str) -> None:
        """Terminate every connection to a database."""
        name = url.rpartition("/")[2]
        self._admin(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
        )

    def files_holding(self, needle: bytes) -> list[str]:
        """The server's files, all of them written out, that hold some bytes."""
        self._admin("CHECKPOINT")
        return [
            str(file)
            for file in self._home.rglob("*")
            if file.is_file() and not file.is_symlink() and needle in file.read_bytes()
        ]

    def create(self, *, empty: bool = False) -> str:
        """The URL of a new database, with memstore's schema in it unless it is to be empty."""
        name = f"test{next(self._numbers)}"
        self._admin(f"CREATE DATABASE {name} TEMPLATE {'template0' if empty else TEMPLATE}")
        return self.url(name)

    def drop(self, url: str) -> None:
        """Remove a database."""
        self._admin(f"DROP DATABASE {url.rpartition('/')[2]} WITH (FORCE)")

    @contextmanager
    def database(self, *, empty: bool = False) -> Iterator[str]:
        """The URL of a database that is there for a while."""
        url = self.create(empty=empty)
        try:
            yield url
        finally:
            self.drop(url)


# Not the order of bytes, so that what relies on the server's own order is found out.
_LOCALE = ("--locale-provider=icu", "--icu-locale=en-US", "--locale=C")
_LOCALE_ENVIRON = {"LC_ALL": "C", "PATH": os.defpath}


def _account() -> pwd.struct_passwd:
    """An account without rights to run the server as."""
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise AssertionError("neither the account `postgres` nor `nobody` is there")


_lock = threading.Lock()
_servers: list[Server] = []


def server() -> Server:
    """The server of this run, started when first asked for; it ends with the run."""
    with _lock:
        if not _servers:
            _servers.append(Server())
        return _servers[0]
