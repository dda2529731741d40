"""Access: scopes, keys, workspaces that never meet, and the order of refusals."""

from __future__ import annotations

import pytest

from memstore.backend import Backend
from memstore.model import ids
from memstore.model.errors import (
    Forbidden,
    Invalid,
    NotFound,
    PathConflict,
    StoreArchived,
    Unauthenticated,
)
from memstore.model.preconditions import ContentIs
from memstore.model.sessions import Attachment
from memstore.model.stores import Store
from tests.support.waiting import until
from tests.support.walking import every
from tests.support.worlds import World

NOBODY = "mem_01" + "1" * 22


def test_a_secret_that_is_none_is_refused(world: World, backend: Backend) -> None:
    """A wrong, empty or foreign secret authenticates nobody."""
    _, secret = backend.create_key()
    for wrong in ("", "x", "msk_", secret[:-1], secret + "x", secret.upper(), "mst_" + secret[4:]):
        with pytest.raises(Unauthenticated):
            world.connect(wrong).list_stores()


def test_a_key_is_shown_without_its_secret(world: World, backend: Backend) -> None:
    """The secret comes once, from create; the list has names, scopes and times."""
    key, secret = backend.create_key(name="ci", scopes=("write", "read"))
    assert (key.name, key.scopes, key.workspace) == ("ci", ("read", "write"), world.workspace)
    assert key.revoked_at is None
    listed = every(backend.list_keys, limit=1)
    assert key in listed and len(listed) == 2
    assert secret not in repr(listed)
    assert world.connect(secret).whoami().actor.id == key.id


@pytest.mark.parametrize("scopes", [(), ("owner",), ("read", "")])
def test_bad_scopes_make_no_key(backend: Backend, scopes: tuple[str, ...]) -> None:
    """A key has at least one scope, each a known one."""
    with pytest.raises(Invalid):
        backend.create_key(scopes=scopes)  # type: ignore[arg-type]
    assert len(backend.list_keys().data) == 1


def test_a_revoked_key_is_useless_within_a_second(world: World, backend: Backend) -> None:
    """Revoking stops the key, keeps it in the list, and a second time changes nothing."""
    key, secret = backend.create_key()
    world.connect(secret).list_stores()
    revoked = backend.revoke_key(key.id)
    assert revoked.revoked_at is not None
    assert backend.revoke_key(key.id) == revoked
    assert revoked in backend.list_keys().data

    def refused() -> bool:
        try:
            world.connect(secret).list_stores()
        except Unauthenticated:
            return True
        return False

    until(refused, "the key to stop working")


def test_a_read_key_reads_only(world: World, backend: Backend, store: Store) -> None:
    """The scope `read` sees everything and changes nothing."""
    memory = backend.create_memory(store.id, path="/a", content="x")
    _, secret = backend.create_key(scopes=("read",))
    reader = world.connect(secret)
    assert reader.get_memory(store.id, memory.id).content == "x"
    assert reader.list_stores().data == (store,)
    for call in (
        lambda: reader.create_store(name="n"),
        lambda: reader.update_store(store.id, name="n"),
        lambda: reader.archive_store(store.id),
        lambda: reader.delete_store(store.id),
        lambda: reader.create_memory(store.id, path="/b", content="x"),
        lambda: reader.update_memory(store.id, memory.id, content="y"),
        lambda: reader.delete_memory(store.id, memory.id),
        lambda: reader.apply_changes(store.id, []),
        lambda: reader.redact_version(store.id, memory.version_id),
        lambda: reader.create_session(agent="a", environment_id="e"),
        lambda: reader.list_keys(),
    ):
        with pytest.raises(Forbidden):
            call()


def test_redaction_needs_its_scope(world: World, backend: Backend, store: Store) -> None:
    """A key that writes does not redact; one with the scope does."""
    memory = backend.create_memory(store.id, path="/a", content="x")
    backend.update_memory(store.id, memory.id, content="y")
    writer = world.connect(backend.create_key(scopes=("write",))[1])
    assert writer.get_memory(store.id, memory.id).content == "y"
    with pytest.raises(Forbidden):
        writer.redact_version(store.id, memory.version_id)
    with pytest.raises(Forbidden):
        writer.create_key()
    redactor = world.connect(backend.create_key(scopes=("read", "redact"))[1])
    assert redactor.redact_version(store.id, memory.version_id).redacted_at is not None


