"""Processes killed at random moments: what was acknowledged is there, and nothing is half-written."""

from __future__ import annotations

import random
from pathlib import Path

from memstore.service import Service
from tests.support.writing import Child, verify

ROUNDS = 5


def test_a_killed_writer_loses_nothing_acknowledged(
    tmp_path: Path, seed: int, children: list[Child]
) -> None:
    """Killed again and again on one database: every acknowledged version is there, and it checks."""
    chance = random.Random(seed)
    url = f"sqlite:///{tmp_path / 'memstore.db'}"
    service = Service(url)
    store_id = service.backend_for(service.operator()).create_store(name="crash").id
    service.close()
    said: list[list[str]] = []
    for number in range(ROUNDS):
        child = Child(url, store_id, seed + number)
        children.append(child)
        child.listen(chance.randrange(1, 300))
        child.kill()
        said += child.said
        service = Service(url)
        assert service.check() == []
        verify(service.backend_for(service.operator()), store_id, said)
        service.close()
    assert len(said) > ROUNDS


def test_a_killed_neighbour_does_not_disturb(
    tmp_path: Path, seed: int, children: list[Child]
) -> None:
    """Two processes on one file: one is killed mid-way, the other writes on, both kept whole."""
    url = f"sqlite:///{tmp_path / 'memstore.db'}"
    service = Service(url)
    backend = service.backend_for(service.operator())
    store_id = backend.create_store(name="crash").id
    one, two = Child(url, store_id, seed), Child(url, store_id, seed + 1)
    children += [one, two]
    one.listen(40)
    two.listen(10)
    one.kill()
    two.listen(100)
    backend.create_memory(store_id, path="/mine", content="still served")
    two.kill()
    assert service.check() == []
    verify(backend, store_id, one.said)
    verify(backend, store_id, two.said)
    service.close()


def test_a_change_by_another_process_reaches_a_live_feed(
    tmp_path: Path, seed: int, children: list[Child]
) -> None:
    """A feed in this process hears what another process commits to the same file, in order."""
    url = f"sqlite:///{tmp_path / 'memstore.db'}"
    service = Service(url)
    backend = service.backend_for(service.operator())
    store_id = backend.create_store(name="shared").id
    feed = backend.watch(store_id)
    child = Child(url, store_id, seed)
    children.append(child)
    seqs = []
    for event in feed:
        if event is not None:
            seqs.append(event.seq)
        if len(seqs) == 50:
            break
    feed.close()
    child.kill()
    assert seqs == list(range(1, 51))
    service.close()
