"""The bytes of a file while they differ, or may differ, from the stored text.

One buffer a file, shared by all its handles. It knows the text it is based on, so that a commit
can tell whether the memory changed meanwhile, and whether anything but appending was done.
"""

from __future__ import annotations

import errno

from fuse_mount.vfs.names import refusal


class Buffer:
    """A file's bytes in memory. Every method needs the vfs lock.

    `base` is the text the edit was made from, `base_sha` its hash ("" for a new file).
    `written`: there is text to commit at the next close. `truncated`: the size was changed
    without a write yet. `stamp` rises with every change, so a commit can see that more came.
    """

    __slots__ = ("_intact", "base", "base_sha", "data", "stamp", "start", "truncated", "written")

    def __init__(self, text: bytes, base: bytes, base_sha: str) -> None:
        self.data = bytearray(text)
        self.base, self.base_sha = base, base_sha
        self.start = len(text)
        self._intact = True
        self.written = self.truncated = False
        self.stamp = 0

    @property
    def dirty(self) -> bool:
        """Whether anything waits for a commit."""
        return self.written or self.truncated

    def appended(self) -> bytes | None:
        """What was added at the end, when that is all that was done; else None."""
        return bytes(self.data[self.start :]) if self._intact and self.base_sha else None

    def write(self, offset: int, data: bytes | memoryview) -> None:
        """Put bytes at an offset; a gap before it is zeros."""
        end = len(self.data)
        if offset < self.start:
            self._intact = False
        if offset > end:
            self.data += bytes(offset - end)
        self.data[offset : offset + len(data)] = data
        self.written = True
        self.stamp += 1

    def truncate(self, size: int) -> None:
        """Cut, or extend with zeros."""
        end = len(self.data)
        if size < self.start:
            self._intact = False
        if size < end:
            del self.data[size:]
        else:
            self.data += bytes(size - end)
        self.truncated = True
        self.stamp += 1

    def rebase(self, base: bytes, base_sha: str) -> None:
        """What was committed is the new base; what came since remains to be committed."""
        intact = self._intact and bytes(self.data[: len(base)]) == base
        self.base, self.base_sha = base, base_sha
        self.start, self._intact = len(base), intact


def check_text(before: bytes | bytearray, data: bytes | memoryview, *, strict: bool) -> None:
    """EILSEQ when written bytes can no longer become UTF-8 text, or hold NUL.

    `before` is up to three bytes in front of them. Characters may be cut at both ends, since a
    writer's chunks end anywhere; `strict` says the front is known, so that a stray continuation
    byte there is refused. A tail still incomplete is decided at close.
    """
    chunk = bytes(data)
    if chunk.isascii():
        if strict and before and before[-1] >= 0x80:
            _check_tail(bytes(before), chunk[:1])
        if 0 in chunk:
            raise refusal(errno.EILSEQ)
        return
    if strict:
        chunk = _cut_character(bytes(before)) + chunk
    else:
        chunk = chunk[:_CUT].lstrip(_CONTINUATION) + chunk[_CUT:]
    if 0 in chunk:
        raise refusal(errno.EILSEQ)
    _decodes(chunk)


_CUT = 3
_CONTINUATION = bytes(range(0x80, 0xC0))


def _cut_character(before: bytes) -> bytes:
    """The bytes of a character begun at the end of `before` and not finished there."""
    for back in range(1, min(_CUT, len(before)) + 1):
        lead = before[-back]
        if lead >= 0xC0:
            length = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            return before[-back:] if length > back else b""
        if lead < 0x80:
            return b""
    return b""


def _check_tail(before: bytes, following: bytes) -> None:
    cut = _cut_character(before)
    if cut and following:
        _decodes(cut + following)


def _decodes(chunk: bytes) -> None:
    try:
        chunk.decode()
    except UnicodeDecodeError as error:
        if error.reason != "unexpected end of data" or error.end != len(chunk):
            raise refusal(errno.EILSEQ) from None
