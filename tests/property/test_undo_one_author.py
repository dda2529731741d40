"""Random moves of two authors, then one of them undone, then that undone again."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from memstore.backend import Backend
from memstore.model.errors import Invalid, PathConflict
from memstore.model.memories import Memory
from memstore.model.rollback import RollbackTarget
from memstore.model.sessions import Attachment
from memstore.model.versions import Version
from memstore.service import Service
from tests.support.walking import every

PATHS = st.sampled_from(["/a", "/b", "/c", "/d/e", "/d/f", "/d", "/a/b", "/g/h/i"])
LINES = st.lists(st.sampled_from(["one", "two", "three", "four"]), max_size=5)
TEXTS = LINES.map(lambda lines: "".join(f"{line}\n" for line in lines))
AUTHORS = st.sampled_from([0, 1])
NUMBERS = st.integers(min_value=0, max_value=100)


class TwoAuthors(RuleBasedStateMachine):
    """One store, written by two sessions; the operator undoes."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="memstore-undo-"))
        self.service = Service(f"sqlite:///{self.folder / 'memstore.db'}")
        self.operator = self.service.backend_for(self.service.operator())
        self.store_id = self.operator.create_store(name="undo").id
        self.authors = [self._author(), self._author()]

    def _author(self) -> Backend:
        attached = [Attachment(self.store_id)]
        session = self.operator.create_session(agent="a", environment_id="e", stores=attached)
        token = self.operator.create_session_token(session.id)
        return self.service.backend_for(self.service.authenticate(token))

    def teardown(self) -> None:
        """Every invariant of the database holds at the end of every play."""
        try:
            assert self.service.check() == []
        finally:
            self.service.close()
            shutil.rmtree(self.folder)

    def live(self) -> list[Memory]:
        """What the store holds, in order of paths."""
        return every(self.operator.list_memories, self.store_id, view="full", limit=20)

    def texts(self) -> dict[str, str]:
        """The same, as texts by path."""
        return {memory.path: memory.content or "" for memory in self.live()}

    def history(self) -> list[Version]:
        """Every version, oldest first."""
        return every(self.operator.list_versions, self.store_id, view="full", limit=20)[::-1]

    @rule(author=AUTHORS, path=PATHS, text=TEXTS)
    def create(self, author: int, path: str, text: str) -> None:
        """Write a new memory, where there is room for one."""
        with contextlib.suppress(PathConflict):
            self.authors[author].create_memory(self.store_id, path=path, content=text)

    @rule(author=AUTHORS, number=NUMBERS, text=st.none() | TEXTS, path=st.none() | PATHS)
    def update(self, author: int, number: int, text: str | None, path: str | None) -> None:
        """Rewrite, rename, or both."""
        if live := self.live():
            memory = live[number % len(live)]
            with contextlib.suppress(PathConflict, Invalid):
                self.authors[author].update_memory(
                    self.store_id, memory.id, content=text, path=path
                )

    @rule(author=AUTHORS, number=NUMBERS)
    def delete(self, author: int, number: int) -> None:
        """Delete one."""
        if live := self.live():
            self.authors[author].delete_memory(self.store_id, live[number % len(live)].id)

    @rule(author=AUTHORS)
    def undo(self, author: int) -> None:
        """Undo one author: a dry run tells it beforehand, and the other's own is untouched."""
        actor = self.authors[author].whoami().actor.id
        target = RollbackTarget(session_id=actor)
        before, past = self.live(), self.history()
        touched = {v.memory_id for v in past if v.created_by and v.created_by.id == actor}
        trial = self.operator.rollback(self.store_id, target, dry_run=True)
        assert self.live() == before
        done = self.operator.rollback(self.store_id, target)
        assert [(c.path, c.outcome) for c in trial.changes] == [
            (c.path, c.outcome) for c in done.changes
        ]
        assert self.history()[: len(past)] == past
        after = {memory.id: memory for memory in self.live()}
        for memory in before:
            if memory.id not in touched:
                assert after.get(memory.id) == memory, "another's memory was touched"
        held = {c.memory_id for c in done.changes if c.outcome in ("conflict", "unchanged")}
        assert all(after.get(m.id) == m for m in before if m.id in held)
        undone = self.operator.rollback(self.store_id, RollbackTarget(to=done.before))
        assert not [c for c in undone.changes if c.outcome == "conflict"]
        assert self.texts() == {memory.path: memory.content or "" for memory in before}

    @rule(number=NUMBERS)
    def to_any_moment(self, number: int) -> None:
        """Back to any version's moment: the store is what its versions up to there make it."""
        past = self.history()
        if not past:
            return
        cut = past[: number % len(past) + 1]
        last = {version.memory_id: version for version in cut}
        then = {
            version.path: version.content
            for version in last.values()
            if version.operation != "deleted"
        }
        before = self.texts()
        target = RollbackTarget(to=cut[-1].created_at)
        done = self.operator.rollback(self.store_id, target)
        assert self.texts() == then
        self.operator.rollback(self.store_id, RollbackTarget(to=done.before))
        assert self.texts() == before


TwoAuthors.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestTwoAuthors = TwoAuthors.TestCase
