"""A session: an agent's run, with the stores attached to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memstore.model import limits
from memstore.model.access import ACCESSES, Access
from memstore.model.errors import Invalid

MOUNT_ROOT = "/mnt/memory"


@dataclass(frozen=True, slots=True)
class Attachment:
    """A request to attach a store to a new session."""

    store_id: str
    access: Access = "read_write"
    instructions: str | None = None


@dataclass(frozen=True, slots=True)
class AttachedStore:
    """An attached store; name, description and mount path are snapshots taken at attach."""

    store_id: str
    access: Access
    instructions: str | None
    name: str
    description: str
    mount_path: str


@dataclass(frozen=True, slots=True)
class Session:
    """A session. `agent` and `environment_id` are kept as given, not checked.

    Over HTTP `agent` is the API's resolved object, with the id and version that were given.
    """

    id: str
    agent: Any
    environment_id: str
    title: str | None
    metadata: Mapping[str, str]
    vault_ids: tuple[str, ...]
    stores: tuple[AttachedStore, ...]
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None


def validate_attachments(attachments: tuple[Attachment, ...]) -> tuple[Attachment, ...]:
    """At most 8 stores, each once, instructions of at most 4,096 characters; else Invalid."""
    if len(attachments) > limits.SESSION_STORES:
        raise Invalid(
            f"resources cannot contain more than {limits.SESSION_STORES} memory_store entries"
        )
    if len({attachment.store_id for attachment in attachments}) != len(attachments):
        raise Invalid("resources names the same memory store twice")
    for attachment in attachments:
        if attachment.access not in ACCESSES:
            raise Invalid("access is 'read_write' or 'read_only'")
        if len(attachment.instructions or "") > limits.ATTACHMENT_INSTRUCTIONS_CHARS:
            raise Invalid(
                f"instructions has at most {limits.ATTACHMENT_INSTRUCTIONS_CHARS} characters"
            )
    return attachments
