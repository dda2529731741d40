"""Rollback: what was written is undone by writing again, as one act.

The plan is made from a reading, so that nobody waits while texts are compared, and carried out in
one writing transaction if the store is still as it was read; otherwise it is made anew.
"""

from __future__ import annotations

from dataclasses import replace

from memstore.model import clock, limits
from memstore.model.access import Caller
from memstore.model.diffs import unified
from memstore.model.errors import Invalid, StoreArchived, StoreFull
from memstore.model.memories import CreateMemory, DeleteMemory, UpdateMemory
from memstore.model.rollback import (
    Move,
    Rollback,
    RollbackChange,
    RollbackTarget,
    State,
    Wish,
    ordered,
    settled,
    without,
)
from memstore.model.versions import Operation, Version
from memstore.service.changes import creating, deleting, updating
from memstore.service.core import EVER, Core, find_store, judged, lock_store, see_store
from memstore.service.versions import find
from memstore.storage import memories, versions
from memstore.storage.statement import Tx
from memstore.storage.stores import LockedStore

TRIES = 3
"""Plans made outside the writing transaction before one is made inside it."""
REDACTED = "A version that is needed for it was redacted."

_OPERATION: dict[str, Operation] = {
    "recreated": "created",
    "deleted": "deleted",
    "restored": "modified",
    "renamed": "modified",
    "merged": "modified",
}


def rollback(
    core: Core, caller: Caller, store_id: str, target: RollbackTarget, *, dry_run: bool
) -> Rollback:
    """Undo what the target says; in a dry run only tell what that would be."""
    with judged(core, caller, store_id, "read" if dry_run else "write"):
        target = target.validated()
    for left in reversed(range(TRIES)):
        with core.engine.read() as tx:
            if find_store(tx, caller, store_id).archived_at is not None:
                raise StoreArchived(store_id)
            seq = see_store(tx, caller, store_id)[-1]
            wishes, moves = _planned(tx, store_id, seq, target)
        if dry_run:
            return Rollback(store_id, True, None, _previewed(wishes))
        done = _carried_out(core, caller, store_id, target, (seq, wishes, moves), last=not left)
        if done is not None:
            return done
    raise AssertionError("the last try is carried out")


_Plan = tuple[int, list[Wish], list[Move]]


def _carried_out(
    core: Core, caller: Caller, store_id: str, target: RollbackTarget, plan: _Plan, *, last: bool
) -> Rollback | None:
    """The rollback, done; None when the store has moved on since the plan was made."""

    def work(tx: Tx) -> Rollback | None:
        store = lock_store(tx, caller, store_id)
        if store.archived_at_us is not None:
            raise StoreArchived(store_id)
        seq, wishes, moves = plan
        if store.last_seq != seq:
            if not last:
                return None
            wishes, moves = _planned(tx, store_id, store.last_seq, target)
        before = clock.from_us(store.last_at_us)
        after = _played(core, caller, tx, store, moves)
        if moves:
            store.save(tx)
        changes = [_told(wish, after.get(n)) for n, wish in enumerate(wishes)]
        return Rollback(store_id, False, before, _sorted(changes))

    return core.engine.write(work)


def _played(
    core: Core, caller: Caller, tx: Tx, store: LockedStore, moves: list[Move]
) -> dict[int, tuple[str, str]]:
    """Make the changes; the memory and its version at the end, by wish.

    Caps hold for the end: in between, what grows may come before what shrinks.
    """
    caps = store.max_memories, store.max_bytes
    held = store.memory_count, store.total_bytes
    store.max_memories, store.max_bytes = EVER, EVER
    after: dict[int, tuple[str, str]] = {}
    for move in moves:
        if move.path is None:
            deleting(caller, DeleteMemory(move.memory_id))(tx, store)
            (gone,) = versions.page(
                tx, store.id, {"memory": move.memory_id}, before=EVER, view="basic", limit=1
            )
            after[move.wish] = move.memory_id, gone.id
            continue
        if move.memory_id:
            change = UpdateMemory(move.memory_id, move.text, move.path)
            memory = updating(core, caller, change, "basic")(tx, store)
        else:
            memory = creating(core, caller, CreateMemory(move.path, move.text or ""))(tx, store)
        after[move.wish] = memory.id, memory.version_id
    store.max_memories, store.max_bytes = caps
    most = core.max_memories if caps[0] is None else caps[0]
    bytes_ = core.max_bytes if caps[1] is None else caps[1]
    if store.memory_count > max(most, held[0]):
        raise StoreFull(store.id, cap=f"{most} memories")
    if store.total_bytes > max(bytes_, held[1]):
        raise StoreFull(store.id, cap=f"{bytes_} bytes")
    return after


# The plan


def _planned(
    tx: Tx, store_id: str, last_seq: int, target: RollbackTarget
) -> tuple[list[Wish], list[Move]]:
    """What each memory should be, and the changes that make it so."""
    if target.version_id is not None:
        wishes = [_to_version(tx, store_id, target, target.version_id)]
    elif target.to is not None:
        wishes = _to_moment(tx, store_id, last_seq, target, clock.to_us(target.to))
    else:
        wishes = _without_author(tx, store_id, target, target.author or "")
    live = memories.places(tx, store_id)
    wishes = settled(wishes, live)
    return wishes, ordered(wishes, live)


def _to_version(tx: Tx, store_id: str, target: RollbackTarget, version_id: str) -> Wish:
    version = find(tx, store_id, version_id, "full")
    now, head = _now(tx, store_id, version.memory_id)
    place = now.path if now else head.path
    if version.path is not None and not target.covers(place, version.path):
        raise Invalid(f"Version {version_id} is of another memory than the one at the path.")
    if version.redacted_at is not None and version.operation != "deleted":
        return Wish(version.memory_id, now, now, head.id, blocked=REDACTED, place=place)
    return Wish(version.memory_id, now, _state(version), head.id, place=version.path or place)


