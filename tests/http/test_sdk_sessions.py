"""Sessions through the official client, and what their tokens may do."""

from __future__ import annotations

from typing import Any

import anthropic
import httpx2
import pytest

from tests.support.serving import Served

PARTS = {"agent": "agent_1", "environment_id": "env_1"}


def attached(*stores: Any, **more: Any) -> list[dict[str, Any]]:
    """Resources that attach stores."""
    return [{"type": "memory_store", "memory_store_id": s.id, **more} for s in stores]


def named(sdk: Any, *names: str) -> list[Any]:
    """Stores with names."""
    return [sdk.beta.memory_stores.create(name=name, description="what") for name in names]


def test_a_session_is_whole(sdk: Any) -> None:
    """The official model finds everything it requires, and the attachment's snapshot."""
    (store,) = named(sdk, "Demo Memory")
    session = sdk.beta.sessions.create(
        agent={"type": "agent", "id": "agent_1", "version": 3},
        environment_id="env_1",
        title="Run",
        metadata={"k": "v"},
        vault_ids=["vlt_1"],
        resources=attached(store, access="read_only", instructions="Be brief."),
    )
    type(session).model_validate(session.model_dump(mode="json"), strict=False)
    assert (session.type, session.status, session.title) == ("session", "idle", "Run")
    assert (session.agent.id, session.agent.version) == ("agent_1", 3)
    assert (session.environment_id, session.vault_ids) == ("env_1", ["vlt_1"])
    assert (session.metadata, session.outcome_evaluations) == ({"k": "v"}, [])
    resource = session.resources[0]
    assert (resource.memory_store_id, resource.access) == (store.id, "read_only")
    assert (resource.name, resource.description) == ("Demo Memory", "what")
    assert (resource.mount_path, resource.instructions) == ("/mnt/memory/demo-memory", "Be brief.")
    assert sdk.beta.sessions.retrieve(session.id).resources == session.resources


def test_snapshots_do_not_follow_renames(sdk: Any) -> None:
    """A store renamed later keeps its name and mount path in the session."""
    (store,) = named(sdk, "Before")
    session = sdk.beta.sessions.create(**PARTS, resources=attached(store))
    sdk.beta.memory_stores.update(store.id, name="After")
    resource = sdk.beta.sessions.retrieve(session.id).resources[0]
    assert (resource.name, resource.mount_path) == ("Before", "/mnt/memory/before")


def test_mount_paths_do_not_clash(sdk: Any) -> None:
    """Stores of one slug get numbers; a name without letters gives the store's id."""
    stores = named(sdk, "Notes", "notes!", "NOTES", "日本")
    session = sdk.beta.sessions.create(**PARTS, resources=attached(*stores))
    paths = [r.mount_path.removeprefix("/mnt/memory/") for r in session.resources]
    assert paths == ["notes", "notes-2", "notes-3", stores[3].id]


def test_attaching_has_limits(sdk: Any) -> None:
    """Nine stores, a store twice, an archived one, other resources, long instructions: refused."""
    stores = named(sdk, *(f"s{number}" for number in range(9)))
    archived = sdk.beta.memory_stores.archive(named(sdk, "old")[0].id)
    repository = [{"type": "github_repository", "url": "u", "authorization_token": "t"}]
    for resources in (
        attached(*stores),
        attached(stores[0], stores[0]),
        attached(archived),
        attached(stores[0], instructions="x" * 4097),
        attached(stores[0], access="write_only"),
        repository,
    ):
        with pytest.raises(anthropic.BadRequestError) as caught:
            sdk.beta.sessions.create(**PARTS, resources=resources)
        assert caught.value.type == "invalid_request_error"
    assert "memory_store" in caught.value.api_message
    with pytest.raises(anthropic.NotFoundError):
        missing = [{"type": "memory_store", "memory_store_id": "memstore_none"}]
        sdk.beta.sessions.create(**PARTS, resources=missing)


