"""Extensions that move many memories at once, or find one by its path."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from tests.support.waiting import until


def test_a_snapshot_is_every_memory_of_one_moment(http: httpx2.Client, make_store: Any) -> None:
    """First the feed's cursor, then each memory with its text in path order, last the count."""
    store_id = make_store(b="2", a="1", c="line\u2028\nend")
    answer = http.get(f"/v1/memory_stores/{store_id}/snapshot")
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    first, *memories, last = [json.loads(line) for line in answer.content.split(b"\n") if line]
    assert last == {"end": True, "count": 3}
    assert [m["path"] for m in memories] == ["/a", "/b", "/c"]
    assert [m["content"] for m in memories] == ["1", "2", "line\u2028\nend"]
    assert len(answer.text.splitlines()) == 5
    events = http.get(f"/v1/memory_stores/{store_id}/events", params={"after": first["cursor"]})
    assert events.json()["data"] == []
    assert http.get(f"/v1/memory_stores/{store_id}x/snapshot").status_code == 404


def test_a_snapshot_of_many_and_one_that_is_left(http: httpx2.Client, make_store: Any) -> None:
    """500 memories come whole; a reader that leaves midway hurts nobody after it."""
    store_id = make_store()
    text = "x" * 20_000
    changes = [{"type": "create", "path": f"/{n:03}", "content": text} for n in range(500)]
    made = http.post(f"/v1/memory_stores/{store_id}/batch", json={"changes": changes})
    assert made.status_code == 200
    path = f"/v1/memory_stores/{store_id}/snapshot"
    for _ in range(20):
        with http.stream("GET", path) as answer:
            assert next(answer.iter_bytes())
        later = make_store(a="new")
        memories = http.get(f"/v1/memory_stores/{later}/memories").json()["data"]
        assert [memory["path"] for memory in memories] == ["/a"]
    lines = http.get(path).content.splitlines()
    assert len(lines) == 502
    assert json.loads(lines[-1]) == {"end": True, "count": 500}


def test_a_batch_is_all_or_nothing(http: httpx2.Client, make_store: Any) -> None:
    """Changes play in order and answer one item each; a refusal undoes them all."""
    store_id = make_store(a="1", b="2")
    base = f"/v1/memory_stores/{store_id}"
    a, b = http.get(f"{base}/memories").json()["data"]
    stale = {"type": "content_sha256", "content_sha256": "0" * 64}
    changes = [
        {"type": "update", "memory_id": a["id"], "path": "/dir/a", "content": "one"},
        {"type": "create", "path": "/a", "content": "new"},
        {
            "type": "delete",
            "memory_id": b["id"],
            "expected_content_sha256": b["content_sha256"],
        },
    ]
    wrong = {"type": "update", "memory_id": a["id"], "content": "x", "precondition": stale}
    refused = http.post(f"{base}/batch", json={"changes": [*changes, wrong]})
    assert refused.status_code == 409
    assert refused.json()["error"]["type"] == "memory_precondition_failed_error"
    assert http.get(f"{base}/memories").json()["data"] == [a, b]
    done = http.post(f"{base}/batch", json={"changes": changes})
    data = done.json()["data"]
    assert [item and item["path"] for item in data] == ["/dir/a", "/a", None]
    assert data[0]["id"] == a["id"] and data[0]["content"] is None
    assert [m["path"] for m in http.get(f"{base}/memories").json()["data"]] == ["/a", "/dir/a"]
    assert http.post(f"{base}/batch", json={"changes": []}).json() == {"data": []}


def test_a_batch_may_be_large(http: httpx2.Client, make_store: Any) -> None:
    """A batch's body may have 16 MiB, more than other requests'; 1,001 changes are too many."""
    path = f"/v1/memory_stores/{make_store()}/batch"
    changes = [{"type": "create", "path": f"/{n}", "content": "x" * 100_000} for n in range(100)]
    assert http.post(path, json={"changes": changes}).status_code == 200
    too_big = http.post(path, content=b" " * (16 * 1_048_576 + 1))
    assert (too_big.status_code, too_big.json()["error"]["type"]) == (413, "request_too_large")
    many = [{"type": "create", "path": f"/m{n}", "content": ""} for n in range(1001)]
    assert http.post(path, json={"changes": many}).status_code == 400


def test_a_memory_is_found_by_its_path(http: httpx2.Client, make_store: Any) -> None:
    """The live memory at a path in either view; 404 for none, 400 for what is no path."""
    base = f"/v1/memory_stores/{make_store(a='text')}/memory_by_path"
    assert http.get(base, params={"path": "/a"}).json()["content"] == "text"
    assert http.get(base, params={"path": "/a", "view": "basic"}).json()["content"] is None
    for path, status in (("/b", 404), ("a", 400), ("/a/", 400)):
        assert http.get(base, params={"path": path}).status_code == status


