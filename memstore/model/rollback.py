"""Rollback: what it is asked, what it answers, and the plan in between. Pure: no storage here.

A plan starts from wishes: what each memory says now, and what it should say. A wish that cannot be
granted without guessing, or without touching what nobody asked about, is a conflict: listed, with
a reason, and left alone. Every step of the order that comes out leaves a store that keeps the
rules of paths, so any moment in the middle of a rollback can itself be rolled back to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, get_args

from memstore.model import content, ids, paths
from memstore.model.errors import Invalid, MemstoreError
from memstore.model.merge import merge
from memstore.model.versions import Operation

Outcome = Literal["restored", "recreated", "deleted", "renamed", "merged", "unchanged", "conflict"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

MERGE_COST = 4_000_000
"""Pairs of equal lines above which texts are not merged: comparing takes time by that number."""


@dataclass(frozen=True, slots=True)
class RollbackTarget:
    """What to go back to, or whose writes to undo: exactly one of the first five.

    `version_id`: one memory to that version, its text and its path. `to`: what there was at that
    moment, inclusive. `session_id`, `api_key_id`, `actor_id`: without what that author wrote.
    `path` narrows it to the memory at that path or those below it, now or then.
    """

    version_id: str | None = None
    to: datetime | None = None
    session_id: str | None = None
    api_key_id: str | None = None
    actor_id: str | None = None
    path: str | None = None

    @property
    def author(self) -> str | None:
        """The id of the author whose writes are to be undone."""
        return self.session_id or self.api_key_id or self.actor_id

    def validated(self) -> RollbackTarget:
        """The target with a clean path; Invalid when it is not exactly one, or not well formed."""
        given = (self.version_id, self.to, self.session_id, self.api_key_id, self.actor_id)
        if sum(one is not None for one in given) != 1:
            raise Invalid(
                "A rollback names one of memory_version_id, to, session_id, api_key_id, actor_id."
            )
        for name, text, prefix in (
            ("session_id", self.session_id, ids.SESSION),
            ("api_key_id", self.api_key_id, ids.KEY),
        ):
            if text is not None and not ids.is_id(text, prefix):
                raise Invalid(f"{name} is the id of one, {prefix}_...")
        if self.actor_id is not None and not (self.actor_id and self.actor_id.isprintable()):
            raise Invalid("actor_id is the id of an actor.")
        if self.path in (None, "/"):
            return replace(self, path=None)
        return replace(self, path=paths.validate((self.path or "").removesuffix("/")))

    def covers(self, *places: str | None) -> bool:
        """Whether any of a memory's paths lies within `path`."""
        top = self.path
        return top is None or any(
            place is not None and (place == top or place.startswith(f"{top}/")) for place in places
        )


@dataclass(frozen=True, slots=True)
class RollbackChange:
    """What a rollback did, or would do, with one memory.

    `memory_id` is the memory after it: a new one when it was re-created. `path` is where it is
    after, or was before it was deleted; `old_path` where it was before, None when it was not.
    `operation` is that of the version it made; None when it made none. `diff` is a unified diff,
    in a dry run only; `diff_omitted` says that it was left out of a very large answer.
    """

    memory_id: str
    path: str | None
    old_path: str | None
    operation: Operation | None
    version_id_before: str | None
    version_id_after: str | None
    outcome: Outcome
    reason: str | None = None
    diff: str | None = None
    diff_omitted: bool = False


@dataclass(frozen=True, slots=True)
class Rollback:
    """The answer: every memory concerned, in order of paths.

    `before` is the moment before it: rolling the store back to that undoes it. None in a dry run.
    """

    store_id: str
    dry_run: bool
    before: datetime | None
    changes: tuple[RollbackChange, ...]


