"""Versions through the official client: checks 38 to 43 of the compatibility list."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

import anthropic
import pytest


def test_38_history_is_newest_first_and_stays(sdk: Any, store: Any) -> None:
    """Create, update, rename, delete: four versions in order, the last with its path alone."""
    memories, versions = sdk.beta.memory_stores.memories, sdk.beta.memory_stores.memory_versions
    within = {"memory_store_id": store.id}
    memory = memories.create(store.id, path="/a", content="one")
    memories.update(memory.id, content="two", **within)
    memories.update(memory.id, path="/b", **within)
    memories.delete(memory.id, **within)
    found = list(versions.list(store.id, memory_id=memory.id, view="full"))
    assert [v.operation for v in found] == ["deleted", "modified", "modified", "created"]
    assert [v.path for v in found] == ["/b", "/b", "/a", "/a"]
    assert [v.content for v in found] == [None, "two", "two", "one"]
    assert (found[0].content_sha256, found[0].content_size_bytes) == (None, None)


def test_39_versions_are_filtered(sdk: Any, store: Any, http: Any) -> None:
    """Each filter works alone and with others; the author of an API write is its key."""
    memories, versions = sdk.beta.memory_stores.memories, sdk.beta.memory_stores.memory_versions
    one = memories.create(store.id, path="/a", content="one")
    memories.create(store.id, path="/b", content="x")
    memories.update(one.id, memory_store_id=store.id, content="two")

    def ids(**where: Any) -> list[str]:
        return [f"{v.operation} {v.path}" for v in versions.list(store.id, limit=2, **where)]

    newest = versions.list(store.id).data[0]
    assert newest.created_by.type == "api_actor"
    key = newest.created_by.api_key_id
    assert key.startswith("apikey_")
    assert key == http.get("/v1/whoami").json()["actor"]["api_key_id"]
    everything = ["modified /a", "created /b", "created /a"]
    assert ids() == ids(api_key_id=key) == everything
    assert ids(operation="created") == ["created /b", "created /a"]
    assert ids(memory_id=one.id, operation="created", api_key_id=key) == ["created /a"]
    assert ids(created_at_gte=newest.created_at) == ["modified /a"]
    assert ids(created_at_lte=newest.created_at - timedelta(microseconds=1)) == everything[1:]
    for nobody in ("session_id", "service_account_id", "api_key_id", "memory_id"):
        assert ids(**{nobody: "nobody"}) == []
    with pytest.raises(anthropic.BadRequestError):
        ids(operation="renamed")


def test_40_versions_show_their_text_when_retrieved(sdk: Any, store: Any) -> None:
    """Retrieve is full, the list basic; the hash is set in both."""
    memory = sdk.beta.memory_stores.memories.create(store.id, path="/a", content="text")
    versions = sdk.beta.memory_stores.memory_versions
    full = versions.retrieve(memory.memory_version_id, memory_store_id=store.id)
    basic = versions.list(store.id).data[0]
    assert (full.content, basic.content) == ("text", None)
    digest = hashlib.sha256(b"text").hexdigest()
    assert full.content_sha256 == basic.content_sha256 == digest
    assert full.type == "memory_version" and full.memory_store_id == store.id


def test_41_redaction_destroys_and_leaves_the_rest(sdk: Any, store: Any) -> None:
    """A redacted version has nulls, when and by whom; its author stays, and so does the memory."""
    memories, versions = sdk.beta.memory_stores.memories, sdk.beta.memory_stores.memory_versions
    within = {"memory_store_id": store.id}
    memory = memories.create(store.id, path="/a", content="secret")
    memories.update(memory.id, content="clean", **within)
    before = versions.retrieve(memory.memory_version_id, **within)
    redacted = versions.redact(memory.memory_version_id, **within)
    assert (redacted.content, redacted.path) == (None, None)
    assert (redacted.content_sha256, redacted.content_size_bytes) == (None, None)
    assert redacted.redacted_at is not None and redacted.redacted_by == before.created_by
    assert redacted.created_by == before.created_by and redacted.operation == "created"
    assert versions.retrieve(memory.memory_version_id, **within) == redacted
    assert memory.memory_version_id in [v.id for v in versions.list(store.id)]
    assert memories.retrieve(memory.id, **within).content == "clean"


def test_42_the_head_of_a_live_memory_is_not_redacted(sdk: Any, store: Any) -> None:
    """It is refused and nothing changes; once the memory is deleted it works."""
    memories, versions = sdk.beta.memory_stores.memories, sdk.beta.memory_stores.memory_versions
    within = {"memory_store_id": store.id}
    memory = memories.create(store.id, path="/a", content="text")
    with pytest.raises(anthropic.BadRequestError) as caught:
        versions.redact(memory.memory_version_id, **within)
    assert caught.value.error_code == "head_not_redactable"
    assert versions.retrieve(memory.memory_version_id, **within).content == "text"
    memories.delete(memory.id, **within)
    assert versions.redact(memory.memory_version_id, **within).content is None
    last = versions.list(store.id).data[0]
    assert (last.operation, versions.redact(last.id, **within).path) == ("deleted", None)


def test_43_redacting_again_changes_nothing(sdk: Any, store: Any) -> None:
    """The second redaction keeps the first one's time."""
    memories, versions = sdk.beta.memory_stores.memories, sdk.beta.memory_stores.memory_versions
    memory = memories.create(store.id, path="/a", content="text")
    memories.delete(memory.id, memory_store_id=store.id)
    first = versions.redact(memory.memory_version_id, memory_store_id=store.id)
    assert versions.redact(memory.memory_version_id, memory_store_id=store.id) == first
