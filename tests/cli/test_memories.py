"""ls, cat, put, mv, rm, edit."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from tests.support.commands import PROGRAM, Command
from tests.support.waiting import together


def sha(text: str) -> str:
    """The SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def test_what_is_put_can_be_read(memstore: Command, store: str) -> None:
    """`put` from standard input, `cat` to standard output: the same bytes, slash or not."""
    text = "caf\u00e9 \U0001f600\r\nno newline at the end"
    memstore.good("put", store, "notes/todo.md", stdin=text)
    assert memstore.good("cat", store, "/notes/todo.md").raw == text.encode()
    assert memstore.good("ls", store).out == "/notes/todo.md\n"


def test_put_from_a_file_makes_the_next_version(
    memstore: Command, store: str, tmp_path: Path
) -> None:
    """`put` creates, then updates the same memory; the same text again makes no version."""
    file = tmp_path / "f"
    file.write_text("one")
    created = memstore.good("put", store, "/a", str(file), "--json").json
    file.write_text("two")
    updated = memstore.good("put", store, "/a", str(file), "--json").json
    again = memstore.good("put", store, "/a", str(file), "--json").json
    assert created["type"] == "memory" and created["content_sha256"] == sha("one")
    assert updated["id"] == created["id"]
    assert updated["memory_version_id"] != created["memory_version_id"]
    assert again == updated


def test_a_precondition_protects_the_newer_text(memstore: Command, store: str) -> None:
    """`--if-sha256` writes over the text it names only, and makes nothing new."""
    memstore.good("put", store, "/a", stdin="one")
    memstore.good("put", store, "/a", "--if-sha256", sha("one"), stdin="two")
    assert "changed" in memstore.bad(4, "put", store, "/a", "--if-sha256", sha("one"), stdin="3")
    assert memstore.good("cat", store, "/a").out == "two"
    memstore.bad(3, "put", store, "/b", "--if-sha256", sha("one"), stdin="3")
    memstore.bad(7, "put", store, "/a", "--if-sha256", "xyz", stdin="3")


def test_puts_at_once_all_succeed(memstore: Command, store: str) -> None:
    """Eight commands that put one new path at the same moment: none fails, one memory is there."""
    statuses = together(lambda n: memstore.run("put", store, "/a", stdin=f"{n}").status, 8)
    assert statuses == [0] * 8
    assert len(memstore.good("ls", store, "--json").json["data"]) == 1


@pytest.mark.parametrize(
    ("path", "text", "word"),
    [
        ("/a", b"x" * 102_401, "102400"),
        ("/a", b"\xff\xfe", "UTF-8"),
        ("/a", b"a\0b", "NUL"),
        ("/a/../b", b"x", ".."),
        ("/", b"x", "root"),
        ("/a\x1bb", b"x", "U+001B"),
        ("/" + "x/" * 20 + "y", b"x", "20"),
    ],
)
def test_bad_input_is_one_sentence(
    memstore: Command, store: str, path: str, text: bytes, word: str
) -> None:
    """Too large, not text, not a path: exit 7, a sentence that says which, nothing written."""
    assert word in memstore.bad(7, "put", store, path, stdin=text)
    assert memstore.good("ls", store).out == ""


def test_a_path_in_another_normal_form_is_the_same(memstore: Command, store: str) -> None:
    """A path typed in NFD is found and made in NFC."""
    memstore.good("put", store, "/cafe\u0301", stdin="x")
    assert memstore.good("ls", store).out == "/caf\u00e9\n"
    assert memstore.good("cat", store, "/caf\u00e9").out == "x"


def test_a_path_is_a_file_or_a_directory(memstore: Command, store: str) -> None:
    """A memory below a memory is a conflict: exit 4."""
    memstore.good("put", store, "/a/b", stdin="x")
    assert "/a/b" in memstore.bad(4, "put", store, "/a", stdin="x")
    assert "/a/b" in memstore.bad(4, "put", store, "/a/b/c", stdin="x")


