"""`.versions`: every version that ever was, below the path of its memory."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from memstore.model.clock import rfc3339
from memstore.model.versions import Version
from tests.support.faults import EXTENSIONS, FaultyBackend
from tests.support.files import Files, append, read, refused, save
from tests.support.mounted import Place, shows
from tests.support.real_files import LinuxFiles
from tests.support.waiting import until

NAMED = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z\.memver_01[1-9A-HJ-NP-Za-km-z]{22}")


def names(files: Files, path: str) -> list[str]:
    """The versions listed below a path, by time."""
    return sorted(name for name in files.listdir(f".versions/{path}") if NAMED.match(name))


def texts(files: Files, path: str) -> list[str]:
    """Their texts, by time."""
    return [read(files, f".versions/{path}/{name}").decode() for name in names(files, path)]


def lists(files: Files, path: str, count: int) -> list[str]:
    """The versions below a path, once there are so many."""

    def there() -> bool:
        try:
            return len(names(files, path)) == count
        except OSError:
            return False

    until(there, f"{count} versions of {path}")
    return names(files, path)


def gone(files: Files, path: str) -> None:
    """Wait until a path is not there."""
    until(lambda: refused(files.stat, path) == "ENOENT", f"{path} to go")


def redact(place: Place, version: Version) -> None:
    """Destroy a version's text."""
    place.backend.redact_version(place.store_id, version.id)


def test_a_file_a_version(place: Place) -> None:
    """Named by time and id with the memory's extension, read-only, with size, time and text."""
    place.put("/d/a.md", "one\n")
    place.put("/d/a.md", "longer\n")
    files = place.mount(versions=True)

    found = names(files, "d/a.md")

    history = place.history()
    assert found == [f"{rfc3339(one.created_at)}.{one.id}.md" for one in history]
    assert texts(files, "d/a.md") == ["one\n", "longer\n"]
    status = files.stat(f".versions/d/a.md/{found[1]}")
    assert (status.st_size, status.st_mode & 0o7777) == (7, 0o444)
    assert status.st_mtime_ns // 1000 == round(history[1].created_at.timestamp() * 1_000_000)
    numbers = {files.stat(f".versions/d/a.md/{name}").st_ino for name in found}
    assert len(numbers) == 2


def test_it_can_be_entered_but_is_not_listed(place: Place) -> None:
    """Only with the option; `ls -a` of the root never shows it."""
    place.put("/d/a", "x")
    files, without = place.mount(versions=True), place.mount()
    assert files.listdir() == without.listdir() == ["d"]
    assert files.listdir(".versions") == ["d"]
    assert refused(without.listdir, ".versions") == "ENOENT"


def test_an_empty_store_has_an_empty_past(place: Place) -> None:
    """The directory is there, and becomes populated."""
    files = place.mount(versions=True)
    assert files.listdir(".versions") == []
    assert refused(files.stat, ".versions/a.md") == "ENOENT"
    place.put("/a.md", "x")
    lists(files, "a.md", 1)
    assert files.listdir(".versions") == ["a.md"]


def test_new_versions_appear(place: Place) -> None:
    """Saved here or elsewhere, in directories already looked into."""
    place.put("/a.md", "one\n")
    files = place.mount(versions=True)
    assert texts(files, "a.md") == ["one\n"]
    place.put("/a.md", "two\n")
    lists(files, "a.md", 2)
    append(files, "a.md", "three\n")
    lists(files, "a.md", 3)
    assert texts(files, "a.md") == ["one\n", "two\n", "two\nthree\n"]
    save(files, "new.md", "x")
    lists(files, "new.md", 1)


def test_a_deleted_files_past_stays(place: Place) -> None:
    """Its deletion is the last version, and empty; what is there later is below the same path."""
    memory = place.put("/a.md", "one\n")
    files = place.mount(versions=True)
    files.listdir(".versions")
    files.unlink("a.md")
    lists(files, "a.md", 2)
    assert texts(files, "a.md") == ["one\n", ""]
    last = names(files, "a.md")[-1]
    path = f".versions/a.md/{last}"
    assert files.getxattr(path, "user.memstore.operation") == b"deleted"
    assert files.getxattr(path, "user.memstore.id") == memory.id.encode()
    place.put("/a.md", "again\n")
    lists(files, "a.md", 3)
    place.put("/b/c.md", "x")
    place.backend.delete_memory(place.store_id, place.memory("/b/c.md").id)
    assert texts(place.mount(versions=True), "b/c.md") == ["x", ""]


