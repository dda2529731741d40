"""One real service for the whole run; each test makes stores of its own in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import anthropic
import httpx2
import pytest

from memstore.service.database import check
from tests.support.serving import Loop, Plain, Served


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The service. It ends cleanly, and its database is true to itself afterwards."""
    served = Served(tmp_path_factory.mktemp("http") / "data")
    yield served
    assert served.stop() == 0
    assert served.log.read_text() == "", "the service had something to warn of"
    assert check(served.database_url) == []


@pytest.fixture(scope="session")
def loop() -> Iterator[Loop]:
    """Where the async client lives."""
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture(scope="session", params=["sync", "async"])
def sdk(request: pytest.FixtureRequest, served: Served, loop: Loop) -> Iterator[Any]:
    """The official client as it is, in both its forms, without retries."""
    options: dict[str, Any] = {
        "api_key": served.admin_secret,
        "base_url": served.url,
        "max_retries": 0,
    }
    if request.param == "sync":
        with anthropic.Anthropic(**options) as client:
            yield client
        return
    client = Plain(anthropic.AsyncAnthropic(**options), loop)
    yield client
    client.close()


@pytest.fixture
def store(sdk: Any) -> Any:
    """An empty store."""
    return sdk.beta.memory_stores.create(name="Notes")


@pytest.fixture(scope="session")
def http(served: Served) -> Iterator[httpx2.Client]:
    """A plain HTTP client with the admin key."""
    headers = {"x-api-key": served.admin_secret}
    with httpx2.Client(base_url=served.url, headers=headers, timeout=30) as client:
        yield client


@pytest.fixture
def make_store(http: httpx2.Client) -> Callable[..., str]:
    """Make a store with texts at paths; its id."""

    def make(**texts: str) -> str:
        answer = http.post("/v1/memory_stores", json={"name": "Notes"})
        assert answer.status_code == 200
        store_id: str = answer.json()["id"]
        for name, text in texts.items():
            body = {"path": f"/{name}", "content": text}
            made = http.post(f"/v1/memory_stores/{store_id}/memories", json=body)
            assert made.status_code == 200
        return store_id

    return make


@pytest.fixture
def make_key(http: httpx2.Client) -> Callable[..., dict[str, Any]]:
    """Make a key; the object with its secret under `key`."""

    def make(**body: Any) -> dict[str, Any]:
        answer = http.post("/v1/api_keys", json=body)
        assert answer.status_code == 200, answer.text
        made: dict[str, Any] = answer.json()
        return made

    return make
