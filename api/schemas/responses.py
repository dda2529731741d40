"""Objects that come back, for `/docs` and `/openapi.json`; `api.wire` makes them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel

from memstore.model.access import Access, Scope
from memstore.model.events import EventKind
from memstore.model.rejected_writes import Reason, State
from memstore.model.rollback import Outcome
from memstore.model.versions import Operation

Item = TypeVar("Item")


class PageOut(BaseModel, Generic[Item]):
    """One page of a listing; `next_page` is null on the last."""

    data: list[Item]
    next_page: str | None


class DeletedOut(BaseModel):
    """What is left of a deleted object."""

    id: str
    type: str


class StoreOut(BaseModel):
    """A memory store."""

    type: Literal["memory_store"]
    id: str
    name: str
    description: str
    metadata: dict[str, str]
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None


class UsageOut(BaseModel):
    """How full a store is, beside its caps."""

    type: Literal["memory_store_usage"]
    memories: int
    bytes: int
    max_memories: int
    max_bytes: int


class MemoryOut(BaseModel):
    """A live memory; `content` is null in the basic view."""

    type: Literal["memory"]
    id: str
    memory_store_id: str
    memory_version_id: str
    path: str
    content: str | None
    content_size_bytes: int
    content_sha256: str
    created_at: datetime
    updated_at: datetime


class PrefixOut(BaseModel):
    """A directory folded into one item of a depth-1 listing."""

    type: Literal["memory_prefix"]
    path: str


class ActorOut(BaseModel):
    """Who acted; the id's field depends on the type."""

    type: Literal["session_actor", "api_actor", "user_actor", "service_account_actor"]
    session_id: str | None = None
    api_key_id: str | None = None
    user_id: str | None = None
    service_account_id: str | None = None


class VersionOut(BaseModel):
    """What one change made; nulls where it was redacted or where there is nothing to tell."""

    type: Literal["memory_version"]
    id: str
    memory_id: str
    memory_store_id: str
    operation: Operation
    path: str | None
    content: str | None
    content_size_bytes: int | None
    content_sha256: str | None
    created_at: datetime
    created_by: ActorOut | None
    redacted_at: datetime | None
    redacted_by: ActorOut | None


class ReceiptOut(BaseModel):
    """What a redaction destroyed; signed by Ed25519 over the JSON of all but `signature`.

    That JSON has its keys sorted, no spaces, and ASCII only. `kept` is the epoch that now has the
    keys of the versions that were sealed beside it.
    """

    type: Literal["redaction_receipt"]
    store_id: str
    version_id: str
    memory_id: str
    operation: Operation
    redacted_at: datetime
    redacted_by: ActorOut | None
    destroyed: list[dict[str, str]]
    kept: dict[str, Any]
    signature: dict[str, str]


class RejectedWriteOut(BaseModel):
    """A text that lost a conflict.

    `memory_version_id` is the version that applying it made. Once dismissed it tells who and
    when, and nothing of what was written.
    """

    type: Literal["rejected_write"]
    id: str
    memory_store_id: str
    seq: int
    state: State
    reason: Reason
    memory_id: str | None
    path: str | None
    base_content_sha256: str | None
    content: str | None
    content_size_bytes: int | None
    content_sha256: str | None
    memory_version_id: str | None
    created_at: datetime
    created_by: ActorOut | None
    resolved_at: datetime | None
    resolved_by: ActorOut | None


class RollbackChangeOut(BaseModel):
    """What a rollback did, or would do, with one memory; `diff` in a dry run only."""

    memory_id: str
    path: str | None
    old_path: str | None
    operation: Operation | None
    version_id_before: str | None
    version_id_after: str | None
    outcome: Outcome
    reason: str | None
    diff: str | None
    diff_omitted: bool


class RollbackOut(BaseModel):
    """A rollback; going back to the moment `before` undoes it."""

    type: Literal["rollback"]
    memory_store_id: str
    dry_run: bool
    before: datetime | None
    changes: list[RollbackChangeOut]


class EventOut(BaseModel):
    """One change of a store; `seq` is the feed's cursor."""

    type: Literal["event"]
    memory_store_id: str
    seq: int
    kind: EventKind
    created_at: datetime
    created_by: ActorOut | None
    memory_id: str | None
    memory_version_id: str | None
    path: str | None
    content: str | None
    content_size_bytes: int | None
    content_sha256: str | None


class EventPageOut(BaseModel):
    """Events after a cursor; `more` says to ask again at once."""

    data: list[EventOut]
    cursor: int
    more: bool


class BatchOut(BaseModel):
    """One item a change; null for a delete."""

    data: list[MemoryOut | None]


class ResourceOut(BaseModel):
    """A store attached to a session."""

    type: Literal["memory_store"]
    memory_store_id: str
    access: Access
    instructions: str | None
    name: str
    description: str
    mount_path: str


class SessionOut(BaseModel):
    """A session."""

    type: Literal["session"]
    id: str
    agent: dict[str, Any]
    environment_id: str
    title: str | None
    metadata: dict[str, str]
    vault_ids: list[str]
    resources: list[ResourceOut]
    status: Literal["idle", "terminated"]
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    budget: None
    deployment_id: None
    outcome_evaluations: list[Any]
    stats: dict[str, float]
    usage: dict[str, int]


class TokenOut(BaseModel):
    """A session's token, shown once."""

    type: Literal["session_token"]
    session_id: str
    token: str


class KeyOut(BaseModel):
    """An API key; `key` is its secret, there only when it is created."""

    type: Literal["api_key"]
    id: str
    workspace_id: str
    workspace: str
    name: str
    scopes: list[Scope]
    created_at: datetime
    revoked_at: datetime | None
    key: str | None = None


class CallerOut(BaseModel):
    """Whom a credential stands for; `grants` is null for a key."""

    type: Literal["caller"]
    workspace_id: str
    actor: ActorOut
    scopes: list[str]
    grants: dict[str, Access] | None
    session_id: str | None


class ErrorOut(BaseModel):
    """A refusal."""

    type: Literal["error"]
    error: dict[str, Any]
    request_id: str
