"""A version: what one change made, immutable but for redaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from memstore.model.actors import Actor

Operation = Literal["created", "modified", "deleted"]
OPERATIONS: tuple[Operation, ...] = ("created", "modified", "deleted")


@dataclass(frozen=True, slots=True)
class Version:
    """One change of one memory.

    `seq` orders the versions and events of a store (starts at 1, gaps allowed, never reused); 0
    over HTTP, where it is not among the API's fields.
    `path` is None once redacted; `content` also in the basic view and for `deleted`; size and
    hash are None once redacted and for `deleted`.
    """

    id: str
    memory_id: str
    store_id: str
    seq: int
    operation: Operation
    path: str | None
    content: str | None
    content_size_bytes: int | None
    content_sha256: str | None
    created_at: datetime
    created_by: Actor | None
    redacted_at: datetime | None
    redacted_by: Actor | None


Receipt = dict[str, Any]
"""A redaction's signed receipt, as the API shows it.

`store_id`, `version_id`, `memory_id`, `operation`, `redacted_at`, `redacted_by`; `destroyed`, a
list of where and what; `kept`, the epoch of what was sealed beside it; and `signature`: Ed25519
over the JSON of all the rest (keys sorted, no spaces, ASCII), with its `public_key`, in base64.
"""


@dataclass(frozen=True, slots=True)
class VersionFilter:
    """Which versions to list; every field given must match."""

    memory_id: str | None = None
    operation: Operation | None = None
    session_id: str | None = None
    api_key_id: str | None = None
    service_account_id: str | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