def test_usage_counts_live_memories(http: httpx2.Client, make_store: Any) -> None:
    """Memories and bytes beside their caps."""
    store_id = make_store(a="12", b="345")
    usage = http.get(f"/v1/memory_stores/{store_id}/usage").json()
    assert (usage["memories"], usage["bytes"]) == (2, 5)
    assert (usage["max_memories"], usage["max_bytes"]) == (10_000, 104_857_600)


def test_patch_is_an_update(http: httpx2.Client, make_store: Any) -> None:
    """PATCH on a memory does what POST does."""
    base = f"/v1/memory_stores/{make_store(a='1')}/memories"
    memory = http.get(base).json()["data"][0]
    changed = http.patch(f"{base}/{memory['id']}?view=full", json={"content": "2"})
    assert changed.json()["content"] == "2"


def test_two_workspaces_do_not_see_each_other(
    http: httpx2.Client, served: Any, make_store: Any, make_key: Any
) -> None:
    """Stores, memories, versions, sessions and keys of another workspace are 404, never 403."""
    store_id = make_store(a="1")
    base = f"/v1/memory_stores/{store_id}"
    memory = http.get(f"{base}/memories").json()["data"][0]
    session = http.post("/v1/sessions", json={"agent": "a", "environment_id": "e"}).json()
    own = http.get("/v1/whoami").json()
    key = make_key(workspace="another", scopes=["admin"])
    assert key["workspace_id"] != own["workspace_id"]
    version = f"{base}/memory_versions/{memory['memory_version_id']}"
    with httpx2.Client(base_url=served.url, headers={"x-api-key": key["key"]}) as other:
        for method, path in (
            ("GET", base),
            ("POST", base),
            ("DELETE", base),
            ("POST", f"{base}/archive"),
            ("GET", f"{base}/memories"),
            ("POST", f"{base}/memories"),
            ("GET", f"{base}/memories/{memory['id']}"),
            ("DELETE", f"{base}/memories/{memory['id']}"),
            ("GET", version),
            ("POST", f"{version}/redact"),
            ("GET", f"{base}/events"),
            ("GET", f"{base}/snapshot"),
            ("GET", f"{base}/usage"),
            ("POST", f"{base}/batch"),
            ("GET", f"/v1/sessions/{session['id']}"),
            ("DELETE", f"/v1/sessions/{session['id']}"),
            ("POST", f"/v1/sessions/{session['id']}/tokens"),
            ("POST", f"/v1/api_keys/{own['actor']['api_key_id']}/revoke"),
        ):
            answer = other.request(method, path, json={} if method == "POST" else None)
            assert answer.status_code == 404, (method, path, answer.text)
        assert store_id not in other.get("/v1/memory_stores").text
        assert other.get("/v1/sessions").json()["data"] == []
    assert http.get(base).json()["archived_at"] is None


def test_keys_are_shown_once_and_revoked(
    http: httpx2.Client, served: Any, make_store: Any, make_key: Any
) -> None:
    """A key's secret comes with its creation only; scopes are enforced; revoked is 401."""
    store_id = make_store(a="1")
    key = make_key(name="reader", scopes=["read"])
    with httpx2.Client(base_url=served.url, headers={"x-api-key": key["key"]}) as reader:
        caller = reader.get("/v1/whoami").json()
        assert (caller["scopes"], caller["grants"]) == (["read"], None)
        base = f"/v1/memory_stores/{store_id}"
        assert reader.get(f"{base}/memories").status_code == 200
        body = {"path": "/b", "content": ""}
        for answer in (
            reader.post(f"{base}/memories", json=body),
            reader.post("/v1/api_keys", json={}),
            reader.get("/v1/api_keys"),
        ):
            assert answer.status_code == 403
            assert answer.json()["error"]["type"] == "permission_error"
        listed = http.get("/v1/api_keys", params={"limit": 1}).json()["data"][0]
        assert listed["id"] == key["id"] and "key" not in listed
        revoked = http.post(f"/v1/api_keys/{key['id']}/revoke").json()
        assert revoked["revoked_at"] is not None
        again = http.post(f"/v1/api_keys/{key['id']}/revoke", json={}).json()
        assert again["revoked_at"] == revoked["revoked_at"]
        until(lambda: reader.get("/v1/whoami").status_code == 401, "the revocation")


@pytest.mark.parametrize("scopes", [["root"], [], "read", [1]])
def test_unknown_scopes_are_refused(http: httpx2.Client, scopes: Any) -> None:
    """A key has some of the known scopes, at least one."""
    assert http.post("/v1/api_keys", json={"scopes": scopes}).status_code == 400
