"""Sessions: attachments, tokens and what they reach."""

from __future__ import annotations

from typing import Any

import pytest

from memstore.backend import Backend
from memstore.model.errors import (
    Forbidden,
    Invalid,
    NotFound,
    StoreArchived,
    Unauthenticated,
)
from memstore.model.objects import agent_reference
from memstore.model.sessions import Attachment, Session
from memstore.model.stores import Store
from tests.support.waiting import until
from tests.support.walking import every
from tests.support.worlds import World


def opened(backend: Backend, *stores: Attachment, **fields: Any) -> Session:
    """A session with some stores."""
    return backend.create_session(
        **{"agent": "agent_1", "environment_id": "env_1", "stores": stores, **fields}
    )


def works(world: World, secret: str) -> bool:
    """Whether a secret still does anything."""
    try:
        backend = world.connect(secret)
        backend.list_stores()
    except Unauthenticated:
        return False
    backend.close()
    return True


@pytest.mark.parametrize("agent", ["agent_1", {"id": "agent_1", "type": "agent", "version": 3}])
def test_a_session_is_kept_as_given(backend: Backend, store: Store, agent: Any) -> None:
    """Environment, title, metadata and vaults come back as given, the agent's id and version too."""
    session = opened(
        backend,
        Attachment(store.id, "read_only", "be careful"),
        agent=agent,
        title="t",
        metadata={"a": "b"},
        vault_ids=("v1", "v2"),
    )
    assert agent_reference(session.agent) == agent_reference(agent)
    assert (session.environment_id, session.title) == ("env_1", "t")
    assert dict(session.metadata) == {"a": "b"} and session.vault_ids == ("v1", "v2")
    assert session.archived_at is None and session.created_at == session.updated_at
    (attached,) = session.stores
    assert attached.store_id == store.id
    assert (attached.access, attached.instructions) == ("read_only", "be careful")
    assert (attached.name, attached.mount_path) == ("Notes", "/mnt/memory/notes")
    assert backend.get_session(session.id) == session


def test_attachments_are_snapshots(backend: Backend) -> None:
    """A later rename of the store does not change the session."""
    store = backend.create_store(name="Before", description="d")
    session = opened(backend, Attachment(store.id))
    backend.update_store(store.id, name="After", description="other")
    (attached,) = backend.get_session(session.id).stores
    assert (attached.name, attached.description) == ("Before", "d")
    assert attached.mount_path == "/mnt/memory/before"


def test_mount_paths_are_unique_in_a_session(backend: Backend) -> None:
    """Stores whose names clash get the first free number; a name of no letters the store's id."""
    names = ["Demo Memory", "demo-memory", "-Demo  memory-2!", "demo memory", "日本語"]
    stores = [backend.create_store(name=name) for name in names]
    session = opened(backend, *(Attachment(store.id) for store in stores))
    assert [attached.mount_path for attached in session.stores] == [
        "/mnt/memory/demo-memory",
        "/mnt/memory/demo-memory-2",
        "/mnt/memory/demo-memory-2-2",
        "/mnt/memory/demo-memory-3",
        f"/mnt/memory/{stores[4].id}",
    ]


def test_bad_attachments_are_refused(backend: Backend, store: Store) -> None:
    """Nine stores, one store twice, long instructions or an unknown access open no session."""
    stores = [backend.create_store(name=str(n)) for n in range(9)]
    for attachments in (
        [Attachment(one.id) for one in stores],
        [Attachment(store.id), Attachment(store.id, "read_only")],
        [Attachment(store.id, instructions="x" * 4097)],
        [Attachment(store.id, "write_only")],  # type: ignore[arg-type]
    ):
        with pytest.raises(Invalid):
            opened(backend, *attachments)
    with pytest.raises(NotFound):
        opened(backend, Attachment("memstore_01" + "1" * 22))
    assert backend.list_sessions().data == ()
    assert len(opened(backend, *(Attachment(one.id) for one in stores[:8])).stores) == 8


def test_an_archived_store_cannot_be_attached(backend: Backend, store: Store) -> None:
    """Attaching needs a store that takes writes; one attached before stays attached."""
    session = opened(backend, Attachment(store.id))
    backend.archive_store(store.id)
    with pytest.raises(StoreArchived):
        opened(backend, Attachment(store.id))
    assert backend.get_session(session.id) == session


def test_sessions_are_listed_newest_first_and_by_store(backend: Backend, store: Store) -> None:
    """A listing pages, filters by an attached store, and hides ended sessions unless asked."""
    with_store = [opened(backend, Attachment(store.id)) for _ in range(3)]
    without = opened(backend)
    assert every(backend.list_sessions, limit=1) == [without, *reversed(with_store)]
    assert every(backend.list_sessions, store_id=store.id, limit=2) == with_store[::-1]
    assert backend.list_sessions(store_id="unknown").data == ()
    ended = backend.archive_session(with_store[0].id)
    assert every(backend.list_sessions, store_id=store.id) == with_store[:0:-1]
    assert ended in every(backend.list_sessions, store_id=store.id, include_archived=True)
    moment = without.created_at
    assert without in backend.list_sessions(created_from=moment, created_to=moment).data


