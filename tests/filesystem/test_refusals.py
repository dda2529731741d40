"""A save that cannot be is refused at a call that tools check, and leaves everything as it was."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.support.files import append, read, refused, save
from tests.support.mounted import Place
from tests.support.waiting import until

LIMIT = 102_400
CREATE = os.O_WRONLY | os.O_CREAT


def test_too_large_is_refused_at_write(place: Place) -> None:
    """EFBIG at the write that goes beyond, and again at close; the stored text is unharmed."""
    place.put("/a", "old")
    files = place.mount()
    fd = files.open("a", CREATE | os.O_TRUNC)
    files.write(fd, b"x" * LIMIT)

    assert refused(files.write, fd, b"y") == "EFBIG"
    assert refused(files.pwrite, fd, b"y", 0) == "EFBIG"
    assert refused(files.close, fd) == "EFBIG"

    assert read(files, "a") == b"old"
    assert files.stat("a").st_size == 3
    assert len(place.history()) == 1
    save(files, "a", "x" * LIMIT)
    assert files.stat("a").st_size == LIMIT


def test_too_large_is_refused_at_an_offset_and_at_truncate(place: Place) -> None:
    """A hole counts like text."""
    place.put("/a", "old")
    files = place.mount()
    fd = files.open("a", os.O_WRONLY)

    assert refused(files.pwrite, fd, b"y", LIMIT) == "EFBIG"
    assert refused(files.close, fd) == "EFBIG"
    assert refused(files.truncate, "a", LIMIT + 1) == "EFBIG"

    assert place.texts() == {"/a": "old"}


@pytest.mark.parametrize("size", [1, 9])
def test_a_truncation_that_leaves_no_text_is_told_at_close(place: Place, size: int) -> None:
    """EILSEQ when a descriptor cut a character or extended the file with NULs, and wrote nothing."""
    place.put("/a", "äöü")
    files = place.mount()
    fd = files.open("a", os.O_WRONLY)
    files.ftruncate(fd, size)

    assert refused(files.close, fd) == "EILSEQ"

    until(lambda: read(files, "a") == "äöü".encode(), "the stored text to be back")
    assert len(place.history()) == 1


def test_an_extension_that_is_filled_is_saved(place: Place) -> None:
    """Room made by a truncation is text once it is written."""
    place.put("/a", "one")
    files = place.mount()
    fd = files.open("a", os.O_WRONLY)
    files.ftruncate(fd, 6)
    files.pwrite(fd, b"two", 3)
    files.close(fd)

    assert place.texts() == {"/a": "onetwo"}
    assert len(place.history()) == 2


def test_an_append_that_goes_beyond_is_refused(place: Place) -> None:
    """The memory keeps what it had."""
    place.put("/a", "x" * (LIMIT - 1))
    files = place.mount()

    assert refused(append, files, "a", "yy") == "EFBIG"

    assert files.stat("a").st_size == LIMIT - 1
    append(files, "a", "y")
    assert files.stat("a").st_size == LIMIT


@pytest.mark.parametrize(
    "data", [b"a\0b", b"caf\xe9 au lait", b"\xff", b"\x80abc", b"\xed\xa0\x80", b"\xc0\xaf"]
)
def test_what_is_not_text_is_refused_at_write(place: Place, data: bytes) -> None:
    """NUL and bytes that cannot become UTF-8: EILSEQ; a new file is not there afterwards."""
    place.put("/a", "old")
    files = place.mount()

    for path in ("a", "new", "new.tmp"):
        fd = files.open(path, CREATE | os.O_TRUNC)
        assert refused(files.write, fd, data) == "EILSEQ"
        assert refused(files.close, fd) == "EILSEQ"

    assert place.texts() == {"/a": "old"}
    assert read(files, "a") == b"old"
    assert files.listdir() == ["a"]


def test_a_cut_character_is_refused_at_close(place: Place) -> None:
    """What could still have become a character is judged when no more comes."""
    files = place.mount()
    fd = files.open("a", CREATE)
    files.write(fd, b"caf\xc3")

    assert refused(files.close, fd) == "EILSEQ"

    assert files.listdir() == []
    assert place.texts() == {}


def test_a_hole_is_refused_at_close_unless_filled(place: Place) -> None:
    """Sparse writes work as long as text fills them in the end."""
    files = place.mount()
    fd = files.open("a", CREATE)
    files.pwrite(fd, b"end", 5)
    files.pwrite(fd, b"begin", 0)
    files.close(fd)
    assert place.texts() == {"/a": "beginend"}

    fd = files.open("a", os.O_WRONLY)
    files.pwrite(fd, b"x", 20)
    assert refused(files.close, fd) == "EILSEQ"
    assert read(files, "a") == b"beginend"


@pytest.mark.requires("caps")
def test_a_full_store_refuses_at_create(make_place: Callable[..., Place]) -> None:
    """EDQUOT at create; saving what exists, also by a temporary file, and deleting still work."""
    place = make_place(max_memories=2)
    place.put("/a", "1")
    place.put("/b", "2")
    files = place.mount()
    assert files.statfs().files_free == 0

    assert refused(files.open, "c", CREATE) == "EDQUOT"
    save(files, "a", "new")
    save(files, "a.tmp", "newer")
    files.rename("a.tmp", "a")
    save(files, ".c.swp", "litter")
    save(files, "c.tmp", "x")
    assert refused(files.rename, "c.tmp", "c") == "EDQUOT"
    assert read(files, "c.tmp") == b"x"

    files.unlink("b")
    files.rename("c.tmp", "c")
    assert place.texts() == {"/a": "newer", "/c": "x"}


@pytest.mark.requires("caps")
def test_a_store_full_of_bytes_refuses(make_place: Callable[..., Place]) -> None:
    """EDQUOT at create, and at the close that goes beyond."""
    place = make_place(max_bytes=1_000)
    place.put("/a", "x" * 900)
    files = place.mount()

    assert refused(save, files, "b", "y" * 200) == "EDQUOT"
    assert place.texts() == {"/a": "x" * 900}
    save(files, "a", "x" * 1_000)
    assert refused(files.open, "b", CREATE) == "EDQUOT"


def test_a_read_only_mount_refuses_every_change(place: Place) -> None:
    """EROFS for all of them, reading works."""
    place.put("/d/a", "1")
    files = place.mount(read_only=True)

    assert read(files, "d/a") == b"1"
    assert files.stat("d/a").st_mode & 0o777 == 0o444
    assert files.stat("d").st_mode & 0o777 == 0o555
    for call in (
        lambda: files.open("d/a", os.O_WRONLY),
        lambda: files.open("new", CREATE),
        lambda: files.open(".new.swp", CREATE),
        lambda: files.truncate("d/a", 0),
        lambda: files.unlink("d/a"),
        lambda: files.mkdir("e"),
        lambda: files.rmdir("d"),
        lambda: files.rename("d/a", "b"),
        lambda: files.chmod("d/a", 0o600),
        lambda: files.utime("d/a", 1),
        lambda: files.symlink("a", "b"),
    ):
        assert refused(call) == "EROFS"
    assert len(place.history()) == 1


def test_an_archived_store_takes_no_writes_but_deletes(place: Place) -> None:
    """EROFS for create and write; rm works."""
    place.put("/a", "1")
    place.put("/b", "1")
    files = place.mount()
    place.backend.archive_store(place.store_id)
    until(lambda: refused(files.open, "a", os.O_WRONLY) == "EROFS", "the archiving to be seen")

    assert refused(files.open, "new", CREATE) == "EROFS"
    assert refused(files.rename, "a", "c") == "EROFS"
    assert read(files, "a") == b"1"
    files.unlink("a")
    assert place.texts() == {"/b": "1"}


def test_archiving_in_the_middle_of_a_save_is_told(place: Place) -> None:
    """The close of what was begun before is refused with EROFS."""
    place.put("/a", "old")
    files = place.mount()
    fd = files.open("a", os.O_WRONLY)
    files.pwrite(fd, b"new", 0)
    place.backend.archive_store(place.store_id)

    assert refused(files.close, fd) == "EROFS"

    assert read(files, "a") == b"old"


def test_a_session_that_may_only_read_cannot_write(place: Place) -> None:
    """A writable mount with a token without write scope: EACCES, nothing written."""
    from memstore.model.sessions import Attachment

    place.put("/a", "old")
    session = place.backend.create_session(
        agent="a", environment_id="e", stores=[Attachment(place.store_id, "read_only")]
    )
    token = place.backend.create_session_token(session.id)
    files = place.mount(place.service.backend_for(place.service.authenticate(token)))

    assert refused(save, files, "a", "new") == "EACCES"
    assert refused(save, files, "b", "new") == "EACCES"
    assert refused(files.unlink, "a") == "EACCES"

    assert place.texts() == {"/a": "old"}
    assert files.listdir() == ["a"]
    assert read(files, "a") == b"old"