def test_sessions_are_listed_by_store(sdk: Any) -> None:
    """The list is newest first, filtered by store, agent, time and status, in small pages."""
    one, other = named(sdk, "one", "other")
    made = [sdk.beta.sessions.create(**PARTS, resources=attached(one)) for _ in range(3)]
    sdk.beta.sessions.create(**PARTS, resources=attached(other))
    bare = sdk.beta.sessions.create(agent="agent_bare", environment_id="env_1")

    def ids(**where: Any) -> list[str]:
        return [session.id for session in sdk.beta.sessions.list(limit=1, **where)]

    newest_first = [session.id for session in reversed(made)]
    assert ids(memory_store_id=one.id) == newest_first
    after = {"memory_store_id": one.id, "created_at_gt": made[0].created_at}
    assert ids(**after) == newest_first[:2]
    assert ids(memory_store_id=one.id, created_at_lt=made[1].created_at) == newest_first[2:]
    assert ids(agent_id="agent_bare", created_at_gte=bare.created_at) == [bare.id]
    assert ids(memory_store_id=one.id, agent_id="agent_1", agent_version=2) == []
    assert ids(memory_store_id=one.id, statuses=["idle", "running"]) == newest_first
    assert ids(memory_store_id=one.id, statuses=["terminated"]) == []
    assert ids(memory_store_id="memstore_none") == []
    with pytest.raises(anthropic.BadRequestError):
        ids(order="asc")


def test_archive_ends_and_delete_removes(sdk: Any) -> None:
    """An archived session is terminated and hidden, twice is once; a deleted one is gone."""
    (store,) = named(sdk, "n")
    session = sdk.beta.sessions.create(**PARTS, resources=attached(store))
    ended = sdk.beta.sessions.archive(session.id)
    assert ended.status == "terminated" and ended.archived_at is not None
    assert sdk.beta.sessions.archive(session.id).archived_at == ended.archived_at
    assert list(sdk.beta.sessions.list(memory_store_id=store.id)) == []
    shown = sdk.beta.sessions.list(memory_store_id=store.id, include_archived=True)
    assert [s.id for s in shown] == [session.id]
    gone = sdk.beta.sessions.delete(session.id)
    assert (gone.id, gone.type) == (session.id, "session_deleted")
    with pytest.raises(anthropic.NotFoundError):
        sdk.beta.sessions.retrieve(session.id)


@pytest.mark.parametrize(
    "change", [{"agent": 5}, {"agent": {}}, {"agent": ""}, {"budget": {"a": 1}}]
)
def test_bad_sessions_are_refused(http: httpx2.Client, change: dict[str, Any]) -> None:
    """An agent without an id and what is not supported are refused, not ignored."""
    answer = http.post("/v1/sessions", json={**PARTS, **change})
    assert answer.status_code == 400


def test_a_token_acts_as_its_session(sdk: Any, served: Served, http: httpx2.Client) -> None:
    """It sees its own stores, writes where it may, signs as the session, and never redacts."""
    mine, locked, other = named(sdk, "mine", "locked", "other")
    session = sdk.beta.sessions.create(
        **PARTS, resources=[*attached(mine), *attached(locked, access="read_only")]
    )
    token = http.post(f"/v1/sessions/{session.id}/tokens").json()["token"]
    with anthropic.Anthropic(api_key=token, base_url=served.url, max_retries=0) as agent:
        stores = agent.beta.memory_stores
        memory = stores.memories.create(mine.id, path="/a", content="x")
        assert list(stores.memories.list(locked.id)) == []
        version = stores.memory_versions.list(mine.id, session_id=session.id).data[0]
        author: Any = version.created_by
        assert (author.type, author.session_id) == ("session_actor", session.id)
        forbidden = (
            lambda: stores.memories.create(locked.id, path="/a", content="x"),
            lambda: stores.memory_versions.redact(version.id, memory_store_id=mine.id),
            lambda: stores.create(name="n"),
            lambda: stores.archive(mine.id),
            lambda: stores.delete(mine.id),
        )
        for call in forbidden:
            with pytest.raises(anthropic.PermissionDeniedError) as caught:
                call()
            assert caught.value.type == "permission_error"
        with pytest.raises(anthropic.NotFoundError):
            stores.memories.list(other.id)
        assert [s.id for s in agent.beta.sessions.list()] == [session.id]
        sdk.beta.sessions.archive(session.id)
        with pytest.raises(anthropic.AuthenticationError):
            stores.memories.retrieve(memory.id, memory_store_id=mine.id)
