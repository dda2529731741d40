"""How a version is sealed: formats and ciphers, no database.

A sealed record has a random 256-bit key of its own. Two blobs are sealed under it by AES-256-GCM:
its *facts* (path, size, SHA-256) and its *text*. Both are bound to the record's id, its store's id
and what they are, so that no blob can stand for another. A key seals each blob once, so the nonces
are constants. The record's key is *wrapped*, sealed under the key of an epoch with a random nonce.

Blobs are padded, for their length would tell the size: facts to a multiple of 64 bytes, texts to
at least 256 bytes and then to steps that grow with the text (at most an eighth of it).
"""

from __future__ import annotations

import os
from typing import NamedTuple

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY_BYTES = 32
_NONCE_BYTES = 12
_FACTS_NONCE = bytes(_NONCE_BYTES)
_TEXT_NONCE = bytes(_NONCE_BYTES - 1) + b"\1"
_FACTS_STEP = 64
_LEAST_TEXT = 256
_LENGTH_BYTES = 4
_HASH_BYTES = 32
_SIZE_END = 1 + _LENGTH_BYTES


class Facts(NamedTuple):
    """What a version says beside its text; size and hash are None for a `deleted` one."""

    path: str | None
    size: int | None
    sha256: str | None
    base_sha256: str | None = None


NOTHING = Facts(None, None, None)
"""The facts of what was destroyed."""


class Sealed(NamedTuple):
    """The columns that hold a record; all None once it was destroyed."""

    epoch_id: str | None
    wrapped_key: bytes | None
    facts: bytes | None
    text: bytes | None


class Epoch(NamedTuple):
    """A key that wraps the keys of a store's records; `first_seq` is where its records begin."""

    id: str
    store_id: str
    first_seq: int
    cipher: AESGCM


class BadSeal(Exception):
    """A blob was not sealed with this key, for this record, or was changed since."""


def new_key() -> bytes:
    """A random key."""
    return os.urandom(KEY_BYTES)


def wrap(cipher: AESGCM, key: bytes, about: bytes) -> bytes:
    """A key sealed under another one, bound to what it is for."""
    nonce = os.urandom(_NONCE_BYTES)
    return nonce + cipher.encrypt(nonce, key, about)


def unwrap(cipher: AESGCM, wrapped: bytes, about: bytes) -> bytes:
    """The key; BadSeal."""
    try:
        return cipher.decrypt(wrapped[:_NONCE_BYTES], wrapped[_NONCE_BYTES:], about)
    except InvalidTag:
        raise BadSeal from None


def record_key(id: str, store_id: str) -> bytes:
    """What a record's wrapped key is bound to."""
    return f"key {store_id} {id}".encode()


def seal(epoch: Epoch, id: str, facts: Facts, text: bytes | None) -> Sealed:
    """Seal a record under a new key of its own."""
    key = new_key()
    cipher = AESGCM(key)
    about = f" {epoch.store_id} {id}".encode()
    return Sealed(
        epoch.id,
        wrap(epoch.cipher, key, b"key" + about),
        cipher.encrypt(_FACTS_NONCE, _packed(facts), b"facts" + about),
        None if text is None else cipher.encrypt(_TEXT_NONCE, _padded(text), b"text" + about),
    )


def open_facts(cipher: AESGCM, about: bytes, blob: bytes) -> Facts:
    """The facts of a record; BadSeal."""
    try:
        data = cipher.decrypt(_FACTS_NONCE, blob, about)
    except InvalidTag:
        raise BadSeal from None
    there, size = data[0], int.from_bytes(data[1:_SIZE_END], "big")
    sha256 = base = None
    at = _SIZE_END
    if there & 1:
        sha256 = data[at : at + _HASH_BYTES].hex()
        at += _HASH_BYTES
    if there & 2:
        base = data[at : at + _HASH_BYTES].hex()
        at += _HASH_BYTES
    end = at + 2 + int.from_bytes(data[at : at + 2], "big")
    return Facts(data[at + 2 : end].decode(), size if there & 1 else None, sha256, base)


def open_text(cipher: AESGCM, about: bytes, blob: bytes) -> bytes:
    """The text of a record; BadSeal."""
    try:
        padded = cipher.decrypt(_TEXT_NONCE, blob, about)
    except InvalidTag:
        raise BadSeal from None
    length = int.from_bytes(padded[:_LENGTH_BYTES], "big")
    return padded[_LENGTH_BYTES : _LENGTH_BYTES + length]


def _padded(text: bytes) -> bytes:
    """A text with its length before it and zeros after it."""
    length = len(text) + _LENGTH_BYTES
    if length <= _LEAST_TEXT:
        whole = _LEAST_TEXT
    else:
        step = 1 << (length.bit_length() - 4)
        whole = (length + step - 1) & -step
    return len(text).to_bytes(_LENGTH_BYTES, "big") + text + bytes(whole - length)


def _packed(facts: Facts) -> bytes:
    """Facts as bytes: which are there, size, hashes, path, zeros."""
    path = (facts.path or "").encode()
    there = (facts.sha256 is not None) | (facts.base_sha256 is not None) << 1
    body = b"".join(
        (
            bytes((there,)),
            (facts.size or 0).to_bytes(_LENGTH_BYTES, "big"),
            bytes.fromhex(facts.sha256 or ""),
            bytes.fromhex(facts.base_sha256 or ""),
            len(path).to_bytes(2, "big"),
            path,
        )
    )
    return body + bytes(-len(body) % _FACTS_STEP)