@dataclass(frozen=True, slots=True)
class State:
    """What a live memory is: where, and which text."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Wish:
    """What one memory is now and what it should be; None: not there.

    `head` is its present version. `blocked` is why it cannot be granted; `note` why nothing needs
    to be done. `place` is for showing where neither state tells a path.
    """

    memory_id: str
    now: State | None
    wanted: State | None
    head: str | None = None
    merged: bool = False
    blocked: str | None = None
    note: str | None = None
    place: str | None = None

    @property
    def moves(self) -> bool:
        """Whether granting it takes a path that is not its own now."""
        if self.blocked is not None or self.wanted is None:
            return False
        return self.now is None or self.now.path != self.wanted.path

    @property
    def outcome(self) -> Outcome:
        """What granting it amounts to."""
        if self.blocked is not None:
            return "conflict"
        if self.now == self.wanted:
            return "unchanged"
        if self.now is None:
            return "recreated"
        if self.wanted is None:
            return "deleted"
        if self.merged:
            return "merged"
        return "renamed" if self.now.text == self.wanted.text else "restored"


@dataclass(frozen=True, slots=True)
class Move:
    """One change to make; `path` None: delete. `memory_id` is "" for a memory to create."""

    wish: int
    memory_id: str
    path: str | None
    text: str | None


def settled(wishes: Sequence[Wish], live: Mapping[str, str]) -> list[Wish]:
    """The wishes with every one that is in another's way blocked.

    `live` is every live path with its memory. Those first in the list go first where two want
    one place.
    """
    wishes = _paired(wishes)
    own = {wish.memory_id for wish in wishes if wish.now is not None}
    others = [path for path, memory_id in live.items() if memory_id not in own]
    while True:
        places = _Places(others)
        for wish in wishes:
            if not wish.moves and (stays := wish.now if wish.blocked else wish.wanted):
                places.add(stays.path)
        blocked = [n for n, wish in enumerate(wishes) if wish.moves and _held(places, wish)]
        if not blocked:
            for n, wish in enumerate(wishes):
                if not wish.moves or wish.wanted is None:
                    continue
                if places.holder(wish.wanted.path) is not None:
                    blocked.append(n)
                else:
                    places.add(wish.wanted.path)
        if not blocked:
            return wishes
        for n in blocked:
            wanted = wishes[n].wanted
            where = "" if wanted is None else wanted.path
            wishes[n] = replace(wishes[n], blocked=f"Another memory is in the way at {where!r}.")


def _held(places: _Places, wish: Wish) -> bool:
    return wish.wanted is not None and places.holder(wish.wanted.path) is not None


def _paired(wishes: Sequence[Wish]) -> list[Wish]:
    """A memory that should go and one that should come back to its path are one that changes."""
    leaving = {
        wish.now.path: n
        for n, wish in enumerate(wishes)
        if wish.now is not None and wish.wanted is None and wish.blocked is None
    }
    found = list(wishes)
    dropped = set()
    for n, wish in enumerate(wishes):
        if wish.now is not None or wish.wanted is None or wish.blocked is not None:
            continue
        stand_in = leaving.pop(wish.wanted.path, None)
        if stand_in is not None:
            found[stand_in] = replace(found[stand_in], wanted=wish.wanted, merged=wish.merged)
            dropped.add(n)
    return [wish for n, wish in enumerate(found) if n not in dropped]


class _Places:
    """Paths that are taken, asked for overlaps."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._at: Counter[str] = Counter()
        self._above: Counter[str] = Counter()
        for path in taken:
            self.add(path)

    def add(self, path: str) -> None:
        self._at[path] += 1
        self._above.update(paths.ancestors(path))

    def remove(self, path: str) -> None:
        self._at[path] -= 1
        self._above.subtract(paths.ancestors(path))

    def holder(self, path: str) -> str | None:
        """A path that is taken and overlaps; for one below it, the path itself."""
        if self._at[path] or self._above[path]:
            return path
        return next((above for above in paths.ancestors(path) if self._at[above]), None)


