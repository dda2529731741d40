"""Names inside the mount: their normal form, their limits, and the errno of a bad one.

The rules are those of `memstore.model.paths`, plus a directory entry's limit of 255 bytes.
"""

from __future__ import annotations

import errno
import unicodedata

from memstore.model import limits
from memstore.model.paths import forbidden_character

REPOSITORIES = frozenset({".git"})
"""Directories not made here: what belongs in them is binary. Refused at the start, a tool tells
so; later, a repository would be half there, and its text half taken for memories."""


def refusal(code: int, name: str = "") -> OSError:
    """An OSError of that errno; the name is for people, bindings use the errno alone."""
    return OSError(code, errno.errorcode.get(code, "refused"), name or None)


def normal(name: str) -> str:
    """The NFC form under which a name is kept and looked up."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def new_name(name: str) -> str:
    """The form under which a new entry is kept.

    ENAMETOOLONG over 255 bytes, EILSEQ when the bytes are not UTF-8 (they arrive as lone
    surrogates), EINVAL for a character no path may hold.
    """
    name = normal(name)
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise refusal(errno.EILSEQ) from None
    if size > limits.SEGMENT_BYTES:
        raise refusal(errno.ENAMETOOLONG, name)
    if name in ("", ".", "..") or "/" in name or forbidden_character(name) is not None:
        raise refusal(errno.EINVAL)
    return name


def too_long(name: str) -> bool:
    """Whether a name is over a directory entry's limit, in any normal form."""
    return len(name) > 63 and len(normal(name).encode("utf-8", "surrogateescape")) > 255


def check_path(path: str) -> str:
    """The path itself; ENAMETOOLONG over 1,024 bytes or 20 segments."""
    if path.count("/") > limits.PATH_SEGMENTS or len(path.encode()) > limits.PATH_BYTES:
        raise refusal(errno.ENAMETOOLONG, path)
    return path


def representable(path: str) -> bool:
    """Whether every segment of a server's path can be a directory entry."""
    return all(
        0 < len(segment.encode("utf-8", "surrogatepass")) <= limits.SEGMENT_BYTES
        and segment not in (".", "..")
        and "\0" not in segment
        for segment in path[1:].split("/")
    )
