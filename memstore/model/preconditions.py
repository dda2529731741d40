"""What a caller believes about a memory before it changes it."""

from __future__ import annotations

from dataclasses import dataclass

from memstore.model.content import validate_sha256


@dataclass(frozen=True, slots=True)
class ContentIs:
    """The memory's current content has this SHA-256 (64 lowercase hex digits; else Invalid)."""

    content_sha256: str

    def __post_init__(self) -> None:
        validate_sha256(self.content_sha256)
