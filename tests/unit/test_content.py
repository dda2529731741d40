"""Content: text in UTF-8, untouched, within its limit."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memstore.model import content
from memstore.model.errors import Invalid, InvalidContent, TooLarge


@pytest.mark.parametrize(
    "text", ["", "a", "é", "e\u0301", "🙂", "\r\n", "\ufeff", "\x1b[31m", "\x85"]
)
def test_a_text_becomes_its_bytes_and_back(text: str) -> None:
    """Nothing is normalised, stripped or added."""
    assert content.encode(text) == text.encode()
    assert content.decode(content.encode(text)) == text


def test_the_limit_counts_bytes() -> None:
    """102,400 bytes are content and 102,401 are too many, whichever way they come."""
    assert len(content.encode("x" * 102_400)) == 102_400
    for text in ("x" * 102_401, "é" * 51_201):
        with pytest.raises(TooLarge):
            content.encode(text)
        with pytest.raises(TooLarge):
            content.decode(text.encode())


@pytest.mark.parametrize("text", ["\0", "a\0b", "\ud800", "a\udfffb"])
def test_what_is_no_text_is_refused(text: str) -> None:
    """NUL and lone surrogates are not content."""
    with pytest.raises(InvalidContent):
        content.encode(text)


@pytest.mark.parametrize(
    "data", [b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80"]
)
def test_bytes_that_are_no_text_are_refused(data: bytes) -> None:
    """Bytes that are not UTF-8, or hold NUL, are not content."""
    with pytest.raises(InvalidContent):
        content.decode(data)


def test_a_refusal_never_repeats_the_content() -> None:
    """An error about content does not carry it into logs."""
    for bad in ("secret\0", "secret\ud800", "secret" * 20_000):
        with pytest.raises(Invalid) as caught:
            content.encode(bad)
        assert "secret" not in str(caught.value)


@given(st.binary(max_size=200))
def test_the_hash_is_sha256_in_lowercase_hex(data: bytes) -> None:
    """The hash is over the exact bytes, and is itself a valid hash."""
    digest = content.sha256(data)
    assert digest == hashlib.sha256(data).hexdigest()
    assert content.validate_sha256(digest) == digest


@pytest.mark.parametrize("bad", ["", "0" * 63, "0" * 65, "A" * 64, "g" * 64, "0" * 64 + "\n"])
def test_another_hash_is_refused(bad: str) -> None:
    """64 lowercase hex digits and nothing else."""
    with pytest.raises(Invalid):
        content.validate_sha256(bad)
