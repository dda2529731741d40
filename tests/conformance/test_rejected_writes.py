"""Rejected writes: a text that lost a conflict is kept until somebody applies or dismisses it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from memstore.backend import Backend
from memstore.model import ids, limits
from memstore.model.access import Access
from memstore.model.content import sha256
from memstore.model.errors import (
    Conflict,
    Forbidden,
    Invalid,
    InvalidContent,
    InvalidPath,
    MemstoreError,
    NotFound,
    PathConflict,
    PreconditionFailed,
    StoreArchived,
    StoreFull,
    TooLarge,
)
from memstore.model.preconditions import ContentIs
from memstore.model.rejected_writes import RejectedWrite
from memstore.model.sessions import Attachment
from memstore.model.stores import Store
from memstore.model.versions import VersionFilter
from tests.support.walking import every
from tests.support.worlds import World

LOST = "the text that lost\n"


def lost(backend: Backend, store: Store, path: str = "/a") -> RejectedWrite:
    """A memory, changed since, and the write that lost to the change."""
    memory = backend.create_memory(store.id, path=path, content="base\n")
    backend.update_memory(store.id, memory.id, content="the winner\n")
    return backend.record_rejected_write(
        store.id,
        path=path,
        content=LOST,
        memory_id=memory.id,
        base_content_sha256=memory.content_sha256,
    )


def agent(world: World, backend: Backend, store: Store, access: Access = "read_write") -> Backend:
    """A session's port to the store."""
    attachment = Attachment(store.id, access)
    session = backend.create_session(agent="a", environment_id="e", stores=[attachment])
    return world.connect(backend.create_session_token(session.id))


def texts(backend: Backend, store: Store) -> dict[str, str | None]:
    """What the store holds."""
    return {m.path: m.content for m in every(backend.list_memories, store.id, view="full")}


def test_a_lost_text_is_kept_with_its_author(world: World, backend: Backend, store: Store) -> None:
    """What was written, by whom, from which base, and when: all of it can be read again."""
    session = agent(world, backend, store)
    write = lost(session, store)
    assert (write.state, write.reason, write.path) == ("open", "conflict", "/a")
    assert (write.content, write.content_size_bytes) == (LOST, len(LOST))
    assert write.content_sha256 == sha256(LOST.encode())
    assert write.base_content_sha256 == sha256(b"base\n")
    assert write.created_by == session.whoami().actor
    assert (write.version_id, write.resolved_at, write.resolved_by) == (None, None, None)
    assert ids.is_id(write.id, "rejw")
    assert backend.get_rejected_write(store.id, write.id) == write
    basic = dataclasses.replace(write, content=None)
    assert backend.get_rejected_write(store.id, write.id, view="basic") == basic
    assert backend.list_rejected_writes(store.id).data == (basic,)
    assert backend.list_rejected_writes(store.id, view="full").data == (write,)
    assert texts(backend, store) == {"/a": "the winner\n"}


def test_the_same_write_is_kept_once(world: World, backend: Backend, store: Store) -> None:
    """A repeated request is answered with the one there is; another author's is another."""
    write = lost(backend, store)
    again: dict[str, Any] = {"path": write.path, "memory_id": write.memory_id}
    assert backend.record_rejected_write(store.id, content=LOST, **again) == write
    other = agent(world, backend, store).record_rejected_write(store.id, content=LOST, **again)
    assert other.id != write.id
    assert backend.record_rejected_write(store.id, path="/a", content=LOST).id != write.id
    assert backend.record_rejected_write(store.id, content=LOST + "x", **again).id != write.id
    backend.dismiss_rejected_write(store.id, write.id)
    assert backend.record_rejected_write(store.id, content=LOST, **again).id != write.id


def test_they_are_listed_newest_first_by_state(backend: Backend, store: Store) -> None:
    """Page by page, in one state or in all."""
    made = [
        backend.record_rejected_write(store.id, path=f"/{n}", content=f"text {n}") for n in range(7)
    ][::-1]
    backend.apply_rejected_write(store.id, made[0].id)
    backend.dismiss_rejected_write(store.id, made[1].id)

    def found(**options: str) -> list[str]:
        writes = every(backend.list_rejected_writes, store.id, limit=2, **options)
        return [write.id for write in writes]

    everyone = [write.id for write in made]
    assert found() == everyone
    assert found(state="open") == everyone[2:]
    assert found(state="applied") == everyone[:1]
    assert found(state="dismissed") == everyone[1:2]


