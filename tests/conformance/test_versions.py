"""Versions and redaction: what history says, and what it no longer does."""

from __future__ import annotations

from datetime import timedelta

import pytest

from memstore.backend import Backend
from memstore.model.actors import Actor
from memstore.model.errors import HeadNotRedactable, Invalid, NotFound
from memstore.model.sessions import Attachment
from memstore.model.stores import Store
from memstore.model.versions import Version, VersionFilter
from tests.support.walking import every
from tests.support.worlds import World


def history(backend: Backend, store: Store, memory_id: str) -> list[Version]:
    """A memory's versions, newest first, with texts."""
    return every(
        backend.list_versions, store.id, where=VersionFilter(memory_id=memory_id), view="full"
    )


def lived(backend: Backend, store: Store, path: str = "/a") -> str:
    """A memory created, rewritten, renamed and deleted; its id."""
    memory = backend.create_memory(store.id, path=path, content="one")
    backend.update_memory(store.id, memory.id, content="two")
    backend.update_memory(store.id, memory.id, path=f"{path}-b")
    backend.delete_memory(store.id, memory.id)
    return memory.id


def test_each_change_is_a_version_newest_first(backend: Backend, store: Store) -> None:
    """Create, update, rename and delete are four versions that outlive the memory."""
    versions = history(backend, store, lived(backend, store))
    assert [version.operation for version in versions] == [
        "deleted",
        "modified",
        "modified",
        "created",
    ]
    assert [version.path for version in versions] == ["/a-b", "/a-b", "/a", "/a"]
    assert [version.content for version in versions] == [None, "two", "two", "one"]
    deleted = versions[0]
    assert deleted.content_sha256 is None and deleted.content_size_bytes is None
    seqs = [version.seq for version in versions]
    times = [version.created_at for version in versions]
    assert seqs == sorted(seqs, reverse=True) and times == sorted(times, reverse=True)
    assert len(set(times)) == 4


def test_the_head_is_the_first_version_listed(backend: Backend, store: Store) -> None:
    """A memory names its newest version, and that version its text."""
    memory = backend.create_memory(store.id, path="/a", content="one")
    memory = backend.update_memory(store.id, memory.id, content="two")
    (head, first) = history(backend, store, memory.id)
    assert memory.version_id == head.id
    assert head.content_sha256 == memory.content_sha256
    assert backend.get_version(store.id, first.id).content == "one"
    assert backend.get_version(store.id, first.id, view="basic").content is None


def test_listing_is_basic_unless_asked(backend: Backend, store: Store) -> None:
    """A basic listing has hash and size and no text; the full one holds 20 a page."""
    for n in range(25):
        backend.create_memory(store.id, path=f"/{n}", content=str(n))
    basic = backend.list_versions(store.id, limit=100).data
    assert len(basic) == 25
    assert all(version.content is None and version.content_sha256 for version in basic)
    assert len(backend.list_versions(store.id, view="full", limit=100).data) == 20
    for limit in (1, 3, 25):
        assert every(backend.list_versions, store.id, limit=limit) == list(basic)


def test_filters_work_alone_and_together(world: World, backend: Backend, store: Store) -> None:
    """Memory, operation, author and time narrow a listing, and all given must match."""
    session = backend.create_session(agent="a", environment_id="e", stores=[Attachment(store.id)])
    agent = world.connect(backend.create_session_token(session.id))
    key_id = backend.whoami().actor.id
    mine = lived(backend, store)
    theirs = lived(agent, store, "/theirs")
    everything = every(backend.list_versions, store.id)
    moment = everything[3].created_at

    def found(**fields: object) -> list[Version]:
        where = VersionFilter(**fields)  # type: ignore[arg-type]
        return every(backend.list_versions, store.id, where=where, limit=3)

    assert found(memory_id=mine) == [one for one in everything if one.memory_id == mine]
    for operation in ("created", "modified", "deleted"):
        assert found(operation=operation) == [
            one for one in everything if one.operation == operation
        ]
    assert {one.memory_id for one in found(session_id=session.id)} == {theirs}
    assert {one.memory_id for one in found(api_key_id=key_id)} == {mine}
    assert found(created_from=moment) == everything[:4]
    assert found(created_to=moment) == everything[3:]
    assert found(created_from=moment, created_to=moment) == [everything[3]]
    assert found(created_from=moment + timedelta(microseconds=1)) == everything[:3]
    assert len(found(memory_id=theirs, operation="modified", session_id=session.id)) == 2
    assert found(memory_id=theirs, api_key_id=key_id) == []
    assert found(session_id=session.id, api_key_id=key_id) == []
    for field in ("memory_id", "session_id", "api_key_id", "service_account_id"):
        assert found(**{field: "unknown"}) == []
    agent.close()


