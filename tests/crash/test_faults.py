"""A disk that is full, a file that is damaged or no database: a clear sentence, nothing lost."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memstore.model.errors import Unavailable
from memstore.service import Service
from memstore.service.database import check
from tests.support.requirements import need
from tests.support.waiting import together

ROOT = Path(__file__).parents[2]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB."""
    need(os.geteuid() == 0 and shutil.which("mount"), "root, to mount a small file system")
    path = tmp_path / "small"
    path.mkdir()
    options = ["-t", "tmpfs", "-o", "size=3m", "memstore-test", str(path)]
    subprocess.run(["mount", *options], check=True)
    yield path
    subprocess.run(["umount", str(path)], check=True)


def test_a_full_disk_refuses_and_recovers(small_disk: Path) -> None:
    """On a full disk every write is refused with what to do; what was acknowledged stays, and
    after freeing space writing goes on."""
    filler = small_disk / "filler"
    filler.write_bytes(b"\0" * 1_500_000)
    url = f"sqlite:///{small_disk / 'memstore.db'}"
    service = Service(url)
    backend = service.backend_for(service.operator())
    store = backend.create_store(name="full")
    kept: dict[str, str] = {}

    def fill(number: int) -> None:
        for n in range(100):
            text = f"{number} {n} " + "x" * 20_000
            memory = backend.create_memory(store.id, path=f"/{number}/{n}", content=text)
            kept[memory.id] = text

    results = together(fill, 4)
    assert all(isinstance(result, Unavailable) for result in results)
    assert any("full disk" in str(result) for result in results)
    assert kept
    filler.unlink()
    backend.create_memory(store.id, path="/after", content="room again")
    for id, text in kept.items():
        assert backend.get_memory(store.id, id).content == text
    assert backend.store_usage(store.id).memories == len(kept) + 1
    assert service.check() == []
    service.close()
    assert check(url) == []


LIMITED = """
import sys
from memstore.model.errors import Unavailable
from memstore.service import Service
import resource
service = Service(sys.argv[1])
backend = service.backend_for(service.operator())
store = backend.create_store(name="limited")
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
for n in range(1000):
    try:
        memory = backend.create_memory(store.id, path=f"/{n}", content="x" * 30_000)
    except Unavailable as error:
        print("refused", error, flush=True)
        break
    print("kept", memory.id, flush=True)
"""


def test_a_file_size_limit_refuses_and_keeps(tmp_path: Path) -> None:
    """When the system lets the file grow no more, the write is refused and the file stays whole."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
    url = f"sqlite:///{tmp_path / 'memstore.db'}"
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, url], cwd=ROOT, capture_output=True, text=True, timeout=60
    )
    lines = done.stdout.splitlines()
    assert lines and lines[-1].startswith("refused The database"), done.stdout + done.stderr
    service = Service(url)
    backend = service.backend_for(service.operator())
    (store,) = backend.list_stores().data
    assert backend.store_usage(store.id).memories == len(lines) - 1 > 0
    for line in lines[:-1]:
        assert backend.get_memory(store.id, line.split()[1]).content == "x" * 30_000
    assert service.check() == []
    service.close()


def test_a_file_that_is_no_database_is_refused_untouched(tmp_path: Path) -> None:
    """Another file is not taken for a database, and not a byte of it changes."""
    path = tmp_path / "memstore.db"
    path.write_bytes(b"these are not the pages you are looking for" * 100)
    before = path.read_bytes()
    with pytest.raises(Unavailable, match="not a memstore database"):
        Service(f"sqlite:///{path}")
    assert path.read_bytes() == before


@pytest.mark.damaged_database
def test_a_damaged_database_says_so(tmp_path: Path) -> None:
    """Overwritten pages are refused or reported, with the advice to restore a backup."""
    path = tmp_path / "memstore.db"
    service = Service(f"sqlite:///{path}")
    backend = service.backend_for(service.operator())
    store = backend.create_store(name="damaged")
    for n in range(50):
        backend.create_memory(store.id, path=f"/{n}", content="x" * 5000)
    service.close()
    with path.open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(4096)
        file.write(os.urandom(size - 4096))
    with pytest.raises(Unavailable, match="damaged; restore a backup"):
        check(f"sqlite:///{path}")
    with pytest.raises(Unavailable, match="damaged; restore a backup"):
        Service(f"sqlite:///{path}").operator()


def test_a_folder_in_the_way_is_named(tmp_path: Path) -> None:
    """A database whose path is a folder, or lies below a file, is refused in one sentence."""
    (tmp_path / "memstore.db").mkdir()
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "memstore.db", tmp_path / "file" / "memstore.db"):
        with pytest.raises(Unavailable, match="cannot be opened"):
            Service(f"sqlite:///{path}")