def test_listing(memstore: Command, store: str) -> None:
    """A directory lists what is below it, a memory itself; --depth 1 folds; absent is exit 3."""
    for path in ("/a/b/c", "/a/d", "/e"):
        memstore.good("put", store, path, stdin="12345")
    assert memstore.good("ls", store, "a").out == "/a/b/c\n/a/d\n"
    assert memstore.good("ls", store, "/a/", "--depth", "1").out == "/a/b/\n/a/d\n"
    assert memstore.good("ls", store, "/e").out == "/e\n"
    (row,) = memstore.good("ls", "-l", store, "/e").out.splitlines()
    assert row.startswith("5  20") and row.endswith("/e")
    folded = memstore.good("ls", store, "--depth", "1", "--json").json["data"]
    assert folded[0] == {"type": "memory_prefix", "path": "/a/"}
    memstore.bad(3, "ls", store, "/zzz")
    memstore.bad(7, "ls", store, "--depth", "2")


def test_long_listings_are_complete(memstore: Command, store: str, tmp_path: Path) -> None:
    """More memories than one page holds are all listed, in order."""
    import memstore as library

    paths = [f"/{number:04}" for number in range(250)]
    backend = library.connect(
        memstore.environ["MEMSTORE_BASE_URL"], key=memstore.environ["MEMSTORE_API_KEY"]
    )
    from memstore.model.memories import CreateMemory

    store_id = memstore.good("store", "show", store, "--json").json["id"]
    backend.apply_changes(store_id, [CreateMemory(path, "x") for path in paths])
    backend.close()
    assert memstore.good("ls", store).out.split() == paths
    assert len(memstore.good("log", store, "--json").json["data"]) == 250


def test_moving(memstore: Command, store: str) -> None:
    """A memory keeps its id; TO with a final slash, or a directory, means into it."""
    before = memstore.good("put", store, "/a", "--json", stdin="x").json
    assert memstore.good("mv", store, "a", "b").out == "/a -> /b\n"
    (after,) = memstore.good("mv", store, "/b", "/dir/", "--json").json["data"]
    assert (after["path"], after["id"]) == ("/dir/b", before["id"])
    memstore.good("put", store, "/c", stdin="x")
    memstore.good("mv", store, "/c", "/dir")
    assert memstore.good("ls", store).out == "/dir/b\n/dir/c\n"
    memstore.bad(4, "mv", store, "/dir/b", "/dir/c")
    memstore.bad(3, "mv", store, "/nope", "/x")


def test_moving_a_directory(memstore: Command, store: str) -> None:
    """Every memory below it moves, or none; not into itself."""
    for path in ("/old/a", "/old/deep/b"):
        memstore.good("put", store, path, stdin="x")
    memstore.good("mv", store, "/old", "/new")
    assert memstore.good("ls", store).out == "/new/a\n/new/deep/b\n"
    memstore.good("put", store, "/taken", stdin="x")
    memstore.bad(4, "mv", store, "/new", "/taken")
    memstore.bad(7, "mv", store, "/new", "/new/inner")
    assert memstore.good("ls", store).out == "/new/a\n/new/deep/b\n/taken\n"


def test_removing(memstore: Command, store: str) -> None:
    """One memory goes at once; a directory needs -r, and --yes where nobody can be asked."""
    for path in ("/a", "/d/b", "/d/c"):
        memstore.good("put", store, path, stdin="x")
    memstore.bad(4, "rm", store, "/a", "--if-sha256", sha("other"))
    assert memstore.good("rm", store, "a", "--if-sha256", sha("x")).out == "/a\n"
    memstore.bad(3, "rm", store, "/a")
    assert "-r" in memstore.bad(7, "rm", store, "/d")
    assert "--yes" in memstore.bad(5, "rm", "-r", store, "/d")
    gone = memstore.good("rm", "-r", store, "/d", "--yes", "--json").json["data"]
    assert {one["type"] for one in gone} == {"memory_deleted"} and len(gone) == 2
    assert memstore.good("ls", store).out == ""


def test_a_directory_is_removed_after_a_yes_on_a_terminal(memstore: Command, store: str) -> None:
    """On a terminal the command asks; anything but yes changes nothing."""
    memstore.good("put", store, "/d/a", stdin="x")
    status, screen = memstore.on_terminal("rm", "-r", store, "/d", typed="\n")
    assert status == 5 and "[y/N]" in screen and "Nothing was changed" in screen
    assert memstore.good("ls", store).out == "/d/a\n"
    assert memstore.on_terminal("rm", "-r", store, "/d", typed="y\n")[0] == 0
    assert memstore.good("ls", store).out == ""


