"""What runs on this machine, and whether it answers."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from memstore.cli.local.place import Place
from memstore.cli.local.points import mounted
from memstore.cli.service import api_key, base_url
from memstore.client import wire
from memstore.client.transport import Transport
from memstore.model.errors import MemstoreError
from memstore.settings import Settings

PATIENCE_S = 3.0
"""How long a service or a mount may take to answer before it counts as not answering."""


def look(own: Settings) -> dict[str, Any]:
    """Service, version, database and mounts."""
    place = Place(own.data_dir)
    pid = place.holder()
    state = place.read_state() if pid is not None else {}
    return {
        "type": "status",
        "pid": pid,
        "data_dir": str(own.data_dir),
        "database": _without_password(own.database_url),
        "service": {**_service(own), "urls": state.get("urls", [])},
        "mounts": [_mount(mount) for mount in state.get("mounts", [])],
        "problem": state.get("problem"),
    }


def _service(own: Settings) -> dict[str, Any]:
    url = base_url(own)
    found: dict[str, Any] = {"url": url, "answers": False, "version": None, "problem": None}
    try:
        transport = Transport(url, key=api_key(own, url), timeout=PATIENCE_S, patience=0.0)
    except MemstoreError as error:
        return {**found, "problem": error.message}
    try:
        answer = transport.send("GET", "/readyz")
        if not answer.ok:
            return {**found, "problem": answer.refusal().message}
        described = wire.loads(transport.send("GET", "/openapi.json").body)
        return {**found, "answers": True, "version": described.get("info", {}).get("version")}
    except MemstoreError as error:
        return {**found, "problem": error.message}
    finally:
        transport.close()


def _mount(mount: dict[str, Any]) -> dict[str, Any]:
    problem = mount.get("problem")
    if problem is None:
        problem = _why_silent(Path(mount["path"]))
    return {
        "store_id": mount["store_id"],
        "name": mount["name"],
        "path": mount["path"],
        "answers": problem is None,
        "problem": problem,
    }


def _why_silent(path: Path) -> str | None:
    """None when the mount lists its root in time. Asked in a thread: a dead mount may not answer."""
    if not mounted(path):
        return "nothing is mounted there"
    outcome: list[str | None] = []

    def ask() -> None:
        try:
            list(path.iterdir())
        except OSError as error:
            outcome.append(error.strerror)
        else:
            outcome.append(None)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    return outcome[0] if outcome else f"no answer within {PATIENCE_S:g} s"


def _without_password(url: str) -> str:
    """A database URL as it may be shown."""
    scheme, mark, rest = url.partition("://")
    user, at, place = rest.rpartition("@")
    return f"{scheme}{mark}{user.partition(':')[0]}{at}{place}" if at else url