def test_a_renamed_memorys_past_is_below_both_paths(place: Place) -> None:
    """All of it, as `memstore log` shows it, from the old name and from the new one."""
    place.put("/old.md", "one\n")
    files = place.mount(versions=True)
    files.listdir(".versions/old.md")
    files.rename("old.md", "new.txt")
    append(files, "new.txt", "two\n")
    lists(files, "old.md", 3)
    assert texts(files, "old.md") == texts(files, "new.txt") == ["one\n", "one\n", "one\ntwo\n"]
    assert all(name.endswith(".txt") for name in names(files, "new.txt"))


def test_a_path_that_was_a_file_and_is_a_directory(place: Place) -> None:
    """Holds its own versions beside the paths below it."""
    place.put("/a", "file")
    place.backend.delete_memory(place.store_id, place.memory("/a").id)
    place.put("/a/b.md", "below")
    files = place.mount(versions=True)
    assert len(names(files, "a")) == 2
    assert "b.md" in files.listdir(".versions/a")
    assert texts(files, "a/b.md") == ["below"]


def test_a_redacted_version_is_there_and_says_nothing(place: Place) -> None:
    """Size 0 and EACCES on open, whoever has read it before."""
    place.put("/a.md", "secret\n")
    place.put("/a.md", "clean\n")
    files = place.mount(versions=True)
    first, second = names(files, "a.md")
    path = f".versions/a.md/{first}"
    assert read(files, path) == b"secret\n"
    held = files.open(path)

    redact(place, place.history()[0])

    until(lambda: refused(files.open, path) == "EACCES", "the redaction to be seen")
    until(lambda: files.stat(path).st_size == 0, "the size to follow")
    assert files.stat(path).st_mode & 0o777 == 0
    reread = refused(files.pread, held, 100, 0)
    assert reread in ("EACCES", "nothing")
    if reread == "nothing":
        assert files.pread(held, 100, 0) == b""
    files.close(held)
    assert names(files, "a.md") == [first, second]
    assert files.getxattr(path, "user.memstore.sha256") == b""
    later = place.mount(versions=True)
    assert refused(later.open, path) == "EACCES"
    assert read(later, f".versions/a.md/{second}") == b"clean\n"


def test_a_path_that_only_a_redacted_version_told_is_gone(place: Place) -> None:
    """A secret in a name goes with the version that had it; the rest stays where it was."""
    memory = place.put("/d/secret.md", "x")
    place.backend.update_memory(place.store_id, memory.id, path="/plain.md")
    files = place.mount(versions=True)
    first, _ = names(files, "d/secret.md")
    told = f".versions/d/secret.md/{first}"

    redact(place, place.history()[0])

    until(lambda: refused(files.open, told) != "nothing", "the redaction to be seen")
    gone(files, ".versions/d")
    assert files.listdir(".versions") == ["plain.md"]
    first, second = names(files, "plain.md")
    assert refused(files.open, f".versions/plain.md/{first}") == "EACCES"
    assert read(files, f".versions/plain.md/{second}") == b"x"
    assert place.mount(versions=True).listdir(".versions") == ["plain.md"]


def test_nothing_can_be_changed_there(place: Place) -> None:
    """EROFS for every way of writing, also into it and out of it by rename."""
    place.put("/a.md", "one\n")
    place.put("/b.md", "two\n")
    files = place.mount(versions=True)
    past = f".versions/a.md/{names(files, 'a.md')[0]}"
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND, os.O_WRONLY | os.O_TRUNC):
        assert refused(files.open, past, flags) == "EROFS"
    for call in (
        (files.open, ".versions/new", os.O_WRONLY | os.O_CREAT),
        (files.open, ".versions/a.md/new", os.O_WRONLY | os.O_CREAT),
        (files.truncate, past, 0),
        (files.chmod, past, 0o644),
        (files.utime, past, 1),
        (files.unlink, past),
        (files.mkdir, ".versions/dir"),
        (files.rmdir, ".versions/a.md"),
        (files.rmdir, ".versions"),
        (files.rename, past, "c.md"),
        (files.rename, "b.md", ".versions/b2.md"),
        (files.rename, ".versions", "past"),
        (files.symlink, "target", ".versions/link"),
    ):
        assert refused(*call) == "EROFS", call
    assert refused(files.mkdir, ".versions") == "EEXIST"
    assert refused(files.unlink, ".versions") == "EISDIR"
    assert refused(files.open, ".versions", os.O_WRONLY | os.O_CREAT) == "EISDIR"
    assert texts(files, "a.md") == ["one\n"]
    assert len(place.history()) == 2