def test_the_feed_tells_of_a_rejected_write(backend: Backend, store: Store) -> None:
    """A `write.rejected` names the memory and the author, and nothing of the text."""
    cursor = backend.list_events(store.id, after=-1).cursor
    write = lost(backend, store)
    event = backend.list_events(store.id, after=cursor, view="full").events[-1]
    assert (event.kind, event.memory_id) == ("write.rejected", write.memory_id)
    assert event.created_by == write.created_by and event.created_at == write.created_at
    assert (event.version_id, event.path, event.content) == (None, None, None)
    assert event.content_sha256 is None


def test_applying_makes_one_version_of_the_callers(
    world: World, backend: Backend, store: Store
) -> None:
    """The memory it lost to gets the text, by whoever applies it; the write names the version."""
    write = lost(agent(world, backend, store), store)
    applied = backend.apply_rejected_write(store.id, write.id)
    assert texts(backend, store) == {"/a": LOST}
    (head, *_) = every(
        backend.list_versions, store.id, where=VersionFilter(memory_id=write.memory_id)
    )
    assert (applied.state, applied.version_id, applied.memory_id) == (
        "applied",
        head.id,
        write.memory_id,
    )
    assert (head.operation, head.created_by) == ("modified", backend.whoami().actor)
    assert applied.resolved_by == backend.whoami().actor and applied.resolved_at is not None
    assert (applied.content, applied.path) == (LOST, "/a")
    assert applied.created_by == write.created_by and applied.base_content_sha256 is None
    before = len(every(backend.list_versions, store.id))
    assert backend.apply_rejected_write(store.id, write.id) == applied
    assert len(every(backend.list_versions, store.id)) == before


def test_applying_follows_a_renamed_memory(backend: Backend, store: Store) -> None:
    """The text goes to the memory, wherever that is now."""
    write = lost(backend, store)
    backend.update_memory(store.id, write.memory_id or "", path="/moved")
    assert backend.apply_rejected_write(store.id, write.id).path == "/moved"
    assert texts(backend, store) == {"/moved": LOST}


def test_applying_creates_a_deleted_memory_again(backend: Backend, store: Store) -> None:
    """At its path, as a memory of its own."""
    write = lost(backend, store)
    backend.delete_memory(store.id, write.memory_id or "")
    applied = backend.apply_rejected_write(store.id, write.id)
    assert applied.memory_id not in (None, write.memory_id)
    assert texts(backend, store) == {"/a": LOST}


def test_applying_takes_the_memory_that_is_at_the_path(backend: Backend, store: Store) -> None:
    """When the one it lost to is gone and another is there, or none was known."""
    write = lost(backend, store)
    backend.delete_memory(store.id, write.memory_id or "")
    other = backend.create_memory(store.id, path="/a", content="another\n")
    assert backend.apply_rejected_write(store.id, write.id).memory_id == other.id
    unknown = backend.record_rejected_write(store.id, path="/a", content="again\n")
    assert backend.apply_rejected_write(store.id, unknown.id).memory_id == other.id
    assert texts(backend, store) == {"/a": "again\n"}


def test_applying_what_is_there_already_makes_no_version(backend: Backend, store: Store) -> None:
    """The write is settled by the version that has the text."""
    write = lost(backend, store)
    memory = backend.update_memory(store.id, write.memory_id or "", content=LOST)
    before = len(every(backend.list_versions, store.id))
    assert backend.apply_rejected_write(store.id, write.id).version_id == memory.version_id
    assert len(every(backend.list_versions, store.id)) == before


