"""Three-way merge of texts by lines.

Two edits of one base are combined where they touch different lines. Edits overlap when their
ranges of base lines share a line, or when both insert at the same place; an overlap of equal
edits is one edit. Lines keep their endings, so a merge never changes what neither edit changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import SequenceMatcher


@dataclass(frozen=True, slots=True)
class _Edit:
    """Base lines `[low, high)` become `lines`."""

    low: int
    high: int
    lines: list[str]


def merge(base: str, mine: str, theirs: str) -> str | None:
    """The text with both edits, or None when they overlap."""
    if mine in (theirs, base):
        return theirs
    if theirs == base:
        return mine
    lines = _lines(base)
    merged = _combine(_edits(lines, _lines(mine)), _edits(lines, _lines(theirs)))
    return None if merged is None else _apply(lines, merged)


def _lines(text: str) -> list[str]:
    """Lines with their `\\n`; only that character ends one, as in diff and git."""
    parts = text.split("\n")
    lines = [f"{part}\n" for part in parts[:-1]]
    if parts[-1]:
        lines.append(parts[-1])
    return lines


def _edits(base: list[str], text: list[str]) -> list[_Edit]:
    low, high, tail = 0, len(base), len(text)
    while low < min(high, tail) and base[low] == text[low]:
        low += 1
    while high > low and tail > low and base[high - 1] == text[tail - 1]:
        high, tail = high - 1, tail - 1
    matcher = SequenceMatcher(None, base[low:high], text[low:tail], autojunk=False)
    return [
        _Edit(low + first, low + last, text[low + start : low + end])
        for tag, first, last, start, end in matcher.get_opcodes()
        if tag != "equal"
    ]


def _combine(mine: list[_Edit], theirs: list[_Edit]) -> list[_Edit] | None:
    """Both lists in base order; None at the first overlap of different edits."""
    merged: list[_Edit] = []
    mine, theirs = mine[::-1], theirs[::-1]
    while mine and theirs:
        if mine[-1] == theirs[-1]:
            merged.append(mine.pop())
            theirs.pop()
        elif _touch(mine[-1], theirs[-1]):
            return None
        else:
            first = min(mine, theirs, key=lambda edits: (edits[-1].low, edits[-1].high))
            merged.append(first.pop())
    return merged + mine[::-1] + theirs[::-1]


def _touch(one: _Edit, other: _Edit) -> bool:
    """Whether the order or the result of two edits would be a guess.

    Text added at the edge of a range that the other edit made longer counts: which of the two
    comes first is unknown.
    """
    if one.low == one.high and other.low == other.high:
        return one.low == other.low
    if one.low < other.high and other.low < one.high:
        return True
    meets = one.low == other.high or other.low == one.high
    return meets and _grows(one) and _grows(other)


def _grows(edit: _Edit) -> bool:
    return len(edit.lines) > edit.high - edit.low


def _apply(base: list[str], edits: list[_Edit]) -> str:
    parts: list[str] = []
    at = 0
    for edit in edits:
        parts += base[at : edit.low] + edit.lines
        at = edit.high
    return "".join(parts + base[at:])
