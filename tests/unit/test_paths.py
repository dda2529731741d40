"""The rules of a path, one table of good and bad."""

from __future__ import annotations

import contextlib
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstore.model import paths
from memstore.model.errors import InvalidPath, PathTooLong

GOOD = [
    "/a",
    "/a/b",
    "/.x",
    "/...",
    "/..a",
    "/a b",
    "/a\\b",
    "/c:d",
    "/🙂",
    "/é",
    "/日本/語",
    "/.anthropic-memory-store",
    "/" + "/".join("s" * 20),
    "/" + "b" * 1023,
    "/" + "é" * 511,
]
BAD = [
    "",
    "a",
    "a/b",
    "/",
    "/a/",
    "//",
    "//a",
    "/a//b",
    "/.",
    "/..",
    "/./a",
    "/a/.",
    "/a/../b",
    "/a\tb",
    "/a\nb",
    "/\0",
    "/\x1b[1m",
    "/\x7f",
    "/\x85",
    "/\xad",
    "/\u200b",
    "/\u200d",
    "/\u202e",
    "/\ufeff",
    "/\U000e0041",
    "/\u2028",
    "/\u2029",
    "/\ud800",
    "/\udfff",
    "/" + unicodedata.normalize("NFD", "é"),
    "/\u212b",
]
LONG = ["/" + "/".join("s" * 21), "/" + "b" * 1024, "/" + "é" * 512]


@pytest.mark.parametrize("path", GOOD)
def test_a_good_path_comes_back_as_it_is(path: str) -> None:
    """A path within the rules is neither changed nor refused."""
    assert paths.validate(path) == path


@pytest.mark.parametrize("path", BAD)
def test_a_bad_path_is_refused(path: str) -> None:
    """A path outside the rules is refused, and not as too long."""
    with pytest.raises(InvalidPath) as caught:
        paths.validate(path)
    assert not isinstance(caught.value, PathTooLong)


@pytest.mark.parametrize("path", LONG)
def test_a_long_path_is_too_long(path: str) -> None:
    """More than 1,024 bytes or 20 segments have an error of their own."""
    with pytest.raises(PathTooLong):
        paths.validate(path)


@pytest.mark.parametrize(
    ("prefix", "good"),
    [("/", True), ("/a/", True), ("/a/b/", True), ("", False), ("/a", False), ("//", False)],
)
def test_a_prefix_ends_with_a_slash(prefix: str, good: bool) -> None:
    """A listing's prefix is the root, or a path and a slash."""
    if good:
        assert paths.validate_prefix(prefix) == prefix
    else:
        with pytest.raises(InvalidPath):
            paths.validate_prefix(prefix)


def test_the_ancestors_of_a_path() -> None:
    """Every directory above, without the root and the path itself."""
    assert paths.ancestors("/a") == []
    assert paths.ancestors("/a/b/c") == ["/a", "/a/b"]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("/a", "/a", True),
        ("/a", "/a/b", True),
        ("/a/b/c", "/a", True),
        ("/a", "/ab", False),
        ("/a", "/a.b", False),
        ("/a", "/A", False),
        ("/a/b", "/a/c", False),
    ],
)
def test_overlap(one: str, other: str, expected: bool) -> None:
    """Equal paths and ancestors overlap; names that only begin alike do not."""
    assert paths.overlaps(one, other) is paths.overlaps(other, one) is expected


SEGMENTS = st.text(alphabet="ab/.0-é🙂", min_size=1, max_size=8)


@given(directory=SEGMENTS, other=SEGMENTS)
def test_the_range_below_a_directory_is_exact(directory: str, other: str) -> None:
    """A path is in the byte range of a directory exactly when it begins with it and a slash."""
    low, high = paths.below("/" + directory)
    path = "/" + other
    inside = low.encode() <= path.encode() < high.encode()
    assert inside == path.startswith(f"/{directory}/")


@given(st.text())
def test_every_text_is_judged(text: str) -> None:
    """Any text at all is either a path or refused as one; nothing else escapes."""
    with contextlib.suppress(InvalidPath):
        assert paths.validate("/" + text) == "/" + text