def test_applying_can_be_tied_to_what_was_read(backend: Backend, store: Store) -> None:
    """With a stale precondition nothing happens; without a memory there is nothing to match."""
    write = lost(backend, store)
    memory = backend.get_memory(store.id, write.memory_id or "")
    with pytest.raises(PreconditionFailed):
        backend.apply_rejected_write(store.id, write.id, precondition=ContentIs(sha256(b"x")))
    assert backend.get_rejected_write(store.id, write.id) == write
    belief = ContentIs(memory.content_sha256)
    new = backend.record_rejected_write(store.id, path="/new", content="x")
    with pytest.raises(PreconditionFailed):
        backend.apply_rejected_write(store.id, new.id, precondition=belief)
    backend.apply_rejected_write(store.id, write.id, precondition=belief)
    assert texts(backend, store) == {"/a": LOST}


def test_applying_keeps_the_rules_of_a_write(
    make_world: Callable[..., World],
) -> None:
    """A path in use above or below, a full store and an archived one refuse it; it stays open."""
    world = make_world(max_memories=1)
    backend = world.connect(world.admin_secret)
    store = backend.create_store(name="n")
    backend.create_memory(store.id, path="/a", content="x")
    below = backend.record_rejected_write(store.id, path="/a/b", content="x")
    more = backend.record_rejected_write(store.id, path="/more", content="x")
    with pytest.raises(PathConflict):
        backend.apply_rejected_write(store.id, below.id)
    with pytest.raises(StoreFull):
        backend.apply_rejected_write(store.id, more.id)
    backend.archive_store(store.id)
    with pytest.raises(StoreArchived):
        backend.apply_rejected_write(store.id, more.id)
    with pytest.raises(StoreArchived):
        backend.record_rejected_write(store.id, path="/z", content="x")
    assert len(backend.list_rejected_writes(store.id, state="open").data) == 2
    assert backend.dismiss_rejected_write(store.id, more.id).state == "dismissed"


def test_dismissing_destroys_what_was_written(backend: Backend, store: Store) -> None:
    """Text, path, size and hashes go; who and when stay; again changes nothing."""
    write = lost(backend, store)
    dismissed = backend.dismiss_rejected_write(store.id, write.id)
    assert dismissed.state == "dismissed"
    assert (dismissed.content, dismissed.path, dismissed.content_size_bytes) == (None, None, None)
    assert (dismissed.content_sha256, dismissed.base_content_sha256) == (None, None)
    assert dismissed.resolved_by == backend.whoami().actor and dismissed.resolved_at is not None
    for field in ("id", "seq", "created_at", "created_by", "memory_id", "reason"):
        assert getattr(dismissed, field) == getattr(write, field)
    assert backend.get_rejected_write(store.id, write.id) == dismissed
    assert backend.dismiss_rejected_write(store.id, write.id) == dismissed
    with pytest.raises(Conflict):
        backend.apply_rejected_write(store.id, write.id)
    assert texts(backend, store) == {"/a": "the winner\n"}


def test_an_applied_one_is_destroyed_by_redacting_its_version(
    backend: Backend, store: Store
) -> None:
    """It holds no copy: dismissing is refused, and after a redaction nothing is left to read."""
    write = lost(backend, store)
    version_id = backend.apply_rejected_write(store.id, write.id).version_id or ""
    with pytest.raises(Conflict, match=version_id):
        backend.dismiss_rejected_write(store.id, write.id)
    backend.update_memory(store.id, write.memory_id or "", content="clean\n")
    backend.redact_version(store.id, version_id)
    left = backend.get_rejected_write(store.id, write.id)
    assert (left.content, left.path, left.content_sha256) == (None, None, None)
    assert (left.content_size_bytes, left.version_id) == (None, version_id)


def test_a_redaction_leaves_open_ones_alone(backend: Backend, store: Store) -> None:
    """A lost text is destroyed by dismissing it, not by redacting a version of its memory."""
    write = lost(backend, store)
    (_, first) = every(backend.list_versions, store.id)
    backend.redact_version(store.id, first.id)
    assert backend.get_rejected_write(store.id, write.id) == write


def test_deleting_a_memory_keeps_its_lost_texts(backend: Backend, store: Store) -> None:
    """They go with the store only."""
    write = lost(backend, store)
    backend.delete_memory(store.id, write.memory_id or "")
    assert backend.get_rejected_write(store.id, write.id) == write
    backend.delete_store(store.id)
    with pytest.raises(NotFound):
        backend.get_rejected_write(store.id, write.id)


