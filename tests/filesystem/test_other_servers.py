"""A server that offers only the hosted API's own endpoints: the same outcomes, only later."""

from __future__ import annotations

import os

import pytest

from memstore.model.limits import STORE_MEMORIES
from tests.support.faults import EXTENSIONS, FaultyBackend
from tests.support.files import Files, append, read, refused, save
from tests.support.mounted import Place, hides, shows
from tests.support.waiting import until

STREAMLESS = frozenset({"watch", "snapshot"})


@pytest.fixture(params=["bare", "pages of events"])
def files(request: pytest.FixtureRequest, place: Place) -> Files:
    """A mount of a store with a few memories, over single calls and polling."""
    for number in range(25):
        place.put(f"/d/{number:02}", f"{number}")
    without = EXTENSIONS if request.param == "bare" else STREAMLESS
    backend = FaultyBackend(place.backend, without=without)
    return place.mount(backend, poll_interval_s=0.02)  # type: ignore[arg-type]


def test_everything_is_listed_and_read(files: Files) -> None:
    """Page by page."""
    assert sorted(files.listdir("d")) == [f"{number:02}" for number in range(25)]
    assert read(files, "d/07") == b"7"


def test_changes_are_seen_within_the_polling_interval(place: Place, files: Files) -> None:
    """Created, changed, moved, deleted."""
    place.put("/new", "1")
    shows(files, "new", "1")
    place.put("/new", "2")
    shows(files, "new", "2")
    memory = place.memory("/new")
    place.backend.update_memory(place.store_id, memory.id, path="/moved")
    shows(files, "moved", "2")
    hides(files, "new")
    place.backend.delete_memory(place.store_id, memory.id)
    hides(files, "moved")


def test_many_changes_between_two_polls_are_seen(place: Place, files: Files) -> None:
    """More than a page of them."""
    for number in range(60):
        place.put(f"/many/{number}", "x")

    shows(files, "many/59", "x")

    assert len(files.listdir("many")) == 60


def test_saves_and_renames_have_the_same_outcome(place: Place, files: Files) -> None:
    """One save, one version; a rename onto a memory goes on with its lineage."""
    target = place.memory("/d/01")
    before = len(place.history())
    save(files, "d/00", "new")
    append(files, "d/00", "er")
    save(files, "d/01.tmp", "by rename")
    files.rename("d/01.tmp", "d/01")
    assert len(place.history()) == before + 3
    assert place.memory("/d/01").id == target.id

    files.rename("d/02", "d/01")
    files.unlink("d/03")
    files.rename("d", "e")

    texts = place.texts()
    assert (texts["/e/00"], texts["/e/01"]) == ("newer", "2")
    assert "/e/02" not in texts and "/e/03" not in texts
    assert len(texts) == 23
    assert place.memory("/e/01").id == target.id
    assert read(files, "e/01") == b"2"


def test_conflicts_are_handled_the_same(place: Place, files: Files) -> None:
    """Merged, told, re-created; also when the path was taken by somebody else."""
    place.put("/a", "one\ntwo\nthree\n")
    shows(files, "a", "one\ntwo\nthree\n")
    fd = files.open("a", os.O_RDWR)
    files.pwrite(fd, b"ONE", 0)
    place.put("/a", "one\ntwo\nTHREE\n")
    files.close(fd)
    assert place.texts()["/a"] == "ONE\ntwo\nTHREE\n"

    fd = files.open("b", os.O_WRONLY | os.O_CREAT)
    files.write(fd, b"mine\n")
    place.put("/b", "theirs\n")
    assert refused(files.close, fd) == "ESTALE"
    assert place.texts()["/b"] == "theirs\n"


@pytest.mark.parametrize("without", [EXTENSIONS, STREAMLESS], ids=["bare", "pages of events"])
def test_polling_outlives_an_outage(place: Place, without: frozenset[str]) -> None:
    """What happened while the server was away is seen once it is back."""
    place.put("/a", "1")
    backend = FaultyBackend(place.backend, without=without)
    files = place.mount(backend, poll_interval_s=0.01)  # type: ignore[arg-type]
    verb = "list_versions" if without is EXTENSIONS else "list_events"
    polls = backend.calls.count(verb)
    until(lambda: backend.calls.count(verb) > polls + 1, "a poll")
    backend.go_away()
    polls = backend.calls.count(verb)
    until(lambda: backend.calls.count(verb) > polls + 1, "polls of a server that is away")
    place.put("/a", "2")

    backend.come_back()

    shows(files, "a", "2")


def test_a_losing_text_is_an_ordinary_memory(place: Place) -> None:
    """Where no rejected writes are recorded the text outlives the mount beside the winner."""
    place.put("/d/a", "one\n")
    backend = FaultyBackend(place.backend, without=EXTENSIONS)
    files = place.mount(backend, poll_interval_s=0.02)  # type: ignore[arg-type]
    fd = files.open("d/a", os.O_RDWR)
    files.pwrite(fd, b"ONE", 0)
    place.put("/d/a", "uno\n")

    assert refused(files.close, fd) == "ESTALE"

    texts = place.texts()
    assert texts.pop("/d/a") == "uno\n"
    ((path, text),) = texts.items()
    assert path.startswith("/d/a.conflict-") and text == "ONE\n"
    assert read(files, path[1:]) == b"ONE\n"


def test_a_directory_rename_that_fails_half_way_is_taken_back(place: Place) -> None:
    """Without batches: all or report."""
    for name in ("a", "b", "c"):
        place.put(f"/d/{name}", name)
    backend = FaultyBackend(place.backend, without=EXTENSIONS)
    files = place.mount(backend, poll_interval_s=60.0)  # type: ignore[arg-type]
    place.put("/e/b", "in the way")

    assert refused(files.rename, "d", "e") == "EEXIST"

    assert place.texts() == {"/d/a": "a", "/d/b": "b", "/d/c": "c", "/e/b": "in the way"}
    assert sorted(files.listdir("d")) == ["a", "b", "c"]


def test_statfs_assumes_the_documented_caps(place: Place) -> None:
    """A server that does not tell its caps is taken to have the documented ones."""
    place.put("/a", "1")
    backend = FaultyBackend(place.backend, without=EXTENSIONS)
    files = place.mount(backend)  # type: ignore[arg-type]

    assert files.statfs().files == STORE_MEMORIES
    assert files.statfs().files_free == STORE_MEMORIES - 1
