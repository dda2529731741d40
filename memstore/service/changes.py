"""Changing memories: what one change means, alone or in a batch.

One change is one transaction: the memory's row, its version, its event and the store's counters.
Arguments are judged and hashed before the transaction, in the caller's own thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from memstore.model import clock, ids, limits, paths
from memstore.model import content as texts
from memstore.model.access import Caller
from memstore.model.errors import (
    Invalid,
    InvalidContent,
    PathConflict,
    PreconditionFailed,
    StoreArchived,
    StoreFull,
)
from memstore.model.memories import Change, CreateMemory, DeleteMemory, Memory, UpdateMemory
from memstore.model.preconditions import ContentIs
from memstore.service.core import Core, check_view, judged, lock_store
from memstore.service.memories import find
from memstore.storage import events, memories, versions
from memstore.storage.statement import Tx
from memstore.storage.stores import LockedStore

_KIND = {"created": "memory.created", "modified": "memory.modified", "deleted": "memory.deleted"}

Step = Callable[[Tx, LockedStore], Memory | None]
"""One change, its arguments judged, ready to be played in a transaction."""


def create(core: Core, caller: Caller, store_id: str, path: str, content: str, view: str) -> Memory:
    """Write a text at a free path."""
    with judged(core, caller, store_id, "write"):
        check_view(view)
        step = creating(core, caller, CreateMemory(path, content))
    return _shown(_play(core, caller, store_id, step), content, view)


def update(core: Core, caller: Caller, store_id: str, change: UpdateMemory, view: str) -> Memory:
    """Change content, path, or both."""
    with judged(core, caller, store_id, "write"):
        check_view(view)
        step = updating(core, caller, change, view)
    return _play(core, caller, store_id, step)


def delete(core: Core, caller: Caller, store_id: str, change: DeleteMemory) -> None:
    """Delete a memory; its history stays."""
    with judged(core, caller, store_id, "write"):
        step = deleting(caller, change)

    def work(tx: Tx) -> None:
        store = lock_store(tx, caller, store_id)
        step(tx, store)
        store.save(tx)

    core.engine.write(work)


def apply(
    core: Core, caller: Caller, store_id: str, changes: Sequence[Change]
) -> list[Memory | None]:
    """All the changes in order, or none."""
    with judged(core, caller, store_id, "write"):
        if len(changes) > limits.BATCH_CHANGES:
            raise Invalid(f"A batch has at most {limits.BATCH_CHANGES} changes.")
        steps = [_prepared(core, caller, change) for change in changes]

    def work(tx: Tx) -> list[Memory | None]:
        store = lock_store(tx, caller, store_id)
        before = store.last_seq
        result = [step(tx, store) for step in steps]
        if store.last_seq != before:
            store.save(tx)
        return [None if memory is None else replace(memory, content=None) for memory in result]

    return core.engine.write(work)


def _prepared(core: Core, caller: Caller, change: Change) -> Step:
    """A change of a batch; bad arguments are a refusal when its turn comes."""
    try:
        if isinstance(change, CreateMemory):
            return creating(core, caller, change)
        if isinstance(change, UpdateMemory):
            return updating(core, caller, change, "basic")
        return deleting(caller, change)
    except Invalid as refusal:
        found = refusal

    def refuse(tx: Tx, store: LockedStore) -> None:
        raise found

    return refuse


def _play(
    core: Core, caller: Caller, store_id: str, step: Callable[[Tx, LockedStore], Memory]
) -> Memory:
    """One change in a transaction of its own."""

    def work(tx: Tx) -> Memory:
        store = lock_store(tx, caller, store_id)
        before = store.last_seq
        memory = step(tx, store)
        if store.last_seq != before:
            store.save(tx)
        return memory

    return core.engine.write(work)


def _shown(memory: Memory, content: str, view: str) -> Memory:
    """The memory in a view."""
    return replace(memory, content=content) if view == "full" else memory


def _encoded(content: str) -> bytes:
    """The bytes of a text; InvalidContent for what is none, TooLarge over the limit."""
    if not isinstance(content, str):
        raise InvalidContent("Content is text; null is not.")
    return texts.encode(content)


def creating(
    core: Core, caller: Caller, change: CreateMemory
) -> Callable[[Tx, LockedStore], Memory]:
    """Judge a create; the step that plays it in a transaction."""
    path = paths.validate(change.path)
    data = _encoded(change.content)
    sha256 = texts.sha256(data)

    def step(tx: Tx, store: LockedStore) -> Memory:
        if store.archived_at_us is not None:
            raise StoreArchived(store.id)
        _free(tx, store, path)
        _room(core, store, len(data))
        seq, at_us = store.stamp()
        at = clock.from_us(at_us)
        memory = Memory(
            id=ids.new(ids.MEMORY),
            store_id=store.id,
            version_id=ids.new(ids.VERSION),
            path=path,
            content=None,
            content_size_bytes=len(data),
            content_sha256=sha256,
            created_at=at,
            updated_at=at,
        )
        _record(tx, store, caller, memory, "created", seq, at_us, data)
        memories.add(tx, memory, seq, at_us)
        store.memory_count += 1
        store.total_bytes += len(data)
        return memory

    return step


def updating(
    core: Core, caller: Caller, change: UpdateMemory, view: str
) -> Callable[[Tx, LockedStore], Memory]:
    """Judge an update; the step that plays it in a transaction."""
    if change.content is None and change.path is None:
        raise Invalid("An update gives content, path, or both.")
    path = None if change.path is None else paths.validate(change.path)
    data = None if change.content is None else _encoded(change.content)
    sha256 = None if data is None else texts.sha256(data)

    def step(tx: Tx, store: LockedStore) -> Memory:
        if store.archived_at_us is not None:
            raise StoreArchived(store.id)
        old = find(tx, store.id, change.memory_id, "basic" if data is not None else "full")
        renamed = path is not None and path != old.path
        rewritten = sha256 is not None and sha256 != old.content_sha256
        if not renamed and not rewritten:
            return _shown(old, change.content or "", view) if data is not None else _in(old, view)
        _unchanged(old, change.precondition)
        new = _changed(core, store, tx, old, path if renamed else None, data)
        seq, at_us = store.stamp()
        new = replace(new, version_id=ids.new(ids.VERSION), updated_at=clock.from_us(at_us))
        text = data if data is not None else (old.content or "").encode()
        _record(tx, store, caller, new, "modified", seq, at_us, text)
        memories.change(tx, new, seq, at_us)
        return replace(new, content=text.decode()) if view == "full" else replace(new, content=None)

    return step


def _in(memory: Memory, view: str) -> Memory:
    """A memory read with its text, in a view."""
    return memory if view == "full" else replace(memory, content=None)


def _changed(
    core: Core, store: LockedStore, tx: Tx, old: Memory, path: str | None, data: bytes | None
) -> Memory:
    """The memory with its new path and hash, when path and size are allowed."""
    new = old
    if path is not None:
        _free(tx, store, path, old.id)
        new = replace(new, path=path)
    if data is not None:
        growth = len(data) - old.content_size_bytes
        _grow(core, store, growth)
        store.total_bytes += growth
        new = replace(new, content_size_bytes=len(data), content_sha256=texts.sha256(data))
    return new


def deleting(caller: Caller, change: DeleteMemory) -> Callable[[Tx, LockedStore], None]:
    """Judge a delete."""
    expected = None
    if change.expected_content_sha256 is not None:
        expected = ContentIs(change.expected_content_sha256)

    def step(tx: Tx, store: LockedStore) -> None:
        old = find(tx, store.id, change.memory_id, "basic")
        _unchanged(old, expected)
        seq, at_us = store.stamp()
        gone = replace(old, version_id=ids.new(ids.VERSION))
        _record(tx, store, caller, gone, "deleted", seq, at_us, None)
        memories.remove(tx, old.id)
        store.memory_count -= 1
        store.total_bytes -= old.content_size_bytes

    return step


def _unchanged(memory: Memory, precondition: ContentIs | None) -> None:
    """PreconditionFailed when the content is not the one the caller believes."""
    if precondition is not None and precondition.content_sha256 != memory.content_sha256:
        raise PreconditionFailed(memory.id)


def _free(tx: Tx, store: LockedStore, path: str, own_id: str = "") -> None:
    """PathConflict when another memory is at, above or below the path."""
    found = memories.overlapping(tx, store.id, path, own_id)
    if found is not None:
        raise PathConflict(path, conflicting_path=found[0], conflicting_memory_id=found[1])


def _room(core: Core, store: LockedStore, size: int) -> None:
    """StoreFull when one more memory, of that size, is too much."""
    cap = core.max_memories if store.max_memories is None else store.max_memories
    if store.memory_count >= cap:
        raise StoreFull(store.id, cap=f"{cap} memories")
    _grow(core, store, size)


def _grow(core: Core, store: LockedStore, growth: int) -> None:
    """StoreFull when that many bytes more are too much; shrinking is always allowed."""
    cap = core.max_bytes if store.max_bytes is None else store.max_bytes
    if growth > 0 and store.total_bytes + growth > cap:
        raise StoreFull(store.id, cap=f"{cap} bytes")


def _record(
    tx: Tx,
    store: LockedStore,
    caller: Caller,
    memory: Memory,
    operation: str,
    seq: int,
    at_us: int,
    data: bytes | None,
) -> None:
    """The version of a change, and its event."""
    versions.add(
        tx,
        id=memory.version_id,
        epoch=store.epoch(tx),
        memory_id=memory.id,
        seq=seq,
        at_us=at_us,
        operation=operation,
        path=memory.path,
        content=data,
        sha256=None if data is None else memory.content_sha256,
        actor=caller.actor,
    )
    events.add(
        tx,
        store_id=memory.store_id,
        seq=seq,
        at_us=at_us,
        kind=_KIND[operation],
        by=caller.actor,
        memory_id=memory.id,
        version_id=memory.version_id,
    )
