"""Two sessions edit the same line: the loser is told, and an operator finds its text."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path

from memstore.model.sessions import Attachment
from tests.mount.conftest import Desk, shows
from tests.support.waiting import until


def as_session(desk: Desk, place: Path, *options: str) -> str:
    """Mount the store there as a session of its own; the session's id."""
    session = desk.backend.create_session(
        agent="agent", environment_id="env", stores=[Attachment(desk.store_id)]
    )
    token = desk.backend.create_session_token(session.id)
    done = desk.run("mount", desk.store_id, str(place), *options, MEMSTORE_API_KEY=token)
    assert done.returncode == 0, done.stderr
    return session.id


def lose(loser: Path, winner: Path, name: str, text: str) -> int | None:
    """Write a text in one mount while the other saves another; the errno of the loser's close."""
    fd = os.open(loser / name, os.O_RDWR)
    os.pwrite(fd, text.encode(), 0)
    (winner / name).write_text("the winner\n")
    try:
        os.close(fd)
    except OSError as error:
        return error.errno
    return None


def test_the_losing_text_is_recorded_with_its_author_and_can_be_applied(desk: Desk) -> None:
    """ESTALE in the loser's mount; `memstore rejected` lists, shows and applies what it wrote."""
    memory = desk.backend.create_memory(desk.store_id, path="/plan.md", content="the base\n")
    one, two = desk.path / "one", desk.path / "two"
    loser = as_session(desk, one)
    winner = as_session(desk, two)

    assert lose(one, two, "plan.md", "the loser\n") == errno.ESTALE

    assert (one / "plan.md").read_text() == "the winner\n"
    (beside,) = one.glob("plan.md.conflict-*")
    assert beside.read_text() == "the loser\n"
    assert [path.name for path in two.iterdir()] == ["plan.md"]
    listed = desk.run("rejected", "list", desk.store_id, "--json")
    (write,) = json.loads(listed.stdout)["data"]
    assert write["created_by"] == {"type": "session_actor", "session_id": loser}
    assert (write["state"], write["path"], write["memory_id"]) == ("open", "/plan.md", memory.id)
    assert write["base_content_sha256"] == memory.content_sha256
    assert desk.run("rejected", "show", desk.store_id, write["id"]).stdout.endswith("\nthe loser\n")

    applied = desk.run("rejected", "apply", desk.store_id, write["id"])
    assert applied.returncode == 0, applied.stderr

    shows(one / "plan.md", "the loser\n")
    shows(two / "plan.md", "the loser\n")
    versions = desk.backend.list_versions(desk.store_id).data
    actors = [version.created_by.id for version in versions if version.created_by]
    assert versions[0].id == applied.stdout.strip()
    assert actors[:2] == [desk.backend.whoami().actor.id, winner]
    assert len(versions) == 3


def test_a_dismissed_text_stays_in_the_losers_mount_alone(desk: Desk) -> None:
    """The server has nothing of it any more; the file beside the winner is the agent's own."""
    desk.backend.create_memory(desk.store_id, path="/plan.md", content="the base\n")
    one, two = desk.path / "one", desk.path / "two"
    as_session(desk, one)
    as_session(desk, two)
    assert lose(one, two, "plan.md", "the loser\n") == errno.ESTALE
    (write,) = desk.backend.list_rejected_writes(desk.store_id).data
    assert desk.run("rejected", "dismiss", desk.store_id, write.id, "--yes").returncode == 0
    left = desk.backend.get_rejected_write(desk.store_id, write.id)
    assert (left.state, left.content, left.path) == ("dismissed", None, None)
    (beside,) = one.glob("plan.md.conflict-*")
    assert beside.read_text() == "the loser\n"
    beside.unlink()
    assert [path.name for path in one.iterdir()] == ["plan.md"]


def test_every_conflict_made_is_told_and_recorded(make_desk: Callable[[], Desk]) -> None:
    """Of twenty, all: none is lost in silence, and none is recorded twice."""
    desk = make_desk()
    for number in range(20):
        desk.backend.create_memory(desk.store_id, path=f"/{number}", content="the base\n")
    one, two = desk.path / "one", desk.path / "two"
    as_session(desk, one)
    as_session(desk, two)
    told = [lose(one, two, str(number), f"the loser {number}\n") for number in range(20)]
    assert told == [errno.ESTALE] * 20
    writes = desk.backend.list_rejected_writes(desk.store_id, view="full", limit=20).data
    assert {write.content for write in writes} == {f"the loser {n}\n" for n in range(20)}
    assert set(desk.texts().values()) == {"the winner\n"}


def test_the_past_is_an_option_of_the_mount(desk: Desk) -> None:
    """With `-o versions=1` every version can be read below `.versions`; without it none."""
    memory = desk.backend.create_memory(desk.store_id, path="/plan.md", content="one\n")
    place = desk.mount("-o", "versions=1")
    (place / "plan.md").write_text("two\n")
    past = place / ".versions" / "plan.md"
    until(lambda: len(list(past.iterdir())) == 2, "both versions")
    first, second = sorted(past.iterdir())
    assert (first.read_text(), second.read_text()) == ("one\n", "two\n")
    assert memory.version_id in first.name
    assert [path.name for path in place.iterdir()] == ["plan.md"]
    other = desk.path / "other"
    assert desk.run("mount", desk.store_id, str(other)).returncode == 0
    assert not (other / ".versions").exists()
