"""Undo: one memory, a store or a directory to a moment, or what one author wrote."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from memstore.backend import Backend
from memstore.model.access import Access
from memstore.model.errors import (
    Forbidden,
    Invalid,
    InvalidPath,
    NotFound,
    StoreArchived,
    StoreFull,
)
from memstore.model.rollback import Rollback, RollbackChange, RollbackTarget
from memstore.model.sessions import Attachment
from memstore.model.stores import Store
from memstore.model.versions import Version, VersionFilter
from tests.support.walking import every
from tests.support.worlds import World

NOBODY = "sesn_01" + "1" * 22


def agent(world: World, backend: Backend, store: Store, access: Access = "read_write") -> Backend:
    """A session's port to the store."""
    attachment = Attachment(store.id, access)
    session = backend.create_session(agent="a", environment_id="e", stores=[attachment])
    return world.connect(backend.create_session_token(session.id))


def texts(backend: Backend, store: Store) -> dict[str, str | None]:
    """What the store holds."""
    return {m.path: m.content for m in every(backend.list_memories, store.id, view="full")}


def put(backend: Backend, store: Store, path: str, text: str) -> str:
    """Write a text at a path; the memory's id."""
    try:
        memory = backend.get_memory_at(store.id, path)
    except NotFound:
        return backend.create_memory(store.id, path=path, content=text).id
    return backend.update_memory(store.id, memory.id, content=text).id


def history(backend: Backend, store: Store) -> list[Version]:
    """Every version, oldest first."""
    return every(backend.list_versions, store.id, limit=100)[::-1]


def now(backend: Backend, store: Store) -> datetime:
    """The moment of the newest version."""
    return backend.list_versions(store.id, limit=1).data[0].created_at


def outcomes(done: Rollback) -> dict[str | None, str]:
    """What happened, by path."""
    return {change.path: change.outcome for change in done.changes}


def only(done: Rollback) -> RollbackChange:
    """The one change of an answer."""
    (change,) = done.changes
    return change


def undone(backend: Backend, store: Store, **target: Any) -> Rollback:
    """Roll back for good, after a dry run that told the same."""
    wanted = RollbackTarget(**target)
    before = history(backend, store)
    trial = backend.rollback(store.id, wanted, dry_run=True)
    assert trial.dry_run and trial.before is None and history(backend, store) == before
    done = backend.rollback(store.id, wanted)
    assert not done.dry_run and done.store_id == store.id
    assert [
        (c.path, c.old_path, c.outcome, c.reason, c.version_id_before) for c in trial.changes
    ] == [(c.path, c.old_path, c.outcome, c.reason, c.version_id_before) for c in done.changes]
    assert history(backend, store)[: len(before)] == before, "a version went missing"
    return done


def test_one_memory_to_a_version(world: World, backend: Backend, store: Store) -> None:
    """Its text and its path are those of the version again: one more version, by the caller."""
    memory = backend.create_memory(store.id, path="/a", content="one\n")
    backend.update_memory(store.id, memory.id, content="two\n", path="/b")
    session = agent(world, backend, store)
    head = backend.get_memory(store.id, memory.id).version_id
    trial = backend.rollback(store.id, RollbackTarget(version_id=memory.version_id), dry_run=True)
    assert only(trial).diff == "--- /b\n+++ /a\n@@ -1 +1 @@\n-two\n+one\n"
    change = only(undone(session, store, version_id=memory.version_id))
    assert texts(backend, store) == {"/a": "one\n"}
    made = history(backend, store)[-1]
    assert change == RollbackChange(
        memory_id=memory.id,
        path="/a",
        old_path="/b",
        operation="modified",
        version_id_before=head,
        version_id_after=made.id,
        outcome="restored",
    )
    assert made.operation == "modified" and made.created_by == session.whoami().actor
    again = undone(backend, store, version_id=memory.version_id)
    assert only(again).outcome == "unchanged" and history(backend, store)[-1] == made


def test_a_deleted_memory_comes_back(backend: Backend, store: Store) -> None:
    """As a new memory with the text and the path of the version that is named."""
    memory = backend.create_memory(store.id, path="/a/b", content="one")
    backend.delete_memory(store.id, memory.id)
    change = only(undone(backend, store, version_id=memory.version_id))
    assert (change.outcome, change.operation, change.old_path) == ("recreated", "created", None)
    back = backend.get_memory_at(store.id, "/a/b")
    assert (back.content, back.id, back.version_id) == (
        "one",
        change.memory_id,
        change.version_id_after,
    )
    assert back.id != memory.id