def test_a_bad_operation_is_refused(backend: Backend, store: Store) -> None:
    """An operation that does not exist is a mistake, not an empty page."""
    with pytest.raises(Invalid):
        backend.list_versions(store.id, where=VersionFilter(operation="moved"))  # type: ignore[arg-type]


def test_versions_carry_their_author(world: World, backend: Backend, store: Store) -> None:
    """What a key writes names the key; what a session's token writes names the session."""
    session = backend.create_session(agent="a", environment_id="e", stores=[Attachment(store.id)])
    agent = world.connect(backend.create_session_token(session.id))
    by_key = backend.create_memory(store.id, path="/k", content="k")
    by_agent = agent.create_memory(store.id, path="/s", content="s")
    key_author = backend.get_version(store.id, by_key.version_id).created_by
    assert key_author == backend.whoami().actor
    assert key_author is not None and key_author.kind == "api_actor"
    author = backend.get_version(store.id, by_agent.version_id).created_by
    assert author == Actor("session_actor", session.id)
    backend.delete_session(session.id)
    assert backend.get_version(store.id, by_agent.version_id).created_by == author
    agent.close()


def test_a_redacted_version_says_nothing_but_who_and_when(backend: Backend, store: Store) -> None:
    """Redaction clears text, path, size and hash, and keeps the rest; the memory is untouched."""
    memory = backend.create_memory(store.id, path="/a", content="secret")
    memory = backend.update_memory(store.id, memory.id, content="clean")
    head, first = history(backend, store, memory.id)
    redacted = backend.redact_version(store.id, first.id)
    assert (redacted.content, redacted.path) == (None, None)
    assert (redacted.content_size_bytes, redacted.content_sha256) == (None, None)
    assert redacted.redacted_at is not None and redacted.redacted_at > head.created_at
    assert redacted.redacted_by == backend.whoami().actor
    for field in ("id", "memory_id", "seq", "operation", "created_at", "created_by"):
        assert getattr(redacted, field) == getattr(first, field)
    assert backend.get_version(store.id, first.id) == redacted
    assert history(backend, store, memory.id) == [head, redacted]
    assert backend.get_memory(store.id, memory.id).content == "clean"


def test_redacting_twice_changes_nothing(backend: Backend, store: Store) -> None:
    """The first redaction's time stays, and there is one event of it."""
    memory = backend.create_memory(store.id, path="/a", content="x")
    backend.update_memory(store.id, memory.id, content="y")
    first = backend.redact_version(store.id, memory.version_id)
    assert backend.redact_version(store.id, memory.version_id) == first
    kinds = [event.kind for event in backend.list_events(store.id).events]
    assert kinds.count("version.redacted") == 1


def test_the_head_of_a_live_memory_cannot_be_redacted(backend: Backend, store: Store) -> None:
    """Write a new version or delete the memory first; then it can."""
    memory = backend.create_memory(store.id, path="/a", content="x")
    before = backend.get_version(store.id, memory.version_id)
    with pytest.raises(HeadNotRedactable):
        backend.redact_version(store.id, memory.version_id)
    assert backend.get_version(store.id, memory.version_id) == before
    backend.delete_memory(store.id, memory.id)
    assert backend.redact_version(store.id, memory.version_id).content is None


def test_a_deleted_version_can_be_redacted(backend: Backend, store: Store) -> None:
    """Its path is all it has, and that goes."""
    memory_id = lived(backend, store)
    deleted = history(backend, store, memory_id)[0]
    redacted = backend.redact_version(store.id, deleted.id)
    assert redacted.path is None and redacted.operation == "deleted"


def test_equal_text_elsewhere_survives_a_redaction(backend: Backend, store: Store) -> None:
    """The same text in another version or memory stays readable."""
    memory = backend.create_memory(store.id, path="/a", content="A")
    backend.update_memory(store.id, memory.id, content="B")
    backend.update_memory(store.id, memory.id, content="A")
    twin = backend.create_memory(store.id, path="/twin", content="A")
    backend.redact_version(store.id, memory.version_id)
    assert backend.get_memory(store.id, memory.id).content == "A"
    assert backend.get_memory(store.id, twin.id).content == "A"


@pytest.mark.parametrize("bad", ["", "x", "memver_01" + "1" * 22, "mem_01" + "1" * 22])
def test_what_is_no_versions_id_is_not_found(backend: Backend, store: Store, bad: str) -> None:
    """A malformed id, or one of another kind, names no version."""
    with pytest.raises(NotFound):
        backend.get_version(store.id, bad)
    with pytest.raises(NotFound):
        backend.redact_version(store.id, bad)
