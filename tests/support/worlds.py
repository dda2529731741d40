"""The places the port is answered from. A conformance test knows only this page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from memstore.backend import Backend
from memstore.service import Service


class World(Protocol):
    """A fresh service with the admin key of its workspace `default`."""

    admin_secret: str

    def connect(self, secret: str) -> Backend:
        """The port for a key or a session's token."""
        ...

    def close(self) -> None:
        """Stop everything that was started."""
        ...


class LocalWorld:
    """The service in this process."""

    def __init__(self, path: Path, *, max_memories: int, max_bytes: int, heartbeat: float) -> None:
        self.service = Service(
            f"sqlite:///{path / 'memstore.db'}",
            max_memories=max_memories,
            max_bytes=max_bytes,
            heartbeat=heartbeat,
        )
        self.admin_secret = self.service.bootstrap() or ""

    def connect(self, secret: str) -> Backend:
        """The port for a key or a session's token."""
        return self.service.backend_for(self.service.authenticate(secret))

    def close(self) -> None:
        """Close the database."""
        self.service.close()


WORLDS: dict[str, Callable[..., World]] = {"local": LocalWorld}
"""Every backend the conformance suite runs on, by the name its tests show."""