def test_to_a_version_that_deleted(backend: Backend, store: Store) -> None:
    """A memory rolled back to its own deletion is what it is: gone."""
    memory = backend.create_memory(store.id, path="/a", content="one")
    backend.delete_memory(store.id, memory.id)
    gone = history(backend, store)[-1]
    assert only(undone(backend, store, version_id=gone.id)).outcome == "unchanged"
    assert texts(backend, store) == {}


def test_a_store_to_a_moment_and_back(backend: Backend, store: Store) -> None:
    """Written since: deleted; deleted: back; changed: restored; renamed: renamed back."""
    kept = put(backend, store, "/kept", "kept")
    changed = put(backend, store, "/changed", "old")
    renamed = put(backend, store, "/renamed", "same")
    gone = put(backend, store, "/gone", "was here")
    then, before = now(backend, store), texts(backend, store)
    backend.update_memory(store.id, changed, content="new")
    backend.update_memory(store.id, renamed, path="/elsewhere")
    backend.delete_memory(store.id, gone)
    made = put(backend, store, "/made", "nonsense")
    nonsense = texts(backend, store)
    done = undone(backend, store, to=then)
    assert outcomes(done) == {
        "/changed": "restored",
        "/gone": "recreated",
        "/made": "deleted",
        "/renamed": "renamed",
    }
    assert texts(backend, store) == before
    assert backend.get_memory_at(store.id, "/kept").id == kept
    assert backend.get_memory_at(store.id, "/renamed").id == renamed
    for change in done.changes:
        assert change.version_id_after is not None
        version = backend.get_version(store.id, change.version_id_after)
        assert (version.memory_id, version.operation) == (change.memory_id, change.operation)
    assert {c.memory_id for c in done.changes if c.outcome == "deleted"} == {made}
    undone(backend, store, to=done.before)
    assert texts(backend, store) == nonsense
    assert done.before is not None and outcomes(undone(backend, store, to=done.before)) == {
        "/changed": "unchanged",
        "/elsewhere": "unchanged",
        "/made": "unchanged",
    }


def test_a_moment_before_everything_and_one_to_come(backend: Backend, store: Store) -> None:
    """Before the first write there was nothing; of the future nothing is to be undone."""
    put(backend, store, "/a", "1")
    put(backend, store, "/b/c", "2")
    first = history(backend, store)[0].created_at
    future = datetime.now(UTC) + timedelta(days=1)
    assert undone(backend, store, to=future).changes == ()
    assert set(outcomes(undone(backend, store, to=first - timedelta(days=1))).values()) == {
        "deleted"
    }
    assert texts(backend, store) == {}


def test_a_directory_to_a_moment(backend: Backend, store: Store) -> None:
    """Only what is below the path, now or then; a neighbour whose name begins alike is not."""
    inside = put(backend, store, "/d/in", "1")
    for path in ("/d/sub/x", "/d2", "/out"):
        put(backend, store, path, "1")
    then = now(backend, store)
    for path in ("/d/sub/x", "/d2", "/out"):
        put(backend, store, path, "2")
    backend.update_memory(store.id, inside, path="/moved")
    done = undone(backend, store, to=then, path="/d/")
    assert outcomes(done) == {"/d/in": "renamed", "/d/sub/x": "restored"}
    assert texts(backend, store) == {"/d/in": "1", "/d/sub/x": "1", "/d2": "2", "/out": "2"}
    assert outcomes(undone(backend, store, to=then, path="/out")) == {"/out": "restored"}


def test_places_that_were_exchanged(backend: Backend, store: Store) -> None:
    """A ring of renames goes back: every path ends with its own memory."""
    own = {path: put(backend, store, path, path) for path in ("/a", "/b", "/c")}
    then = now(backend, store)
    for path, to in (("/a", "/x"), ("/b", "/a"), ("/c", "/b"), ("/x", "/c")):
        backend.update_memory(store.id, backend.get_memory_at(store.id, path).id, path=to)
    assert texts(backend, store) == {"/a": "/b", "/b": "/c", "/c": "/a"}
    assert set(outcomes(undone(backend, store, to=then)).values()) == {"renamed"}
    assert {path: backend.get_memory_at(store.id, path).id for path in own} == own


def test_a_file_that_became_a_directory(backend: Backend, store: Store) -> None:
    """What lies below goes first, then the file is back."""
    file = put(backend, store, "/a", "file")
    then = now(backend, store)
    backend.delete_memory(store.id, file)
    put(backend, store, "/a/b/c", "deep")
    undone(backend, store, to=then)
    assert texts(backend, store) == {"/a": "file"}


