"""Which refusal wins when several apply: the order of checks, on the wire."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

BOTH = {"anthropic-beta": "agent-memory-2026-07-22,managed-agents-2026-04-01"}
HUGE = b"x" * (1_048_576 + 1)
NOWHERE = "/v1/memory_stores/memstore_01none"
ALIEN = "mem_01111111111111111111111A"


def outcome(answer: httpx2.Response) -> tuple[int, str]:
    """Status and code of a refusal."""
    error = answer.json()["error"]
    return answer.status_code, error.get("details", {}).get("error_code", error["type"])


def test_the_credential_comes_first(served: Any) -> None:
    """Without a credential even an oversize body to an unknown path is 401."""
    answer = httpx2.post(f"{served.url}{NOWHERE}", content=HUGE, headers=BOTH)
    assert outcome(answer) == (401, "unauthenticated")
    assert httpx2.get(f"{served.url}/v1/nothing").status_code == 401


def test_then_size_then_headers_then_json(http: httpx2.Client) -> None:
    """413 before a bad header, that before bad JSON, that before a store that is not there."""
    path = f"{NOWHERE}/memories"
    assert outcome(http.post(path, content=HUGE, headers=BOTH)) == (413, "request_too_large")
    answer = http.post(path, content=b"{", headers=BOTH)
    assert outcome(answer) == (400, "invalid") and "anthropic-beta" in answer.text
    answer = http.post(path, content=b"{")
    assert outcome(answer) == (400, "invalid") and "JSON" in answer.text
    assert outcome(http.post(path, json={"nonsense": 1})) == (404, "not_found")


def test_size_counts_while_it_streams(http: httpx2.Client) -> None:
    """A body of unannounced length is cut off at the limit too; a small one is read."""

    def stream(count: int) -> Any:
        return (b" " * 65_536 for _ in range(count))

    path = f"{NOWHERE}/memories"
    assert outcome(http.post(path, content=stream(17)))[0] == 413
    assert outcome(http.post(path, content=stream(1)))[0] == 400
    made = http.post("/v1/memory_stores", content=iter([b'{"name":', b'"n"}']))
    assert made.status_code == 200


@pytest.mark.parametrize(
    ("method", "path", "options"),
    [
        ("POST", "/memories", {"json": {}}),
        ("POST", "/memories", {"json": {"path": "bad", "content": "x"}}),
        ("GET", "/memories?limit=none", {}),
        ("GET", "/memories?view=none", {}),
        ("GET", "/memories?depth=7", {}),
        ("GET", "/memories?page=bad", {}),
        ("GET", f"/memories/{ALIEN}?view=none", {}),
        ("POST", f"/memories/{ALIEN}", {"json": {"path": 5}}),
        ("DELETE", f"/memories/{ALIEN}?expected_content_sha256=short", {}),
        ("GET", "/memory_versions?created_at%5Bgte%5D=never", {}),
        ("GET", "/memory_versions?operation=none", {}),
        ("GET", "/events?after=none", {}),
        ("GET", "/events?after=-9", {}),
        ("GET", "/memory_by_path", {}),
        ("POST", "/batch", {"json": {"changes": 5}}),
        ("POST", "", {"json": {"name": 5}}),
    ],
)
def test_the_store_comes_before_the_arguments(
    http: httpx2.Client, make_store: Any, method: str, path: str, options: dict[str, Any]
) -> None:
    """What is 400 in a store is 404 where there is none."""
    assert outcome(http.request(method, f"{NOWHERE}{path}", **options)) == (404, "not_found")
    there = f"/v1/memory_stores/{make_store()}{path}"
    assert http.request(method, there, **options).status_code == 400


def test_archived_comes_before_the_memory(http: httpx2.Client, make_store: Any) -> None:
    """400 validation, 400 archived, 404 memory, 409 precondition, 409 path, in this order."""
    store_id = make_store(a="x", b="y")
    memories = f"/v1/memory_stores/{store_id}/memories"
    memory_id = http.get(memories).json()["data"][0]["id"]
    stale = {"type": "content_sha256", "content_sha256": "0" * 64}
    wrong = {"content": "z", "path": "/b/below", "precondition": stale}
    answer = http.post(f"{memories}/{memory_id}", json=wrong)
    assert outcome(answer) == (409, "precondition_failed")
    answer = http.post(f"{memories}/{memory_id}", json={"path": "/b/below"})
    assert outcome(answer) == (409, "path_conflict")
    assert outcome(http.post(f"{memories}/{ALIEN}", json=wrong)) == (404, "not_found")
    http.post(f"/v1/memory_stores/{store_id}/archive")
    assert outcome(http.post(f"{memories}/{ALIEN}", json=wrong)) == (400, "store_archived")
    assert outcome(http.post(f"{memories}/{ALIEN}", json={"path": "bad"}))[1] == "invalid_path"
    assert outcome(http.delete(f"{memories}/{ALIEN}")) == (404, "not_found")


@pytest.mark.parametrize(
    "id", ["x", "mem_01", "memver_01111111111111111111111A", "%00", "..%2f", "ä"]
)
def test_a_strange_id_is_not_there(http: httpx2.Client, make_store: Any, id: str) -> None:
    """Malformed ids and ids of another kind are 404 everywhere."""
    store_id = make_store()
    for path in (f"/v1/memory_stores/{id}", f"/v1/memory_stores/{store_id}/memories/{id}"):
        assert http.get(path).status_code == 404
    assert http.get(f"/v1/memory_stores/{store_id}/memory_versions/{id}").status_code == 404
    assert http.get(f"/v1/sessions/{id}").status_code == 404


def test_a_memory_of_another_store_comes_as_absent(http: httpx2.Client, make_store: Any) -> None:
    """A version's or memory's id works in its own store only."""
    one, other = make_store(a="x"), make_store()
    memory = http.get(f"/v1/memory_stores/{one}/memories").json()["data"][0]
    base = f"/v1/memory_stores/{other}"
    assert http.get(f"{base}/memories/{memory['id']}").status_code == 404
    version = f"{base}/memory_versions/{memory['memory_version_id']}"
    assert http.get(version).status_code == 404
    assert http.post(f"{version}/redact").status_code == 404
