"""Rejected writes: record, list, read, apply, dismiss."""

from __future__ import annotations

from memstore.model import content as texts
from memstore.model import ids, limits, pages, paths
from memstore.model.access import Caller
from memstore.model.errors import (
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    PreconditionFailed,
    StoreArchived,
    StoreFull,
)
from memstore.model.memories import CreateMemory, Memory, UpdateMemory
from memstore.model.preconditions import ContentIs
from memstore.model.rejected_writes import REASONS, STATES, RejectedWrite
from memstore.service.changes import creating, updating
from memstore.service.core import (
    EVER,
    Core,
    check_view,
    judged,
    lock_store,
    number_key,
    reread,
    see_store,
)
from memstore.storage import events, memories, rejected_writes
from memstore.storage.statement import Tx
from memstore.storage.stores import LockedStore


def record(
    core: Core,
    caller: Caller,
    store_id: str,
    *,
    path: str,
    content: str,
    memory_id: str | None,
    base_content_sha256: str | None,
    reason: str,
) -> RejectedWrite:
    """Keep a text that lost a conflict, once."""
    with judged(core, caller, store_id, "write"):
        paths.validate(path)
        data = texts.encode(content)
        sha256 = texts.sha256(data)
        if memory_id is not None and not ids.is_id(memory_id, ids.MEMORY):
            raise Invalid("memory_id is the id of a memory, or left out.")
        if base_content_sha256 is not None:
            texts.validate_sha256(base_content_sha256)
        if reason not in REASONS:
            raise Invalid(f"reason is one of {', '.join(REASONS)}")

    def work(tx: Tx) -> RejectedWrite:
        store = lock_store(tx, caller, store_id)
        if store.archived_at_us is not None:
            raise StoreArchived(store_id)
        twin = rejected_writes.open_twin(
            tx, store_id, path=path, memory_id=memory_id, sha256=sha256, actor=caller.actor
        )
        if twin is not None:
            return _find(tx, store_id, twin, "full")
        _room(tx, store_id)
        id = ids.new(ids.REJECTED_WRITE)
        seq, at_us = store.stamp()
        rejected_writes.add(
            tx,
            id=id,
            store_id=store_id,
            seq=seq,
            at_us=at_us,
            reason=reason,
            memory_id=memory_id,
            path=path,
            base_sha256=base_content_sha256,
            content=data,
            sha256=sha256,
            actor=caller.actor,
        )
        events.add(
            tx,
            store_id=store_id,
            seq=seq,
            at_us=at_us,
            kind="write.rejected",
            by=caller.actor,
            memory_id=memory_id,
        )
        store.save(tx)
        return _find(tx, store_id, id, "full")

    return core.engine.write(work)


def _room(tx: Tx, store_id: str) -> None:
    """StoreFull when one more open one is too many: those that wait are not dropped for it."""
    cap = limits.REJECTED_WRITES
    if rejected_writes.count_open(tx, store_id) >= cap:
        raise StoreFull(
            store_id,
            cap=f"{cap} open rejected writes",
            message=f"Store {store_id} keeps {cap} open rejected writes and takes no more. "
            "Apply or dismiss some.",
        )


@reread
def get(core: Core, caller: Caller, store_id: str, id: str, view: str) -> RejectedWrite:
    """One rejected write, open or not."""
    with judged(core, caller, store_id, "read"):
        check_view(view)
    with core.engine.read() as tx:
        see_store(tx, caller, store_id)
        return _find(tx, store_id, id, view)


def _find(tx: Tx, store_id: str, id: str, view: str) -> RejectedWrite:
    """The rejected write of an id; else NotFound."""
    found = None
    if ids.is_id(id, ids.REJECTED_WRITE):
        found = rejected_writes.get(tx, store_id, id, view)
    if found is None:
        raise NotFound("rejected write", id)
    return found


