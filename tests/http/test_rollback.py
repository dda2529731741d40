"""Rollback and history over plain HTTP: shapes, statuses and types as a client meets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

import memstore
from memstore.backend import NotSupported
from memstore.model.rollback import RollbackTarget
from tests.support.serving import Served


@pytest.fixture
def base(make_store: Any) -> str:
    """A store with one memory, `/a`."""
    return f"/v1/memory_stores/{make_store(a='old')}"


def test_the_answer_of_a_rollback(http: httpx2.Client, base: str) -> None:
    """Every field is there, null where there is nothing to tell; a dry run has diffs instead."""
    (memory,) = http.get(f"{base}/memories").json()["data"]
    old = memory["memory_version_id"]
    new = http.post(f"{base}/memories/{memory['id']}", json={"content": "new"}).json()
    body = {"memory_version_id": old}
    trial = http.post(f"{base}/rollback", json={**body, "dry_run": True})
    assert trial.status_code == 200
    expected = {
        "memory_id": memory["id"],
        "path": "/a",
        "old_path": "/a",
        "operation": "modified",
        "version_id_before": new["memory_version_id"],
        "version_id_after": None,
        "outcome": "restored",
        "reason": None,
        "diff": trial.json()["changes"][0]["diff"],
        "diff_omitted": False,
    }
    assert trial.json() == {
        "type": "rollback",
        "memory_store_id": base.split("/")[3],
        "dry_run": True,
        "before": None,
        "changes": [expected],
    }
    assert "-new\n" in expected["diff"] and "+old\n" in expected["diff"]
    done = http.post(f"{base}/rollback", json=body).json()
    head = http.get(f"{base}/memories/{memory['id']}").json()
    assert done["changes"] == [
        {**expected, "diff": None, "version_id_after": head["memory_version_id"]}
    ]
    assert done["before"] == new["updated_at"] and head["content"] == "old"
    back = http.post(f"{base}/rollback", json={"to": done["before"]}).json()
    assert back["changes"][0]["outcome"] == "restored"
    assert http.get(f"{base}/memories/{memory['id']}").json()["content"] == "new"


def test_what_a_rollback_refuses(http: httpx2.Client, base: str) -> None:
    """Bodies that say nothing, too much or something unknown are 400; nothing is changed."""
    bodies: list[Any] = [
        {},
        {"to": "2026-01-01T00:00:00Z", "session_id": "sesn_01" + "1" * 22},
        {"to": "yesterday"},
        {"to": 5},
        {"session_id": "nope"},
        {"actor_id": ""},
        {"to": "2026-01-01T00:00:00Z", "path": "a//b"},
        {"to": "2026-01-01T00:00:00Z", "dry_run": "yes"},
        {"to": "2026-01-01T00:00:00Z", "force": True},
    ]
    for body in bodies:
        answer = http.post(f"{base}/rollback", json=body)
        assert (answer.status_code, answer.json()["error"]["type"]) == (
            400,
            "invalid_request_error",
        ), body
    unknown = {"memory_version_id": "memver_01" + "1" * 22}
    assert http.post(f"{base}/rollback", json=unknown).status_code == 404
    elsewhere = "/v1/memory_stores/memstore_01" + "1" * 22
    assert http.post(f"{elsewhere}/rollback", json={}).status_code == 404
    assert len(http.get(f"{base}/memory_versions").json()["data"]) == 1


def test_a_history_is_a_page_of_versions(http: httpx2.Client, base: str) -> None:
    """The objects are those of the listing of versions, and so are the filters and cursors."""
    (memory,) = http.get(f"{base}/memories").json()["data"]
    http.post(f"{base}/memories/{memory['id']}", json={"path": "/b"})
    listed = http.get(f"{base}/memory_versions").json()["data"]
    assert http.get(f"{base}/history?path=/a").json() == {"data": listed, "next_page": None}
    first = http.get(f"{base}/history?path=/a&limit=1").json()
    assert first["data"] == listed[:1]
    second = http.get(f"{base}/history?path=/a&limit=1&page={first['next_page']}").json()
    assert second == {"data": listed[1:], "next_page": None}
    only = http.get(f"{base}/history?path=/b&operation=created&view=full").json()["data"]
    assert [one["content"] for one in only] == ["old"]
    for query in ("", "?path=a", "?path=/a&operation=renamed", "?path=/a&page=nope"):
        assert http.get(f"{base}/history{query}").status_code == 400
    elsewhere = "/v1/memory_stores/memstore_01" + "1" * 22
    assert http.get(f"{elsewhere}/history?path=/a").status_code == 404
    assert http.get(f"{base}/memory_versions?path=/a").json()["data"] == listed


def test_they_are_extensions(tmp_path: Path) -> None:
    """A service with the hosted endpoints alone has none, and the client says so."""
    served = Served(tmp_path / "data", "--no-extensions")
    backend = memstore.connect(served.url, key=served.admin_secret)
    try:
        store = backend.create_store(name="n")
        with pytest.raises(NotSupported):
            backend.rollback(store.id, RollbackTarget(to=store.created_at))
        with pytest.raises(NotSupported):
            backend.list_history(store.id, "/a")
    finally:
        backend.close()
        assert served.stop() == 0