def test_what_stands_in_the_way_is_a_conflict(backend: Backend, store: Store) -> None:
    """A memory that nobody asked about stays; the one that wanted its place is listed."""
    inside = put(backend, store, "/d/in", "1")
    then = now(backend, store)
    backend.update_memory(store.id, inside, path="/other")
    outside = put(backend, store, "/x", "in the way")
    backend.update_memory(store.id, outside, path="/d/in/deep")
    done = undone(backend, store, to=then, path="/other")
    change = only(done)
    assert (change.outcome, change.operation, change.version_id_after) == ("conflict", None, None)
    assert change.reason is not None and "/d/in" in change.reason
    assert texts(backend, store) == {"/d/in/deep": "in the way", "/other": "1"}


def test_a_path_that_was_taken_again_changes_in_place(backend: Backend, store: Store) -> None:
    """Deleted and written anew at one path: the memory that is there now gets the old text."""
    put(backend, store, "/a", "old")
    then = now(backend, store)
    backend.delete_memory(store.id, backend.get_memory_at(store.id, "/a").id)
    anew = put(backend, store, "/a", "new")
    assert only(undone(backend, store, to=then)).memory_id == anew
    assert texts(backend, store) == {"/a": "old"}


def test_what_one_session_wrote(world: World, backend: Backend, store: Store) -> None:
    """Its writes go, everyone else's stay: alone, before it, and in other lines of one text."""
    edited = put(backend, store, "/edited", "a\nb\nc\nd\ne\n")
    deleted = put(backend, store, "/deleted", "precious")
    put(backend, store, "/mine", "mine")
    session = agent(world, backend, store)
    session.update_memory(store.id, edited, content="a\nNONSENSE\nc\nd\ne\n")
    session.delete_memory(store.id, deleted)
    put(session, store, "/made", "nonsense")
    put(session, store, "/overtaken", "nonsense\n")
    backend.update_memory(store.id, edited, content="a\nNONSENSE\nc\nd\nE\n")
    put(backend, store, "/mine", "mine, later")
    put(backend, store, "/overtaken", "nonsense\nand sense\n")
    id = session.whoami().actor.id
    done = undone(backend, store, session_id=id)
    assert outcomes(done) == {
        "/deleted": "recreated",
        "/edited": "merged",
        "/made": "deleted",
        "/overtaken": "conflict",
    }
    assert texts(backend, store) == {
        "/deleted": "precious",
        "/edited": "a\nb\nc\nd\nE\n",
        "/mine": "mine, later",
        "/overtaken": "nonsense\nand sense\n",
    }
    (conflict,) = [c for c in done.changes if c.outcome == "conflict"]
    assert conflict.reason is not None and "others" in conflict.reason


def test_edits_of_one_line_are_a_conflict(world: World, backend: Backend, store: Store) -> None:
    """Where another wrote over the same line, neither text is guessed."""
    memory = put(backend, store, "/a", "one\n")
    session = agent(world, backend, store)
    session.update_memory(store.id, memory, content="two\n")
    backend.update_memory(store.id, memory, content="two and a half\n")
    change = only(undone(backend, store, session_id=session.whoami().actor.id))
    assert change.outcome == "conflict" and texts(backend, store) == {"/a": "two and a half\n"}


def test_an_author_who_wrote_in_turns(world: World, backend: Backend, store: Store) -> None:
    """Each run of writes between those of others is undone, the last first."""
    memory = put(backend, store, "/a", "1\n2\n3\n4\n5\n6\n7\n")
    session = agent(world, backend, store)
    session.update_memory(store.id, memory, content="x\n2\n3\n4\n5\n6\n7\n")
    session.update_memory(store.id, memory, content="X\n2\n3\n4\n5\n6\n7\n")
    backend.update_memory(store.id, memory, content="X\n2\n3\nfour\n5\n6\n7\n")
    session.update_memory(store.id, memory, content="X\n2\n3\nfour\n5\n6\nY\n")
    done = undone(backend, store, actor_id=session.whoami().actor.id)
    assert only(done).outcome in ("merged", "restored")
    assert texts(backend, store) == {"/a": "1\n2\n3\nfour\n5\n6\n7\n"}


