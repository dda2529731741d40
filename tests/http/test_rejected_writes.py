"""Rejected writes over plain HTTP: shapes, statuses and types as a client meets them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import httpx2
import pytest

import memstore
from memstore.backend import NotSupported
from tests.support.serving import Served


def digest(text: str) -> str:
    """The hash of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.fixture
def base(make_store: Any) -> str:
    """The rejected writes of a store with one memory, `/a`."""
    return f"/v1/memory_stores/{make_store(a='winner')}/rejected_writes"


def test_the_object_as_it_is_recorded_read_and_listed(http: httpx2.Client, base: str) -> None:
    """Every field is there in every answer, null where there is nothing to tell."""
    body = {"path": "/a", "content": "lost", "base_content_sha256": digest("base")}
    answer = http.post(base, json=body)
    assert answer.status_code == 200
    made = answer.json()
    actor = http.get("/v1/whoami").json()["actor"]
    assert made == {
        "type": "rejected_write",
        "id": made["id"],
        "memory_store_id": base.split("/")[3],
        "seq": made["seq"],
        "state": "open",
        "reason": "conflict",
        "memory_id": None,
        "path": "/a",
        "base_content_sha256": digest("base"),
        "content": "lost",
        "content_size_bytes": 4,
        "content_sha256": digest("lost"),
        "memory_version_id": None,
        "created_at": made["created_at"],
        "created_by": actor,
        "resolved_at": None,
        "resolved_by": None,
    }
    assert made["id"].startswith("rejw_01") and made["created_at"].endswith("Z")
    basic = {**made, "content": None}
    assert http.get(f"{base}/{made['id']}").json() == made
    assert http.get(f"{base}/{made['id']}?view=basic").json() == basic
    assert http.get(base).json() == {"data": [basic], "next_page": None}
    assert http.get(f"{base}?state=applied").json()["data"] == []


def test_applying_and_dismissing(http: httpx2.Client, base: str) -> None:
    """A body with a precondition is taken, and none; a stale one is 409 and changes nothing."""
    memories = base.replace("rejected_writes", "memories")
    one, two = (http.post(base, json={"path": "/a", "content": c}).json()["id"] for c in "12")
    stale = {"precondition": {"type": "content_sha256", "content_sha256": digest("x")}}
    refused = http.post(f"{base}/{one}/apply", json=stale)
    assert refused.status_code == 409
    assert refused.json()["error"]["type"] == "memory_precondition_failed_error"
    fresh = {"precondition": {"type": "content_sha256", "content_sha256": digest("winner")}}
    applied = http.post(f"{base}/{one}/apply", json=fresh).json()
    (memory,) = http.get(memories, params={"view": "full"}).json()["data"]
    assert memory["content"] == "1"
    assert applied["memory_version_id"] == memory["memory_version_id"]
    dismissed = http.post(f"{base}/{two}/dismiss").json()
    assert (dismissed["state"], dismissed["content"], dismissed["path"]) == (
        "dismissed",
        None,
        None,
    )
    again = http.post(f"{base}/{two}/apply", json={})
    assert (again.status_code, again.json()["error"]["type"]) == (409, "conflict_error")
    assert http.post(f"{base}/{one}/dismiss").status_code == 409


@pytest.mark.parametrize(
    "body",
    [
        {"path": "/a"},
        {"content": "x"},
        {"path": "a", "content": "x"},
        {"path": "/a", "content": None},
        {"path": "/a", "content": "x", "base_content_sha256": "short"},
        {"path": "/a", "content": "x", "reason": "because"},
        {"path": "/a", "content": "x", "author": "me"},
        {"path": "/a", "content": "x", "memory_id": "mem"},
    ],
    ids=str,
)
def test_a_wrong_body_is_400(http: httpx2.Client, base: str, body: dict[str, Any]) -> None:
    """Missing, unknown and impossible fields are refused, and nothing is kept."""
    answer = http.post(base, json=body)
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"
    assert http.get(base).json()["data"] == []


def test_what_is_not_there_is_404(http: httpx2.Client, base: str) -> None:
    """An unknown id, whatever its shape, and an unknown store."""
    for id in ("rejw_01" + "1" * 22, "x", "memver_01" + "1" * 22):
        assert http.get(f"{base}/{id}").status_code == 404
        assert http.post(f"{base}/{id}/apply").status_code == 404
        assert http.post(f"{base}/{id}/dismiss").status_code == 404
    elsewhere = "/v1/memory_stores/memstore_01" + "1" * 22 + "/rejected_writes"
    assert http.get(elsewhere).status_code == 404
    assert http.post(elsewhere, json={"path": "bad"}).status_code == 404
    assert http.get(f"{base}?state=lost").status_code == 400


def test_they_are_an_extension(tmp_path: Path) -> None:
    """A service with the hosted endpoints alone has none, and the client says so."""
    served = Served(tmp_path / "data", "--no-extensions")
    backend = memstore.connect(served.url, key=served.admin_secret)
    try:
        store = backend.create_store(name="n")
        with pytest.raises(NotSupported):
            backend.record_rejected_write(store.id, path="/a", content="x")
        with pytest.raises(NotSupported):
            backend.list_rejected_writes(store.id)
    finally:
        backend.close()
        assert served.stop() == 0