@reread
def list_(
    core: Core,
    caller: Caller,
    store_id: str,
    *,
    state: str | None,
    view: str,
    limit: int,
    page: str | None,
) -> pages.Page[RejectedWrite]:
    """Rejected writes of a store, newest first."""
    with judged(core, caller, store_id, "read"):
        check_view(view)
        limit = pages.page_limit(limit, view)
        if state is not None and state not in STATES:
            raise Invalid(f"state is one of {', '.join(STATES)}")
        listing = f"rejected_writes {store_id} {state}"
        before = EVER
        if page is not None:
            before = number_key(pages.decode_cursor(listing, page))
    with core.engine.read() as tx:
        see_store(tx, caller, store_id)
        found = rejected_writes.page(
            tx, store_id, state=state, before=before, view=view, limit=limit + 1
        )
    shown = tuple(found[:limit])
    if len(found) <= limit:
        return pages.Page(shown, None)
    return pages.Page(shown, pages.encode_cursor(listing, shown[-1].seq))


def apply(
    core: Core, caller: Caller, store_id: str, id: str, precondition: ContentIs | None
) -> RejectedWrite:
    """Save its text after all, and note the version that has it."""
    with judged(core, caller, store_id, "write"):
        pass

    def work(tx: Tx) -> RejectedWrite:
        store = lock_store(tx, caller, store_id)
        if store.archived_at_us is not None:
            raise StoreArchived(store_id)
        write = _find(tx, store_id, id, "full")
        if write.state == "applied":
            return write
        if write.state == "dismissed":
            raise Conflict(f"Rejected write {id} was dismissed: its text is gone.")
        memory = _saved(core, caller, tx, store, write, precondition)
        _, at_us = store.stamp()
        rejected_writes.resolve(
            tx,
            store_id,
            id,
            state="applied",
            memory_id=memory.id,
            version_id=memory.version_id,
            at_us=at_us,
            by=caller.actor,
        )
        store.save(tx)
        return _find(tx, store_id, id, "full")

    return core.engine.write(work)


def _saved(
    core: Core,
    caller: Caller,
    tx: Tx,
    store: LockedStore,
    write: RejectedWrite,
    precondition: ContentIs | None,
) -> Memory:
    """The memory with the text of an open rejected write."""
    path, text = write.path or "", write.content or ""
    memory = None
    if write.memory_id is not None:
        memory = memories.get(tx, store.id, write.memory_id, "basic")
    memory = memory or memories.at_path(tx, store.id, path, "basic")
    if memory is None:
        if precondition is not None:
            raise PreconditionFailed(write.memory_id or "")
        return creating(core, caller, CreateMemory(path, text))(tx, store)
    if precondition is not None and precondition.content_sha256 != memory.content_sha256:
        raise PreconditionFailed(memory.id)
    return updating(core, caller, UpdateMemory(memory.id, text), "basic")(tx, store)


def dismiss(core: Core, caller: Caller, store_id: str, id: str) -> RejectedWrite:
    """Destroy what it says. Again changes nothing."""
    with judged(core, caller, store_id, "read"):
        if not (caller.may("redact", store_id) or caller.may("write", store_id)):
            raise Forbidden("This credential may not dismiss a rejected write.")

    def work(tx: Tx) -> RejectedWrite:
        store = lock_store(tx, caller, store_id)
        write = _find(tx, store_id, id, "full")
        if not caller.may("redact", store_id) and write.created_by != caller.actor:
            raise Forbidden(
                "Dismissing what another has written destroys it, which needs the scope 'redact'."
            )
        if write.state == "dismissed":
            return write
        if write.state == "applied":
            raise Conflict(
                f"Rejected write {id} was applied: its text is in version {write.version_id}."
            )
        _, at_us = store.stamp()
        rejected_writes.resolve(
            tx,
            store_id,
            id,
            state="dismissed",
            memory_id=write.memory_id,
            version_id=None,
            at_us=at_us,
            by=caller.actor,
        )
        store.save(tx)
        return _find(tx, store_id, id, "full")

    return core.engine.write(work)
