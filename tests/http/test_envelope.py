"""What every answer has in common."""

from __future__ import annotations

import json
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.support.serving import Served

DEEP = "[" * 100_000
NESTED = '{"a":' * 500 + "1" + "}" * 500
HOSTILE: list[bytes] = [
    b"", b"null", b"[]", b'""', b"0", b"{", b"\xff\xfe", b"\x00", DEEP.encode(), NESTED.encode(),
    b'{"name": NaN}', b'{"name": 1e999}', b'{"name": ' + b"9" * 10_000 + b"}",
    b'{"name": "\\ud800"}', b'{"name": "\xed\xa0\x80"}', b'{"name": "a", "name": ["b"]}',
    b'{"name": "n", "metadata": {"a": 1}}', b'{"name": "n", "metadata": []}',
    b'{"name": "n", "metadata": {"a": null}}', b'{"name": "n", "description": null}',
    b'{"name": true}', b'{"name": {"$gt": ""}}', b'{"name": "a\\u0000"}',
    b'{"name": "n", "metadata": {"\\u0000": "\\u0000"}}', b'{"__proto__": {}}',
    b'{"path": "/a", "content": null}', b'{"path": "/a", "content": "\\u0000"}',
    b'{"path": "/a", "content": "\\udc00"}', b'{"path": "/\\ud83d", "content": ""}',
    b'{"path": ["/a"], "content": ""}', b'{"path": "/a", "content": 5}',
    b'{"content": "x", "precondition": {}}',
    b'{"content": "x", "precondition": {"type": "content_sha256"}}',
    b'{"content": "x", "precondition": {"type": "content_sha256", "content_sha256": "A"}}',
    b'{"content": "x", "precondition": {"type": "other", "content_sha256": 1}}',
    b'{"content": "x", "precondition": "yes"}',
    b'{"changes": [{}]}', b'{"changes": [{"type": "create"}]}', b'{"changes": [[]]}',
    b'{"changes": [{"type": ["create"]}]}', b'{"changes": [{"type": "explode"}]}',
    b'{"changes": [{"type": "delete", "memory_id": 5}]}',
    b'{"agent": 1e400, "environment_id": "e"}', b'{"agent": {"id": []}, "environment_id": "e"}',
    b'{"agent": {"id": "a", "version": -1}, "environment_id": "e"}',
    b'{"agent": {"id": "a", "version": 18446744073709551615}, "environment_id": "e"}',
    b'{"agent": "a", "environment_id": "\\u0000"}',
    b'{"agent": "a", "environment_id": "e", "resources": [5]}',
    b'{"agent": "a", "environment_id": "e", "resources": [{"type": {}}]}',
    b'{"agent": "a", "environment_id": "e", "vault_ids": [[]]}',
    b'{"agent": "\\u0000", "environment_id": "e"}',
    b'{"scopes": ["root"]}', b'{"scopes": []}', b'{"workspace": "\\u0000"}', b'{"name": []}',
]  # fmt: skip
QUERIES = [
    "limit=", "limit=1e3", "limit=" + "9" * 5000, "limit=%00", "limit=-0", "page=", "page=page_",
    "page=page_%00", "page=page_bnVsbA", "page=" + "A" * 5000, "page=page_W10", "depth=1.5",
    "view=", "view=full&view=basic", "include_archived=maybe", "path_prefix=%ff/",
    "path_prefix=/%00/", "path_prefix=" + "/a" * 600 + "/", "created_at[gte]=0",
    "created_at[gte]=2026-13-01T00:00:00Z", "created_at[gte]=0001-01-01T00:00:00%2B23:59",
    "created_at[lte]=9999-12-31T23:59:59-23:59", "created_at[gte]=2026-01-01T00:00:00",
    "after=9223372036854775808", "after=-1", "after=%F0%9F%A6%8A", "heartbeat=nan",
    "memory_id=%00", "session_id=%ff", "api_key_id=" + "x" * 5000, "operation=%00",
    "expected_content_sha256=%00", "path=/%00", "path=%ff", "statuses[]=none", "agent_version=x",
]  # fmt: skip


def is_error(answer: httpx2.Response) -> bool:
    """Whether an answer is an error in the API's envelope, its request id in both places."""
    body = answer.json()
    return (
        body["type"] == "error"
        and isinstance(body["error"]["type"], str)
        and isinstance(body["error"]["message"], str)
        and body["request_id"] == answer.headers["request-id"]
        and answer.headers["content-type"] == "application/json"
    )


def targets(store_id: str, memory_id: str) -> list[str]:
    """Every path that takes a body."""
    base = f"/v1/memory_stores/{store_id}"
    return [
        "/v1/memory_stores", base, f"{base}/archive-not", f"{base}/memories",
        f"{base}/memories/{memory_id}", f"{base}/batch", "/v1/sessions", "/v1/api_keys",
        f"{base}/memory_versions/memver_x/redact", "/v1/sessions/sesn_x/tokens",
    ]  # fmt: skip


def test_no_body_makes_it_fall_over(http: httpx2.Client, make_store: Any) -> None:
    """Whatever is sent to whatever path: an answer below 500, errors in the envelope."""
    store_id = make_store(a="x")
    memory_id = http.get(f"/v1/memory_stores/{store_id}/memories").json()["data"][0]["id"]
    jobs = [(path, body) for path in targets(store_id, memory_id) for body in HOSTILE]

    def send(job: tuple[str, bytes]) -> None:
        answer = http.post(job[0], content=job[1])
        assert answer.status_code < 500, job
        assert answer.status_code == 200 or is_error(answer), job

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(send, jobs))
    assert len(http.get(f"/v1/memory_stores/{store_id}/memories").json()["data"]) == 1


