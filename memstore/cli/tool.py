"""`tool`: one command of the memory tool (`memory_20250818`), as a model gives it."""

from __future__ import annotations

import json
import sys
from typing import Any

import typer

from memstore.cli import names, output
from memstore.cli.exits import UNEXPECTED
from memstore.cli.options import StoreName
from memstore.cli.service import opened
from memstore.model.errors import Invalid

INPUTS: dict[str, dict[str, type]] = {
    "view": {"path": str},
    "create": {"path": str, "file_text": str},
    "str_replace": {"path": str, "old_str": str, "new_str": str},
    "insert": {"path": str, "insert_line": int, "insert_text": str},
    "delete": {"path": str},
    "rename": {"old_path": str, "new_path": str},
}
"""What each command needs (the SDK's `beta_memory_tool_20250818_*_command.py`)."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(tool)


def tool(store: StoreName) -> None:
    """Run one memory-tool command, a JSON object on standard input; the result is printed.

    What the tool refuses goes to standard error, word for word, with exit status 1.
    """
    command = _command(sys.stdin.buffer.read())
    from anthropic.lib.tools import ToolError

    from memstore.agents import MemoryTool

    with opened() as backend:
        try:
            result = MemoryTool(backend, names.store_id(backend, store)).call(command)
        except ToolError as refusal:
            sys.stderr.buffer.write(f"{_shown(str(refusal))}\n".encode())
            raise typer.Exit(UNEXPECTED) from None
    output.content(f"{result}\n")


def _command(text: bytes) -> dict[str, Any]:
    """The command on standard input; Invalid says what it lacks."""
    try:
        command = json.loads(text)
    except (ValueError, RecursionError):
        raise Invalid("Standard input is not JSON: give one command as an object.") from None
    named = command.get("command") if isinstance(command, dict) else None
    needed = INPUTS.get(named) if isinstance(named, str) else None
    if needed is None:
        raise Invalid(f"A command is an object whose 'command' is one of {', '.join(INPUTS)}.")
    for name, kind in needed.items():
        if type(command.get(name)) is not kind:
            raise Invalid(f"'{command['command']}' needs '{name}', {_KINDS[kind]}.")
    found: dict[str, Any] = command
    return found


_KINDS = {str: "a text", int: "a whole number"}


def _shown(text: str) -> str:
    return output.visible(text, keep="\n\t") if sys.stderr.isatty() else text
