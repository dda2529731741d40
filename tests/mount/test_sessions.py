"""A session's stores, mounted as the session."""

from __future__ import annotations

import errno
from collections.abc import Callable

import pytest

from memstore.model.sessions import Attachment
from tests.mount.conftest import Desk


def test_a_session_mounts_all_its_stores(make_desk: Callable[[], Desk]) -> None:
    """Each is below the root at its slug; a read-only attachment is a read-only mount; versions
    written there name the session."""
    desk, reference = make_desk(), make_desk()
    session = desk.backend.create_session(
        agent="tester",
        environment_id="env",
        stores=[Attachment(desk.store_id), Attachment(reference.store_id, "read_only")],
    )
    done = desk.run("mount", "--session", session.id, "--root", str(desk.path / "memory"))
    assert done.returncode == 0, done.stderr
    own, shared = (
        desk.path / "memory" / attached.mount_path.rpartition("/")[2] for attached in session.stores
    )
    (own / "a.md").write_text("by the agent\n")
    with pytest.raises(OSError) as refusal:
        (shared / "a.md").write_text("not allowed\n")
    assert refusal.value.errno == errno.EROFS
    (version,) = desk.backend.list_versions(desk.store_id).data
    assert (version.created_by.kind, version.created_by.id) == ("session_actor", session.id)
    assert len(desk.mounts()) == 2
    desk.umount(own)
    desk.umount(shared)


def test_a_sessions_own_token_mounts_its_store(desk: Desk) -> None:
    """In an agent's container the token is all there is."""
    session = desk.backend.create_session(
        agent="tester", environment_id="env", stores=[Attachment(desk.store_id)]
    )
    token = desk.backend.create_session_token(session.id)
    desk.mount(MEMSTORE_API_KEY=token)
    (desk.place / "a.md").write_text("by the token\n")
    (version,) = desk.backend.list_versions(desk.store_id).data
    assert (version.created_by.kind, version.created_by.id) == ("session_actor", session.id)
    desk.umount()


def test_one_store_of_a_session(desk: Desk) -> None:
    """STORE and DIR beside --session mount that store as the session."""
    session = desk.backend.create_session(
        agent="tester", environment_id="env", stores=[Attachment(desk.store_id, "read_only")]
    )
    desk.mount("--session", session.id)
    with pytest.raises(OSError) as refusal:
        (desk.place / "a.md").write_text("x")
    assert refusal.value.errno == errno.EROFS
    desk.umount()
    other = desk.backend.create_store(name="another")
    assert desk.run("mount", other.id, "--session", session.id).returncode == 3


def test_an_ended_session_is_refused(desk: Desk) -> None:
    """A session that has ended gets no mount."""
    session = desk.backend.create_session(
        agent="tester", environment_id="env", stores=[Attachment(desk.store_id)]
    )
    desk.backend.archive_session(session.id)
    done = desk.run("mount", "--session", session.id)
    assert done.returncode == 7 and "has ended" in done.stderr
    assert not desk.mounts()
