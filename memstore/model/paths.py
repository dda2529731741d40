"""The rules of a memory's path, and small questions about paths.

Rules: begins with `/`; 1 to 20 segments; at most 1,024 bytes of UTF-8; no empty, `.` or `..`
segment; no control (Cc) or format (Cf) characters, no U+2028 or U+2029; already in NFC; case
matters. A path is a file or a directory, never both: it may be neither an ancestor nor a
descendant of a live memory's path (the storage refuses that in the writing transaction).
"""

from __future__ import annotations

import unicodedata

from memstore.model import limits
from memstore.model.errors import InvalidPath, PathTooLong

_FORBIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def forbidden_character(text: str) -> str | None:
    """The first character no path may hold, or None."""
    if text.isascii() and text.isprintable():
        return None
    for character in text:
        if unicodedata.category(character) in _FORBIDDEN_CATEGORIES:
            return character
    return None


def validate(path: str) -> str:
    """The path itself when it keeps every rule; else InvalidPath (PathTooLong for the two sizes)."""
    if not path.startswith("/"):
        raise InvalidPath("A path begins with '/'.")
    if path == "/":
        raise InvalidPath("The root is not a memory's path; name a file below it.")
    bad = forbidden_character(path)
    if bad is not None:
        raise InvalidPath(f"A path may not hold U+{ord(bad):04X}.")
    if len(path.encode()) > limits.PATH_BYTES:
        raise PathTooLong(f"A path is at most {limits.PATH_BYTES} bytes.")
    segments = path[1:].split("/")
    for segment in segments:
        if segment in ("", ".", ".."):
            raise InvalidPath("A path has no empty segment and none that is '.' or '..'.")
    if len(segments) > limits.PATH_SEGMENTS:
        raise PathTooLong(f"A path has at most {limits.PATH_SEGMENTS} segments.")
    if not unicodedata.is_normalized("NFC", path):
        raise InvalidPath("A path must be in Unicode normal form C (NFC).")
    return path


def validate_prefix(prefix: str) -> str:
    """A listing's prefix: `/`, or a path followed by `/`. Else InvalidPath."""
    if not prefix.endswith("/"):
        raise InvalidPath("A path_prefix ends with '/'.")
    if prefix != "/":
        validate(prefix[:-1])
    return prefix


def ancestors(path: str) -> list[str]:
    """Every proper ancestor that could be a memory: `/a/b/c` gives `/a`, `/a/b`."""
    found, at = [], path.find("/", 1)
    while at != -1:
        found.append(path[:at])
        at = path.find("/", at + 1)
    return found


def below(path: str) -> tuple[str, str]:
    """The half-open byte range `[low, high)` that holds every path below the directory `path`.

    `0` is the byte after `/`, so the range is exact under byte order.
    """
    return f"{path}/", f"{path}0"


def overlaps(one: str, other: str) -> bool:
    """Whether one path equals, or is an ancestor of, the other."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")
