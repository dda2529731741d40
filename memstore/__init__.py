"""Versioned memory for agents: as ordinary as a directory, as trustworthy as a database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memstore.urls import connect as connect

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`memstore.connect`, loaded when it is first used: importing memstore stays light."""
    if name == "connect":
        from memstore.urls import connect

        return connect
    raise AttributeError(f"module 'memstore' has no attribute {name!r}")
