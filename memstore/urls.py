"""A URL becomes a backend."""

from __future__ import annotations

import re
from pathlib import Path

from memstore.backend import Backend
from memstore.model.errors import Invalid

_RELATIVE_FILE = re.compile(r"(sqlite(?:\+\w+)?:///)(?!/|:memory:|file:)([^?]+)")


def absolute(url: str) -> str:
    """The URL for a process that runs in another directory: an SQLite file's path is absolute."""
    relative = _RELATIVE_FILE.match(url)
    if relative is None:
        return url
    prefix, file = relative.groups()
    return f"{prefix}{Path(file).absolute()}{url[relative.end() :]}"


def connect(url: str, *, key: str | None = None) -> Backend:
    """The port at a URL: `sqlite:///FILE`, `postgresql://...`, `http(s)://...`, `http+unix://...`.

    `key` is a key or a session's token. A database without one is opened as its operator: whoever
    may open the file may do everything. Close the backend when done. Invalid for another scheme;
    Unauthenticated for a key that does not work; Unavailable when nothing answers. Over HTTP
    nothing is asked before the first verb, so these two are raised there.
    """
    scheme = url.partition(":")[0].partition("+")[0]
    if scheme in ("sqlite", "postgresql"):
        return _database(url, key)
    if scheme in ("http", "https"):
        return _remote(url, key)
    raise Invalid(
        f"A memstore URL begins sqlite:, postgresql:, http:, https: or http+unix:, not {scheme}:."
    )


def _database(url: str, key: str | None) -> Backend:
    """The service in this process, closed with the backend."""
    from memstore.service import Service

    service = Service(url)
    try:
        caller = service.operator() if key is None else service.authenticate(key)
    except BaseException:
        service.close()
        raise
    return service.backend_for(caller, on_close=service.close)


def _remote(url: str, key: str | None) -> Backend:
    """The port over HTTP; imports neither the service nor what it needs."""
    from memstore.client.backend import RemoteBackend

    return RemoteBackend(url, key=key or "")
