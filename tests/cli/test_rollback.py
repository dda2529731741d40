"""rollback: one memory to a version, a store or a directory to a moment, one author's writes."""

from __future__ import annotations

import memstore as package
from memstore.model.sessions import Attachment
from tests.support.commands import Command
from tests.support.serving import Served


def store_id(memstore: Command, store: str) -> str:
    """The id of the store of a name."""
    return str(memstore.good("store", "show", store, "--json").json["id"])


def versions(memstore: Command, *arguments: str) -> list[dict[str, str]]:
    """What `log` lists."""
    listed: list[dict[str, str]] = memstore.good("log", *arguments, "--json").json["data"]
    return listed


def agent(service: Served, memstore: Command, store: str) -> tuple[Command, str]:
    """The command as a session with the store attached; the session's id."""
    backend = package.connect(service.url, key=service.admin_secret)
    try:
        session = backend.create_session(
            agent="a", environment_id="e", stores=[Attachment(store_id(memstore, store))]
        )
        token = backend.create_session_token(session.id)
    finally:
        backend.close()
    return memstore.but(MEMSTORE_API_KEY=token), session.id


def test_one_memory_to_a_version(memstore: Command, store: str) -> None:
    """A dry run shows the diff and changes nothing; --yes writes the old text as a new version."""
    memstore.good("put", store, "/a", stdin="one\n")
    memstore.good("put", store, "/a", stdin="two\n")
    new, old = versions(memstore, store, "/a")
    shown = memstore.good("rollback", store, "a", "--version", old["id"], "--dry-run").out
    assert "-two\n+one\n" in shown and "restored" in shown
    assert memstore.good("cat", store, "/a").out == "two\n"
    assert "--yes" in memstore.bad(5, "rollback", store, "/a", "--version", old["id"])
    done = memstore.good("rollback", store, "/a", "--version", old["id"], "--yes").out
    head = versions(memstore, store, "/a")[0]["id"]
    assert head in done and "--to" in done
    assert memstore.good("cat", store, "/a").out == "one\n"
    again = memstore.good("rollback", store, "--version", old["id"], "--yes", "--json").json
    assert again["type"] == "rollback" and again["changes"][0]["outcome"] == "unchanged"
    assert memstore.good("rollback", store, "--version", new["id"], "--yes").status == 0
    assert memstore.good("cat", store, "/a").out == "two\n"


def test_a_store_to_a_moment_and_back(memstore: Command, store: str) -> None:
    """The time `log` prints can be given to --to; what rollback prints undoes it."""
    memstore.good("put", store, "/d/a", stdin="good")
    time = memstore.good("log", store, "--limit", "1").out.split()[1]
    memstore.good("put", store, "/d/a", stdin="bad")
    memstore.good("put", store, "/b", stdin="nonsense")
    part = memstore.good("rollback", store, "d/", "--to", time, "--dry-run", "--json").json
    assert [change["path"] for change in part["changes"]] == ["/d/a"]
    assert part["dry_run"] and "-bad" in part["changes"][0]["diff"]
    done = memstore.good("rollback", store, "--to", time, "--yes").out
    assert memstore.good("ls", store).out.split() == ["/d/a"]
    assert memstore.good("cat", store, "/d/a").out == "good"
    memstore.good("rollback", store, "--to", done.split()[-1], "--yes")
    assert memstore.good("cat", store, "/b").out == "nonsense"
    assert memstore.good("rollback", store, "--to", "2099-01-01", "--yes").out.startswith("There")


def test_what_one_session_wrote(service: Served, memstore: Command, store: str) -> None:
    """Its writes go; what others built on them is listed, left alone, and makes the status 4."""
    memstore.good("put", store, "/notes", stdin="mine\n")
    session, id = agent(service, memstore, store)
    session.good("put", store_id(memstore, store), "/notes", stdin="nonsense\n")
    session.good("put", store_id(memstore, store), "/built-on", stdin="nonsense\n")
    memstore.good("put", store, "/built-on", stdin="nonsense\nand sense\n")
    ran = memstore.run("rollback", store, "--session", id, "--yes")
    assert ran.status == 4 and "cleanly" in ran.sentence
    assert {line.split()[0] for line in ran.out.splitlines()} >= {"restored", "conflict"}
    assert memstore.good("cat", store, "/notes").out == "mine\n"
    assert memstore.good("cat", store, "/built-on").out == "nonsense\nand sense\n"
    assert memstore.good("rollback", store, "--actor", id, "--dry-run").out.count("unchanged") == 1


def test_it_asks_on_a_terminal(memstore: Command, store: str) -> None:
    """It shows what is about to happen first; anything but yes changes nothing."""
    memstore.good("put", store, "/a", stdin="text")
    status, screen = memstore.on_terminal("rollback", store, "--to", "1w", typed="n\n")
    assert status == 5 and "deleted" in screen and "Nothing was changed" in screen
    assert memstore.good("cat", store, "/a").out == "text"
    status, _ = memstore.on_terminal("rollback", store, "--to", "1w", typed="y\n")
    assert status == 0 and memstore.good("ls", store).out == ""


def test_mistakes(memstore: Command, store: str) -> None:
    """Nothing to go back to, two things, no time, no such version: each its status and sentence."""
    assert "--version" in memstore.bad(2, "rollback", store)
    memstore.bad(2, "rollback", store, "--to", "1h", "--session", "sesn_x", "--yes")
    assert "--to" in memstore.bad(2, "rollback", store, "--to", "yesterday", "--yes")
    memstore.bad(2, "rollback", store, "--to", "999999w", "--yes")
    memstore.bad(3, "rollback", store, "--version", "memver_nope", "--yes")
    memstore.bad(7, "rollback", store, "--session", "sesn_nope", "--yes")
    memstore.bad(3, "rollback", "No such store", "--to", "1h", "--yes")
    memstore.good("store", "archive", store)
    memstore.bad(5, "rollback", store_id(memstore, store), "--to", "1h", "--dry-run")


def test_hostile_text_does_not_reach_the_terminal(memstore: Command, store: str) -> None:
    """A diff on a terminal has our colours, and shows the escapes of a text as text."""
    memstore.good("put", store, "/a", stdin="\x1b[2J\u202eevil\r\n--- x\n")
    status, screen = memstore.on_terminal("rollback", store, "--to", "1w", "--dry-run")
    assert status == 0 and "\x1b[31m" in screen
    assert "\x1b[2J" not in screen and "\u202e" not in screen and "\r" not in screen
    assert "\\x1b[2J\\u202eevil" in screen
    plain = memstore.but(NO_COLOR="1").on_terminal("rollback", store, "--to", "1w", "--dry-run")[1]
    assert "\x1b" not in plain and "evil" in plain
