"""Pages and their cursors.

A cursor is `page_` and base64url of JSON: the key of the last item shown, so a listing neither
skips nor repeats what is untouched while other items come and go. It also carries what it was
made for (the listing's kind and filters), so that a foreign cursor is refused.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from memstore.model import limits
from memstore.model.errors import Invalid

Item = TypeVar("Item")

_PREFIX = "page_"


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """One page of a listing; `next_page` is None on the last."""

    data: tuple[Item, ...]
    next_page: str | None


def page_limit(limit: int, view: str = "basic") -> int:
    """1 to 100, else Invalid; at most 20 with the full view (a larger one is clamped)."""
    if not 1 <= limit <= limits.PAGE_MAX:
        raise Invalid(f"limit must be between 1 and {limits.PAGE_MAX}")
    return min(limit, limits.PAGE_MAX_FULL) if view == "full" else limit


def encode_cursor(listing: str, key: Any) -> str:
    """An opaque cursor for a listing (a word for its kind and filters) after the item of `key`."""
    text = json.dumps([listing, key], separators=(",", ":"), ensure_ascii=False)
    return _PREFIX + base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(listing: str, cursor: str) -> Any:
    """The key inside a cursor of the same listing; Invalid for anything else."""
    body = cursor.removeprefix(_PREFIX)
    try:
        if body == cursor:
            raise ValueError
        raw = base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True)
        decoded = json.loads(raw)
        if not (isinstance(decoded, list) and len(decoded) == 2 and decoded[0] == listing):
            raise ValueError
    except (ValueError, binascii.Error, RecursionError):
        raise Invalid("page is not a cursor of this listing") from None
    return decoded[1]
