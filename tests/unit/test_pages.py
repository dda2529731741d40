"""Pages and cursors: they continue their own listing, and nothing else."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstore.model import pages
from memstore.model.errors import Invalid

KEYS = st.one_of(st.integers(), st.text(), st.lists(st.integers() | st.text(), max_size=3))


@given(listing=st.text(alphabet="abc /", max_size=10), key=KEYS)
def test_a_cursor_gives_its_key_back(listing: str, key: object) -> None:
    """What went in comes out, behind the documented prefix and in URL-safe characters."""
    cursor = pages.encode_cursor(listing, key)
    assert cursor.startswith("page_")
    assert cursor.replace("-", "").replace("_", "").isalnum()
    assert pages.decode_cursor(listing, cursor) == key


@given(st.text(max_size=60))
def test_any_other_text_is_refused(text: str) -> None:
    """No text makes anything but Invalid of a listing it was not made for."""
    for cursor in (text, "page_" + text):
        with pytest.raises(Invalid):
            pages.decode_cursor("listing", cursor)


@pytest.mark.parametrize(
    "body", [b"null", b"[]", b"[1]", b'["other",1]', b"{}", b"[" * 5000, b"\xff"]
)
def test_a_foreign_cursor_is_refused(body: bytes) -> None:
    """Well-formed base64 of something else is not a cursor of this listing."""
    cursor = "page_" + base64.urlsafe_b64encode(body).decode().rstrip("=")
    with pytest.raises(Invalid):
        pages.decode_cursor("listing", cursor)


@pytest.mark.parametrize(
    ("limit", "view", "expected"),
    [(1, "basic", 1), (100, "basic", 100), (1, "full", 1), (20, "full", 20), (100, "full", 20)],
)
def test_a_limit_is_kept_or_clamped(limit: int, view: str, expected: int) -> None:
    """1 to 100; at most 20 with texts."""
    assert pages.page_limit(limit, view) == expected


@pytest.mark.parametrize("limit", [0, -1, 101, 10**30])
def test_a_limit_out_of_range_is_refused(limit: int) -> None:
    """Zero, negative and over 100 are mistakes in either view."""
    for view in ("basic", "full"):
        with pytest.raises(Invalid):
            pages.page_limit(limit, view)
