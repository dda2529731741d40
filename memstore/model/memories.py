"""A memory: one live text at one path; its folded listing form; and the changes of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memstore.model.preconditions import ContentIs

View = Literal["basic", "full"]
VIEWS: tuple[View, ...] = ("basic", "full")


@dataclass(frozen=True, slots=True)
class Memory:
    """A live memory. `content` is None in the basic view; size and hash are set in every view."""

    id: str
    store_id: str
    version_id: str
    path: str
    content: str | None
    content_size_bytes: int
    content_sha256: str
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class MemoryPrefix:
    """A directory folded into one item of a depth-1 listing; `path` ends with `/`."""

    path: str


@dataclass(frozen=True, slots=True)
class CreateMemory:
    """In a batch: create a memory at a free path."""

    path: str
    content: str


@dataclass(frozen=True, slots=True)
class UpdateMemory:
    """In a batch: change content, path, or both."""

    memory_id: str
    content: str | None = None
    path: str | None = None
    precondition: ContentIs | None = None


@dataclass(frozen=True, slots=True)
class DeleteMemory:
    """In a batch: delete a memory, if its content still has the expected hash."""

    memory_id: str
    expected_content_sha256: str | None = None


Change = CreateMemory | UpdateMemory | DeleteMemory
