"""Random moves on a store and on a plain dict: they must agree after each."""

from __future__ import annotations

import shutil
import tempfile
from copy import deepcopy
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from memstore.model.errors import MemstoreError
from memstore.model.memories import (
    Change,
    CreateMemory,
    DeleteMemory,
    Memory,
    MemoryPrefix,
    UpdateMemory,
)
from memstore.model.preconditions import ContentIs
from memstore.service import Service
from tests.support import postgres
from tests.support.reference import ReferenceStore, Refused, digest
from tests.support.walking import every

NAMES = ["a", "b", "a.b", "a0", "A", "é", "日本"]
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=4).map(lambda n: "/" + "/".join(n))
TEXTS = st.one_of(
    st.sampled_from(["", "x", "same", "same text again"]),
    st.text(
        alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=40
    ),
)
NUMBERS = st.integers(min_value=0, max_value=10_000)
CAPS = {"max_memories": 9, "max_bytes": 400}


class RandomMoves(RuleBasedStateMachine):
    """One store, played by the service over SQLite and by the reference."""

    def __init__(self) -> None:
        super().__init__()
        self.service = self.open_service()
        self.backend = self.service.backend_for(self.service.operator())
        self.store_id = self.backend.create_store(name="moves").id
        self.reference = ReferenceStore(**CAPS)

    def open_service(self) -> Service:
        """A service on a new database."""
        self.folder = Path(tempfile.mkdtemp(prefix="memstore-moves-"))
        return Service(f"sqlite:///{self.folder / 'memstore.db'}", **CAPS)

    def remove(self) -> None:
        """Leave nothing of the database."""
        shutil.rmtree(self.folder)

    def teardown(self) -> None:
        """Every invariant of the database holds at the end of every play."""
        try:
            assert self.service.check() == []
        finally:
            self.service.close()
            self.remove()

    def pick(self, number: int) -> str:
        """A live memory's id; sometimes a dead one's, or nobody's."""
        known = sorted({said.memory for said in self.reference.history})
        return known[number % len(known)] if known else "mem_01" + "1" * 22

    def seen(self, memory: str, guess: int) -> str | None:
        """No precondition, the right hash, or a stale one."""
        if guess == 0:
            return None
        _, text = self.reference.live.get(memory, ("", ""))
        return digest(text) if guess == 1 else digest(text + "stale")

    @rule(path=PATHS, text=TEXTS)
    def create(self, path: str, text: str) -> None:
        """Create at a path that may be taken or overlap."""
        expected = refusal(lambda: self.reference.may_create(path, text))
        made: list[Memory] = []
        got = refusal(
            lambda: made.append(self.backend.create_memory(self.store_id, path=path, content=text))
        )
        assert got == expected
        if made:
            self.reference.create(made[0].id, path, text)

    @rule(
        number=NUMBERS,
        path=st.none() | PATHS,
        text=st.none() | TEXTS,
        guess=st.integers(min_value=0, max_value=2),
    )
    def update(self, number: int, path: str | None, text: str | None, guess: int) -> None:
        """Rewrite, rename or both, with or without a precondition."""
        if path is None and text is None:
            return
        memory = self.pick(number)
        seen = self.seen(memory, guess)
        expected = refusal(lambda: self.reference.update(memory, path, text, seen))
        got = refusal(
            lambda: self.backend.update_memory(
                self.store_id,
                memory,
                content=text,
                path=path,
                precondition=None if seen is None else ContentIs(seen),
            )
        )
        assert got == expected

    @rule(number=NUMBERS, guess=st.integers(min_value=0, max_value=2))
    def delete(self, number: int, guess: int) -> None:
        """Delete, with or without an expectation."""
        memory = self.pick(number)
        seen = self.seen(memory, guess)
        expected = refusal(lambda: self.reference.delete(memory, seen))
        got = refusal(
            lambda: self.backend.delete_memory(self.store_id, memory, expected_content_sha256=seen)
        )
        assert got == expected

    @rule(moves=st.lists(st.tuples(PATHS, TEXTS, NUMBERS), min_size=1, max_size=4))
    def batch(self, moves: list[tuple[str, str, int]]) -> None:
        """Several changes in one transaction: all or none."""
        changes: list[Change] = []
        for path, text, number in moves:
            memory = self.pick(number)
            changes.append(
                (
                    CreateMemory(path, text),
                    UpdateMemory(memory, content=text, path=path),
                    DeleteMemory(memory),
                )[number % 3]
            )
        expected, trial = self._play_batch(changes)
        made: list[Memory | None] = []
        got = refusal(lambda: made.extend(self.backend.apply_changes(self.store_id, changes)))
        assert got == expected
        if got is None:
            names = {f"new{n}": memory.id for n, memory in enumerate(made) if memory is not None}
            trial.live = {names.get(id, id): value for id, value in trial.live.items()}
            for said in trial.history:
                said.memory = names.get(said.memory, said.memory)
            self.reference = trial

    def _play_batch(self, changes: list[Change]) -> tuple[str | None, ReferenceStore]:
        """What the reference says of a batch, played on a copy of it."""
        trial = deepcopy(self.reference)

        def play() -> None:
            for n, change in enumerate(changes):
                if isinstance(change, CreateMemory):
                    trial.may_create(change.path, change.content)
                    trial.create(f"new{n}", change.path, change.content)
                elif isinstance(change, UpdateMemory):
                    trial.update(change.memory_id, change.path, change.content, None)
                else:
                    trial.delete(change.memory_id, None)

        return refusal(play), trial

    @precondition(lambda self: self.reference.history)
    @rule(number=NUMBERS)
    def redact(self, number: int) -> None:
        """Redact any version ever written."""
        versions = every(self.backend.list_versions, self.store_id, limit=100)[::-1]
        index = number % len(versions)
        expected = refusal(lambda: self.reference.redact(index))
        got = refusal(lambda: self.backend.redact_version(self.store_id, versions[index].id))
        assert got == expected

    @precondition(lambda self: len(self.reference.history) > 25)
    @rule()
    def archive(self) -> None:
        """Archive, late in a play, since it ends most moves."""
        self.backend.archive_store(self.store_id)
        self.reference.archive()

    @rule(prefix=PATHS, limit=st.integers(min_value=1, max_value=5))
    def fold(self, prefix: str, limit: int) -> None:
        """One level of a directory, paged."""
        self._one_level(prefix + "/", limit)
        self._one_level("/", limit)

    def _one_level(self, prefix: str, limit: int) -> None:
        """Compare one level with what the dict has."""
        expected = set()
        for path, _ in self.reference.live.values():
            if path.startswith(prefix):
                head, slash, _ = path[len(prefix) :].partition("/")
                expected.add(prefix + head + slash)
        items = every(
            self.backend.list_memories,
            self.store_id,
            path_prefix=prefix,
            depth=1,
            limit=limit,
        )
        assert [item.path for item in items] == sorted(expected, key=str.encode)
        assert all(isinstance(item, MemoryPrefix) == item.path.endswith("/") for item in items)

    @invariant()
    def the_live_memories_agree(self) -> None:
        """Same memories, same texts, in byte order, from a listing and from a snapshot."""
        expected = sorted(
            ((path, id, text) for id, (path, text) in self.reference.live.items()),
            key=lambda item: item[0].encode(),
        )
        listed = every(self.backend.list_memories, self.store_id, view="full", limit=3)
        assert [(item.path, item.id, item.content) for item in listed] == expected
        snapshot = self.backend.snapshot(self.store_id)
        assert list(snapshot.memories) == listed

    @invariant()
    def the_histories_agree(self) -> None:
        """Same versions with the same texts, the same events, and right counters."""
        versions = every(self.backend.list_versions, self.store_id, view="full", limit=20)[::-1]
        assert [(v.operation, v.memory_id, v.path, v.content) for v in versions] == [
            (said.operation, said.memory, said.path, said.text) for said in self.reference.history
        ]
        page = self.backend.list_events(self.store_id, limit=1000)
        assert [event.kind for event in page.events] == self.reference.events
        usage = self.backend.store_usage(self.store_id)
        assert usage.memories == len(self.reference.live)
        assert usage.bytes == self.reference.bytes()


def refusal(move: object) -> str | None:
    """The name of what a move was refused with; None when it was not."""
    try:
        move()  # type: ignore[operator]
    except Refused as refused:
        return refused.kind
    except MemstoreError as error:
        return type(error).__name__
    return None


class RandomMovesOnPostgresql(RandomMoves):
    """The same, by the service over PostgreSQL."""

    def open_service(self) -> Service:
        """A service on a new database."""
        self.url = postgres.server().create()
        return Service(self.url, keys=postgres.key_source(self.url), **CAPS)

    def remove(self) -> None:
        """Leave nothing of the database."""
        postgres.server().drop(self.url)


TestRandomMoves = RandomMoves.TestCase
TestRandomMovesOnPostgresql = RandomMovesOnPostgresql.TestCase
TestRandomMovesOnPostgresql.settings = settings(
    max_examples=min(15, settings.default.max_examples), parent=settings.default
)
