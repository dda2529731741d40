"""The service in process: its first start, its secrets, its hub, its end."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import memstore.urls
from memstore.model import clock
from memstore.model.errors import Invalid, NotFound, Unauthenticated, Unavailable
from memstore.model.memories import CreateMemory
from memstore.model.sessions import Attachment
from memstore.service import Service
from tests.support.waiting import together, until


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database that is not there yet."""
    return f"sqlite:///{tmp_path / 'data' / 'memstore.db'}"


@pytest.fixture
def service(url: str) -> Iterator[Service]:
    """A fresh service."""
    service = Service(url)
    yield service
    service.close()


def test_the_first_start_makes_one_admin_key(service: Service, url: str) -> None:
    """Its secret comes once, works, and no later start gives another."""
    secret = service.bootstrap()
    assert secret is not None and secret.startswith("msk_")
    assert service.bootstrap() is None
    caller = service.authenticate(secret)
    assert caller.may("admin") and caller.may("redact")
    again = Service(url)
    assert again.bootstrap() is None
    assert again.authenticate(secret) == caller
    again.close()


def test_a_key_that_cannot_be_delivered_is_not_made(service: Service) -> None:
    """When the secret cannot be written down, the next start tries again."""

    def fail(secret: str) -> None:
        raise OSError("no room for the file")

    with pytest.raises(OSError, match="no room"):
        service.bootstrap(fail)
    told: list[str] = []
    secret = service.bootstrap(told.append)
    assert told == [secret]


def test_two_first_starts_at_once_make_one_key(service: Service) -> None:
    """Racing starts leave one workspace and one key."""
    secrets = together(lambda n: service.bootstrap(), 8)
    assert len([secret for secret in secrets if secret is not None]) == 1


def test_secrets_are_kept_as_hashes_only(service: Service, tmp_path: Path) -> None:
    """No file of the service holds a key's or a token's secret."""
    backend = service.backend_for(service.operator())
    _, secret = backend.create_key()
    token = backend.create_session_token(backend.create_session(agent="a", environment_id="e").id)
    service.authenticate(secret)
    for file in (tmp_path / "data").iterdir():
        data = file.read_bytes()
        for text in (secret, token, secret[4:], token[4:]):
            assert text.encode() not in data, file.name


def test_a_revocation_by_another_process_counts_soon(service: Service, url: str) -> None:
    """A cached answer about a key is too short-lived to outlast its revocation by a second."""
    backend = service.backend_for(service.operator())
    key, secret = backend.create_key()
    service.authenticate(secret)
    other = Service(url)
    other.backend_for(other.operator()).revoke_key(key.id)
    other.close()

    def refused() -> bool:
        try:
            service.authenticate(secret)
        except Unauthenticated:
            return True
        return False

    until(refused, "the revocation to be seen")


def test_a_redacted_text_leaves_every_file(service: Service, tmp_path: Path) -> None:
    """After a redaction neither text nor path nor hash is in the database or its log."""
    backend = service.backend_for(service.operator())
    store = backend.create_store(name="n")
    text = "marker-9f31c7 " * 2000
    memory = backend.create_memory(store.id, path="/path-7a3e01", content=text)
    backend.create_memory(store.id, path="/other", content="kept-51d0aa")
    backend.update_memory(store.id, memory.id, content="clean", path="/clean")
    backend.redact_version(store.id, memory.version_id)
    wanted = [b"marker-9f31c7", b"path-7a3e01", memory.content_sha256.encode()]
    everything = b"".join(file.read_bytes() for file in (tmp_path / "data").iterdir())
    assert b"/other" in everything and b"kept-51d0aa" not in everything
    for needle in wanted:
        assert needle not in everything


def test_a_deleted_store_leaves_every_file(service: Service, tmp_path: Path) -> None:
    """After a store is deleted no text of it is in the database or its log."""
    backend = service.backend_for(service.operator())
    store = backend.create_store(name="n", description="about-3b8c22")
    changes = [CreateMemory(f"/{n}", "marker-9f31c7 " * 300) for n in range(50)]
    backend.apply_changes(store.id, changes)
    backend.delete_store(store.id)
    everything = b"".join(file.read_bytes() for file in (tmp_path / "data").iterdir())
    for needle in (b"marker-9f31c7", b"about-3b8c22"):
        assert needle not in everything


def test_closing_the_service_ends_live_feeds(service: Service) -> None:
    """A feed that waits is woken and told; nobody hangs at a shutdown."""
    backend = service.backend_for(service.operator())
    store = backend.create_store(name="n")
    feed = backend.watch(store.id)
    ended: list[BaseException] = []

    def read() -> None:
        try:
            for _ in feed:
                pass
        except Unavailable as error:
            ended.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    service.close()
    thread.join(20)
    assert not thread.is_alive()
    assert len(ended) == 1