def ordered(wishes: Sequence[Wish], live: Iterable[str]) -> list[Move]:
    """The changes that grant settled wishes, each possible after those before it.

    What goes comes first, then what stays in its place, then what moves: into places that are free
    by then. A ring of moves is opened by stepping aside, which is one more change.
    """
    granted = [
        (n, wish)
        for n, wish in enumerate(wishes)
        if wish.blocked is None and wish.now != wish.wanted
    ]
    moves: list[Move] = []
    places = _Places(live)
    for n, wish in granted:
        if wish.wanted is None and wish.now is not None:
            moves.append(Move(n, wish.memory_id, None, None))
            places.remove(wish.now.path)
    moves += [
        Move(n, wish.memory_id, wish.wanted.path, wish.wanted.text)
        for n, wish in granted
        if wish.wanted is not None and not wish.moves
    ]
    waiting: list[_Waiting] = [
        (n, wish.memory_id, wish.now, wish.wanted)
        for n, wish in granted
        if wish.moves and wish.wanted is not None
    ]
    while waiting:
        later: list[_Waiting] = []
        for n, memory_id, now, wanted in waiting:
            if now is not None:
                places.remove(now.path)
            if places.holder(wanted.path) is None:
                places.add(wanted.path)
                moves.append(Move(n, "" if now is None else memory_id, wanted.path, wanted.text))
                continue
            if now is not None:
                places.add(now.path)
            later.append((n, memory_id, now, wanted))
        if len(later) == len(waiting):
            later[0] = _aside(later, places, moves)
        waiting = later
    return moves


_Waiting = tuple[int, str, State | None, State]


def _aside(waiting: list[_Waiting], places: _Places, moves: list[Move]) -> _Waiting:
    """Move the first live one of a ring to a place of its own for a moment."""
    at = next(n for n, one in enumerate(waiting) if one[2] is not None)
    waiting[0], waiting[at] = waiting[at], waiting[0]
    wish, memory_id, now, wanted = waiting[0]
    assert now is not None
    aside = f"/{memory_id}"
    while places.holder(aside) is not None:
        aside += "-"
    places.remove(now.path)
    places.add(aside)
    moves.append(Move(wish, memory_id, aside, None))
    return wish, memory_id, replace(now, path=aside), wanted


@dataclass(frozen=True, slots=True)
class Undone:
    """What is left of a memory without an author's writes, or why that cannot be told."""

    state: State | None
    merged: bool = False
    blocked: str | None = None
    note: str | None = None


def without(now: State | None, before: State | None, after: State | None) -> Undone:
    """`now` without the change from `before` to `after`: three ways, base `after`."""
    if now == after:
        return Undone(before)
    if now == before or before == after:
        return Undone(now)
    if now is None:
        return Undone(None, note="It was deleted since.")
    if after is None:
        return Undone(now, note="It is there again already.")
    if before is None:
        return Undone(now, blocked="It was made by this author and changed by others since.")
    return _three_ways(now, before, after)


def _three_ways(now: State, before: State, after: State) -> Undone:
    path = now.path
    if before.path != after.path and now.path != before.path:
        if now.path != after.path:
            return Undone(now, blocked="Others have renamed it since.")
        path = before.path
    text = _merged(after.text, before.text, now.text)
    if text is None:
        return Undone(now, blocked="Others have changed the same lines since, or too much to tell.")
    try:
        content.encode(text)
    except MemstoreError:
        return Undone(now, blocked="The text without it is larger than a memory may be.")
    return Undone(State(path, text), merged=text not in (before.text, now.text))


def _merged(base: str, mine: str, theirs: str) -> str | None:
    """A merge; None also where comparing would take too long."""
    if mine == theirs or base in (mine, theirs):
        return merge(base, mine, theirs)
    lines = Counter(base.split("\n"))
    for other in (mine, theirs):
        pairs = sum(lines[line] * number for line, number in Counter(other.split("\n")).items())
        if pairs > MERGE_COST:
            return None
    return merge(base, mine, theirs)
