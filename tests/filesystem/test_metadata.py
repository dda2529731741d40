"""Attributes, extended attributes, statfs."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

import pytest

from memstore.model.clock import rfc3339
from tests.support.files import read, refused, save
from tests.support.mounted import Place, shows


def test_chmod_chown_and_times_succeed_and_make_no_version(place: Place) -> None:
    """They hold for this mount."""
    place.put("/a", "1")
    files = place.mount()

    files.chmod("a", 0o600)
    files.chown("a", 12, 34)
    files.utime("a", 1_234_567_890_123_456_789)

    told = files.stat("a")
    assert stat.S_IMODE(told.st_mode) == 0o600
    assert (told.st_uid, told.st_gid) == (12, 34)
    assert told.st_mtime_ns == 1_234_567_890_123_456_789
    assert len(place.history()) == 1
    assert stat.S_IMODE(place.mount().stat("a").st_mode) == 0o644


def test_a_time_set_before_the_close_stays(place: Place) -> None:
    """`cp -a` and rsync set the time through the open file."""
    files = place.mount()
    fd = files.open("a", os.O_WRONLY | os.O_CREAT)
    files.write(fd, b"1")
    files.utime("a", 1_000_000_000_000_000_000)
    files.close(fd)

    assert files.stat("a").st_mtime_ns == 1_000_000_000_000_000_000


def test_links_are_refused(place: Place) -> None:
    """EPERM."""
    files = place.mount()

    assert refused(files.symlink, "a", "b") == "EPERM"
    assert files.listdir() == []


def test_extended_attributes_tell_the_memory(place: Place) -> None:
    """Id, version, hash, author and time, as the API tells them."""
    memory = place.put("/a", "1")
    place.put("/d/b", "2")
    files = place.mount()

    def value(name: str) -> str:
        return files.getxattr("a", f"user.memstore.{name}").decode()

    actor = place.history(memory.id)[0].created_by
    assert actor is not None
    assert value("id") == memory.id
    assert value("version_id") == memory.version_id
    assert value("sha256") == memory.content_sha256
    assert value("updated_at") == rfc3339(memory.updated_at)
    assert value("created_by") == f"{actor.kind}:{actor.id}"
    assert sorted(files.listxattr("a")) == sorted(
        f"user.memstore.{name}"
        for name in ("id", "version_id", "sha256", "updated_at", "created_by")
    )
    assert refused(files.getxattr, "a", "user.other") == "ENODATA"
    assert refused(files.getxattr, "d", "user.memstore.id") == "ENODATA"
    assert files.listxattr("d") == []


def test_extended_attributes_follow_a_save(place: Place) -> None:
    """After a save here they tell the new version."""
    place.put("/a", "1")
    files = place.mount()

    save(files, "a", "2")

    memory = place.memory("/a")
    assert files.getxattr("a", "user.memstore.version_id").decode() == memory.version_id
    assert files.getxattr("a", "user.memstore.sha256").decode() == memory.content_sha256


@pytest.mark.requires("caps")
def test_statfs_shows_the_pressure(make_place: Callable[..., Place]) -> None:
    """Files by the cap of memories, blocks by the cap of bytes; both follow every change."""
    place = make_place(max_memories=10, max_bytes=100 * 4096)
    place.put("/a", "x" * 4096)
    files = place.mount()
    told = files.statfs()
    assert (told.files, told.files_free) == (10, 9)
    assert (told.blocks, told.blocks_free) == (100, 99)
    assert told.name_max == 255

    save(files, "b", "x" * 8192)
    place.put("/c", "1")
    shows(files, "c", "1")
    files.unlink("a")

    told = files.statfs()
    assert told.files_free == 8
    assert told.blocks_free == 97


def test_open_for_truncation_of_a_full_file_reads_empty(place: Place) -> None:
    """O_TRUNC counts at once for readers here."""
    place.put("/a", "text")
    files = place.mount()
    fd = files.open("a", os.O_RDWR | os.O_TRUNC)

    assert read(files, "a") == b""
    assert files.stat("a").st_size == 0
    files.write(fd, b"new")
    files.close(fd)
    assert place.texts() == {"/a": "new"}