def test_what_is_not_there(place: Place) -> None:
    """ENOENT for a path nothing ever was at, ENOTDIR below a version, EISDIR for its directory."""
    place.put("/a.md", "x")
    files = place.mount(versions=True)
    past = f".versions/a.md/{names(files, 'a.md')[0]}"
    assert refused(files.stat, ".versions/never") == "ENOENT"
    assert refused(files.stat, ".versions/a.md/never") == "ENOENT"
    assert refused(files.stat, f"{past}/below") == "ENOTDIR"
    assert refused(files.stat, ".versions/" + "x" * 256) == "ENAMETOOLONG"
    assert refused(files.listdir, past) == "ENOTDIR"


def test_attributes_say_who_and_what(place: Place) -> None:
    """The memory, the version, its hash, its time and its author."""
    memory = place.put("/a.md", "x")
    files = place.mount(versions=True)
    (version,) = place.history()
    assert version.created_by is not None
    path = f".versions/a.md/{names(files, 'a.md')[0]}"
    found = {name: files.getxattr(path, name).decode() for name in files.listxattr(path)}
    assert found == {
        "user.memstore.id": memory.id,
        "user.memstore.version_id": version.id,
        "user.memstore.operation": "created",
        "user.memstore.sha256": memory.content_sha256,
        "user.memstore.updated_at": rfc3339(version.created_at),
        "user.memstore.created_by": f"{version.created_by.kind}:{version.created_by.id}",
    }
    assert refused(files.getxattr, path, "user.other") == "ENODATA"
    assert files.listxattr(".versions/a.md") == []


def test_names_are_bounded_and_in_nfc(place: Place) -> None:
    """An extension too long for a name is left off; a path is found in any normal form."""
    place.put("/caf\u00e9/x.md", "1")
    place.put("/a." + "x" * 230, "2")
    files = place.mount(versions=True)
    assert texts(files, "cafe\u0301/x.md") == ["1"]
    (name,) = names(files, "a." + "x" * 230)
    assert NAMED.fullmatch(name)


def test_a_long_past_is_listed_whole(place: Place) -> None:
    """Hundreds of versions of one memory and hundreds of paths, each once."""
    memory = place.put("/a", "0")
    for number in range(1, 300):
        place.backend.update_memory(place.store_id, memory.id, content=str(number))
    for number in range(300):
        place.backend.create_memory(place.store_id, path=f"/many/{number:03}", content="x")
    files = place.mount(versions=True)
    assert sorted(files.listdir(".versions/many")) == [f"{n:03}" for n in range(300)]
    found = names(files, "a")
    assert len(found) == 300
    assert read(files, f".versions/a/{found[217]}") == b"217"


def test_a_read_only_mount_has_it_too(place: Place) -> None:
    """The same files; a redacted one is EACCES there, too."""
    place.put("/a.md", "secret\n")
    place.put("/a.md", "clean\n")
    files = place.mount(versions=True, read_only=True)
    assert texts(files, "a.md") == ["secret\n", "clean\n"]
    redact(place, place.history()[0])
    first = f".versions/a.md/{names(files, 'a.md')[0]}"
    until(lambda: refused(files.open, first) == "EACCES", "the redaction to be seen")


