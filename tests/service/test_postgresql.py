"""Several processes on one PostgreSQL database: one feed, in the order of the commits."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

import memstore
from memstore.backend import Backend
from memstore.service import Service
from memstore.service.database import rotate_master
from memstore.settings import Settings
from tests.support import postgres
from tests.support.serving import Served
from tests.support.waiting import until
from tests.support.writing import Child

WRITERS = 4
EVENTS = 600


@pytest.fixture
def url() -> Iterator[str]:
    """A database with memstore's schema."""
    with postgres.server().database() as url:
        yield url


@pytest.fixture
def children() -> Iterator[list[Child]]:
    """Whatever happens, no child is left behind."""
    children: list[Child] = []
    yield children
    for child in children:
        if child.process.poll() is None:
            child.kill()


def follow(backend: Backend, store_id: str, seqs: list[int]) -> None:
    """Hear events until there are enough."""
    feed = backend.watch(store_id)
    for event in feed:
        if event is not None:
            seqs.append(event.seq)
        if len(seqs) >= EVENTS:
            break
    feed.close()


def poll(backend: Backend, store_id: str, seqs: list[int]) -> None:
    """Read by cursor until there are enough."""
    cursor = 0
    while len(seqs) < EVENTS:
        page = backend.list_events(store_id, after=cursor, limit=7)
        seqs += [event.seq for event in page.events]
        cursor = page.cursor


def test_readers_miss_and_repeat_nothing_under_load(url: str, children: list[Child]) -> None:
    """Four processes write one store: live feeds and readers by cursor get each event once, in
    order."""
    service = Service(url, keys=postgres.key_source(url))
    backend = service.backend_for(service.operator())
    store_id = backend.create_store(name="busy").id
    read: list[list[int]] = [[] for _ in range(4)]
    readers = [
        threading.Thread(target=work, args=(backend, store_id, seqs))
        for work, seqs in zip((follow, follow, poll, poll), read, strict=True)
    ]
    for reader in readers:
        reader.start()
    for number in range(WRITERS):
        children.append(Child(url, store_id, number, 2, **postgres.ENVIRON))
    for reader in readers:
        reader.join(60)
        assert not reader.is_alive()
    for child in children:
        child.listen(1)
        child.kill()
    there = [event.seq for event in backend.list_events(store_id, limit=1000).events]
    for seqs in read:
        assert seqs == there[: len(seqs)]
    assert not [line for child in children for line in child.said if line[0] == "unavailable"]
    Service(url, keys=postgres.key_source(url)).close()
    assert service.check() == []
    service.close()


def test_a_commit_elsewhere_is_heard_without_polling(url: str) -> None:
    """A change by one process wakes a feed in another, also after its connection was cut."""
    one = Service(url, keys=postgres.key_source(url))
    two = Service(url, keys=postgres.key_source(url))
    writer = one.backend_for(one.operator())
    store_id = writer.create_store(name="shared").id
    feed = two.backend_for(two.operator()).watch(store_id)
    heard: list[str | None] = []
    reader = threading.Thread(
        target=lambda: heard.extend(event.path for event in feed if event is not None)
    )
    reader.start()
    writer.create_memory(store_id, path="/a", content="")
    until(lambda: heard == ["/a"], "the first change")
    postgres.server().cut(url)
    writer.create_memory(store_id, path="/b", content="")
    until(lambda: heard == ["/a", "/b"], "the change after the cut")
    feed.close()
    reader.join(20)
    assert not reader.is_alive()
    for service in (one, two):
        service.close()


def test_workers_and_services_share_a_database(tmp_path: Path, url: str) -> None:
    """Two services, one of two workers, on one database: what one writes the others serve."""
    first = Served(
        tmp_path / "one",
        *("--database", url, "--workers", "2"),
        **{**postgres.ENVIRON, "MEMSTORE_DATA_DIR": str(tmp_path / "one")},
    )
    backends = [memstore.connect(first.url, key=first.admin_secret) for _ in range(4)]
    store_id = backends[0].create_store(name="shared").id
    service = Service(url, keys=postgres.key_source(url))
    own = service.backend_for(service.authenticate(first.admin_secret))
    feeds = [backend.watch(store_id) for backend in [*backends, own]]
    for number, backend in enumerate([*backends, own]):
        backend.create_memory(store_id, path=f"/{number}", content=str(number))
    for feed in feeds:
        paths = []
        for event in feed:
            if event is not None:
                paths.append(event.path)
            if len(paths) == 5:
                break
        assert paths == [f"/{number}" for number in range(5)]
        feed.close()
    for backend in backends:
        assert [memory.content for memory in backend.snapshot(store_id).memories] == list("01234")
        backend.close()
    assert service.check() == []
    service.close()
    assert first.stop() == 0
    assert first.log.read_text() == ""


def test_no_text_is_in_the_servers_files(url: str) -> None:
    """Neither pages nor log of the server hold a text; a destroyed key is in no live page."""
    marker = f"marker {uuid.uuid4().hex}"
    service = Service(url, keys=postgres.key_source(url))
    backend = service.backend_for(service.operator())
    store_id = backend.create_store(name="sealed").id
    memory = backend.create_memory(store_id, path="/a", content=marker * 50)
    backend.update_memory(store_id, memory.id, content=marker)
    backend.redact_version(store_id, memory.version_id)
    assert service._engine.keys.store.intents() == []
    service.close()
    held = postgres.server().files_holding(marker.encode())
    assert held == []


def test_the_master_key_is_rotated(tmp_path: Path) -> None:
    """On PostgreSQL too every key goes under a new master key, and a running service goes on."""
    with postgres.server().database(empty=True) as url:
        keys = Settings(environ={"MEMSTORE_DATA_DIR": str(tmp_path)}).key_source_of(url)
        service = Service(url, keys=keys)
        backend = service.backend_for(service.operator())
        store_id = backend.create_store(name="kept").id
        memory = backend.create_memory(store_id, path="/a", content="kept")
        old = keys.master_file.read_text()
        rotate_master(keys)
        assert keys.master_file.read_text() != old
        other = backend.create_store(name="new").id
        backend.create_memory(other, path="/b", content="new")
        service.close()
        service = Service(url, keys=keys)
        backend = service.backend_for(service.operator())
        assert backend.get_memory(store_id, memory.id).content == "kept"
        assert service.check() == []
        service.close()