def test_workspaces_never_meet(world: World, backend: Backend, store: Store) -> None:
    """Nothing of one workspace exists in another: not by list, not by any id."""
    memory = backend.create_memory(store.id, path="/a", content="x")
    backend.update_memory(store.id, memory.id, content="y")
    session = backend.create_session(agent="a", environment_id="e")
    operator, name = world.connect(world.operator_secret), ids.new("other")
    key, secret = operator.create_key(scopes=("admin",), workspace=name)
    assert key.workspace == name
    other = world.connect(secret)
    assert other.list_stores(include_archived=True).data == ()
    assert other.list_sessions(include_archived=True).data == ()
    assert other.list_keys().data == (key,)
    right = ContentIs(memory.content_sha256)
    for call in (
        lambda: other.get_store(store.id),
        lambda: other.update_store(store.id, name="n"),
        lambda: other.archive_store(store.id),
        lambda: other.delete_store(store.id),
        lambda: other.store_usage(store.id),
        lambda: other.create_memory(store.id, path="/z", content="x"),
        lambda: other.create_memory(store.id, path="not a path", content="x"),
        lambda: other.get_memory(store.id, memory.id),
        lambda: other.get_memory_at(store.id, "/a"),
        lambda: other.list_memories(store.id),
        lambda: other.list_memories(store.id, depth=9),
        lambda: other.update_memory(store.id, memory.id, content="z", precondition=right),
        lambda: other.delete_memory(store.id, memory.id),
        lambda: other.apply_changes(store.id, []),
        lambda: list(other.snapshot(store.id).memories),
        lambda: other.list_versions(store.id),
        lambda: other.get_version(store.id, memory.version_id),
        lambda: other.redact_version(store.id, memory.version_id),
        lambda: other.list_events(store.id),
        lambda: next(iter(other.watch(store.id))),
        lambda: other.create_session(agent="a", environment_id="e", stores=[Attachment(store.id)]),
        lambda: other.get_session(session.id),
        lambda: other.archive_session(session.id),
        lambda: other.delete_session(session.id),
        lambda: other.create_session_token(session.id),
        lambda: other.revoke_key(backend.whoami().actor.id),
    ):
        with pytest.raises(NotFound):
            call()
    assert backend.get_memory(store.id, memory.id).content == "y"
    mine = other.create_store(name="mine")
    assert other.list_stores().data == (mine,)
    assert backend.list_stores().data == (store,)


def test_a_tenant_cannot_make_keys_of_another_workspace(world: World) -> None:
    """Only the workspace `default` makes keys for others, whether or not they exist."""
    operator, own = world.connect(world.operator_secret), ids.new("tenant")
    tenant = world.connect(operator.create_key(scopes=("admin",), workspace=own)[1])
    assert tenant.create_key()[0].workspace == own
    assert tenant.create_key(workspace=own)[0].workspace == own
    for name in ("default", "new"):
        with pytest.raises(Forbidden):
            tenant.create_key(workspace=name)


def test_the_order_of_refusals(world: World, backend: Backend, store: Store) -> None:
    """Store, then arguments, then archived, then the memory, its precondition, the path."""
    ghost = "memstore_01" + "1" * 22
    memory = backend.create_memory(store.id, path="/a", content="x")
    backend.create_memory(store.id, path="/b", content="x")
    reader = world.connect(backend.create_key(scopes=("read",))[1])
    with pytest.raises(NotFound):
        backend.create_memory(ghost, path="bad", content="x")
    with pytest.raises(NotFound):
        reader.create_memory(ghost, path="/a", content="x")
    with pytest.raises(NotFound):
        backend.update_memory(ghost, memory.id)
    with pytest.raises(NotFound):
        backend.list_memories(ghost, depth=7)
    with pytest.raises(NotFound):
        backend.list_versions(ghost, limit=0)
    with pytest.raises(NotFound):
        backend.list_events(ghost, limit=0)
    with pytest.raises(Invalid):
        backend.update_memory(store.id, NOBODY)
    with pytest.raises(Invalid):
        backend.delete_memory(store.id, NOBODY, expected_content_sha256="no")
    with pytest.raises(NotFound):
        backend.update_memory(store.id, NOBODY, path="/b")
    with pytest.raises(PathConflict):
        backend.update_memory(store.id, memory.id, path="/b")
    backend.archive_store(store.id)
    with pytest.raises(Invalid) as caught:
        backend.create_memory(store.id, path="bad", content="x")
    assert not isinstance(caught.value, StoreArchived)
    with pytest.raises(StoreArchived):
        backend.create_memory(store.id, path="/a", content="x")
    with pytest.raises(StoreArchived):
        backend.update_memory(store.id, NOBODY, content="x")