def test_who_may_do_what(world: World, backend: Backend, store: Store) -> None:
    """Recording and applying need `write`, reading `read`, dismissing another's text `redact`."""
    writer = agent(world, backend, store)
    reader = agent(world, backend, store, "read_only")
    key = world.connect(backend.create_key(scopes=("read", "write"))[1])
    redactor = world.connect(backend.create_key(scopes=("read", "redact"))[1])
    write = lost(writer, store)
    own = key.record_rejected_write(store.id, path="/own", content="x")
    assert reader.get_rejected_write(store.id, write.id) == write
    assert len(reader.list_rejected_writes(store.id).data) == 2

    def refused(verb: Callable[..., object], *arguments: str, **options: str) -> bool:
        try:
            verb(store.id, *arguments, **options)
        except Forbidden:
            return True
        return False

    for nobody in (reader, redactor):
        assert refused(nobody.record_rejected_write, path="/x", content="x")
        assert refused(nobody.apply_rejected_write, write.id)
    assert refused(reader.dismiss_rejected_write, write.id)
    assert refused(key.dismiss_rejected_write, write.id)
    assert refused(writer.dismiss_rejected_write, own.id)
    assert key.dismiss_rejected_write(store.id, own.id).state == "dismissed"
    assert redactor.dismiss_rejected_write(store.id, write.id).state == "dismissed"
    again = lost(writer, store, "/b")
    assert key.apply_rejected_write(store.id, again.id).state == "applied"
    for port in (writer, reader, key, redactor):
        port.close()


def test_another_stores_and_workspaces_are_not_seen(
    world: World, backend: Backend, store: Store
) -> None:
    """An id of another store or workspace, or none at all, names nothing."""
    write = lost(backend, store)
    other = backend.create_store(name="Other")
    operator = world.connect(world.operator_secret)
    stranger = world.connect(operator.create_key(scopes=("admin",), workspace=ids.new("w"))[1])
    attempts = [(backend, other.id, write.id), (stranger, store.id, write.id)]
    attempts += [(backend, store.id, bad) for bad in ("x", "rejw_01" + "1" * 22, "mem_01x")]
    for port, store_id, id in attempts:
        for verb in ("get", "apply", "dismiss"):
            with pytest.raises(NotFound):
                getattr(port, f"{verb}_rejected_write")(store_id, id)
    with pytest.raises(NotFound):
        stranger.list_rejected_writes(store.id)
    with pytest.raises(NotFound):
        stranger.record_rejected_write(store.id, path="/a", content="x")
    stranger.close()
    operator.close()


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"path": "a"}, InvalidPath),
        ({"path": "/a/"}, InvalidPath),
        ({"content": "a\0"}, InvalidContent),
        ({"content": "x" * (limits.CONTENT_BYTES + 1)}, TooLarge),
        ({"memory_id": "memver_01" + "1" * 22}, Invalid),
        ({"base_content_sha256": "A" * 64}, Invalid),
        ({"reason": "because"}, Invalid),
    ],
    ids=str,
)
def test_what_could_never_be_saved_is_not_kept(
    backend: Backend, store: Store, fields: dict[str, str], error: type[MemstoreError]
) -> None:
    """Path, text, memory, base and reason are judged as for a write."""
    with pytest.raises(error):
        backend.record_rejected_write(store.id, **{"path": "/a", "content": "x", **fields})  # type: ignore[arg-type]
    assert backend.list_rejected_writes(store.id).data == ()


def test_a_bad_state_or_page_is_refused(backend: Backend, store: Store) -> None:
    """A state that does not exist is a mistake, not an empty page; so is a foreign cursor."""
    with pytest.raises(Invalid):
        backend.list_rejected_writes(store.id, state="lost")  # type: ignore[arg-type]
    with pytest.raises(Invalid):
        backend.list_rejected_writes(store.id, page="page_x")
    with pytest.raises(Invalid):
        backend.list_rejected_writes(store.id, limit=0)
