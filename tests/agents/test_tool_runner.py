"""The memory tool inside the SDK's own tool loop, against a scripted Messages endpoint."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anthropic
import pytest

import memstore
from memstore.agents import AsyncMemoryTool, MemoryTool
from memstore.backend import Backend

CALLS: list[dict[str, Any]] = [
    {"command": "create", "path": "/memories/user.md", "file_text": "Likes coffee.\n"},
    {"command": "create", "path": "/memories/user.md", "file_text": "Likes tea.\n"},
    {"command": "view", "path": "/memories/user.md"},
]
ANSWERS = [
    (False, "File created successfully at: /memories/user.md"),
    (True, "File /memories/user.md already exists"),
    (
        False,
        "Here's the content of /memories/user.md with line numbers:\n"
        "     1\tLikes coffee.\n     2\t",
    ),
]


class Script(ThreadingHTTPServer):
    """Answers each request with the next tool call, and with a closing text after the last."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Scripted)
        self.requests: list[dict[str, Any]] = []

    def next_message(self, request: dict[str, Any]) -> dict[str, Any]:
        """The scripted answer to a request."""
        turn = len(self.requests)
        self.requests.append(request)
        message: dict[str, Any] = {
            "id": f"msg_{turn}",
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "content": [{"type": "text", "text": "Noted."}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        if turn < len(CALLS):
            use = {"type": "tool_use", "id": f"toolu_{turn}", "name": "memory"}
            message["content"] = [{**use, "input": CALLS[turn]}]
            message["stop_reason"] = "tool_use"
        return message

    def results(self) -> list[tuple[bool, str]]:
        """Each tool result that was sent back: whether it is an error, and its text."""
        sent = [request["messages"][-1]["content"] for request in self.requests]
        found = [block for content in sent if isinstance(content, list) for block in content]
        return [
            (bool(block.get("is_error")), _text(block["content"]))
            for block in found
            if block["type"] == "tool_result"
        ]


class Scripted(BaseHTTPRequestHandler):
    """One request to the script."""

    server: Script

    def do_POST(self) -> None:
        """Answer a Messages request."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = json.dumps(self.server.next_message(body)).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


@pytest.fixture
def script() -> Iterator[Script]:
    """A scripted endpoint on a free port."""
    server = Script()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Backend]:
    """The port on a fresh database."""
    connected = memstore.connect(f"sqlite:///{tmp_path}/store.db")
    yield connected
    connected.close()


def conversation(script: Script) -> tuple[dict[str, Any], dict[str, Any]]:
    """How to reach the endpoint, and the first message."""
    client = {
        "base_url": f"http://127.0.0.1:{script.server_port}",
        "api_key": "none",
        "max_retries": 0,
    }
    message = {
        "model": "scripted-model",
        "max_tokens": 100,
        "messages": [{"role": "user", "content": "Remember that I like coffee."}],
    }
    return client, message


def test_a_model_remembers_through_the_tool_runner(script: Script, backend: Backend) -> None:
    """The SDK's tool loop saves, refuses and shows memories of the store."""
    store = backend.create_store(name="memories").id
    client, message = conversation(script)
    with anthropic.Anthropic(**client) as sdk:
        runner = sdk.beta.messages.tool_runner(tools=[MemoryTool(backend, store)], **message)
        final = runner.until_done()
    assert final.stop_reason == "end_turn"
    assert script.requests[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
    assert script.results() == ANSWERS
    assert backend.get_memory_at(store, "/user.md").content == "Likes coffee.\n"


def test_a_model_remembers_through_the_async_tool_runner(script: Script, backend: Backend) -> None:
    """The async tool loop gets the same answers."""
    store = backend.create_store(name="memories").id
    client, message = conversation(script)

    async def talk() -> None:
        async with anthropic.AsyncAnthropic(**client) as sdk:
            tools = [AsyncMemoryTool(backend, store)]
            await sdk.beta.messages.tool_runner(tools=tools, **message).until_done()

    asyncio.run(talk())
    assert script.results() == ANSWERS
