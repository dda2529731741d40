"""Stores: their fields, patches, listing, archiving and deletion."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memstore.backend import Backend
from memstore.model.errors import Invalid, NotFound, StoreArchived
from memstore.model.preconditions import ContentIs
from memstore.model.sessions import Attachment
from memstore.model.stores import Store
from tests.support.walking import every


def test_a_new_store_has_its_defaults(backend: Backend) -> None:
    """A store made by name alone has no description, no metadata and equal times."""
    store = backend.create_store(name="Notes")
    assert store.id.startswith("memstore_01")
    assert (store.name, store.description, dict(store.metadata)) == ("Notes", "", {})
    assert store.created_at == store.updated_at
    assert store.archived_at is None
    assert backend.get_store(store.id) == store


def test_names_need_not_be_unique(backend: Backend) -> None:
    """Two stores of one name are two stores."""
    assert backend.create_store(name="a").id != backend.create_store(name="a").id


@pytest.mark.parametrize("name", ["", "n" * 256, "a\nb", "a\x85b", "\ud800"])
def test_a_bad_name_is_refused(backend: Backend, name: str) -> None:
    """A name has 1 to 255 characters and none of them is a control character."""
    with pytest.raises(Invalid):
        backend.create_store(name=name)
    assert backend.list_stores().data == ()


def test_the_limits_of_the_fields_are_inclusive(backend: Backend) -> None:
    """The longest allowed name, description and metadata are kept as they are."""
    metadata = {f"{n:064d}": "v" * 512 for n in range(16)}
    store = backend.create_store(name="é" * 255, description="é" * 1024, metadata=metadata)
    assert backend.get_store(store.id) == store
    assert dict(store.metadata) == metadata


@pytest.mark.parametrize(
    "fields",
    [
        {"description": "d" * 1025},
        {"description": "nul \0"},
        {"metadata": {str(n): "" for n in range(17)}},
        {"metadata": {"k" * 65: "v"}},
        {"metadata": {"k": "v" * 513}},
        {"metadata": {"": "v"}},
    ],
)
def test_bad_fields_are_refused(backend: Backend, fields: dict[str, object]) -> None:
    """A description or metadata over its limit makes no store."""
    with pytest.raises(Invalid):
        backend.create_store(name="n", **fields)  # type: ignore[arg-type]
    assert backend.list_stores().data == ()


def test_a_metadata_patch_sets_removes_and_keeps(backend: Backend) -> None:
    """A string sets a key, None removes it, and an absent key stays."""
    store = backend.create_store(name="n", metadata={"a": "1", "c": "3"})
    changed = backend.update_store(store.id, metadata={"a": None, "b": "2", "gone": None})
    assert dict(changed.metadata) == {"b": "2", "c": "3"}
    assert changed.updated_at > store.updated_at
    assert changed.created_at == store.created_at
    assert backend.get_store(store.id) == changed


def test_the_metadata_limit_applies_to_the_result(backend: Backend) -> None:
    """A patch that would leave more than 16 pairs changes nothing; one that swaps is fine."""
    store = backend.create_store(name="n", metadata={str(n): "" for n in range(16)})
    with pytest.raises(Invalid):
        backend.update_store(store.id, metadata={"new": "x"})
    assert backend.get_store(store.id) == store
    assert len(backend.update_store(store.id, metadata={"0": None, "new": "x"}).metadata) == 16


def test_an_update_touches_only_what_it_names(backend: Backend) -> None:
    """An empty description clears it; name and metadata stay."""
    store = backend.create_store(name="n", description="d", metadata={"a": "1"})
    changed = backend.update_store(store.id, description="")
    assert (changed.name, changed.description) == ("n", "")
    assert dict(changed.metadata) == {"a": "1"}


def test_an_update_of_nothing_changes_nothing(backend: Backend) -> None:
    """An update with nothing, or nothing different, leaves `updated_at` and the feed alone."""
    store = backend.create_store(name="n", description="d", metadata={"a": "1"})
    assert backend.update_store(store.id) == store
    assert backend.update_store(store.id, name="n", metadata={"a": "1", "b": None}) == store
    assert backend.list_events(store.id).events == ()


def test_memories_do_not_move_a_stores_time(backend: Backend, store: Store) -> None:
    """`updated_at` speaks of the store's own fields."""
    backend.create_memory(store.id, path="/a", content="x")
    assert backend.get_store(store.id) == store


def test_stores_are_listed_newest_first_page_by_page(backend: Backend) -> None:
    """Every store comes once, the newest first, whatever the page size."""
    made = [backend.create_store(name=str(n)) for n in range(7)]
    for limit in (1, 2, 3, 7, 100):
        listed = every(backend.list_stores, limit=limit)
        assert [store.id for store in listed] == [store.id for store in reversed(made)]


def test_time_filters_are_inclusive(backend: Backend) -> None:
    """Both bounds of `created` include a store made at exactly that moment."""
    made = [backend.create_store(name=str(n)) for n in range(3)]
    middle = made[1].created_at
    exact = backend.list_stores(created_from=middle, created_to=middle).data
    assert made[1] in exact
    step = timedelta(microseconds=1)
    assert made[1] not in backend.list_stores(created_from=middle + step).data
    assert made[1] not in backend.list_stores(created_to=middle - step).data


