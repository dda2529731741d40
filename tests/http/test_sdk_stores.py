"""Stores through the official client: checks 1 to 15 of the compatibility list."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import anthropic
import pytest

METADATA_16 = {f"key{number}": "v" for number in range(16)}


def refused(call: Any, *args: Any, **kwargs: Any) -> anthropic.BadRequestError:
    """The 400 a call ends in."""
    with pytest.raises(anthropic.BadRequestError) as caught:
        call(*args, **kwargs)
    assert caught.value.type == "invalid_request_error"
    return caught.value


def test_01_create_gives_a_whole_store(sdk: Any) -> None:
    """A new store has its id, empty description and metadata, and aware times."""
    store = sdk.beta.memory_stores.create(name="Notes")
    assert store.type == "memory_store"
    assert store.id.startswith("memstore_")
    assert (store.description, store.metadata, store.archived_at) == ("", {}, None)
    assert isinstance(store.created_at, datetime) and store.created_at.tzinfo is not None
    assert store.updated_at.tzinfo is not None


def test_02_names_have_1_to_255_characters(sdk: Any) -> None:
    """A name of 255 characters passes; 256 and none are refused."""
    assert len(sdk.beta.memory_stores.create(name="é" * 255).name) == 255
    refused(sdk.beta.memory_stores.create, name="n" * 256)
    refused(sdk.beta.memory_stores.create, name="")


@pytest.mark.parametrize("name", ["a\nb", "a\x85b", "\x00", "a\x7f"])
def test_03_names_hold_no_control_characters(sdk: Any, name: str) -> None:
    """A control character in a name is refused."""
    refused(sdk.beta.memory_stores.create, name=name)


def test_04_names_need_not_be_unique(sdk: Any) -> None:
    """Two stores of one name both exist."""
    one, other = (sdk.beta.memory_stores.create(name="Twin") for _ in range(2))
    assert one.id != other.id
    assert sdk.beta.memory_stores.retrieve(one.id).name == "Twin"


def test_05_descriptions_have_at_most_1024_characters(sdk: Any) -> None:
    """A description of 1,024 characters passes; one more is refused."""
    stores = sdk.beta.memory_stores
    assert len(stores.create(name="n", description="d" * 1024).description) == 1024
    refused(stores.create, name="n", description="d" * 1025)


def test_06_metadata_has_limits(sdk: Any) -> None:
    """16 pairs pass; 17, a key of 65 characters or none, a value of 513 are refused."""
    stores = sdk.beta.memory_stores
    assert stores.create(name="n", metadata=METADATA_16).metadata == METADATA_16
    for metadata in ({**METADATA_16, "k": "v"}, {"k" * 65: "v"}, {"k": "v" * 513}, {"": "v"}):
        refused(stores.create, name="n", metadata=metadata)
    assert stores.create(name="n", metadata={"k" * 64: "v" * 512}).metadata


def test_07_metadata_updates_are_patches(sdk: Any) -> None:
    """None removes, a text sets, an absent key stays; the limit is on the result."""
    stores = sdk.beta.memory_stores
    store = stores.create(name="n", metadata={"a": "1", "b": "1", "c": "1"})
    patched = stores.update(store.id, metadata={"a": None, "b": "2"})
    assert patched.metadata == {"b": "2", "c": "1"}
    full = stores.create(name="n", metadata=METADATA_16)
    refused(stores.update, full.id, metadata={"one more": "v"})
    swapped = stores.update(full.id, metadata={"key0": None, "new": "v"})
    assert len(swapped.metadata) == 16


def test_08_an_update_changes_only_what_is_given(sdk: Any) -> None:
    """An empty description clears it, the rest stays, updated_at advances."""
    stores = sdk.beta.memory_stores
    store = stores.create(name="n", description="d", metadata={"a": "1"})
    after = stores.update(store.id, description="")
    assert (after.name, after.description, after.metadata) == ("n", "", {"a": "1"})
    assert after.updated_at > store.updated_at
    assert stores.update(store.id) == after


def test_09_memory_writes_leave_the_store_alone(sdk: Any, store: Any) -> None:
    """Writing a memory does not move the store's updated_at."""
    sdk.beta.memory_stores.memories.create(store.id, path="/a", content="x")
    assert sdk.beta.memory_stores.retrieve(store.id).updated_at == store.updated_at


