"""Many at once: exactly one wins."""

from __future__ import annotations

from memstore.backend import Backend
from memstore.model.errors import PathConflict, PreconditionFailed
from memstore.model.memories import Memory
from memstore.model.preconditions import ContentIs
from memstore.model.stores import Store
from memstore.model.versions import VersionFilter
from tests.support.waiting import together


def test_one_of_sixteen_updates_with_one_precondition_wins(backend: Backend, store: Store) -> None:
    """Sixteen writers who read the same text: one change, fifteen refusals, one more version."""
    memory = backend.create_memory(store.id, path="/a", content="start")
    seen = ContentIs(memory.content_sha256)
    results = together(
        lambda n: backend.update_memory(
            store.id, memory.id, content=f"writer {n}", precondition=seen
        ),
        16,
    )
    won = [result for result in results if isinstance(result, Memory)]
    assert len(won) == 1
    assert sum(isinstance(result, PreconditionFailed) for result in results) == 15
    assert backend.get_memory(store.id, memory.id, view="basic") == won[0]
    versions = backend.list_versions(store.id, where=VersionFilter(memory_id=memory.id)).data
    assert len(versions) == 2


def test_one_of_thirty_two_creates_of_one_path_wins(backend: Backend, store: Store) -> None:
    """Thirty-two writers at one free path: one memory, thirty-one conflicts naming it."""
    results = together(
        lambda n: backend.create_memory(store.id, path="/one", content=f"writer {n}"), 32
    )
    (won,) = [result for result in results if isinstance(result, Memory)]
    lost = [result for result in results if isinstance(result, PathConflict)]
    assert len(lost) == 31
    assert {conflict.conflicting_memory_id for conflict in lost} == {won.id}
    assert len(backend.list_versions(store.id).data) == 1


def test_a_file_and_a_directory_do_not_both_win(backend: Backend, store: Store) -> None:
    """Of creates at a path and below it at once only one side succeeds."""
    results = together(
        lambda n: backend.create_memory(store.id, path="/x" if n % 2 else f"/x/{n}", content="x"),
        16,
    )
    won = [result.path for result in results if isinstance(result, Memory)]
    assert won == ["/x"] or (won and "/x" not in won)


def test_counters_and_seqs_hold_under_load(backend: Backend, store: Store) -> None:
    """Eight writers creating, changing and deleting leave right counters and unbroken order."""

    def work(number: int) -> None:
        for n in range(8):
            memory = backend.create_memory(store.id, path=f"/{number}/{n}", content="x" * n)
            backend.update_memory(store.id, memory.id, content="y" * (n + 1))
            if n % 2:
                backend.delete_memory(store.id, memory.id)

    assert together(work, 8) == [None] * 8
    usage = backend.store_usage(store.id)
    assert (usage.memories, usage.bytes) == (32, 8 * (1 + 3 + 5 + 7))
    events = backend.list_events(store.id, limit=1000).events
    assert [event.seq for event in events] == list(range(1, 8 * 20 + 1))
    times = [event.created_at for event in events]
    assert times == sorted(set(times))
