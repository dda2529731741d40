"""When a memory changed under an edit: equal, appended, merged, or lost to the policy."""

from __future__ import annotations

from memstore.model.clock import now_us, rfc3339_us
from memstore.model.merge import merge


def resolve(base: bytes, mine: bytes, theirs: bytes, appended: bytes | None) -> bytes | None:
    """The text that holds both edits, or None when only a policy can decide.

    `appended` is what the edit added at the end when it did nothing else. Texts that are not
    UTF-8 cannot be merged.
    """
    if mine == theirs:
        return theirs
    if appended is not None:
        return theirs + appended
    try:
        merged = merge(base.decode(), mine.decode(), theirs.decode())
    except UnicodeDecodeError:
        return None
    return None if merged is None else merged.encode()


def losing_name(name: str, taken: set[str]) -> str:
    """`<name>.conflict-<time>`, shortened at a character to fit a directory entry, and free."""
    stamp = rfc3339_us(now_us()).replace("-", "").replace(":", "")
    suffix = f".conflict-{stamp}"
    room = 255 - len(suffix) - 4
    stem = name.encode()[:room].decode("utf-8", "ignore")
    candidate, number = f"{stem}{suffix}", 2
    while candidate in taken:
        candidate = f"{stem}{suffix}-{number}"
        number += 1
    return candidate
