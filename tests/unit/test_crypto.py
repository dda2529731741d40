"""Sealed records: bound to their ids, hiding their size, opened by their own key only."""

from __future__ import annotations

import os

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from memstore.storage import crypto
from memstore.storage.crypto import BadSeal, Epoch, Facts

STORE = "memstore_01" + "1" * 22
EPOCH = Epoch("epoch_1", STORE, 1, AESGCM(bytes(32)))
SHA = "ab" * 32


def opened(id: str, sealed: crypto.Sealed, store: str = STORE) -> tuple[Facts, bytes | None]:
    """Open a record the long way."""
    assert sealed.wrapped_key is not None and sealed.facts is not None
    key = crypto.unwrap(EPOCH.cipher, sealed.wrapped_key, crypto.record_key(id, store))
    about = f" {store} {id}".encode()
    facts = crypto.open_facts(AESGCM(key), b"facts" + about, sealed.facts)
    if sealed.text is None:
        return facts, None
    return facts, crypto.open_text(AESGCM(key), b"text" + about, sealed.text)


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (Facts("/a", 0, SHA), b""),
        (Facts("/a/é", 3, SHA), b"abc"),
        (Facts("/" + "x" * 1023, 102400, SHA, "cd" * 32), b"y" * 102400),
        (Facts("/deleted", None, None), None),
    ],
)
def test_what_is_sealed_is_opened(facts: Facts, text: bytes | None) -> None:
    """Facts and text come back exactly, the longest and the empty ones too."""
    assert opened("v1", crypto.seal(EPOCH, "v1", facts, text)) == (facts, text)


def test_a_record_cannot_stand_for_another() -> None:
    """Its blobs are bound to the version's id, the store's id and what they are."""
    sealed = crypto.seal(EPOCH, "v1", Facts("/a", 1, SHA), b"a")
    with pytest.raises(BadSeal):
        opened("v2", sealed)
    with pytest.raises(BadSeal):
        opened("v1", sealed, "memstore_other")
    with pytest.raises(BadSeal):
        opened("v1", sealed._replace(text=sealed.facts))


@pytest.mark.parametrize("column", ["wrapped_key", "facts", "text"])
def test_a_changed_byte_is_found(column: str) -> None:
    """No blob opens after one bit of it was changed."""
    sealed = crypto.seal(EPOCH, "v1", Facts("/a", 1, SHA), b"a")
    blob = bytearray(getattr(sealed, column))
    blob[-1] ^= 1
    with pytest.raises(BadSeal):
        opened("v1", sealed._replace(**{column: bytes(blob)}))


def test_the_length_of_a_blob_does_not_tell_the_size() -> None:
    """Texts of near sizes, and paths, have blobs of the same length; an eighth more at most."""
    lengths = [
        len(crypto.seal(EPOCH, "v", Facts("/a", size, SHA), os.urandom(size)).text or b"")
        for size in range(2100, 2300, 20)
    ]
    assert len(set(lengths)) <= 2
    for size in (300, 5000, 65536, 102400):
        text = crypto.seal(EPOCH, "v", Facts("/a", size, SHA), bytes(size)).text or b""
        assert len(text) <= (size + 4) * 1.125 + 16
    facts = {
        len(crypto.seal(EPOCH, "v", Facts("/" + "x" * n, 1, SHA), b"").facts or b"")
        for n in range(1, 20)
    }
    assert len(facts) == 1


def test_two_seals_of_one_text_differ() -> None:
    """Nothing shows that two versions say the same."""
    one, two = (crypto.seal(EPOCH, "v", Facts("/a", 1, SHA), b"a") for _ in range(2))
    assert one.text != two.text and one.facts != two.facts and one.wrapped_key != two.wrapped_key