def test_what_one_key_wrote_below_a_path(world: World, backend: Backend, store: Store) -> None:
    """A key is an author like a session; the path narrows it; a rename of its own goes back."""
    key, secret = backend.create_key(workspace=world.workspace, scopes=("write",))
    other = world.connect(secret)
    moved = put(backend, store, "/d/a", "text")
    other.update_memory(store.id, moved, path="/d/b")
    put(other, store, "/d/c", "made")
    put(other, store, "/e", "made")
    done = undone(backend, store, api_key_id=key.id, path="/d")
    assert outcomes(done) == {"/d/a": "renamed", "/d/c": "deleted"}
    assert texts(backend, store) == {"/d/a": "text", "/e": "made"}


def test_what_others_took_away_needs_no_undoing(
    world: World, backend: Backend, store: Store
) -> None:
    """A memory that another deleted since, or an author who wrote nothing: nothing to do."""
    session = agent(world, backend, store)
    memory = put(session, store, "/a", "nonsense")
    backend.delete_memory(store.id, memory)
    change = only(undone(backend, store, session_id=session.whoami().actor.id))
    assert change.outcome == "unchanged" and change.version_id_after is None
    assert undone(backend, store, session_id=NOBODY).changes == ()


def test_undoing_twice_changes_nothing(world: World, backend: Backend, store: Store) -> None:
    """The second time everything is as it should be."""
    memory = put(backend, store, "/a", "1\n2\n3\n")
    session = agent(world, backend, store)
    session.update_memory(store.id, memory, content="1\n2\nthree\n")
    backend.update_memory(store.id, memory, content="one\n2\nthree\n")
    id = session.whoami().actor.id
    assert outcomes(undone(backend, store, session_id=id)) == {"/a": "merged"}
    assert outcomes(undone(backend, store, session_id=id)) == {"/a": "unchanged"}
    assert texts(backend, store) == {"/a": "one\n2\n3\n"}


def test_redacted_texts_do_not_come_back(world: World, backend: Backend, store: Store) -> None:
    """What was destroyed cannot be restored: a conflict that says so."""
    memory = backend.create_memory(store.id, path="/a", content="secret")
    then = now(backend, store)
    session = agent(world, backend, store)
    session.update_memory(store.id, memory.id, content="fine")
    backend.redact_version(store.id, memory.version_id)
    targets: list[dict[str, Any]] = [
        {"version_id": memory.version_id},
        {"to": then},
        {"session_id": session.whoami().actor.id},
    ]
    for target in targets:
        change = only(undone(backend, store, **target))
        assert (change.outcome, change.path) == ("conflict", "/a")
        assert change.reason is not None and "redacted" in change.reason
    assert texts(backend, store) == {"/a": "fine"}


def test_caps_hold_for_the_end(make_world: Callable[..., World]) -> None:
    """What comes back may need the room of what goes; more than the cap is refused, all of it."""
    world = make_world(max_memories=2, max_bytes=100)
    backend = world.connect(world.admin_secret)
    store = backend.create_store(name="small")
    one, two = put(backend, store, "/one", "1" * 50), put(backend, store, "/two", "2" * 50)
    then = now(backend, store)
    backend.delete_memory(store.id, one)
    put(backend, store, "/three", "3" * 50)
    undone(backend, store, to=then)
    assert set(texts(backend, store)) == {"/one", "/two"}
    backend.delete_memory(store.id, two)
    put(backend, store, "/four", "4")
    with pytest.raises(StoreFull):
        backend.rollback(store.id, RollbackTarget(to=then, path="/two"))
    assert set(texts(backend, store)) == {"/one", "/four"}


def test_who_may(world: World, backend: Backend, store: Store) -> None:
    """A reader may look at a dry run; undoing needs to be able to write."""
    put(backend, store, "/a", "1")
    target = RollbackTarget(to=now(backend, store))
    reader = agent(world, backend, store, "read_only")
    assert reader.rollback(store.id, target, dry_run=True).changes == ()
    with pytest.raises(Forbidden):
        reader.rollback(store.id, target)
    assert agent(world, backend, store).rollback(store.id, target).changes == ()


def test_what_is_refused(backend: Backend, store: Store) -> None:
    """No target or two, ids of another shape, a version of elsewhere, an archived store."""
    memory = backend.create_memory(store.id, path="/a", content="x")
    moment = memory.created_at

    def refused(error: type[Exception], store_id: str = store.id, **target: Any) -> None:
        for dry_run in (True, False):
            with pytest.raises(error):
                backend.rollback(store_id, RollbackTarget(**target), dry_run=dry_run)

    refused(Invalid)
    refused(Invalid, to=moment, session_id=NOBODY)
    refused(Invalid, session_id="sesn_nope")
    refused(Invalid, api_key_id=NOBODY)
    refused(InvalidPath, to=moment, path="a/../b")
    refused(Invalid, version_id=memory.version_id, path="/elsewhere")
    refused(NotFound, version_id="memver_01" + "1" * 22)
    refused(NotFound, version_id="nonsense")
    refused(NotFound, store_id="memstore_01" + "1" * 22)
    other = backend.create_store(name="Other")
    refused(NotFound, store_id=other.id, version_id=memory.version_id)
    backend.archive_store(store.id)
    refused(StoreArchived, to=moment)
    refused(Invalid)


