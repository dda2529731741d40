"""Bodies that may be sent. An unknown field is refused; what a value may be, the verbs decide."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from api.requests import Moment
from memstore.model.access import Scope
from memstore.model.memories import Change, CreateMemory, DeleteMemory, UpdateMemory
from memstore.model.preconditions import ContentIs
from memstore.model.rejected_writes import Reason
from memstore.model.rollback import RollbackTarget
from memstore.model.sessions import Attachment

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$", description="64 lowercase hex digits.")]


class Body(BaseModel):
    """A body: types as they are in JSON, no field that is not named."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Nothing(Body):
    """An empty object."""


class StoreCreate(Body):
    """A new store."""

    name: str
    description: str = ""
    metadata: dict[str, str] | None = None


class StoreUpdate(Body):
    """Fields of a store to change; null leaves a field, null inside metadata removes a key."""

    name: str | None = None
    description: str | None = None
    metadata: dict[str, str | None] | None = None


class MemoryCreate(Body):
    """A new memory."""

    path: str
    content: str


class Precondition(Body):
    """What the caller believes about the memory's current content."""

    type: Literal["content_sha256"]
    content_sha256: Sha256

    def value(self) -> ContentIs:
        """As the model has it."""
        return ContentIs(self.content_sha256)


class MemoryUpdate(Body):
    """A memory's new content, path, or both."""

    content: str | None = None
    path: str | None = None
    precondition: Precondition | None = None

    def belief(self) -> ContentIs | None:
        """The precondition, if there is one."""
        return None if self.precondition is None else self.precondition.value()


class BatchCreate(MemoryCreate):
    """In a batch: create a memory."""

    type: Literal["create"]

    def value(self) -> Change:
        """As the model has it."""
        return CreateMemory(self.path, self.content)


class BatchUpdate(MemoryUpdate):
    """In a batch: change a memory."""

    type: Literal["update"]
    memory_id: str

    def value(self) -> Change:
        """As the model has it."""
        return UpdateMemory(self.memory_id, self.content, self.path, self.belief())


class BatchDelete(Body):
    """In a batch: delete a memory."""

    type: Literal["delete"]
    memory_id: str
    expected_content_sha256: Sha256 | None = None

    def value(self) -> Change:
        """As the model has it."""
        return DeleteMemory(self.memory_id, self.expected_content_sha256)


class Batch(Body):
    """Changes to make in order, all or none."""

    changes: list[Annotated[BatchCreate | BatchUpdate | BatchDelete, Field(discriminator="type")]]


class RejectedWriteCreate(Body):
    """A text that lost a conflict: where it was to be saved, and the memory it lost to."""

    path: str
    content: str
    memory_id: str | None = None
    base_content_sha256: Sha256 | None = None
    reason: Reason = "conflict"


class RejectedWriteApply(Body):
    """What the caller believes about the memory that the text goes to."""

    precondition: Precondition | None = None

    def belief(self) -> ContentIs | None:
        """The precondition, if there is one."""
        return None if self.precondition is None else self.precondition.value()


class RollbackRequest(Body):
    """What to go back to, or whose writes to undo: exactly one of the first five.

    `path` narrows it to the memory at that path or those below it.
    """

    memory_version_id: str | None = None
    to: Moment | None = None
    session_id: str | None = None
    api_key_id: str | None = None
    actor_id: str | None = None
    path: str | None = None
    dry_run: bool = False

    def value(self) -> RollbackTarget:
        """As the model has it."""
        return RollbackTarget(
            version_id=self.memory_version_id,
            to=self.to,
            session_id=self.session_id,
            api_key_id=self.api_key_id,
            actor_id=self.actor_id,
            path=self.path,
        )


def _only_stores(resource: Any) -> Any:
    if not isinstance(resource, dict) or resource.get("type") != "memory_store":
        raise ValueError("only resources of type memory_store can be attached here")
    return resource


class StoreResource(Body):
    """A store to attach to a session."""

    type: Literal["memory_store"]
    memory_store_id: str
    access: Literal["read_write", "read_only"] | None = None
    instructions: str | None = None

    def value(self) -> Attachment:
        """As the model has it."""
        return Attachment(self.memory_store_id, self.access or "read_write", self.instructions)


def _an_agent(agent: Any) -> Any:
    if isinstance(agent, dict):
        agent_id, version = agent.get("id"), agent.get("version")
        if not isinstance(agent_id, str) or not agent_id:
            raise ValueError("an agent object needs its id")
        if version is not None and (type(version) is not int or not 1 <= version < 1 << 53):
            raise ValueError("an agent's version is a number from 1")
    elif not isinstance(agent, str) or not agent:
        raise ValueError("an agent is its id, or an object with its id and version")
    return agent


def _nothing_given(value: Any) -> Any:
    if value:
        raise ValueError("not supported here: sessions only carry memory stores")
    return None


Unsupported = Annotated[Any, BeforeValidator(_nothing_given)]


class SessionCreate(Body):
    """A session to open. Agent and environment are kept as given, not checked."""

    agent: Annotated[str | dict[str, Any], BeforeValidator(_an_agent)]
    environment_id: str
    title: str | None = None
    metadata: dict[str, str] | None = None
    resources: list[Annotated[StoreResource, BeforeValidator(_only_stores)]] | None = None
    vault_ids: list[str] | None = None
    budget: Unsupported = None
    initial_events: Unsupported = None


class KeyCreate(Body):
    """A new key; without a workspace, in one's own."""

    name: str = ""
    scopes: list[Scope] = ["read", "write"]
    workspace: str | None = None
