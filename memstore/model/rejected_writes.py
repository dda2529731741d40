"""A rejected write: a text that lost a conflict, kept until somebody applies or dismisses it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memstore.model.actors import Actor

Reason = Literal["conflict"]
REASONS: tuple[Reason, ...] = ("conflict",)
"""Why it was rejected. `conflict`: the memory had changed, and the edits could not be merged."""

State = Literal["open", "applied", "dismissed"]
STATES: tuple[State, ...] = ("open", "applied", "dismissed")


@dataclass(frozen=True, slots=True)
class RejectedWrite:
    """One text that was not saved where its author wanted it.

    `memory_id` is the memory it lost to (None when the author knew none), and once applied the
    memory that has the text. `base_content_sha256` is the hash of the text its edit was made
    from, None where that is not known. `content` is None in the basic view.

    Only an open one holds its text. Once applied, path, size, hash and text are those of the
    version that was made (`version_id`), read there, so that redacting it destroys them. Once
    dismissed they are None, and so is the base: that destroys what was lost, for ever.
    """

    id: str
    store_id: str
    seq: int
    state: State
    reason: Reason
    memory_id: str | None
    path: str | None
    base_content_sha256: str | None
    content: str | None
    content_size_bytes: int | None
    content_sha256: str | None
    version_id: str | None
    created_at: datetime
    created_by: Actor | None
    resolved_at: datetime | None
    resolved_by: Actor | None
