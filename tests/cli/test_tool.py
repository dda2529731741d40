"""`memstore tool`: the memory tool's commands on the command line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.commands import Command, Ran


def call(memstore: Command, store: str, command: Any) -> Ran:
    """Run one command of the tool."""
    return memstore.run("tool", store, stdin=json.dumps(command))


def test_a_command_answers_on_standard_output(memstore: Command, store: str) -> None:
    """What is created can be viewed, with the answers of the SDK's own tool."""
    path = "/memories/user.md"
    made = call(memstore, store, {"command": "create", "path": path, "file_text": "Likes tea."})
    assert (made.status, made.out) == (0, f"File created successfully at: {path}\n")
    seen = call(memstore, store, {"command": "view", "path": path})
    assert seen.out == f"Here's the content of {path} with line numbers:\n     1\tLikes tea.\n"
    assert memstore.good("cat", store, "user.md").out == "Likes tea."


def test_what_the_tool_refuses_is_an_error(memstore: Command, store: str) -> None:
    """The tool's own words on standard error, and exit status 1."""
    refused = call(memstore, store, {"command": "view", "path": "/memories/none"})
    assert refused.status == 1 and not refused.out
    assert refused.err == "The path /memories/none does not exist. Please provide a valid path.\n"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"command": "fly"}',
        '{"command": "view"}',
        '{"command": 1}',
        '{"command": "insert", "path": "/memories/a", "insert_line": "1", "insert_text": ""}',
    ],
)
def test_what_is_no_command_is_refused(memstore: Command, store: str, text: str) -> None:
    """One sentence that says what a command needs, and exit status 7."""
    ran = memstore.run("tool", store, stdin=text)
    assert ran.status == 7 and ran.sentence