def test_a_cursor_of_other_filters_is_refused(backend: Backend) -> None:
    """A cursor continues the listing it was made for and no other."""
    for n in range(3):
        backend.create_store(name=str(n))
    cursor = backend.list_stores(limit=1).next_page
    for wrong in ("", "page_", "page_!!", "page_bnVsbA", "x", f"{cursor}AAAA"):
        with pytest.raises(Invalid):
            backend.list_stores(limit=1, page=wrong)
    with pytest.raises(Invalid):
        backend.list_stores(limit=1, include_archived=True, page=cursor)


@pytest.mark.parametrize("limit", [0, 101, -1])
def test_a_limit_outside_1_to_100_is_refused(backend: Backend, store: Store, limit: int) -> None:
    """Every listing takes 1 to 100 items a page."""
    for listing in (
        backend.list_stores,
        backend.list_sessions,
        backend.list_keys,
        lambda limit: backend.list_memories(store.id, limit=limit),
        lambda limit: backend.list_versions(store.id, limit=limit),
    ):
        with pytest.raises(Invalid):
            listing(limit=limit)


def test_archiving_is_for_good_and_idempotent(backend: Backend, store: Store) -> None:
    """Archiving sets the time once, hides the store from the usual list, and is one event."""
    archived = backend.archive_store(store.id)
    assert archived.archived_at is not None
    assert archived.updated_at > store.updated_at
    assert backend.archive_store(store.id) == archived
    assert backend.get_store(store.id) == archived
    assert backend.list_stores().data == ()
    assert backend.list_stores(include_archived=True).data == (archived,)
    assert [event.kind for event in backend.list_events(store.id).events] == ["store.archived"]


def test_what_an_archived_store_still_allows(backend: Backend, store: Store) -> None:
    """Reading, deleting memories, redacting and deleting the store go on; writing is refused."""
    memory = backend.create_memory(store.id, path="/a", content="x")
    backend.update_memory(store.id, memory.id, content="y")
    first = backend.list_versions(store.id).data[-1]
    backend.archive_store(store.id)
    for refused in (
        lambda: backend.update_store(store.id, name="other"),
        lambda: backend.update_store(store.id),
        lambda: backend.create_memory(store.id, path="/b", content="x"),
        lambda: backend.update_memory(store.id, memory.id, content="z"),
        lambda: backend.update_memory(store.id, memory.id, content="y"),
        lambda: backend.create_session(
            agent="a", environment_id="e", stores=[Attachment(store.id)]
        ),
    ):
        with pytest.raises(StoreArchived):
            refused()
    assert backend.get_memory(store.id, memory.id).content == "y"
    assert len(backend.list_memories(store.id).data) == 1
    assert backend.redact_version(store.id, first.id).path is None
    backend.delete_memory(store.id, memory.id)
    assert backend.list_versions(store.id).data[0].operation == "deleted"
    backend.delete_store(store.id)


def test_a_deleted_store_is_gone_with_all_it_held(backend: Backend, store: Store) -> None:
    """After a delete every call under the id answers not found, and its neighbour is untouched."""
    other = backend.create_store(name="other")
    kept = backend.create_memory(other.id, path="/a", content="kept")
    memory = backend.create_memory(store.id, path="/a", content="x")
    backend.delete_store(store.id)
    for call in calls(backend, store.id, memory.id, memory.version_id):
        with pytest.raises(NotFound):
            call()
    assert [one.id for one in backend.list_stores(include_archived=True).data] == [other.id]
    assert backend.get_memory(other.id, kept.id).content == "kept"


@pytest.mark.parametrize("bad", ["", "x", "mem_01" + "1" * 22, "memstore_01\ud800", "../x"])
def test_what_is_no_stores_id_is_not_found(backend: Backend, bad: str) -> None:
    """A malformed id, or one of another kind, is absent in every verb."""
    for call in calls(backend, bad, "mem_01" + "1" * 22, "memver_01" + "1" * 22):
        with pytest.raises(NotFound):
            call()


def calls(backend: Backend, store_id: str, memory_id: str, version_id: str) -> list:
    """Every verb that names a store, with arguments that are otherwise right."""
    right = ContentIs("0" * 64)
    return [
        lambda: backend.get_store(store_id),
        lambda: backend.update_store(store_id, name="n"),
        lambda: backend.archive_store(store_id),
        lambda: backend.delete_store(store_id),
        lambda: backend.store_usage(store_id),
        lambda: backend.create_memory(store_id, path="/z", content=""),
        lambda: backend.get_memory(store_id, memory_id),
        lambda: backend.get_memory_at(store_id, "/a"),
        lambda: backend.list_memories(store_id),
        lambda: backend.update_memory(store_id, memory_id, content="", precondition=right),
        lambda: backend.delete_memory(store_id, memory_id),
        lambda: backend.apply_changes(store_id, []),
        lambda: list(backend.snapshot(store_id).memories),
        lambda: backend.list_versions(store_id),
        lambda: backend.get_version(store_id, version_id),
        lambda: backend.redact_version(store_id, version_id),
        lambda: backend.list_events(store_id),
        lambda: next(iter(backend.watch(store_id))),
        lambda: backend.create_session(
            agent="a", environment_id="e", stores=[Attachment(store_id)]
        ),
    ]
