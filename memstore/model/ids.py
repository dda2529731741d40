"""Identifiers: a prefix, `01`, and 22 base58 characters of a time-ordered 128-bit value.

The value has the UUIDv7 layout (RFC 9562 section 5.7): 48 bits of Unix milliseconds, then a
12-bit counter and 62 random bits. It is monotonic within a process. Order never rests on ids:
versions carry a per-store sequence.
"""

from __future__ import annotations

import os
import re
import threading

from memstore.model import clock

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_WIDTH = 22
_HALF = 58 ** (_WIDTH // 2)
_PAIRS = [high + low for high in ALPHABET for low in ALPHABET]

STORE = "memstore"
MEMORY = "mem"
VERSION = "memver"
REJECTED_WRITE = "rejw"
SESSION = "sesn"
KEY = "apikey"
WORKSPACE = "wrkspc"
REQUEST = "req"
EPOCH = "epoch"

_lock = threading.Lock()
_last = 0


def _time_ordered() -> int:
    """A UUIDv7-shaped integer greater than every earlier one of this process."""
    global _last
    milliseconds = clock.now_us() // 1000
    random = int.from_bytes(os.urandom(10), "big")
    counter, tail = random >> 70 & 0x3FF, random & ((1 << 62) - 1)
    value = milliseconds << 80 | 7 << 76 | counter << 64 | 2 << 62 | tail
    with _lock:
        if value <= _last:
            value = _last + 1 + (tail & 0xFFFFFFFF)
        _last = value
    return value


def new(prefix: str) -> str:
    """A fresh id such as `mem_01...`, later in byte order than every one made here before."""
    high, low = divmod(_time_ordered(), _HALF)
    digits = []
    for part in (low, high):  # halves: dividing the whole value each time costs twice as much
        for _ in range(_WIDTH // 4):
            part, pair = divmod(part, 58 * 58)
            digits.append(_PAIRS[pair])
        digits.append(ALPHABET[part])
    digits.reverse()
    return f"{prefix}_01{''.join(digits)}"


_SHAPE = re.compile(rf"[a-z]+_01[{ALPHABET}]{{{_WIDTH}}}")


def is_id(text: str, prefix: str) -> bool:
    """Whether `text` has the shape of an id of this kind (it may still name nothing)."""
    return text.startswith(f"{prefix}_") and _SHAPE.fullmatch(text) is not None