def test_a_terminal_never_gets_text_raw(memstore: Command, store: str) -> None:
    """Escapes, bidi overrides and controls are shown; in a pipe the bytes are exact."""
    hostile = "\x1b]0;title\x07 \x1b[2J \u202egpj.exe \x9b31m tab\tok\nline\x7f\u2066"
    memstore.good("put", store, "/x", stdin=hostile)
    memstore.good("store", "create", f"{store} \u202eevil")
    for command in (("cat", store, "/x"), ("show", store, "/x"), ("store", "list")):
        _, screen = memstore.on_terminal(*command)
        assert not set(screen) & set("\x1b\x07\x7f\x9b\u202e\u2066"), command
    _, screen = memstore.on_terminal("cat", store, "/x")
    assert screen.startswith("\\x1b]0;title\\x07 \\x1b[2J \\u202egpj.exe \\x9b31m tab")
    assert screen.endswith("ok\nline\\x7f\\u2066\n")
    _, screen = memstore.on_terminal("cat", store, "/x", "--json")
    assert not set(screen) & set("\x1b\x07\x9b\u202e\u2066")
    assert memstore.good("cat", store, "/x").raw == hostile.encode()


def test_a_reader_that_leaves_is_no_error(memstore: Command, store: str) -> None:
    """`memstore cat ... | head -c 1` prints no complaint."""
    memstore.good("put", store, "/x", stdin="line\n" * 20_000)
    process = subprocess.Popen(
        [*PROGRAM, "cat", store, "/x"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=memstore.environ,
    )
    assert process.stdout is not None and process.stderr is not None
    with process.stdout, process.stderr:
        process.stdout.read(1)
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.wait(60) in (0, 141)


def editor(tmp_path: Path, body: str) -> str:
    """A program that edits the file it is given."""
    script = tmp_path / "editor"
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    return str(script)


def test_editing(memstore: Command, store: str, tmp_path: Path) -> None:
    """The editor's text is the next version; unchanged makes none; a new path is created."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    memstore = memstore.but(TMPDIR=str(scratch))
    memstore.good("put", store, "/a.md", stdin="one\n")
    editing = memstore.but(EDITOR=editor(tmp_path, 'echo two >> "$1"'))
    editing.good("edit", store, "/a.md")
    assert memstore.good("cat", store, "/a.md").out == "one\ntwo\n"
    editing.good("edit", store, "/new.md")
    assert memstore.good("cat", store, "/new.md").out == "two\n"
    unchanged = memstore.but(EDITOR="true").run("edit", store, "/a.md")
    assert (unchanged.status, unchanged.err) == (0, "Nothing was changed.\n")
    memstore.but(EDITOR="false").bad(5, "edit", store, "/a.md")
    memstore.but(EDITOR="/no/such/editor").bad(5, "edit", store, "/a.md")
    assert list(scratch.iterdir()) == [], "no text is left behind"
    failing = memstore.but(EDITOR=editor(tmp_path, 'echo half > "$1"; exit 1'))
    kept = Path(failing.bad(5, "edit", store, "/a.md").rpartition(" ")[2].rstrip("."))
    assert kept.read_text() == "half\n"


def test_an_edit_never_overwrites_what_it_did_not_see(
    memstore: Command, store: str, tmp_path: Path
) -> None:
    """When the memory changes meanwhile the save is refused, and the edited text is kept."""
    memstore.good("put", store, "/a", stdin="one")
    program = " ".join(f"'{word}'" for word in PROGRAM)
    body = f"echo mine > \"$1\"; echo theirs | {program} put '{store}' /a"
    editing = memstore.but(EDITOR=editor(tmp_path, body + " >/dev/null"), TMPDIR=str(tmp_path))
    sentence = editing.bad(4, "edit", store, "/a")
    kept = Path(sentence.rpartition(" ")[2].rstrip("."))
    assert kept.read_text() == "mine\n" and kept.stat().st_mode & 0o077 == 0
    assert memstore.good("cat", store, "/a").out == "theirs\n"
