"""rejected list, show, apply, dismiss."""

from __future__ import annotations

import memstore as package
from tests.support.commands import Command
from tests.support.serving import Served


def lost(service: Served, memstore: Command, store: str, text: str, path: str = "/a") -> str:
    """A write as a mount records it when it has lost a conflict; its id."""
    (found,) = [
        one for one in memstore.good("store", "list", "--json").json["data"] if one["name"] == store
    ]
    backend = package.connect(service.url, key=service.admin_secret)
    try:
        return backend.record_rejected_write(found["id"], path=path, content=text).id
    finally:
        backend.close()


def test_open_ones_are_listed_and_read(service: Served, memstore: Command, store: str) -> None:
    """`list` has one line each, newest first; `show` has who, when, where and the text."""
    memstore.good("put", store, "/a", stdin="winner")
    assert memstore.good("rejected", "list", store).out == ""
    one = lost(service, memstore, store, "first\n")
    two = lost(service, memstore, store, "second\n", "/b")
    lines = memstore.good("rejected", "list", store).out.splitlines()
    assert [line.split()[0] for line in lines] == [two, one]
    assert lines[0].split()[2] == "open" and lines[0].endswith("/b")
    shown = memstore.good("rejected", "show", store, one).out
    assert shown.endswith("\n\nfirst\n") and "path:" in shown and "open" in shown
    found = memstore.good("rejected", "show", store, one, "--json").json
    assert (found["type"], found["content"]) == ("rejected_write", "first\n")
    listed = memstore.good("rejected", "list", store, "--json").json["data"]
    assert [item["id"] for item in listed] == [two, one]
    assert all(item["content"] is None for item in listed)


def test_applying_one_makes_a_version(service: Served, memstore: Command, store: str) -> None:
    """The text is the memory's, the version is printed, and the write is no longer open."""
    memstore.good("put", store, "/a", stdin="winner")
    id = lost(service, memstore, store, "lost")
    stale = memstore.bad(4, "rejected", "apply", store, id, "--if-sha256", "0" * 64)
    assert "changed" in stale
    version = memstore.good("rejected", "apply", store, id).out.strip()
    assert memstore.good("cat", store, "/a").out == "lost"
    assert memstore.good("cat", store, "--version", version).out == "lost"
    assert memstore.good("rejected", "list", store).out == ""
    (line,) = memstore.good("rejected", "list", store, "--state", "all").out.splitlines()
    assert line.split()[0] == id and "applied" in line


def test_dismissing_asks_and_destroys(service: Served, memstore: Command, store: str) -> None:
    """Without a terminal it takes --yes; afterwards nothing of the text is left."""
    id = lost(service, memstore, store, "secret", "/secret-path")
    assert "--yes" in memstore.bad(5, "rejected", "dismiss", store, id)
    status, screen = memstore.on_terminal("rejected", "dismiss", store, id, typed="n\n")
    assert status == 5 and "Nothing was changed" in screen
    assert memstore.good("rejected", "dismiss", store, id, "--yes").out == f"{id}\n"
    shown = memstore.good("rejected", "show", store, id).out
    assert "dismissed" in shown and "secret" not in shown
    assert "dismissed" in memstore.bad(4, "rejected", "apply", store, id)


def test_mistakes(memstore: Command, store: str) -> None:
    """An unknown id and an unknown state each have their status and sentence."""
    assert "rejw_nope" in memstore.bad(3, "rejected", "show", store, "rejw_nope")
    assert "open" in memstore.bad(2, "rejected", "list", store, "--state", "lost")


def test_hostile_text_does_not_reach_the_terminal(
    service: Served, memstore: Command, store: str
) -> None:
    """Escape sequences in a lost text are shown, not obeyed."""
    id = lost(service, memstore, store, "\x1b[2J\u202eevil")
    _, screen = memstore.on_terminal("rejected", "show", store, id)
    assert "\x1b" not in screen and "\u202e" not in screen
    assert memstore.good("rejected", "show", store, id).out.endswith("\x1b[2J\u202eevil")
