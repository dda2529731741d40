"""The driver against a service that offers the hosted API's own endpoints alone, over HTTP."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fuse_mount.kernel import mounting
from memstore.urls import connect
from tests.mount.conftest import Desk, shows
from tests.support.requirements import need
from tests.support.serving import Served
from tests.support.waiting import until

POLLING = ("-o", "poll_interval_s=0.05")


@pytest.fixture(scope="module")
def hosted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service started with `--no-extensions`."""
    served = Served(tmp_path_factory.mktemp("hosted") / "data", "--no-extensions")
    yield served
    assert served.stop() == 0


@pytest.fixture
def two(hosted: Served, tmp_path: Path) -> Iterator[tuple[Desk, Path, Path]]:
    """A store there, mounted at two places."""
    need(os.geteuid() == 0 and Path(mounting.DEVICE).exists(), "root and /dev/fuse")
    backend = connect(hosted.url, key=hosted.admin_secret)
    store = backend.create_store(name=tmp_path.name)
    backend.create_memory(store.id, path="/d/a.md", content="one\ntwo\nthree\nfour\n")
    backend.close()
    desk = Desk(hosted, store.id, store.name, tmp_path)
    try:
        places = tmp_path / "one", tmp_path / "two"
        for place in places:
            done = desk.run("mount", store.id, str(place), *POLLING, "-o", "versions=1")
            assert done.returncode == 0, done.stderr
        yield desk, *places
    finally:
        desk.close()


def memories(desk: Desk) -> dict[str, str | None]:
    """What the store holds, by its listing."""
    listed = desk.backend.list_memories(desk.store_id, view="full").data
    return {memory.path: getattr(memory, "content", None) for memory in listed}


def test_what_is_saved_in_one_mount_is_seen_in_the_other(two: tuple[Desk, Path, Path]) -> None:
    """Created, changed, appended, renamed, deleted: each within a few polls, one version a save."""
    desk, here, there = two
    (here / "b.md").write_text("new\n")
    shows(there / "b.md", "new\n")
    with (there / "b.md").open("a") as file:
        file.write("more\n")
    shows(here / "b.md", "new\nmore\n")
    (here / "b.md.tmp").write_text("whole\n")
    (here / "b.md.tmp").rename(here / "b.md")
    shows(there / "b.md", "whole\n")
    (here / "d").rename(here / "e")
    shows(there / "e" / "a.md", "one\ntwo\nthree\nfour\n")
    until(lambda: not (there / "d").exists(), "the old directory to go")
    (there / "b.md").unlink()
    until(lambda: not (here / "b.md").exists(), "the file to go")
    operations = [version.operation for version in desk.backend.list_versions(desk.store_id).data]
    assert operations[::-1] == ["created", "created", "modified", "modified", "modified", "deleted"]


def test_edits_are_merged_and_conflicts_kept(two: tuple[Desk, Path, Path]) -> None:
    """Different lines are merged; of the same line the loser is told, its text a memory beside."""
    desk, here, there = two
    fd = os.open(here / "d/a.md", os.O_RDWR)
    os.pwrite(fd, b"ONE", 0)
    (there / "d/a.md").write_text("one\ntwo\nthree\nFOUR\n")
    os.close(fd)
    shows(there / "d/a.md", "ONE\ntwo\nthree\nFOUR\n")

    fd = os.open(here / "d/a.md", os.O_RDWR)
    os.pwrite(fd, b"eins", 0)
    (there / "d/a.md").write_text("uno\ntwo\nthree\nFOUR\n")
    with pytest.raises(OSError, match="tale") as caught:
        os.close(fd)
    assert caught.value.errno == errno.ESTALE

    texts = memories(desk)
    assert texts.pop("/d/a.md") == "uno\ntwo\nthree\nFOUR\n"
    ((path, text),) = texts.items()
    assert path.startswith("/d/a.md.conflict-") and (text or "").startswith("eins")
    shows(there / path[1:], text or "")


def test_the_past_and_the_end_of_a_store(two: tuple[Desk, Path, Path]) -> None:
    """Versions appear by polling, a redacted one is refused, an archived store takes no writes."""
    desk, here, _ = two
    (here / "d/a.md").write_text("clean\n")
    past = here / ".versions/d/a.md"
    until(lambda: len(list(past.iterdir())) == 2, "both versions")
    first, second = sorted(past.iterdir())
    assert second.read_text() == "clean\n"
    desk.backend.redact_version(desk.store_id, desk.backend.list_versions(desk.store_id).data[1].id)
    with pytest.raises(PermissionError):
        first.read_text()

    desk.backend.archive_store(desk.store_id)

    def refused() -> bool:
        try:
            with (here / "new").open("w"):
                return False
        except OSError as error:
            return error.errno == errno.EROFS

    until(refused, "the archiving to be seen")
    assert (here / "d/a.md").read_text() == "clean\n"
    desk.backend.delete_store(desk.store_id)
    until(lambda: os.listdir(here) == [], "the store's files to go")


def test_programs_work(two: tuple[Desk, Path, Path]) -> None:
    """sed -i, grep -r, cp -r and mv, each with its usual outcome."""
    desk, here, there = two

    def shell(script: str) -> str:
        done = subprocess.run(
            ["sh", "-ec", script], cwd=here, capture_output=True, text=True, timeout=60, check=True
        )
        return done.stdout

    shell("sed -i s/two/TWO/ d/a.md")
    shell("cp -r d copy && mv copy/a.md b.md && rmdir copy")
    assert sorted(shell("grep -rl TWO .").split()) == ["./b.md", "./d/a.md"]
    shows(there / "b.md", "one\nTWO\nthree\nfour\n")
    assert set(memories(desk)) == {"/d/a.md", "/b.md"}
