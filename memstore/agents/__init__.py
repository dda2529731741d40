"""Doors for agents: the memory tool over any backend. Loaded when used; the SDK is heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memstore.agents.memory_tool import AsyncMemoryTool as AsyncMemoryTool
    from memstore.agents.memory_tool import MemoryTool as MemoryTool

__all__ = ["AsyncMemoryTool", "MemoryTool"]


def __getattr__(name: str) -> Any:
    """The exported names, each loaded on first use."""
    if name in __all__:
        from memstore.agents import memory_tool

        return getattr(memory_tool, name)
    raise AttributeError(f"module 'memstore.agents' has no attribute {name!r}")
