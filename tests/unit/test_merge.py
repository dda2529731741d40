"""Three-way merge by lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from memstore.model.merge import merge

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "d e"]), max_size=8)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


@given(TEXTS, TEXTS)
def test_equal_edits_are_one_edit(base: str, text: str) -> None:
    """When both made the same text, that is it."""
    assert merge(base, text, text) == text


@given(TEXTS, TEXTS)
def test_an_edit_against_none_is_kept(base: str, text: str) -> None:
    """When one side changed nothing, the other side's text is it."""
    assert merge(base, base, text) == text
    assert merge(base, text, base) == text


@given(TEXTS, TEXTS, TEXTS)
def test_the_sides_may_be_swapped(base: str, one: str, other: str) -> None:
    """Who is called mine does not matter."""
    assert merge(base, one, other) == merge(base, other, one)


@given(
    st.lists(st.integers(0, 999), min_size=4, max_size=30, unique=True),
    st.data(),
)
def test_edits_of_different_lines_are_both_kept(numbers: list[int], data: st.DataObject) -> None:
    """One changes a line of the first half, the other one of the second half."""
    base = [f"line {number}\n" for number in numbers]
    half = len(base) // 2
    first = data.draw(st.integers(0, half - 1))
    second = data.draw(st.integers(half, len(base) - 1))
    mine, theirs, both = list(base), list(base), list(base)
    mine[first] = both[first] = "mine\n"
    theirs[second] = both[second] = "theirs\n"

    assert merge("".join(base), "".join(mine), "".join(theirs)) == "".join(both)


@given(st.lists(st.integers(0, 999), min_size=1, max_size=20, unique=True), st.data())
def test_different_edits_of_one_line_are_reported(numbers: list[int], data: st.DataObject) -> None:
    """Two different texts for one line cannot be merged."""
    base = [f"line {number}\n" for number in numbers]
    at = data.draw(st.integers(0, len(base) - 1))
    mine, theirs = list(base), list(base)
    mine[at], theirs[at] = "mine\n", "theirs\n"

    assert merge("".join(base), "".join(mine), "".join(theirs)) is None


def test_insertions_at_one_place_are_reported() -> None:
    """Two different lines at the same place: their order would be a guess."""
    assert merge("a\nb\n", "a\nx\nb\n", "a\ny\nb\n") is None


def test_an_insertion_beside_a_changed_line_is_kept() -> None:
    """A line added after the one that the other edit changed touches no line of it."""
    assert merge("a\nb\n", "A\nb\n", "a\nx\nb\n") == "A\nx\nb\n"


def test_a_deletion_of_a_changed_line_is_reported() -> None:
    """One deletes what the other changed."""
    assert merge("a\nb\nc\n", "a\nc\n", "a\nB\nc\n") is None


def test_insertions_at_different_places_are_both_kept() -> None:
    """One adds a heading, the other a footer."""
    assert merge("a\nb\n", "top\na\nb\n", "a\nb\nend\n") == "top\na\nb\nend\n"


def test_a_missing_last_newline_is_part_of_its_line() -> None:
    """Adding the newline and changing the line are edits of the same line."""
    assert merge("a\nb", "a\nb\n", "a\nB") is None
    assert merge("a\nb", "A\nb", "a\nb\n") == "A\nb\n"


def test_carriage_returns_stay_where_they_are() -> None:
    """Only the line feed ends a line."""
    assert merge("a\r\nb\r\n", "A\r\nb\r\n", "a\r\nB\r\n") == "A\r\nB\r\n"
