"""Processes killed at random moments: what was acknowledged is there, and nothing is half-written."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memstore.backend import Backend
from memstore.model.errors import NotFound
from memstore.service import Service

ROUNDS = 5
ROOT = Path(__file__).parents[2]


class Child:
    """A writing process, and what it said was acknowledged."""

    def __init__(self, url: str, store_id: str, seed: int, threads: int = 3) -> None:
        self.said: list[list[str]] = []
        command = [sys.executable, "-m", "tests.support.writer_child", url, store_id]
        self.process = subprocess.Popen(
            [*command, str(seed), str(threads)], cwd=ROOT, stdout=subprocess.PIPE, text=True
        )

    def listen(self, lines: int) -> None:
        """Read some acknowledgements."""
        assert self.process.stdout is not None
        for _ in range(lines):
            line = self.process.stdout.readline()
            assert line, "the writer ended by itself"
            self.said.append(line.split())

    def kill(self) -> None:
        """SIGKILL; then read what was acknowledged in time. A line cut short was not."""
        self.process.send_signal(signal.SIGKILL)
        assert self.process.stdout is not None
        rest = self.process.stdout.read()
        self.said.extend(
            line.split() for line in rest.splitlines(keepends=True) if line[-1] == "\n"
        )
        self.process.wait()
        self.process.stdout.close()


@pytest.fixture
def seed() -> int:
    """Another seed each time, shown when the test fails; set MEMSTORE_TEST_SEED to repeat it."""
    seed = int(os.environ.get("MEMSTORE_TEST_SEED") or random.SystemRandom().randrange(10**6))
    print(f"MEMSTORE_TEST_SEED={seed}")
    return seed


@pytest.fixture
def children() -> Iterator[list[Child]]:
    """Whatever happens, no child is left behind."""
    children: list[Child] = []
    yield children
    for child in children:
        if child.process.poll() is None:
            child.kill()


def verify(backend: Backend, store_id: str, said: list[list[str]]) -> None:
    """Each acknowledged change is there, unless a later one by the same writer replaced it."""
    gone = {memory for operation, memory, _, _ in said if operation == "deleted"}
    redacted = {version for operation, _, version, _ in said if operation == "redacted"}
    for operation, memory, version, sha256 in said:
        if operation in ("created", "modified"):
            found = backend.get_version(store_id, version)
            assert (found.memory_id, found.operation) == (memory, operation)
            if version in redacted:
                assert found.redacted_at is not None and found.content is None
            elif found.redacted_at is None:
                assert found.content_sha256 == sha256 and found.content is not None
    for memory in gone:
        with pytest.raises(NotFound):
            backend.get_memory(store_id, memory)


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
