"""The rules of a memory's text, and its hash."""

from __future__ import annotations

import hashlib
import re

from memstore.model import limits
from memstore.model.errors import Invalid, InvalidContent, TooLarge

_SHA256 = re.compile(r"[0-9a-f]{64}")


def encode(content: str) -> bytes:
    """The exact UTF-8 bytes; InvalidContent on NUL or a lone surrogate, TooLarge over the limit."""
    if "\0" in content:
        raise InvalidContent("Content may not hold U+0000.")
    try:
        data = content.encode()
    except UnicodeEncodeError:
        raise InvalidContent(
            "Content is not valid Unicode text: it holds a lone surrogate."
        ) from None
    if len(data) > limits.CONTENT_BYTES:
        raise TooLarge(len(data), limits.CONTENT_BYTES)
    return data


def decode(data: bytes) -> str:
    """The text of bytes; InvalidContent when they are not UTF-8 or hold NUL, TooLarge over the limit."""
    if len(data) > limits.CONTENT_BYTES:
        raise TooLarge(len(data), limits.CONTENT_BYTES)
    if b"\0" in data:
        raise InvalidContent("Content may not hold NUL bytes.")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidContent(f"Content is not UTF-8 (at byte {error.start}).") from None


def sha256(data: bytes) -> str:
    """64 lowercase hex digits over the exact bytes; no normalisation."""
    return hashlib.sha256(data).hexdigest()


def validate_sha256(text: str) -> str:
    """The hash itself when it is 64 lowercase hex digits; else Invalid."""
    if not _SHA256.fullmatch(text):
        raise Invalid("A content_sha256 is 64 lowercase hex digits.")
    return text