def test_10_the_list_is_newest_first_and_complete(sdk: Any) -> None:
    """Pages of one visit every store once, newest first, within the filters."""
    stores = sdk.beta.memory_stores
    made = [stores.create(name=f"s{number}") for number in range(4)]
    page = stores.list(limit=1, created_at_gte=made[0].created_at)
    assert len(page.data) == 1 and page.next_page
    shown = [s for s in page if s.created_at <= made[-1].created_at]
    assert [s.id for s in shown] == [s.id for s in reversed(made)]


def test_11_time_filters_are_inclusive(sdk: Any, store: Any) -> None:
    """Both bounds hold at equality, given as datetimes or as texts with any offset."""
    stores = sdk.beta.memory_stores
    shifted = (store.created_at + timedelta(0)).isoformat()
    zulu = store.created_at.isoformat().replace("+00:00", "Z")
    for bound in (store.created_at, shifted, zulu):
        found = stores.list(created_at_gte=bound, created_at_lte=bound)
        assert store.id in [s.id for s in found.data]
    later = store.created_at + timedelta(microseconds=1)
    assert store.id not in [s.id for s in stores.list(created_at_gte=later)]
    refused(lambda: stores.list(created_at_gte="yesterday").data)


def test_12_archiving_is_once_and_hides(sdk: Any, store: Any) -> None:
    """A second archive changes nothing; lists hide the store unless asked; retrieve shows it."""
    stores = sdk.beta.memory_stores
    first = stores.archive(store.id)
    assert first.archived_at is not None
    assert stores.archive(store.id) == first
    window = {"created_at_gte": store.created_at, "created_at_lte": store.created_at}
    assert store.id not in [s.id for s in stores.list(**window)]
    assert store.id in [s.id for s in stores.list(**window, include_archived=True)]
    assert stores.retrieve(store.id) == first


def test_13_an_archived_store_takes_no_writes(sdk: Any, store: Any) -> None:
    """Updates and creates are refused; reading, deleting and redacting go on."""
    stores = sdk.beta.memory_stores
    memory = stores.memories.create(store.id, path="/a", content="one")
    old = memory.memory_version_id
    stores.memories.update(memory.id, memory_store_id=store.id, content="two")
    stores.archive(store.id)
    refused(stores.update, store.id, name="m")
    refused(stores.memories.create, store.id, path="/b", content="x")
    refused(stores.memories.update, memory.id, memory_store_id=store.id, content="three")
    assert [m.path for m in stores.memories.list(store.id)] == ["/a"]
    assert stores.memories.retrieve(memory.id, memory_store_id=store.id).content == "two"
    assert stores.memory_versions.redact(old, memory_store_id=store.id).redacted_at
    stores.memories.delete(memory.id, memory_store_id=store.id)
    assert stores.delete(store.id).id == store.id


def test_14_deleting_a_store_takes_all_with_it(sdk: Any, store: Any) -> None:
    """The tombstone names the store; store, memory and version are gone."""
    stores = sdk.beta.memory_stores
    memory = stores.memories.create(store.id, path="/a", content="x")
    gone = stores.delete(store.id)
    assert (gone.id, gone.type) == (store.id, "memory_store_deleted")
    within = {"memory_store_id": store.id}
    for call in (
        lambda: stores.retrieve(store.id),
        lambda: stores.delete(store.id),
        lambda: stores.memories.retrieve(memory.id, **within),
        lambda: stores.memories.list(store.id).data,
        lambda: stores.memory_versions.retrieve(memory.memory_version_id, **within),
    ):
        with pytest.raises(anthropic.NotFoundError):
            call()


@pytest.mark.parametrize("limit", [0, 101, -1])
def test_15_limits_are_1_to_100(sdk: Any, limit: int) -> None:
    """A page limit outside 1 to 100 is refused."""
    refused(lambda: sdk.beta.memory_stores.list(limit=limit).data)
