"""The change feed over HTTP: pages, streams, resumption, and how streams end."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from tests.support.serving import Served
from tests.support.waiting import until


class Reader:
    """A stream of server-sent events, read in a thread into lists."""

    def __init__(self, answer: httpx2.Response) -> None:
        self.events: list[dict[str, Any]] = []
        self.comments = 0
        self.ended = threading.Event()
        self._answer = answer
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        fields: dict[str, str] = {}
        try:
            for line in self._answer.iter_lines():
                name, _, value = line.partition(":")
                if line.startswith(":"):
                    self.comments += 1
                elif line:
                    fields[name] = value.strip()
                elif fields:
                    if "data" in fields:
                        self.events.append({**fields, "data": json.loads(fields["data"])})
                    fields = {}
        except (httpx2.HTTPError, httpx2.StreamError):
            pass
        finally:
            self.ended.set()

    def wait_for(self, count: int) -> list[dict[str, Any]]:
        """The events, once there are that many."""
        until(lambda: len(self.events) >= count, f"{count} events")
        return self.events

    def join(self) -> None:
        """Wait for the reading thread."""
        self._thread.join(20)
        assert not self._thread.is_alive()


@contextmanager
def stream(http: httpx2.Client, store_id: str, query: str = "", **headers: str) -> Iterator[Reader]:
    """A live stream of a store's events."""
    with http.stream(
        "GET",
        f"/v1/memory_stores/{store_id}/events?heartbeat=0.1&{query}",
        headers={"accept": "text/event-stream", **headers},
    ) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        reader = Reader(answer)
        until(lambda: reader.comments, "the stream's beginning")
        yield reader
    reader.join()


def write(http: httpx2.Client, store_id: str, path: str, content: str = "x") -> dict[str, Any]:
    """A new memory."""
    body = {"path": path, "content": content}
    answer = http.post(f"/v1/memory_stores/{store_id}/memories", json=body)
    assert answer.status_code == 200
    made: dict[str, Any] = answer.json()
    return made


def test_pages_follow_the_cursor(http: httpx2.Client, make_store: Any) -> None:
    """Pages are oldest first, say whether there is more, and continue at their cursor."""
    store_id = make_store(a="1", b="2", c="3")
    url = f"/v1/memory_stores/{store_id}/events"
    first = http.get(url, params={"limit": 2, "view": "full"}).json()
    assert [e["path"] for e in first["data"]] == ["/a", "/b"]
    assert [e["content"] for e in first["data"]] == ["1", "2"]
    assert {e["kind"] for e in first["data"]} == {"memory.created"} and first["more"] is True
    rest = http.get(url, params={"after": first["cursor"]}).json()
    assert [(e["path"], e["content"]) for e in rest["data"]] == [("/c", None)]
    assert rest["more"] is False
    assert http.get(url, params={"after": -1}).json() == {
        "data": [], "cursor": rest["cursor"], "more": False,
    }  # fmt: skip
    for bad in ({"limit": 0}, {"limit": 1001}, {"after": "x"}, {"heartbeat": 16}, {"heartbeat": 0}):
        assert http.get(url, params=bad).status_code == 400


def test_a_stream_shows_each_change_once(http: httpx2.Client, make_store: Any) -> None:
    """Past and new events come in order, with id, kind and the page's object as data."""
    store_id = make_store(a="1")
    with stream(http, store_id, "view=full") as reader:
        reader.wait_for(1)
        memory = write(http, store_id, "/b", "line\u2028\u0085\nend")
        base = f"/v1/memory_stores/{store_id}/memories/{memory['id']}"
        http.post(base, json={"path": "/c"})
        http.delete(base)
        events = reader.wait_for(4)
    kinds = ["memory.created", "memory.created", "memory.modified", "memory.deleted"]
    assert [e["event"] for e in events] == kinds
    assert [e["data"]["path"] for e in events] == ["/a", "/b", "/c", "/c"]
    assert events[1]["data"]["content"] == "line\u2028\u0085\nend"
    assert [int(e["id"]) for e in events] == [e["data"]["seq"] for e in events]
    page = http.get(f"/v1/memory_stores/{store_id}/events?view=full").json()
    assert [e["data"] for e in events] == page["data"]


def test_a_stream_resumes_where_it_was_cut(http: httpx2.Client, make_store: Any) -> None:
    """`Last-Event-ID` wins over `after`, and nothing is missed or repeated."""
    store_id = make_store(a="1", b="2", c="3")
    with stream(http, store_id) as reader:
        seen = reader.wait_for(3)
    write(http, store_id, "/d")
    with stream(http, store_id, "after=0", **{"last-event-id": seen[1]["id"]}) as reader:
        assert [e["data"]["path"] for e in reader.wait_for(2)] == ["/c", "/d"]
    url = f"/v1/memory_stores/{store_id}/events"
    headers = {"accept": "text/event-stream", "last-event-id": "nonsense"}
    assert http.get(url, headers=headers).status_code == 400


