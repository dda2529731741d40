"""Batches: all the changes in order, or none."""

from __future__ import annotations

import pytest

from memstore.backend import Backend
from memstore.model.errors import (
    Invalid,
    InvalidPath,
    MemstoreError,
    NotFound,
    PathConflict,
    PreconditionFailed,
    StoreArchived,
)
from memstore.model.memories import Change, CreateMemory, DeleteMemory, UpdateMemory
from memstore.model.preconditions import ContentIs
from memstore.model.stores import Store


def test_a_batch_answers_each_change_in_order(backend: Backend, store: Store) -> None:
    """Creates and updates answer the memory, deletes None; each is a version of its own."""
    old = backend.create_memory(store.id, path="/old", content="x")
    made, moved, gone = backend.apply_changes(
        store.id,
        [
            CreateMemory("/new", "n"),
            UpdateMemory(old.id, path="/moved", content="y"),
            DeleteMemory(old.id),
        ],
    )
    assert made is not None and made.path == "/new" and made.content is None
    assert moved is not None and (moved.id, moved.path) == (old.id, "/moved")
    assert gone is None
    assert [event.kind for event in backend.list_events(store.id).events] == [
        "memory.created",
        "memory.created",
        "memory.modified",
        "memory.deleted",
    ]
    assert backend.list_memories(store.id).data == (made,)


def test_each_change_sees_the_ones_before_it(backend: Backend, store: Store) -> None:
    """A directory can be renamed and a path freed and taken in one batch."""
    one = backend.create_memory(store.id, path="/d/1", content="1")
    two = backend.create_memory(store.id, path="/d/2", content="2")
    backend.apply_changes(
        store.id,
        [
            UpdateMemory(one.id, path="/e/1"),
            UpdateMemory(two.id, path="/e/2"),
            CreateMemory("/d", "a file now"),
            UpdateMemory(one.id, content="1!"),
        ],
    )
    found = backend.list_memories(store.id).data
    assert [item.path for item in found] == ["/d", "/e/1", "/e/2"]


def test_an_empty_batch_is_nothing(backend: Backend, store: Store) -> None:
    """No changes, no versions, no refusal."""
    assert backend.apply_changes(store.id, []) == []
    assert backend.list_events(store.id).events == ()


BAD: list[tuple[type[MemstoreError], Change]] = [
    (PathConflict, CreateMemory("/kept", "again")),
    (InvalidPath, CreateMemory("relative", "x")),
    (Invalid, UpdateMemory("mem_01" + "1" * 22)),
    (NotFound, DeleteMemory("mem_01" + "1" * 22)),
    (NotFound, UpdateMemory("nonsense", content="x")),
]


@pytest.mark.parametrize(("refusal", "bad"), BAD)
def test_one_refusal_undoes_all(
    backend: Backend, store: Store, refusal: type[MemstoreError], bad: Change
) -> None:
    """The first refusal is raised, and nothing of the batch happened."""
    kept = backend.create_memory(store.id, path="/kept", content="x")
    before = backend.list_events(store.id)
    with pytest.raises(refusal):
        backend.apply_changes(
            store.id,
            [
                CreateMemory("/new", "n"),
                UpdateMemory(kept.id, content="changed"),
                bad,
                CreateMemory("not a path either", "x"),
            ],
        )
    assert backend.list_events(store.id) == before
    assert backend.list_memories(store.id).data == (kept,)
    usage = backend.store_usage(store.id)
    assert (usage.memories, usage.bytes) == (1, 1)


def test_the_first_refusal_is_the_one_told(backend: Backend, store: Store) -> None:
    """A later mistake does not hide an earlier conflict."""
    kept = backend.create_memory(store.id, path="/kept", content="x")
    stale = UpdateMemory(kept.id, content="y", precondition=ContentIs("0" * 64))
    with pytest.raises(PreconditionFailed):
        backend.apply_changes(store.id, [stale, CreateMemory("relative", "x")])


def test_a_batch_has_a_limit(backend: Backend, store: Store) -> None:
    """1,000 changes are applied and 1,001 are refused."""
    changes = [CreateMemory(f"/{n}", "") for n in range(1001)]
    with pytest.raises(Invalid):
        backend.apply_changes(store.id, changes)
    assert len(backend.apply_changes(store.id, changes[:1000])) == 1000
    assert backend.store_usage(store.id).memories == 1000


def test_an_archived_store_takes_deletes_only(backend: Backend, store: Store) -> None:
    """A batch is judged change by change: deletes go on, a write refuses all."""
    one = backend.create_memory(store.id, path="/1", content="x")
    two = backend.create_memory(store.id, path="/2", content="x")
    backend.archive_store(store.id)
    with pytest.raises(StoreArchived):
        backend.apply_changes(store.id, [DeleteMemory(one.id), CreateMemory("/3", "x")])
    assert backend.apply_changes(store.id, [DeleteMemory(one.id), DeleteMemory(two.id)]) == [
        None,
        None,
    ]
    assert backend.list_memories(store.id).data == ()