def test_the_feed_tells_of_each_change(backend: Backend, store: Store) -> None:
    """A rollback reaches every mount as the changes it made, nothing else."""
    memory = put(backend, store, "/a", "1")
    then = now(backend, store)
    backend.update_memory(store.id, memory, content="2")
    put(backend, store, "/b", "x")
    cursor = backend.list_events(store.id, after=-1).cursor
    done = undone(backend, store, to=then)
    events = backend.list_events(store.id, after=cursor).events
    assert {(e.kind, e.version_id) for e in events} == {
        (f"memory.{c.operation}", c.version_id_after) for c in done.changes
    }


# History


def test_the_history_of_a_path_follows_renames(backend: Backend, store: Store) -> None:
    """From before the memory came to the path, and after it left; deleted ones too."""
    first = put(backend, store, "/a", "1")
    backend.update_memory(store.id, first, path="/b")
    backend.update_memory(store.id, first, content="2")
    second = put(backend, store, "/a", "3")
    backend.delete_memory(store.id, second)
    put(backend, store, "/c", "never there")
    expected = [v for v in history(backend, store)[::-1] if v.memory_id in (first, second)]
    assert every(backend.list_history, store.id, "/a", limit=2) == expected
    assert every(backend.list_history, store.id, "/b") == expected[2:]
    full = backend.list_history(store.id, "/a", view="full").data
    assert [version.content for version in full] == [None, "3", "2", "1", "1"]
    assert backend.list_history(store.id, "/never").data == ()


def test_the_history_of_a_directory(backend: Backend, store: Store) -> None:
    """Of everything that ever was below it, also when that is much, page by page."""
    for number in range(12):
        put(backend, store, f"/d/{number}", "1")
        put(backend, store, f"/e/{number}", "1")
    backend.update_memory(store.id, backend.get_memory_at(store.id, "/e/3").id, path="/d/e")
    expected = [
        version
        for version in history(backend, store)[::-1]
        if (version.path or "").startswith("/d/") or version.path == "/e/3"
    ]
    assert every(backend.list_history, store.id, "/d", limit=5) == expected


def test_the_history_takes_the_filters_of_versions(
    world: World, backend: Backend, store: Store
) -> None:
    """Operation, author and time, all together; what matches nothing is an empty page."""
    memory = put(backend, store, "/a", "1")
    session = agent(world, backend, store)
    session.update_memory(store.id, memory, content="2")
    put(session, store, "/b", "2")
    created, modified, _ = history(backend, store)

    def found(**where: Any) -> list[Version]:
        return list(backend.list_history(store.id, "/a", where=VersionFilter(**where)).data)

    assert found(operation="created") == [created]
    assert found(session_id=session.whoami().actor.id) == [modified]
    assert found(created_to=created.created_at) == [created]
    assert found(created_from=modified.created_at, memory_id=memory) == [modified]
    assert found(session_id="nope") == found(memory_id="mem_01" + "1" * 22) == []


def test_a_redacted_path_leads_nowhere(backend: Backend, store: Store) -> None:
    """Where a version was is destroyed with its text: its path finds nothing any more."""
    memory = backend.create_memory(store.id, path="/secret", content="x")
    backend.update_memory(store.id, memory.id, path="/public")
    assert len(backend.list_history(store.id, "/secret").data) == 2
    backend.redact_version(store.id, memory.version_id)
    assert backend.list_history(store.id, "/secret").data == ()
    assert len(backend.list_history(store.id, "/public").data) == 2


def test_what_a_history_refuses(backend: Backend, store: Store) -> None:
    """A path that is none, a cursor of another listing or a forged one, a store nobody sees."""
    for number in range(3):
        put(backend, store, "/a", str(number))
    page = backend.list_history(store.id, "/a", limit=1).next_page
    with pytest.raises(Invalid):
        backend.list_history(store.id, "/b", page=page)
    with pytest.raises(Invalid):
        backend.list_history(store.id, "/a", page="page_nope")
    with pytest.raises(InvalidPath):
        backend.list_history(store.id, "a")
    with pytest.raises(NotFound):
        backend.list_history("memstore_01" + "1" * 22, "/a")
