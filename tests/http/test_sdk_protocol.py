"""Headers, errors, retries and races through the official client: checks 44 to 52."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import Any

import anthropic
import httpx2
import pytest

from tests.support.serving import Served
from tests.support.waiting import together


def test_44_errors_carry_the_request_id(sdk: Any) -> None:
    """The exception, the header and the body name the same request."""
    with pytest.raises(anthropic.NotFoundError) as caught:
        sdk.beta.memory_stores.retrieve("memstore_none")
    error = caught.value
    body: Any = error.body
    assert error.request_id == error.response.headers["request-id"] == body["request_id"]
    assert str(error.request_id).startswith("req_")
    assert (body["type"], error.error_code) == ("error", "not_found")


def test_45_a_conflict_is_asked_once(served: Served) -> None:
    """A client with its default retries sends a refused create exactly once."""
    sent: list[str] = []

    def note(request: httpx2.Request) -> None:
        sent.append(request.url.path)

    with (
        httpx2.Client(event_hooks={"request": [note]}) as wire,
        anthropic.Anthropic(
            api_key=served.admin_secret, base_url=served.url, http_client=wire
        ) as client,
    ):
        store = client.beta.memory_stores.create(name="n")
        memory = client.beta.memory_stores.memories.create(store.id, path="/a", content="x")
        sent.clear()
        with pytest.raises(anthropic.ConflictError) as caught:
            client.beta.memory_stores.memories.create(store.id, path="/a", content="x")
        assert caught.value.response.headers["x-should-retry"] == "false"
        with pytest.raises(anthropic.ConflictError):
            client.beta.memory_stores.memories.delete(
                memory.id, memory_store_id=store.id, expected_content_sha256="0" * 64
            )
    assert len(sent) == 2


def test_46_either_header_is_a_credential(served: Served, sdk: Any) -> None:
    """Bearer and x-api-key work; a wrong key and none are 401."""
    store = sdk.beta.memory_stores.create(name="n")
    url = f"{served.url}/v1/memory_stores/{store.id}"
    good, bad = served.admin_secret, "msk_wrong"
    for headers, status in (
        ({"authorization": f"Bearer {good}"}, 200),
        ({"authorization": f"bearer {good}"}, 200),
        ({"x-api-key": good}, 200),
        ({"x-api-key": bad}, 401),
        ({"authorization": f"Basic {good}"}, 401),
        ({}, 401),
    ):
        answer = httpx2.get(url, headers=headers)
        assert answer.status_code == status
        if status == 401:
            assert answer.json()["error"]["type"] == "authentication_error"
    with (
        anthropic.Anthropic(api_key=bad, base_url=served.url, max_retries=0) as client,
        pytest.raises(anthropic.AuthenticationError),
    ):
        client.beta.memory_stores.retrieve(store.id)


def test_47_versions_and_betas(sdk: Any, http: httpx2.Client) -> None:
    """Old `anthropic-version` and `?beta=true` pass; both memory betas together are refused."""
    stores = sdk.beta.memory_stores
    store = stores.create(name="n", extra_query={"beta": "true"})
    old = {"anthropic-version": "2023-06-01"}
    assert stores.retrieve(store.id, extra_headers=old).id == store.id
    assert stores.retrieve(store.id, betas=["files-api-2025-04-14"]).id == store.id
    with pytest.raises(anthropic.BadRequestError) as caught:
        stores.retrieve(store.id, betas=["managed-agents-2026-04-01"])
    assert caught.value.type == "invalid_request_error"
    for beta, status in (("managed-agents-2026-04-01", 200), ("nonsense-2020-01-01", 400)):
        answer = http.get(f"/v1/memory_stores/{store.id}", headers={"anthropic-beta": beta})
        assert answer.status_code == status
    assert "nonsense-2020-01-01" in answer.json()["error"]["message"]


def test_48_archive_and_redact_take_an_empty_body(http: httpx2.Client, make_store: Any) -> None:
    """No body, no content type, and `{}` are the same."""
    for options in ({}, {"json": {}}, {"headers": {"content-type": "application/json"}}):
        store_id = make_store(a="x")
        memories = f"/v1/memory_stores/{store_id}/memories"
        memory = http.get(memories).json()["data"][0]
        assert http.request("DELETE", f"{memories}/{memory['id']}", **options).is_success
        version = f"/v1/memory_stores/{store_id}/memory_versions/{memory['memory_version_id']}"
        assert http.post(f"{version}/redact", **options).json()["redacted_at"]
        assert http.post(f"/v1/memory_stores/{store_id}/archive", **options).json()["archived_at"]


def test_49_the_async_client_is_really_async(served: Served, loop: Any) -> None:
    """The checks' async half runs on AsyncAnthropic: its calls are coroutines, its lists too."""

    async def work() -> list[str]:
        async with anthropic.AsyncAnthropic(
            api_key=served.admin_secret, base_url=served.url, max_retries=0
        ) as client:
            store = await client.beta.memory_stores.create(name="n")
            memories = client.beta.memory_stores.memories
            for number in range(3):
                await memories.create(store.id, path=f"/{number}", content="x")
            return [memory.path async for memory in memories.list(store.id, limit=1)]

    assert loop.run(work()) == ["/0", "/1", "/2"]


def test_50_raw_responses_and_unknown_fields(sdk: Any) -> None:
    """Headers are reachable; a field the API does not know is refused."""
    raw = sdk.beta.memory_stores.with_raw_response.create(name="n")
    assert raw.headers["request-id"].startswith("req_")
    assert raw.headers["anthropic-workspace-id"].startswith("wrkspc_")
    for call in (
        lambda: sdk.beta.memory_stores.create(name="n", extra_body={"colour": "red"}),
        lambda: sdk.beta.memory_stores.archive(raw.parse().id, extra_body={"colour": "red"}),
    ):
        with pytest.raises(anthropic.BadRequestError) as caught:
            call()
        assert "colour" in caught.value.api_message


def test_51_of_16_updates_one_wins(sdk: Any, store: Any) -> None:
    """Of 16 updates with one precondition one succeeds, the rest are 409, one version is made."""
    memories = sdk.beta.memory_stores.memories
    memory = memories.create(store.id, path="/a", content="start")
    belief = {"type": "content_sha256", "content_sha256": hashlib.sha256(b"start").hexdigest()}

    def update(number: int) -> Any:
        return memories.update(
            memory.id, memory_store_id=store.id, content=f"by {number}", precondition=belief
        )

    results = together(update, 16)
    kinds = Counter(type(result).__name__ for result in results)
    assert kinds == {"BetaManagedAgentsMemory": 1, "ConflictError": 15}
    assert len(list(sdk.beta.memory_stores.memory_versions.list(store.id))) == 2


def test_52_of_32_creates_one_wins(sdk: Any, store: Any) -> None:
    """Of 32 creates of one path exactly one succeeds."""
    memories = sdk.beta.memory_stores.memories
    results = together(lambda n: memories.create(store.id, path="/a", content=f"{n}"), 32)
    kinds = Counter(type(result).__name__ for result in results)
    assert kinds == {"BetaManagedAgentsMemory": 1, "ConflictError": 31}