def test_ending_a_session_is_idempotent_and_ends_its_tokens(world: World, backend: Backend) -> None:
    """Archiving sets the time once, and tokens are useless within a second."""
    session = opened(backend)
    token = backend.create_session_token(session.id)
    assert works(world, token)
    ended = backend.archive_session(session.id)
    assert ended.archived_at is not None and ended.updated_at > session.updated_at
    assert backend.archive_session(session.id) == ended
    until(lambda: not works(world, token), "the token to stop working")
    with pytest.raises(Invalid):
        backend.create_session_token(session.id)


def test_deleting_a_session_removes_it_and_its_tokens(world: World, backend: Backend) -> None:
    """After a delete the session is not found and its token authenticates nobody."""
    session = opened(backend)
    token = backend.create_session_token(session.id)
    backend.delete_session(session.id)
    for call in (
        backend.get_session,
        backend.archive_session,
        backend.delete_session,
        backend.create_session_token,
    ):
        with pytest.raises(NotFound):
            call(session.id)
    until(lambda: not works(world, token), "the token to stop working")


@pytest.mark.parametrize("bad", ["", "x", "sesn_01" + "1" * 22, "mem_01" + "1" * 22])
def test_what_is_no_sessions_id_is_not_found(backend: Backend, bad: str) -> None:
    """A malformed id, or one of another kind, names no session."""
    for call in (
        backend.get_session,
        backend.archive_session,
        backend.delete_session,
        backend.create_session_token,
    ):
        with pytest.raises(NotFound):
            call(bad)


def test_a_token_reaches_its_stores_only(world: World, backend: Backend, store: Store) -> None:
    """Other stores of the workspace do not exist for it, in lists and by id."""
    other = backend.create_store(name="other")
    secret = backend.create_memory(other.id, path="/a", content="x")
    session = opened(backend, Attachment(store.id))
    agent = world.connect(backend.create_session_token(session.id))
    assert [one.id for one in agent.list_stores().data] == [store.id]
    for call in (
        lambda: agent.get_store(other.id),
        lambda: agent.list_memories(other.id),
        lambda: agent.get_memory(other.id, secret.id),
        lambda: agent.get_memory(store.id, secret.id),
        lambda: agent.create_memory(other.id, path="/b", content="x"),
        lambda: agent.list_events(other.id),
        lambda: agent.list_versions(other.id),
        lambda: list(agent.snapshot(other.id).memories),
    ):
        with pytest.raises(NotFound):
            call()
    agent.close()


def test_a_token_sees_its_own_session_only(world: World, backend: Backend) -> None:
    """Another session is not found, and the list has one."""
    session, other = opened(backend), opened(backend)
    agent = world.connect(backend.create_session_token(session.id))
    assert agent.get_session(session.id) == session
    assert agent.list_sessions().data == (session,)
    with pytest.raises(NotFound):
        agent.get_session(other.id)
    with pytest.raises(NotFound):
        agent.archive_session(other.id)
    agent.close()


def test_read_only_access_reads_and_never_writes(
    world: World, backend: Backend, store: Store
) -> None:
    """With read_only every read works and every write is forbidden."""
    memory = backend.create_memory(store.id, path="/a", content="x")
    session = opened(backend, Attachment(store.id, "read_only"))
    agent = world.connect(backend.create_session_token(session.id))
    assert agent.get_memory(store.id, memory.id).content == "x"
    assert len(agent.list_versions(store.id).data) == 1
    for call in (
        lambda: agent.create_memory(store.id, path="/b", content="x"),
        lambda: agent.update_memory(store.id, memory.id, content="y"),
        lambda: agent.delete_memory(store.id, memory.id),
        lambda: agent.apply_changes(store.id, []),
    ):
        with pytest.raises(Forbidden):
            call()
    assert backend.list_memories(store.id).data[0] == memory
    agent.close()


def test_a_token_may_not_administer(world: World, backend: Backend, store: Store) -> None:
    """Stores, sessions, keys and redaction are for keys, also with read_write access."""
    memory = backend.create_memory(store.id, path="/a", content="x")
    backend.update_memory(store.id, memory.id, content="y")
    session = opened(backend, Attachment(store.id))
    agent = world.connect(backend.create_session_token(session.id))
    for call in (
        lambda: agent.create_store(name="mine"),
        lambda: agent.update_store(store.id, name="mine"),
        lambda: agent.archive_store(store.id),
        lambda: agent.delete_store(store.id),
        lambda: agent.redact_version(store.id, memory.version_id),
        lambda: opened(agent, Attachment(store.id)),
        lambda: agent.archive_session(session.id),
        lambda: agent.delete_session(session.id),
        lambda: agent.create_session_token(session.id),
        lambda: agent.create_key(),
        lambda: agent.list_keys(),
        lambda: agent.revoke_key(backend.whoami().actor.id),
    ):
        with pytest.raises(Forbidden):
            call()
    assert backend.get_store(store.id) == store
    agent.close()


def test_a_write_through_a_session_to_an_archived_store_is_refused(
    world: World, backend: Backend, store: Store
) -> None:
    """A session opened before does not keep the right to write."""
    session = opened(backend, Attachment(store.id))
    agent = world.connect(backend.create_session_token(session.id))
    memory = agent.create_memory(store.id, path="/a", content="x")
    backend.archive_store(store.id)
    with pytest.raises(StoreArchived):
        agent.create_memory(store.id, path="/b", content="x")
    with pytest.raises(StoreArchived):
        agent.update_memory(store.id, memory.id, content="y")
    agent.delete_memory(store.id, memory.id)
    agent.close()
