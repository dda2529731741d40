"""Which service a command talks to, and as whom."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from memstore.cli.exits import INVALID, REFUSED, UNAVAILABLE, Stop
from memstore.cli.local.place import Place
from memstore.model.errors import Unavailable
from memstore.settings import Settings

if TYPE_CHECKING:
    from memstore.backend import Backend

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - a service may listen so
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


def settings(**flags: str | None) -> Settings:
    """The settings; stops with a sentence when they cannot be read."""
    try:
        return Settings(flags)
    except ValueError as error:
        raise Stop(INVALID, f"{error}.") from None


def unix_url(path: Path | str) -> str:
    """The URL of a Unix socket."""
    return f"http+unix://{quote(str(path))}"


def base_url(own: Settings) -> str:
    """`MEMSTORE_BASE_URL`, else the local service: its socket when it answers, else its port."""
    url = own.get("base_url")
    if url:
        return url
    place = Place(own.data_dir)
    if _answers(place.socket):
        return unix_url(place.socket)
    if place.holder() is not None and place.read_state().get("urls"):
        return str(place.read_state()["urls"][0])
    listen = own.get("listen").split(",")[0].strip()
    if listen.startswith("unix:"):
        return unix_url(Path(listen.removeprefix("unix:")).absolute())
    host, _, port = listen.rpartition(":")
    return f"http://{_EVERYWHERE.get(host, host)}:{port}"


def _answers(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1.0)
        try:
            probe.connect(str(path))
        except OSError:
            return False
        return True


def is_local(url: str) -> bool:
    """Whether a URL stays on this machine."""
    parts = urlsplit(url)
    return parts.scheme == "http+unix" or parts.hostname in _LOOPBACK


def api_key(own: Settings, url: str) -> str:
    """`MEMSTORE_API_KEY`, else the local service's `admin.key`, which is sent nowhere else."""
    key = own.get("api_key")
    if key or not is_local(url):
        return key
    try:
        return own.admin_key_file.read_text().strip()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise Stop(
            REFUSED,
            f"{own.admin_key_file} cannot be read ({error.strerror}): set MEMSTORE_API_KEY.",
        ) from None


@contextlib.contextmanager
def opened(own: Settings | None = None) -> Iterator[Backend]:
    """The port at the service of the settings, closed after use."""
    from memstore.urls import connect

    own = own or settings()
    url = base_url(own)
    backend = connect(url, key=api_key(own, url) or None)
    try:
        yield backend
    except Unavailable as error:
        if "cannot be reached" in error.message and is_local(url):
            raise Stop(UNAVAILABLE, f"{error.message} Start it with `memstore up`.") from None
        raise
    finally:
        backend.close()
