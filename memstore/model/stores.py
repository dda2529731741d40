"""A store: a named set of memories; and the rules of its fields."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from memstore.model import limits
from memstore.model.errors import Invalid


@dataclass(frozen=True, slots=True)
class Store:
    """A memory store. `updated_at` moves with its own fields and archiving, not with memories."""

    id: str
    name: str
    description: str
    metadata: Mapping[str, str]
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None


@dataclass(frozen=True, slots=True)
class StoreUsage:
    """How full a store is: live memories and bytes, beside their caps."""

    memories: int
    bytes: int
    max_memories: int
    max_bytes: int


def validate_name(name: str) -> str:
    """1 to 255 characters, none of them a control character (Cc) or a lone surrogate; else Invalid."""
    if not 1 <= len(name) <= limits.STORE_NAME_CHARS:
        raise Invalid(f"A store's name has 1 to {limits.STORE_NAME_CHARS} characters.")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
        raise Invalid("A store's name may not hold control characters.")
    return name


def validate_description(description: str) -> str:
    """At most 1,024 characters; else Invalid."""
    if len(description) > limits.STORE_DESCRIPTION_CHARS:
        raise Invalid(
            f"A store's description has at most {limits.STORE_DESCRIPTION_CHARS} characters."
        )
    return description


def validate_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """At most 16 pairs, keys of 1 to 64 and values of at most 512 characters; else Invalid."""
    if len(metadata) > limits.METADATA_PAIRS:
        raise Invalid(f"Metadata has at most {limits.METADATA_PAIRS} pairs.")
    for key, value in metadata.items():
        if not 1 <= len(key) <= limits.METADATA_KEY_CHARS:
            raise Invalid(f"A metadata key has 1 to {limits.METADATA_KEY_CHARS} characters.")
        if len(value) > limits.METADATA_VALUE_CHARS:
            raise Invalid(f"A metadata value has at most {limits.METADATA_VALUE_CHARS} characters.")
    return dict(metadata)


def patch_metadata(metadata: Mapping[str, str], patch: Mapping[str, str | None]) -> dict[str, str]:
    """A string sets, None removes, an absent key stays; the limits apply to the result."""
    result = {**metadata, **patch}
    return validate_metadata({key: value for key, value in result.items() if value is not None})


def slug(name: str, store_id: str) -> str:
    """The directory name of a mount: lowercased, each run outside a-z0-9 a `-`, edges trimmed.

    An empty result becomes the store's id. Clashes are the session's business: `unique_slugs`.
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or store_id


def unique_slugs(named: list[tuple[str, str]]) -> list[str]:
    """Slugs for (name, store id) pairs in order; a clash gets `-2`, `-3`, ... the first free."""
    taken: set[str] = set()
    result = []
    for name, store_id in named:
        base = candidate = slug(name, store_id)
        number = 2
        while candidate in taken:
            candidate = f"{base}-{number}"
            number += 1
        taken.add(candidate)
        result.append(candidate)
    return result
