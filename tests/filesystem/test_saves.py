"""One save is one version, whatever tool makes it."""

from __future__ import annotations

import os

import pytest

from tests.support.files import Files, append, read, refused, save
from tests.support.mounted import Place
from tests.support.waiting import until

WRITE = os.O_WRONLY | os.O_CREAT


def test_a_new_file_is_one_version(place: Place) -> None:
    """Creating a file with text makes one `created`, and nothing before the text."""
    files = place.mount()

    save(files, "a.md", "hello\n")

    assert place.texts() == {"/a.md": "hello\n"}
    assert place.operations() == [("created", "/a.md")]


def test_nothing_is_created_before_text_or_close(place: Place) -> None:
    """A file that is open and empty is not in the store yet; its last close puts it there."""
    files = place.mount()
    fd = files.open("a.md", WRITE)
    assert place.texts() == {}
    assert files.listdir() == ["a.md"]

    files.close(fd)

    until(lambda: place.operations() == [("created", "/a.md")], "the empty file to be saved")
    assert place.texts() == {"/a.md": ""}


def test_truncate_write_close_is_one_version(place: Place) -> None:
    """Rewriting a file makes one `modified` of the same memory."""
    before = place.put("/a.md", "old")
    files = place.mount()

    save(files, "a.md", "new")

    assert place.memory("/a.md").id == before.id
    assert place.operations() == [("created", "/a.md"), ("modified", "/a.md")]


def test_duplicated_descriptors_make_no_empty_version(place: Place) -> None:
    """`cat > f` closes a duplicate of the truncated descriptor first; that commits nothing."""
    place.put("/a.md", "old")
    files = place.mount()
    fd = files.open("a.md", WRITE | os.O_TRUNC)
    copy = files.dup(fd)
    files.close(fd)
    assert place.texts() == {"/a.md": "old"}

    files.write(copy, b"new")
    files.close(copy)

    assert len(place.history()) == 2


def test_a_bare_truncation_is_saved_at_the_last_close(place: Place) -> None:
    """`: > f` empties the memory with one version."""
    place.put("/a.md", "old")
    files = place.mount()
    fd = files.open("a.md", os.O_WRONLY | os.O_TRUNC)
    assert read(files, "a.md") == b""
    assert place.texts() == {"/a.md": "old"}

    files.close(fd)

    until(lambda: place.texts() == {"/a.md": ""}, "the truncation to be saved")
    assert len(place.history()) == 2


def test_an_unchanged_text_makes_no_version(place: Place) -> None:
    """Saving the same text again is not a change."""
    place.put("/a.md", "same")
    files = place.mount()

    save(files, "a.md", "same")

    assert len(place.history()) == 1


def test_every_close_of_a_written_file_commits(place: Place) -> None:
    """`{ echo a; echo b; } > f` through two duplicates is saved as far as it was at each close."""
    files = place.mount()
    fd = files.open("a.md", WRITE | os.O_TRUNC)
    copy = files.dup(fd)
    files.write(copy, b"a")
    files.close(copy)
    assert place.texts() == {"/a.md": "a"}

    files.write(fd, b"b")
    files.close(fd)

    assert place.texts() == {"/a.md": "ab"}


def test_fsync_commits(place: Place) -> None:
    """What fsync acknowledged is in the store; the close after it adds nothing."""
    files = place.mount()
    fd = files.open("a.md", WRITE)
    files.write(fd, b"text")

    files.fsync(fd)

    assert place.texts() == {"/a.md": "text"}
    files.close(fd)
    assert len(place.history()) == 1


def test_truncate_by_path_commits(place: Place) -> None:
    """truncate(2) with a path is a save of its own."""
    place.put("/a.md", "0123456789")
    files = place.mount()

    files.truncate("a.md", 4)

    assert place.texts() == {"/a.md": "0123"}


def test_two_handles_share_one_buffer(place: Place) -> None:
    """A reader here sees what a writer here wrote before anything is saved."""
    place.put("/a.md", "old")
    files = place.mount()
    writer = files.open("a.md", os.O_RDWR)
    reader = files.open("a.md")

    files.pwrite(writer, b"new text", 0)

    assert files.pread(reader, 100, 0) == b"new text"
    assert files.fstat(reader).st_size == 8
    assert place.texts() == {"/a.md": "old"}
    files.close(writer)
    files.close(reader)
    assert place.texts() == {"/a.md": "new text"}


def test_append_adds_at_the_end_whatever_the_offset(place: Place) -> None:
    """O_APPEND ignores offsets."""
    place.put("/a.md", "one\n")
    files = place.mount()
    fd = files.open("a.md", os.O_WRONLY | os.O_APPEND)

    files.pwrite(fd, b"two\n", 0)
    files.write(fd, b"three\n")
    files.close(fd)

    assert place.texts() == {"/a.md": "one\ntwo\nthree\n"}


@pytest.mark.parametrize(
    "temporary", ["a.md.tmp", ".tmpabc", "tmpabcd1234", "sedAbCdEf", ".a.md.Ab12Cd"]
)
def test_write_temp_then_rename_is_one_version(place: Place, temporary: str) -> None:
    """Write a temporary name, fsync, rename: one `modified` of the file it replaces."""
    before = place.put("/a.md", "old")
    files = place.mount()
    inode = files.stat("a.md").st_ino
    fd = files.open(temporary, WRITE | os.O_EXCL, 0o600)
    files.write(fd, b"new")
    files.fsync(fd)
    files.close(fd)
    assert len(place.history()) == 1

    files.rename(temporary, "a.md")

    assert place.texts() == {"/a.md": "new"}
    assert place.memory("/a.md").id == before.id
    assert place.operations()[1:] == [("modified", "/a.md")]
    assert read(files, "a.md") == b"new"
    assert files.stat("a.md").st_ino == inode
    assert files.listdir() == ["a.md"]


