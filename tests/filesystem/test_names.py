"""Names: normal form, limits, forbidden characters."""

from __future__ import annotations

import os

import pytest

from memstore.model.limits import SEGMENT_BYTES
from tests.support.files import read, refused, save
from tests.support.mounted import Place
from tests.support.waiting import until

COMPOSED, DECOMPOSED = "caf\u00e9", "cafe\u0301"
CREATE = os.O_WRONLY | os.O_CREAT


def test_a_name_in_another_normal_form_is_the_same_file(place: Place) -> None:
    """Both spellings of one name are one file, listed once, in NFC."""
    files = place.mount()
    save(files, DECOMPOSED, "text")

    assert read(files, COMPOSED) == read(files, DECOMPOSED) == b"text"
    assert files.listdir() == [COMPOSED]
    assert place.texts() == {f"/{COMPOSED}": "text"}

    files.unlink(DECOMPOSED)
    assert refused(files.stat, COMPOSED) == "ENOENT"


def test_directories_have_normal_forms_too(place: Place) -> None:
    """A path through a directory in the other form arrives."""
    files = place.mount()
    files.mkdir(DECOMPOSED)
    save(files, f"{COMPOSED}/a", "1")

    assert read(files, f"{DECOMPOSED}/a") == b"1"
    files.rename(f"{DECOMPOSED}/a", f"{COMPOSED}/b")
    assert place.texts() == {f"/{COMPOSED}/b": "1"}


def test_case_matters(place: Place) -> None:
    """`a` and `A` are two files."""
    files = place.mount()
    save(files, "a", "1")
    save(files, "A", "2")

    assert place.texts() == {"/a": "1", "/A": "2"}


def test_a_segment_of_255_bytes_fits_and_256_do_not(place: Place) -> None:
    """The limit counts bytes, of the NFC form."""
    files = place.mount()
    save(files, "x" * 255, "1")
    assert refused(files.open, "x" * 256, CREATE) == "ENAMETOOLONG"
    assert refused(files.stat, "x" * 256) == "ENAMETOOLONG"
    assert refused(files.open, "é" * 128, CREATE) == "ENAMETOOLONG"
    assert refused(files.mkdir, "x" * 256) == "ENAMETOOLONG"
    save(files, DECOMPOSED[3:] * 127 + "x", "2")
    assert len(place.texts()) == 2


def test_twenty_segments_fit_and_twenty_one_do_not(place: Place) -> None:
    """A path has at most 20 segments."""
    files = place.mount()
    path = "d"
    files.mkdir(path)
    for _ in range(18):
        path += "/d"
        files.mkdir(path)
    save(files, f"{path}/f", "1")
    files.mkdir(f"{path}/d")

    assert refused(files.open, f"{path}/d/f", CREATE) == "ENAMETOOLONG"
    assert refused(files.rename, f"{path}/f", f"{path}/d/f") == "ENAMETOOLONG"
    assert list(place.texts()) == [f"/{path}/f"]


def test_a_path_over_1024_bytes_is_too_long(place: Place) -> None:
    """The whole path counts, also when a directory is renamed over what is below it."""
    files = place.mount()
    path = "/".join("x" * 200 for _ in range(4))
    at = ""
    for segment in path.split("/"):
        at = f"{at}/{segment}" if at else segment
        files.mkdir(at)
    assert refused(files.open, f"{path}/{'y' * 220}", CREATE) == "ENAMETOOLONG"
    save(files, f"{path}/{'y' * 200}", "1")

    assert refused(files.rename, "x" * 200, "z" * 250) == "ENAMETOOLONG"
    assert len(place.texts()) == 1


@pytest.mark.parametrize("name", ["a\nb", "a\x07", "a\u200bb", "a\u2028b", "\u202ea"])
def test_forbidden_characters_are_refused(place: Place, name: str) -> None:
    """Control and format characters and line separators: EINVAL; such a file is simply not there."""
    files = place.mount()
    save(files, "ok", "1")

    assert refused(files.open, name, CREATE) == "EINVAL"
    assert refused(files.mkdir, name) == "EINVAL"
    assert refused(files.rename, "ok", name) == "EINVAL"
    assert refused(files.stat, name) == "ENOENT"
    assert place.texts() == {"/ok": "1"}


def test_bytes_that_are_not_utf8_are_refused(place: Place) -> None:
    """A name that is not UTF-8: EILSEQ."""
    files = place.mount()
    name = os.fsdecode(b"caf\xe9")

    assert refused(files.open, name, CREATE) == "EILSEQ"
    assert refused(files.mkdir, name) == "EILSEQ"
    assert refused(files.stat, name) == "ENOENT"


def test_a_memory_that_cannot_be_shown_is_skipped(place: Place) -> None:
    """A segment over 255 bytes, which the store allows, does not break the listing."""
    place.put(f"/{'x' * (SEGMENT_BYTES + 1)}", "hidden")
    place.put("/a", "1")
    files = place.mount()
    assert files.listdir() == ["a"]

    place.put(f"/{'y' * (SEGMENT_BYTES + 1)}/b", "hidden")
    place.put("/z", "2")

    until(lambda: sorted(files.listdir()) == ["a", "z"], "the listing to show z")
    assert read(files, "z") == b"2"
