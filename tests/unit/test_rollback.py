"""The plan of a rollback, and the diffs it is shown with."""

from __future__ import annotations

from memstore.model.diffs import blame, unified
from memstore.model.rollback import MERGE_COST, State, Wish, ordered, settled, without

A, B = State("/a", "one\n"), State("/a", "two\n")


def played(wishes: list[Wish], live: dict[str, str]) -> dict[str, str]:
    """Live paths with their memories after the changes; no step meets a path that is taken."""
    wishes = settled(wishes, live)
    places = {id: path for path, id in live.items()}
    for move in ordered(wishes, live):
        id = move.memory_id or f"new {move.wish}"
        places.pop(id, None)
        if move.path is not None:
            assert not any(
                other == move.path
                or other.startswith(f"{move.path}/")
                or move.path.startswith(f"{other}/")
                for other in places.values()
            ), (move, places)
            places[id] = move.path
    return {path: id for id, path in places.items()}


def moved(id: str, now: str, to: str) -> Wish:
    """A memory that is to be renamed."""
    return Wish(id, State(now, id), State(to, id))


def test_rings_and_chains_are_opened() -> None:
    """Exchanged places, a chain into a free one, and a file that trades with a directory."""
    ring = [moved("x", "/a", "/b"), moved("y", "/b", "/a")]
    assert played(ring, {"/a": "x", "/b": "y"}) == {"/a": "y", "/b": "x"}
    chain = [moved("x", "/a", "/b"), moved("y", "/b", "/c")]
    assert played(chain, {"/a": "x", "/b": "y"}) == {"/b": "x", "/c": "y"}
    nested = [moved("x", "/d/e", "/f"), moved("y", "/f", "/d")]
    assert played(nested, {"/d/e": "x", "/f": "y"}) == {"/f": "x", "/d": "y"}


def test_who_is_blocked_blocks_those_behind() -> None:
    """A memory that cannot move keeps its place, so whoever wanted that keeps theirs, too."""
    wishes = [moved("x", "/a", "/b"), moved("y", "/b", "/c")]
    live = {"/a": "x", "/b": "y", "/c/other": "z"}
    assert [wish.outcome for wish in settled(wishes, live)] == ["conflict", "conflict"]
    assert played(wishes, live) == live


def test_two_that_want_one_place() -> None:
    """The first of the list gets it; the other is a conflict."""
    wishes = [Wish("x", None, A), Wish("y", None, B)]
    assert [wish.outcome for wish in settled(wishes, {})] == ["recreated", "conflict"]


def test_one_author_is_taken_out() -> None:
    """What is as they left it goes back; what is gone, or back already, needs nothing."""
    assert without(B, A, B).state == A
    assert without(A, A, B).state == A
    assert without(None, A, B).state is None and without(None, A, B).note is not None
    assert without(B, None, B).state is None
    assert without(B, A, None).state == B
    assert without(State("/a", "two\nmore\n"), None, B).blocked is not None
    elsewhere = State("/elsewhere", "two\n")
    assert without(elsewhere, A, B).state == State("/elsewhere", "one\n")
    assert without(elsewhere, A, State("/b", "two\n")).blocked is not None


def test_texts_that_take_too_long_are_not_merged() -> None:
    """Two long texts of one repeated line are listed as a conflict instead."""
    many = "x\n" * (int(MERGE_COST**0.5) + 10)
    found = without(State("/a", f"{many}z\n"), State("/a", f"y\n{many}"), State("/a", many))
    assert found.blocked is not None


def test_diffs_end_lines_as_git_does() -> None:
    """Only a newline ends a line; a missing last one is marked; a mere rename has its two names."""
    assert unified("a\rb\n", "a\rc", "/x", "/x") == (
        "--- /x\n+++ /x\n@@ -1 +1 @@\n-a\rb\n+a\rc\n\\ No newline at end of file\n"
    )
    assert unified("same", "same", "/x", "/y") == "--- /x\n+++ /y\n"
    assert unified("same", "same", "/x", "/x") == ""
    assert unified("", "a\n", None, "/x").startswith("--- /dev/null\n+++ /x\n")


def test_blame_names_the_text_that_brought_a_line() -> None:
    """A line keeps its text as long as it stays; one that left and came back is new."""
    assert blame([(1, "a\nb\n"), (2, "a\nc\n"), (3, "a\nb\nc")]) == [
        (1, "a\n"),
        (3, "b\n"),
        (3, "c"),
    ]
    assert blame([]) == []