def test_a_temporary_file_renamed_to_a_free_name_is_created(place: Place) -> None:
    """The same onto a free path makes one `created`."""
    files = place.mount()
    save(files, "x.tmp", "new")

    files.rename("x.tmp", "a.md")

    assert place.operations() == [("created", "/a.md")]


def _vim(files: Files, path: str, text: str) -> None:
    """As vim does with `writebackup` and `backupcopy=no`."""
    save(files, ".a.md.swp", b"b0VIM\0\0")
    probe = files.open("4913", WRITE | os.O_EXCL)
    files.close(probe)
    files.unlink("4913")
    files.rename(path, f"{path}~")
    fd = files.open(path, WRITE | os.O_TRUNC)
    files.write(fd, text.encode())
    files.fsync(fd)
    files.close(fd)
    files.chmod(path, 0o644)
    files.unlink(f"{path}~")
    files.unlink(".a.md.swp")


def test_vim_saves_one_version(place: Place) -> None:
    """vim moves the file away, writes a new one and deletes the backup: one `modified`."""
    before = place.put("/a.md", "old\n")
    files = place.mount()
    inode = files.stat("a.md").st_ino

    _vim(files, "a.md", "new\n")

    assert place.texts() == {"/a.md": "new\n"}
    assert place.operations()[1:] == [("modified", "/a.md")]
    assert place.memory("/a.md").id == before.id
    assert files.stat("a.md").st_ino == inode
    assert files.listdir() == ["a.md"]


def test_a_backup_that_stays_becomes_a_memory(place: Place) -> None:
    """An editor that leaves its backup: one `modified` of the file, then the backup `created`."""
    place.put("/a.md", "old\n")
    files = place.mount()
    files.rename("a.md", "a.md~")
    save(files, "a.md", "new\n")
    assert place.operations()[1:] == [("modified", "/a.md")]
    assert read(files, "a.md~") == b"old\n"

    place.unmount(files)

    assert place.texts() == {"/a.md": "new\n", "/a.md~": "old\n"}
    assert place.operations()[2:] == [("created", "/a.md~")]


def test_nano_saves_one_version(place: Place) -> None:
    """nano truncates in place and fsyncs."""
    place.put("/a.md", "old\n")
    files = place.mount()
    fd = files.open("a.md", WRITE | os.O_TRUNC)
    files.write(fd, b"new\n")
    files.fsync(fd)
    files.close(fd)

    assert len(place.history()) == 2


def test_a_save_in_small_chunks_is_one_version(place: Place) -> None:
    """`sed -i` and vim write 4 KB at a time, cutting characters."""
    text = "käse ".encode() * 10_000
    files = place.mount()
    fd = files.open("a.md", WRITE)
    for at in range(0, len(text), 4096):
        files.write(fd, text[at : at + 4096])
    files.close(fd)

    assert place.texts() == {"/a.md": text.decode()}
    assert len(place.history()) == 1


def test_copying_with_metadata_is_one_version(place: Place) -> None:
    """`cp -a` and rsync set mode, owner and times; none of that is a version, the time stays."""
    files = place.mount()
    save(files, ".a.md.Xy12Zz", "text")
    files.chmod(".a.md.Xy12Zz", 0o644)
    files.chown(".a.md.Xy12Zz", 0, 0)
    files.utime(".a.md.Xy12Zz", 1_000_000_000_123_456_789)

    files.rename(".a.md.Xy12Zz", "a.md")

    assert len(place.history()) == 1
    assert files.stat("a.md").st_mtime_ns == 1_000_000_000_123_456_789


def test_many_appends_are_all_there(place: Place) -> None:
    """Each `>>` is one version and none is lost."""
    files = place.mount()
    for number in range(20):
        append(files, "log", f"{number}\n")

    assert place.texts() == {"/log": "".join(f"{number}\n" for number in range(20))}
    assert len(place.history()) == 20


def test_a_session_is_the_author(place: Place) -> None:
    """Versions written through a session's mount carry its actor."""
    from memstore.model.sessions import Attachment

    session = place.backend.create_session(
        agent="a", environment_id="e", stores=[Attachment(place.store_id)]
    )
    token = place.backend.create_session_token(session.id)
    files = place.mount(place.service.backend_for(place.service.authenticate(token)))

    save(files, "a.md", "text")

    actor = place.history()[0].created_by
    assert actor is not None and (actor.kind, actor.id) == ("session_actor", session.id)


def test_a_text_can_be_read_while_it_is_renamed_open(place: Place) -> None:
    """A file written, renamed while still open and then closed is one version."""
    place.put("/a.md", "old")
    files = place.mount()
    fd = files.open("x.tmp", WRITE)
    files.write(fd, b"new")

    files.rename("x.tmp", "a.md")

    assert place.texts() == {"/a.md": "new"}
    files.close(fd)
    assert len(place.history()) == 2
    assert refused(files.stat, "x.tmp") == "ENOENT"
