"""log, show, cat --version, diff, redact."""

from __future__ import annotations

from tests.support.commands import Command


def versions(memstore: Command, *arguments: str) -> list[dict[str, object]]:
    """What `log` lists."""
    listed: list[dict[str, object]] = memstore.good("log", *arguments, "--json").json["data"]
    return listed


def test_the_log_follows_a_path_through_deletion(memstore: Command, store: str) -> None:
    """Newest first; renames and the lineage of a deleted memory at the path are part of it."""
    memstore.good("put", store, "/a", stdin="1")
    memstore.good("rm", store, "/a")
    memstore.good("put", store, "/b", stdin="2")
    memstore.good("mv", store, "/b", "/a")
    memstore.good("put", store, "/other", stdin="3")
    found = versions(memstore, store, "/a")
    assert [(one["operation"], one["path"]) for one in found] == [
        ("modified", "/a"),
        ("created", "/b"),
        ("deleted", "/a"),
        ("created", "/a"),
    ]
    assert len(versions(memstore, store)) == 5
    assert len(versions(memstore, store, "--limit", "2")) == 2
    assert [one["path"] for one in versions(memstore, store, "--operation", "deleted")] == ["/a"]
    assert versions(memstore, store, "/a", "--operation", "deleted") == found[2:3]
    assert len(memstore.good("log", store, "/a").out.splitlines()) == 4
    memstore.bad(3, "log", store, "/never")
    memstore.bad(2, "log", store, "--operation", "renamed")


def test_showing_a_memory_and_a_version(memstore: Command, store: str) -> None:
    """`show` has who, when and the text; --version takes any version, --json the API's object."""
    memstore.good("put", store, "/a", stdin="one")
    memstore.good("put", store, "/a", stdin="two")
    new, old = versions(memstore, store, "/a")
    assert memstore.good("show", store, "/a").out.endswith("\n\ntwo")
    assert memstore.good("show", store, "--version", str(old["id"])).out.endswith("\n\none")
    memory = memstore.good("show", store, "/a", "--json").json
    assert (memory["type"], memory["content"], memory["memory_version_id"]) == (
        "memory",
        "two",
        new["id"],
    )
    version = memstore.good("show", store, "--version", str(old["id"]), "--json").json
    assert (version["type"], version["content"]) == ("memory_version", "one")
    assert memstore.good("cat", store, "--version", str(old["id"])).out == "one"
    memstore.bad(2, "show", store)
    memstore.bad(2, "cat", store)
    memstore.bad(3, "show", store, "--version", "memver_nope")


def test_comparing(memstore: Command, store: str) -> None:
    """The last two by default, one with the present, or any two."""
    for text in ("a\nb\n", "a\nc\n", "a\nc\nd"):
        memstore.good("put", store, "/f", stdin=text)
    third, second, first = (str(one["id"]) for one in versions(memstore, store, "/f"))
    last = memstore.good("diff", store, "/f").out
    assert "+d" in last and "-b" not in last and "No newline" in last
    assert memstore.good("diff", store, "--version", second, "--version", third).out == last
    whole = memstore.good("diff", store, "--version", first, "--json").json
    assert (whole["from"]["id"], whole["to"]["id"]) == (first, third)
    assert "-b" in whole["diff"] and "+d" in whole["diff"]
    memstore.bad(2, "diff", store)
    memstore.good("put", store, "/single", stdin="x")
    memstore.bad(3, "diff", store, "/single")


def test_redacting(memstore: Command, store: str) -> None:
    """The text of a version is gone, the live head stays, and it asks first."""
    memstore.good("put", store, "/a", stdin="secret")
    memstore.good("put", store, "/a", stdin="fine")
    head, old = (str(one["id"]) for one in versions(memstore, store, "/a"))
    assert "--yes" in memstore.bad(5, "redact", store, "--version", old)
    done = memstore.good("redact", store, "--version", old, "--yes", "--json").json
    assert done["redacted_at"] and done["content"] is None and done["path"] is None
    memstore.bad(5, "cat", store, "--version", old)
    assert "head" in memstore.bad(5, "redact", store, "--version", head, "--yes")
    assert memstore.good("cat", store, "/a").out == "fine"
    assert "(redacted)" in memstore.good("log", store, "/a").out


def test_redacting_a_whole_path(memstore: Command, store: str) -> None:
    """With a path every version of whatever was there goes, but the live one, which is named."""
    memstore.good("put", store, "/a", stdin="1")
    memstore.good("rm", store, "/a")
    memstore.good("put", store, "/a", stdin="2")
    head = str(versions(memstore, store, "/a")[0]["id"])
    ran = memstore.run("redact", store, "/a", "--yes", "--json")
    assert ran.status == 0 and head in ran.err
    assert len(ran.json["data"]) == 2
    assert memstore.good("cat", store, "/a").out == "2"