def test_no_query_makes_it_fall_over(http: httpx2.Client, make_store: Any) -> None:
    """Whatever parameters are given to whatever listing: an answer below 500."""
    base = f"/v1/memory_stores/{make_store(a='x')}"
    paths = [
        "/v1/memory_stores", f"{base}/memories", f"{base}/memory_versions", f"{base}/events",
        f"{base}/memory_by_path", "/v1/sessions", "/v1/api_keys", f"{base}/memories/mem_x",
    ]  # fmt: skip
    for path in paths:
        for query in QUERIES:
            answer = http.get(f"{path}?{query}")
            assert answer.status_code < 500, (path, query)
            assert answer.status_code == 200 or is_error(answer), (path, query)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("GET", "/", 404),
        ("PUT", "/v1/memory_stores", 405),
        ("DELETE", "/v1/whoami", 405),
        ("GET", "/v1/memory_stores/", 404),
        ("POST", "/livez", 405),
    ],
)
def test_unknown_paths_and_methods(
    http: httpx2.Client, method: str, path: str, status: int
) -> None:
    """They are errors in the envelope like all others."""
    answer = http.request(method, path)
    assert answer.status_code == status and is_error(answer)


def test_every_answer_names_its_request(http: httpx2.Client) -> None:
    """Each request gets an id of its own, successes too."""
    ids = {http.get(path).headers["request-id"] for path in ("/livez", "/v1/whoami", "/x")}
    assert len(ids) == 3 and all(id.startswith("req_") for id in ids)


def test_no_cache_keeps_an_answer(http: httpx2.Client, make_store: Any) -> None:
    """Every answer says no-store once, so that what is redacted later is in no cache on the way."""
    store = f"/v1/memory_stores/{make_store()}"
    made = http.post(f"{store}/memories", json={"path": "/a", "content": "text"})
    version = f"{store}/memory_versions/{made.json()['memory_version_id']}"
    for answer in (made, http.get(version), http.get(f"{store}/events"), http.get("/x")):
        assert answer.headers.get_list("cache-control") == ["no-store"]


def test_errors_never_repeat_what_was_sent(http: httpx2.Client, make_store: Any) -> None:
    """A refused text, wherever it stood, is not in the answer."""
    path = f"/v1/memory_stores/{make_store()}/memories"
    for body in (
        {"path": "/a", "content": ["my-secret"]},
        {"path": {"my-secret": 1}, "content": "my-secret"},
        {"path": "/a", "content": "my-secret\0"},
        {"path": "bad", "content": "my-secret"},
    ):
        answer = http.post(path, json=body)
        assert answer.status_code == 400 and "my-secret" not in answer.text
    assert "my-secret" not in http.post(path, content=b'{"content": "my-secret').text


def test_only_health_and_docs_are_open(served: Served) -> None:
    """Without a credential there is life, readiness and the description, nothing else."""
    for path in ("/livez", "/readyz", "/docs", "/openapi.json"):
        assert httpx2.get(f"{served.url}{path}").status_code == 200
    for path in ("/v1/memory_stores", "/v1/whoami", "/", "/livez/", "//livez", "/docs/x"):
        assert httpx2.get(f"{served.url}{path}").status_code == 401


def test_the_description_covers_the_endpoints(served: Served) -> None:
    """OpenAPI names all 14 endpoints, with 4XX errors and no 422."""
    described = httpx2.get(f"{served.url}/openapi.json").json()
    base = "/v1/memory_stores"
    one, memory = f"{base}/{{memory_store_id}}", "memories/{memory_id}"
    version = "memory_versions/{memory_version_id}"
    expected = {
        base: {"get", "post"},
        one: {"get", "post", "delete"},
        f"{one}/archive": {"post"},
        f"{one}/memories": {"get", "post"},
        f"{one}/{memory}": {"get", "post", "delete"},
        f"{one}/memory_versions": {"get"},
        f"{one}/{version}": {"get"},
        f"{one}/{version}/redact": {"post"},
    }
    for path, methods in expected.items():
        assert set(described["paths"][path]) == methods
    assert "422" not in json.dumps(
        [list(o["responses"]) for p in described["paths"].values() for o in p.values()]
    )


def test_any_content_type_counts_as_json(http: httpx2.Client) -> None:
    """What curl sends by default is read as JSON; a workspace header must match if given."""
    for type_ in ("application/x-www-form-urlencoded", "text/plain", "application/json; charset=x"):
        answer = http.post(
            "/v1/memory_stores", content=b'{"name": "n"}', headers={"content-type": type_}
        )
        assert answer.status_code == 200
    own = answer.headers["anthropic-workspace-id"]
    for workspace, status in ((own, 200), ("wrkspc_other", 400)):
        headers = {"anthropic-workspace-id": workspace}
        assert http.get("/v1/memory_stores", headers=headers).status_code == status


def test_garbage_on_the_wire_hurts_nobody(served: Served, http: httpx2.Client) -> None:
    """Broken HTTP, half a request and a body cut short end their own connection only."""
    place = urlsplit(served.url)
    key = served.admin_secret.encode()
    for data in (
        b"\x16\x03\x01garbage\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nhost: x\r\ncontent-length: -5\r\n\r\n",
        b"POST /v1/memory_stores HTTP/1.1\r\nhost: x\r\nx-api-key: "
        + key
        + b"\r\ncontent-length: 100\r\n\r\n{",
        b"POST /v1/memory_stores HTTP/1.1\r\nhost: x\r\nx-api-key: "
        + key
        + b"\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab",
    ):
        with socket.create_connection((place.hostname or "", place.port or 0), 10) as wire:
            wire.sendall(data)
            wire.shutdown(socket.SHUT_WR)
            while wire.recv(65_536):
                pass
    assert http.get("/readyz").status_code == 200
