"""PostgreSQL and its users killed, cut and restarted: nothing acknowledged is lost."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from memstore.model.errors import Unavailable
from memstore.service import Service
from memstore.service.database import verify_receipt
from tests.crash.test_destruction import CHILD as DESTROYING
from tests.crash.test_destruction import STEPS
from tests.support import postgres
from tests.support.waiting import until
from tests.support.writing import ROOT, Child, verify

ROUNDS = 3


@pytest.fixture
def url() -> Iterator[str]:
    """A database with memstore's schema."""
    with postgres.server().database() as url:
        yield url


@pytest.fixture
def service(url: str) -> Iterator[Service]:
    """A service on it."""
    service = Service(url, keys=postgres.key_source(url))
    yield service
    service.close()


def child(url: str, store_id: str, seed: int) -> Child:
    """A writing process on the database."""
    return Child(url, store_id, seed, **postgres.ENVIRON)


def test_a_killed_writer_loses_nothing_acknowledged(
    url: str, service: Service, seed: int, children: list[Child]
) -> None:
    """Killed again and again on one database: every acknowledged version is there, and it checks."""
    chance = random.Random(seed)
    backend = service.backend_for(service.operator())
    store_id = backend.create_store(name="crash").id
    for number in range(ROUNDS):
        one = child(url, store_id, seed + number)
        children.append(one)
        one.listen(chance.randrange(1, 200))
        one.kill()
        Service(url, keys=postgres.key_source(url)).close()  # the next start repairs
        assert service.check() == []
        verify(backend, store_id, one.said)


def test_a_cut_connection_loses_nothing_acknowledged(
    url: str, service: Service, seed: int, children: list[Child]
) -> None:
    """Connections cut under load, again and again: refused meanwhile, then it goes on by itself."""
    backend = service.backend_for(service.operator())
    store_id = backend.create_store(name="cut").id
    one = child(url, store_id, seed)
    children.append(one)
    for _ in range(ROUNDS):
        one.listen(40)
        postgres.server().cut(url)
        one.listen_for("unavailable")
        one.listen_past("unavailable")
    one.listen(20)
    one.kill()
    Service(url, keys=postgres.key_source(url)).close()
    assert service.check() == []
    verify(backend, store_id, one.said)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["restart", "crash"])
def test_a_restarted_server_loses_nothing_acknowledged(
    url: str, service: Service, seed: int, children: list[Child], how: signal.Signals
) -> None:
    """The server ends under load and comes back: a clear refusal meanwhile, then all goes on,
    live feeds too, which hear every event once."""
    backend = service.backend_for(service.operator())
    store_id = backend.create_store(name="restart").id
    seqs: list[int] = []
    ended = threading.Event()

    def follow() -> None:
        while not ended.is_set():
            try:
                feed = backend.watch(store_id, after=seqs[-1] if seqs else 0)
                for event in feed:
                    if ended.is_set():
                        break
                    if event is not None:
                        seqs.append(event.seq)
            except Unavailable:
                ended.wait(0.05)

    reader = threading.Thread(target=follow)
    reader.start()
    one = child(url, store_id, seed)
    children.append(one)
    one.listen(60)
    postgres.server().stop(how)
    try:
        one.listen_for("unavailable")
        with pytest.raises(Unavailable, match="cannot answer now"):
            backend.list_stores()
    finally:
        postgres.server().start()
    one.listen_past("unavailable")
    one.listen(60)
    one.kill()
    Service(url, keys=postgres.key_source(url)).close()
    last = backend.create_memory(store_id, path="/after", content="served again")
    assert service.check() == []
    verify(backend, store_id, one.said)
    try:
        cursor = backend.list_events(store_id, after=-1).cursor
        until(lambda: seqs and seqs[-1] == cursor, "the feed to hear of everything")
    finally:
        backend.delete_memory(store_id, last.id)
        ended.set()
        backend.create_memory(store_id, path="/end", content="")
        reader.join(20)
    assert not reader.is_alive()
    page, found = backend.list_events(store_id, limit=1000), []
    while True:
        found += [event.seq for event in page.events if event.seq <= cursor]
        if not page.more:
            break
        page = backend.list_events(store_id, after=page.cursor, limit=1000)
    assert seqs[: len(found)] == found


@pytest.mark.parametrize("step", [step for step in STEPS if step != "after the log"])
def test_a_killed_redaction(url: str, step: str) -> None:
    """It is as if it never began, or it is done, key and receipt and all; the rest is readable."""
    keys = postgres.key_source(url)
    service = Service(url, keys=keys)
    backend = service.backend_for(service.operator())
    store = backend.create_store(name="n").id
    memory = backend.create_memory(store, path="/m", content="one")
    backend.update_memory(store, memory.id, content="two")
    service.close()
    ended = subprocess.run(
        [sys.executable, "-c", DESTROYING, url, "version", step],
        cwd=ROOT,
        env={**os.environ, **postgres.ENVIRON},
        input=json.dumps({"store": store, "version": memory.version_id, "write": ""}),
        text=True,
        timeout=60,
        check=False,
        capture_output=True,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    service = Service(url, keys=keys)
    backend = service.backend_for(service.operator())
    assert service.check() == []
    assert service._engine.keys.store.intents() == []
    done = STEPS[step]
    assert backend.get_version(store, memory.version_id).content == (None if done else "one")
    assert backend.get_memory(store, memory.id).content == "two"
    if not done:
        backend.redact_version(store, memory.version_id)
    receipt = backend.redaction_receipt(store, memory.version_id)
    service.close()
    assert verify_receipt(url, keys, receipt) == []