def _to_moment(
    tx: Tx, store_id: str, last_seq: int, target: RollbackTarget, at_us: int
) -> list[Wish]:
    """A wish for each memory with versions since, the latest changed first."""
    seq = versions.last_at(tx, store_id, last_seq, at_us)
    touched = versions.touched(tx, store_id, seq)
    wishes = []
    for memory_id in sorted(touched, key=lambda id: -touched[id]):
        found = versions.page(
            tx, store_id, {"memory": memory_id}, before=seq + 1, view="full", limit=1
        )
        then = found[0] if found else None
        now, head = _now(tx, store_id, memory_id)
        there = then is not None and then.operation != "deleted"
        place = now.path if now else head.path
        if (now is None and not there) or not target.covers(
            place, then.path if then is not None else None
        ):
            continue
        if then is not None and there and then.redacted_at is not None:
            wishes.append(Wish(memory_id, now, now, head.id, blocked=REDACTED, place=place))
        else:
            wanted = None if then is None else _state(then)
            wishes.append(Wish(memory_id, now, wanted, head.id, place=place))
    return wishes


def _without_author(tx: Tx, store_id: str, target: RollbackTarget, author: str) -> list[Wish]:
    """A wish for each memory the author wrote, the latest written first."""
    written = versions.written(tx, store_id, author)
    wishes = []
    for memory_id in sorted(written, key=lambda id: -written[id]):
        past = versions.page(
            tx, store_id, {"memory": memory_id}, before=EVER, view="basic", limit=EVER
        )
        now, head = _now(tx, store_id, memory_id)
        if target.covers(now.path if now else None, *(version.path for version in past)):
            wishes.append(_undone(tx, store_id, now, head, past[::-1], author))
    return wishes


def _undone(
    tx: Tx, store_id: str, now: State | None, head: Version, past: list[Version], author: str
) -> Wish:
    """A memory without each of the author's runs of versions, the last run first."""
    wanted, merged, note = now, False, None
    place = now.path if now else next((v.path for v in reversed(past) if v.path), None)

    def wish(wanted: State | None, **why: str | None) -> Wish:
        return Wish(head.memory_id, now, wanted, head.id, merged=merged, place=place, **why)

    for before, after in reversed(_runs(past, author)):
        states = []
        for version in (before, after):
            if version is not None and version.operation != "deleted":
                if version.redacted_at is not None:
                    return wish(now, blocked=REDACTED)
                version = find(tx, store_id, version.id, "full")
            states.append(None if version is None else _state(version))
        undone = without(wanted, *states)
        if undone.blocked is not None:
            return wish(now, blocked=undone.blocked)
        wanted, note = undone.state, undone.note or note
        merged = merged or undone.merged
    return wish(wanted, note=note if wanted == now else None)


def _runs(past: list[Version], author: str) -> list[tuple[Version | None, Version]]:
    """The author's unbroken runs, oldest first: the version before each, and its last."""
    runs: list[tuple[Version | None, Version]] = []
    previous: Version | None = None
    own = False
    for version in past:
        if version.created_by is not None and version.created_by.id == author:
            runs[-1:] = [(runs[-1][0], version)] if own else [*runs[-1:], (previous, version)]
            own = True
        else:
            own = False
        previous = version
    return runs


def _now(tx: Tx, store_id: str, memory_id: str) -> tuple[State | None, Version]:
    """What a memory is now, and its last version."""
    memory = memories.get(tx, store_id, memory_id, "full")
    (head,) = versions.page(tx, store_id, {"memory": memory_id}, before=EVER, view="basic", limit=1)
    return None if memory is None else State(memory.path, memory.content or ""), head


def _state(version: Version) -> State | None:
    """What a version that is not redacted left."""
    if version.operation == "deleted" or version.path is None:
        return None
    return State(version.path, version.content or "")


# The answer


def _told(wish: Wish, after: tuple[str, str] | None, diff: str | None = None) -> RollbackChange:
    """One line of the answer; `after` is the memory and version there is now."""
    outcome = wish.outcome
    there = wish.now if wish.blocked is not None else wish.wanted
    return RollbackChange(
        memory_id=after[0] if after else wish.memory_id,
        path=(there or wish.now or State(wish.place or "", "")).path or None,
        old_path=None if wish.now is None else wish.now.path,
        operation=_OPERATION.get(outcome),
        version_id_before=wish.head,
        version_id_after=after[1] if after else None,
        outcome=outcome,
        reason=wish.blocked or (wish.note if outcome == "unchanged" else None),
        diff=diff,
    )


def _sorted(changes: list[RollbackChange]) -> tuple[RollbackChange, ...]:
    return tuple(
        sorted(changes, key=lambda change: ((change.path or "").encode(), change.memory_id))
    )


def _previewed(wishes: list[Wish]) -> tuple[RollbackChange, ...]:
    """The answer of a dry run: with diffs, as long as they are not too much altogether."""
    changes = []
    room = limits.ROLLBACK_DIFF_BYTES
    for wish in wishes:
        diff = None
        if wish.outcome not in ("unchanged", "conflict"):
            if room > 0:
                diff = _diff(wish)
                room -= len(diff)
            else:
                changes.append(replace(_told(wish, None), diff_omitted=True))
                continue
        changes.append(_told(wish, None, diff))
    return _sorted(changes)


def _diff(wish: Wish) -> str:
    now, wanted = wish.now, wish.wanted
    return unified(
        now.text if now else "",
        wanted.text if wanted else "",
        now.path if now else None,
        wanted.path if wanted else None,
    )
