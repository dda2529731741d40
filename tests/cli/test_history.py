"""log with its filters, diff in colour, blame, changes."""

from __future__ import annotations

import pytest

from tests.cli.test_rollback import agent, store_id, versions
from tests.support.commands import Command
from tests.support.serving import Served


@pytest.fixture
def written(service: Served, memstore: Command, store: str) -> str:
    """A session that wrote `/d/a` after the key, and made `/e`; its id."""
    memstore.good("put", store, "/d/a", stdin="one\ntwo\n")
    session, id = agent(service, memstore, store)
    there = store_id(memstore, store)
    session.good("put", there, "/d/a", stdin="one\n2\n")
    memstore.good("put", store, "/d/a", stdin="ONE\n2\n")
    session.good("put", there, "/d/a", stdin="ONE\n2\nthree\n")
    session.good("put", there, "/e", stdin="made\n")
    return id


def test_the_filters_of_the_log(memstore: Command, store: str, written: str) -> None:
    """Author, operation and time, for a memory, a directory or the store; all must match."""
    newest_first = versions(memstore, store)
    third = newest_first[2]
    assert len(newest_first) == 5
    assert len(versions(memstore, store, "--session", written)) == 3
    assert versions(memstore, store, "--actor", written) == versions(
        memstore, store, "--session", written
    )
    key = newest_first[-1]["created_by"]["api_key_id"]  # type: ignore[index]
    assert len(versions(memstore, store, "d", "--key", key)) == 2
    assert len(versions(memstore, store, "/d/a", "--actor", written)) == 2
    assert len(versions(memstore, store, "d/", "--operation", "modified", "--limit", "2")) == 2
    assert versions(memstore, store, "--since", third["created_at"]) == newest_first[:3]
    assert versions(memstore, store, "--until", third["created_at"]) == newest_first[2:]
    assert versions(memstore, store, "--since", "1h", "--until", "30m") == []
    assert versions(memstore, store, "/e", "--operation", "deleted") == []
    memstore.bad(3, "log", store, "/never", "--operation", "deleted")
    memstore.bad(2, "log", store, "--since", "soon")
    memstore.bad(2, "log", store, "--actor", written, "--key", key)


def test_the_log_of_an_old_name(memstore: Command, store: str) -> None:
    """By the name it had, a memory's whole history is found, and by the name it has."""
    memstore.good("put", store, "/old", stdin="1")
    memstore.good("mv", store, "/old", "/new")
    memstore.good("put", store, "/new", stdin="2")
    assert versions(memstore, store, "/old") == versions(memstore, store, "/new")
    assert len(versions(memstore, store, "/old")) == 3


def test_blame(memstore: Command, store: str, written: str) -> None:
    """Each line has the version, author and time that brought it; what was redacted is passed over."""
    listed = versions(memstore, store, "/d/a")
    found = memstore.good("blame", store, "d/a", "--json").json["data"]
    assert [(one["line"], one["text"], one["memory_version_id"]) for one in found] == [
        (1, "ONE", listed[1]["id"]),
        (2, "2", listed[2]["id"]),
        (3, "three", listed[0]["id"]),
    ]
    assert found[2]["created_by"] == {"type": "session_actor", "session_id": written}
    lines = memstore.good("blame", store, "/d/a").out.splitlines()
    assert len(lines) == 3 and lines[2].endswith("three") and written in lines[2]
    memstore.good("redact", store, "--version", listed[2]["id"], "--yes")
    found = memstore.good("blame", store, "d/a", "--json").json["data"]
    assert found[1]["memory_version_id"] == listed[1]["id"]
    memstore.bad(3, "blame", store, "/never")


def test_what_a_session_changed(memstore: Command, store: str, written: str) -> None:
    """One diff a memory, from before its first write to after its last; others' part is named."""
    shown = memstore.good("changes", store, "--session", written).out
    assert shown == (
        "# /d/a: others wrote here in between\n"
        "--- /d/a\n+++ /d/a\n@@ -1,2 +1,3 @@\n-one\n-two\n+ONE\n+2\n+three\n"
        "--- /dev/null\n+++ /e\n@@ -0,0 +1 @@\n+made\n"
    )
    found = memstore.good("changes", store, "d", "--actor", written, "--json").json["data"]
    (one,) = found
    assert (one["path"], one["versions"], one["others"]) == ("/d/a", 2, True)
    listed = versions(memstore, store, "/d/a")
    assert (one["version_id_before"], one["version_id_after"]) == (listed[3]["id"], listed[0]["id"])
    memstore.good("redact", store, "--version", listed[3]["id"], "--yes")
    (one,) = memstore.good("changes", store, "d", "--session", written, "--json").json["data"]
    assert one["redacted"] and one["diff"] == ""
    memstore.bad(2, "changes", store)


def test_words_that_differ_stand_out(memstore: Command, store: str) -> None:
    """On a terminal the changed words are reversed, of Japanese each character; a pipe has none."""
    memstore.good("put", store, "/a", stdin="the quick fox\n東京に行く\n\x1b[2J\n")
    memstore.good("put", store, "/a", stdin="the slow fox\n京都に行く\n\x1b[3J\n")
    new, old = (one["id"] for one in versions(memstore, store, "/a"))
    _, screen = memstore.on_terminal("diff", store, "/a")
    assert "\x1b[31;7mquick\x1b[0m" in screen and "\x1b[32;7mslow\x1b[0m" in screen
    assert "\x1b[31;7m東\x1b[0m" in screen and "\x1b[32;7m都\x1b[0m" in screen
    assert "\x1b[2J" not in screen and "\\x1b" in screen
    piped = memstore.good("diff", store, old, new).out
    assert "-the quick fox\n" in piped and "\x1b[31" not in piped
    memstore.good("redact", store, "--version", old, "--yes")
    assert "redacted" in memstore.bad(5, "diff", store, old, new)
    memstore.bad(2, "diff", store, old, new, old)
    memstore.bad(2, "diff", store, "/a", "/b")