def test_a_subscriber_is_woken_by_its_store_only(service: Service) -> None:
    """The hub wakes after each change of the store, and not once unsubscribed."""
    backend = service.backend_for(service.operator())
    store, other = backend.create_store(name="a"), backend.create_store(name="b")
    wakes: list[int] = []
    unsubscribe = service.hub.subscribe(store.id, lambda: wakes.append(1))
    until(lambda: wakes, "the first look at the database")
    wakes.clear()
    backend.create_memory(other.id, path="/a", content="x")
    backend.create_memory(store.id, path="/a", content="x")
    until(lambda: wakes, "the wake")
    unsubscribe()
    unsubscribe()
    wakes.clear()
    backend.create_memory(store.id, path="/b", content="x")
    assert wakes == []


def test_a_failing_subscriber_harms_nobody(service: Service) -> None:
    """A wake that raises stops neither the writer nor the other subscribers."""
    backend = service.backend_for(service.operator())
    store = backend.create_store(name="a")
    woken = threading.Event()

    def broken() -> None:
        raise RuntimeError("the loop is closed")

    stops = [service.hub.subscribe(store.id, broken), service.hub.subscribe(store.id, woken.set)]
    backend.create_memory(store.id, path="/a", content="x")
    assert woken.wait(20)
    backend.create_memory(store.id, path="/b", content="x")
    for stop in stops:
        stop()


def test_a_snapshot_never_read_gives_its_connection_back(service: Service) -> None:
    """Snapshots that are dropped or closed early do not hold a reading open."""
    backend = service.backend_for(service.operator())
    store = backend.create_store(name="a")
    backend.create_memory(store.id, path="/a", content="x")
    for _ in range(200):
        backend.snapshot(store.id)
    partly = backend.snapshot(store.id)
    next(partly.memories)
    partly.memories.close()  # type: ignore[attr-defined]
    assert len(service._engine._idle) < 10  # type: ignore[attr-defined]


def test_connect_opens_a_database_as_its_operator(url: str) -> None:
    """Whoever may open the file may do everything; the handle's close closes the database."""
    backend = memstore.urls.connect(url)
    store = backend.create_store(name="n")
    key, secret = backend.create_key(scopes=("read",))
    backend.close()
    backend.close()
    reader = memstore.urls.connect(url, key=secret)
    assert reader.whoami().actor.id == key.id
    assert reader.list_stores().data == (store,)
    reader.close()
    with pytest.raises(Unauthenticated):
        memstore.urls.connect(url, key="msk_wrong")
    with pytest.raises(Invalid):
        memstore.urls.connect("ftp://host/x")


def test_a_store_deleted_by_another_process_ends_a_feed_here(service: Service, url: str) -> None:
    """The last event reaches feeds of every process on the file."""
    backend = service.backend_for(service.operator())
    store = backend.create_store(name="n")
    feed = backend.watch(store.id)
    other = memstore.urls.connect(url)
    other.create_memory(store.id, path="/a", content="x")
    heard: list[str] = []

    def read() -> None:
        try:
            heard.extend(event.kind for event in feed if event is not None)
        except NotFound:
            heard.append("not found")

    thread = threading.Thread(target=read)
    thread.start()
    other.delete_store(store.id)
    other.close()
    thread.join(20)
    assert not thread.is_alive()
    assert heard[-2:] == ["store.deleted", "not found"]


def test_a_clock_that_steps_back_does_not_turn_time_around(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Within a store every change is later than the one before, whatever the clock says."""
    backend = service.backend_for(service.operator())
    store = backend.create_store(name="n")
    memory = backend.create_memory(store.id, path="/a", content="one")
    monkeypatch.setattr(clock, "now_us", lambda: 1_000_000)
    backend.update_memory(store.id, memory.id, content="two")
    backend.update_store(store.id, name="other")
    archived = backend.archive_store(store.id)
    backend.delete_memory(store.id, memory.id)
    times = [event.created_at for event in backend.list_events(store.id).events]
    assert times == sorted(set(times)) and len(times) == 5
    assert archived.updated_at > store.updated_at


def test_a_session_outlives_its_store(service: Service) -> None:
    """When an attached store is deleted the session keeps its record and loses the store."""
    backend = service.backend_for(service.operator())
    kept, gone = backend.create_store(name="kept"), backend.create_store(name="gone")
    session = backend.create_session(
        agent="a", environment_id="e", stores=[Attachment(kept.id), Attachment(gone.id)]
    )
    agent = service.backend_for(service.authenticate(backend.create_session_token(session.id)))
    backend.delete_store(gone.id)
    assert backend.get_session(session.id) == session
    assert agent.list_stores().data == (kept,)
    with pytest.raises(NotFound):
        agent.list_memories(gone.id)