def test_a_server_with_the_hosted_endpoints_alone(place: Place) -> None:
    """New versions come by polling, and each open asks whether the version was redacted."""
    place.put("/a.md", "secret\n")
    backend = FaultyBackend(place.backend, without=EXTENSIONS)
    files = place.mount(backend, versions=True, poll_interval_s=0.02)  # type: ignore[arg-type]
    assert texts(files, "a.md") == ["secret\n"]
    place.put("/a.md", "clean\n")
    first, second = lists(files, "a.md", 2)
    assert read(files, f".versions/a.md/{second}") == b"clean\n"
    redact(place, place.history()[0])
    assert refused(files.open, f".versions/a.md/{first}") == "EACCES"
    until(lambda: files.stat(f".versions/a.md/{first}").st_size == 0, "the size to follow")


def test_a_deleted_store_has_no_past(place: Place) -> None:
    """Nothing of it can be read any more, from the kernel's pages either."""
    place.put("/a.md", "x")
    files = place.mount(versions=True, poll_interval_s=0.02)
    path = f".versions/a.md/{names(files, 'a.md')[0]}"
    assert read(files, path) == b"x"
    place.backend.delete_store(place.store_id)
    gone(files, path)
    assert files.listdir(".versions") == []


@pytest.mark.requires("change feed")
def test_nothing_is_asked_before_it_is_entered(place: Place) -> None:
    """A mount with the option costs no walk of the history; a text is fetched when it is read."""
    place.put("/a.md", "x")
    backend = FaultyBackend(place.backend)
    asked = backend.calls
    files = place.mount(backend, versions=True)  # type: ignore[arg-type]
    shows(files, "a.md", "x")
    files.listdir()
    assert not {"list_versions", "get_version"} & set(asked)
    (name,) = names(files, "a.md")
    files.stat(f".versions/a.md/{name}")
    assert asked.count("list_versions") == 1 and "get_version" not in asked
    assert read(files, f".versions/a.md/{name}") == b"x"
    assert asked.count("get_version") == 1


@pytest.fixture
def real(tmp_path: Path) -> Place:
    """A store to be mounted by the kernel, for programs."""
    path = tmp_path / "real"
    path.mkdir()
    return Place(path, LinuxFiles)


def run(*command: str, status: int = 0) -> str:
    """What a program prints; it ends with the status."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status, done
    return done.stdout


def test_diff_grep_and_cp_audit_and_roll_back(real: Place) -> None:
    """The tools for files work on the past: compare, search, restore."""
    real.put("/notes/a.md", "alpha\nbeta\n")
    real.put("/notes/a.md", "alpha\ngamma\n")
    try:
        files = real.mount(versions=True)
        assert isinstance(files, LinuxFiles)
        root = files.root
        old, new = sorted((root / ".versions/notes/a.md").iterdir())
        assert "-beta" in run("diff", "-u", str(old), str(new), status=1)
        assert run("diff", str(new), str(root / "notes/a.md")) == ""
        assert run("grep", "-rl", "beta", str(root / ".versions")) == f"{old}\n"
        assert run("grep", "-rl", "beta", str(root), status=1) == ""
        assert run("find", str(root / ".versions"), "-type", "f").count("\n") == 2
        run("cp", str(old), str(root / "notes/a.md"))
        assert real.texts() == {"/notes/a.md": "alpha\nbeta\n"}
        assert [version.operation for version in real.history()] == [
            "created",
            "modified",
            "modified",
        ]
        redact(real, real.history()[0])
        until(lambda: old.stat().st_size == 0, "the redaction to be seen")
        assert (
            "Permission denied"
            in subprocess.run(["cat", str(old)], capture_output=True, text=True, check=False).stderr
        )
        assert len(run("ls", str(root / ".versions/notes/a.md")).splitlines()) == 3
    finally:
        real.close()


def test_warm_reads_of_the_past_ask_nothing(real: Place) -> None:
    """The kernel keeps the texts; reading them again asks the server for none."""
    for number in range(20):
        real.put(f"/{number}.md", f"text {number}\n")
    backend = FaultyBackend(real.backend)
    asked = backend.calls
    try:
        files = real.mount(backend, versions=True)  # type: ignore[arg-type]
        assert isinstance(files, LinuxFiles)
        past = str(files.root / ".versions")
        assert run("grep", "-rc", "text", past).count(":1\n") == 20
        assert asked.count("get_version") == 20
        assert run("grep", "-rc", "text", past).count(":1\n") == 20
        assert asked.count("get_version") == 20
    finally:
        real.close()
