"""Differences of texts as people read them: unified diffs, and which version wrote which line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TypeVar

Tag = TypeVar("Tag")

NOWHERE = "/dev/null"
_NO_NEWLINE = "\n\\ No newline at end of file\n"


def lines_of(text: str) -> list[str]:
    """Lines with their `\\n`; only that character ends one, as in diff and git."""
    parts = text.split("\n")
    lines = [f"{part}\n" for part in parts[:-1]]
    return [*lines, parts[-1]] if parts[-1] else lines


def unified(old: str, new: str, old_name: str | None, new_name: str | None) -> str:
    """A unified diff, with git's mark where a text ends without a newline.

    None is a name for what is not there. Of equal texts at two paths, the two names alone.
    """
    first, second = old_name or NOWHERE, new_name or NOWHERE
    found = "".join(
        line if line.endswith("\n") else line + _NO_NEWLINE
        for line in difflib.unified_diff(lines_of(old), lines_of(new), first, second)
    )
    if not found and first != second:
        return f"--- {first}\n+++ {second}\n"
    return found


def blame(texts: Iterable[tuple[Tag, str]]) -> list[tuple[Tag, str]]:
    """Each line of the last text with the tag of the text that brought it, oldest text first."""
    known: list[tuple[Tag, str]] = []
    for tag, text in texts:
        lines = lines_of(text)
        matcher = difflib.SequenceMatcher(None, [line for _, line in known], lines)
        found: list[tuple[Tag, str]] = []
        for kind, low, high, start, end in matcher.get_opcodes():
            found += (
                known[low:high] if kind == "equal" else [(tag, one) for one in lines[start:end]]
            )
        known = found
    return known