def test_a_stream_from_now_on(http: httpx2.Client, make_store: Any) -> None:
    """`after=-1` shows only what happens afterwards; heartbeats come when nothing does."""
    store_id = make_store(a="1")
    with stream(http, store_id, "after=-1") as reader:
        until(lambda: reader.comments >= 3, "heartbeats")
        assert reader.events == []
        write(http, store_id, "/new")
        assert [e["data"]["path"] for e in reader.wait_for(1)] == ["/new"]


def test_a_stream_ends_with_its_store(http: httpx2.Client, make_store: Any) -> None:
    """The deletion's event comes last, then the stream ends; a new one is 404."""
    store_id = make_store()
    with stream(http, store_id) as reader:
        assert http.delete(f"/v1/memory_stores/{store_id}").status_code == 200
        assert reader.ended.wait(20)
        assert [e["event"] for e in reader.events] == ["store.deleted"]
    url = f"/v1/memory_stores/{store_id}/events"
    assert http.get(url, headers={"accept": "text/event-stream"}).status_code == 404


def test_a_redacted_version_is_not_replayed(http: httpx2.Client, make_store: Any) -> None:
    """A feed read after a redaction tells nothing that was destroyed."""
    store_id = make_store(a="my-secret")
    memories = f"/v1/memory_stores/{store_id}/memories"
    memory = http.get(memories).json()["data"][0]
    http.post(f"{memories}/{memory['id']}", json={"content": "clean"})
    version = memory["memory_version_id"]
    http.post(f"/v1/memory_stores/{store_id}/memory_versions/{version}/redact")
    page = http.get(f"/v1/memory_stores/{store_id}/events?view=full")
    assert "my-secret" not in page.text
    assert [e["kind"] for e in page.json()["data"]][-1] == "version.redacted"


@pytest.mark.parametrize("kind", ["key", "session"])
def test_a_revoked_credential_ends_its_stream(
    http: httpx2.Client, served: Served, make_store: Any, make_key: Any, kind: str
) -> None:
    """The stream says why and ends; others go on."""
    store_id = make_store()
    if kind == "key":
        key = make_key(scopes=["read"])
        secret, end = key["key"], f"/v1/api_keys/{key['id']}/revoke"
    else:
        resources = [{"type": "memory_store", "memory_store_id": store_id}]
        body = {"agent": "a", "environment_id": "e", "resources": resources}
        session_id = http.post("/v1/sessions", json=body).json()["id"]
        secret = http.post(f"/v1/sessions/{session_id}/tokens").json()["token"]
        end = f"/v1/sessions/{session_id}/archive"
    own = httpx2.Client(base_url=served.url, headers={"authorization": f"Bearer {secret}"})
    with own, stream(own, store_id) as mine, stream(http, store_id) as other:
        assert http.post(end).status_code == 200
        assert mine.ended.wait(20)
        assert mine.events[-1]["event"] == "error"
        assert mine.events[-1]["data"]["error"]["type"] == "authentication_error"
        write(http, store_id, "/after")
        other.wait_for(1)
        assert own.get(f"/v1/memory_stores/{store_id}").status_code == 401


def test_many_idle_streams_cost_no_threads(
    http: httpx2.Client, served: Served, make_store: Any, loop: Any
) -> None:
    """200 open streams add no thread to the service; each hears of a change, and all end."""
    store_id = make_store()
    url = f"{served.url}/v1/memory_stores/{store_id}/events?after=-1"
    headers = {"accept": "text/event-stream", "x-api-key": served.admin_secret}

    def threads() -> int:
        with open(f"/proc/{served.process.pid}/status") as status:
            return int(next(line for line in status if line.startswith("Threads:")).split()[1])

    async def listen() -> list[str]:
        import asyncio

        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
        async with httpx2.AsyncClient(headers=headers, limits=limits, timeout=60) as client:
            ready = asyncio.Semaphore(0)

            async def one() -> str:
                async with client.stream("GET", url) as answer:
                    lines = answer.aiter_lines()
                    await anext(lines)
                    ready.release()
                    async for line in lines:
                        if line.startswith("data:"):
                            return str(json.loads(line[5:])["path"])
                return ""

            tasks = [asyncio.create_task(one()) for _ in range(200)]
            for _ in tasks:
                await ready.acquire()
            assert threads() < 80
            await client.post(
                f"{served.url}/v1/memory_stores/{store_id}/memories",
                json={"path": "/news", "content": ""},
            )
            return await asyncio.gather(*tasks)

    assert loop.run(listen()) == ["/news"] * 200
