"""JSON of the API to values of the model, and arguments to request bodies. No pydantic: fast.

The readers trust nothing: an object without the promised fields raises `Unavailable`, because a
peer that speaks another language cannot serve us now.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeVar

import orjson

from memstore.model import clock
from memstore.model.access import Caller, Key, validate_scopes
from memstore.model.actors import Actor
from memstore.model.content import encode
from memstore.model.errors import Invalid, MemstoreError, Unavailable
from memstore.model.events import Event, EventPage
from memstore.model.memories import Change, CreateMemory, Memory, MemoryPrefix, UpdateMemory
from memstore.model.pages import Page
from memstore.model.paths import validate as validate_path
from memstore.model.preconditions import ContentIs
from memstore.model.rejected_writes import RejectedWrite
from memstore.model.rollback import OUTCOMES, Rollback, RollbackChange, RollbackTarget
from memstore.model.sessions import AttachedStore, Attachment, Session
from memstore.model.stores import Store, StoreUsage
from memstore.model.versions import Version, VersionFilter

Value = TypeVar("Value")
Json = dict[str, Any]


def dumps(body: Any) -> bytes:
    """JSON bytes; a lone surrogate travels as its escape, so that the server refuses it itself."""
    try:
        return orjson.dumps(body)
    except TypeError:
        return json.dumps(body).encode()


def loads(data: bytes) -> Any:
    """The value of JSON bytes; Unavailable when they are none."""
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        raise Unavailable("The service answered with something that is not JSON.") from None


def read(reader: Callable[[Json], Value], data: Any) -> Value:
    """`reader(data)`; Unavailable when the object is not what the API promises."""
    try:
        return reader(data)
    except (KeyError, TypeError, ValueError, AttributeError, MemstoreError) as error:
        raise Unavailable(
            "The service answered with an object of another shape than the API's "
            f"({type(error).__name__}: {str(error)[:80]!r}). Is the base URL right?"
        ) from None


def moment(text: str) -> datetime:
    """An aware datetime of RFC 3339 text."""
    return datetime.fromisoformat(text)


def _maybe(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def store(data: Json) -> Store:
    """A `memory_store`."""
    return Store(
        data["id"],
        data["name"],
        data["description"] or "",
        data.get("metadata") or {},
        moment(data["created_at"]),
        moment(data["updated_at"]),
        _maybe(data["archived_at"]),
    )


def plainer(refusal: MemstoreError, path: str | None, content: str | None) -> MemstoreError:
    """Which rule a write broke, where the answer only says that it is invalid.

    The hosted API has one error type for all; the rules are public, so they are asked here.
    """
    if type(refusal) is not Invalid:
        return refusal
    try:
        if path is not None:
            validate_path(path)
        if content is not None:
            encode(content)
    except Invalid as broken:
        return broken
    return refusal


def usage(data: Json) -> StoreUsage:
    """A store's usage."""
    return StoreUsage(data["memories"], data["bytes"], data["max_memories"], data["max_bytes"])


def memory(data: Json) -> Memory:
    """A `memory`."""
    return Memory(
        data["id"],
        data["memory_store_id"],
        data["memory_version_id"],
        data["path"],
        data["content"],
        data["content_size_bytes"],
        data["content_sha256"],
        moment(data["created_at"]),
        moment(data["updated_at"]),
    )


def memory_or_prefix(data: Json) -> Memory | MemoryPrefix:
    """An item of a listing."""
    return MemoryPrefix(data["path"]) if data["type"] == "memory_prefix" else memory(data)


def version(data: Json) -> Version:
    """A `memory_version`; `seq` is 0 where the server does not tell it."""
    return Version(
        data["id"],
        data["memory_id"],
        data["memory_store_id"],
        data.get("seq") or 0,
        data["operation"],
        data["path"],
        data["content"],
        data["content_size_bytes"],
        data["content_sha256"],
        moment(data["created_at"]),
        Actor.from_wire(data["created_by"]),
        _maybe(data["redacted_at"]),
        Actor.from_wire(data["redacted_by"]),
    )


def rejected_write(data: Json) -> RejectedWrite:
    """A `rejected_write`."""
    return RejectedWrite(
        data["id"],
        data["memory_store_id"],
        data["seq"],
        data["state"],
        data["reason"],
        data["memory_id"],
        data["path"],
        data["base_content_sha256"],
        data["content"],
        data["content_size_bytes"],
        data["content_sha256"],
        data["memory_version_id"],
        moment(data["created_at"]),
        Actor.from_wire(data["created_by"]),
        _maybe(data["resolved_at"]),
        Actor.from_wire(data["resolved_by"]),
    )


def rollback(data: Json) -> Rollback:
    """A `rollback`."""
    changes = tuple(map(_rollback_change, data["changes"]))
    return Rollback(data["memory_store_id"], data["dry_run"], _maybe(data["before"]), changes)


def _rollback_change(data: Json) -> RollbackChange:
    if data["outcome"] not in OUTCOMES:
        raise ValueError("an outcome that is none")
    return RollbackChange(
        data["memory_id"],
        data["path"],
        data["old_path"],
        data["operation"],
        data["version_id_before"],
        data["version_id_after"],
        data["outcome"],
        data["reason"],
        data["diff"],
        data["diff_omitted"],
    )


def rollback_body(target: RollbackTarget, dry_run: bool) -> Json:
    """The body of a rollback."""
    return {
        "dry_run": dry_run,
        **given(
            memory_version_id=target.version_id,
            to=query_time(target.to),
            session_id=target.session_id,
            api_key_id=target.api_key_id,
            actor_id=target.actor_id,
            path=target.path,
        ),
    }


def event(data: Json) -> Event:
    """An `event` of the change feed."""
    return Event(
        data["memory_store_id"],
        data["seq"],
        data["kind"],
        moment(data["created_at"]),
        Actor.from_wire(data.get("created_by")),
        data.get("memory_id"),
        data.get("memory_version_id"),
        data.get("path"),
        data.get("content"),
        data.get("content_size_bytes"),
        data.get("content_sha256"),
    )


def event_page(data: Json) -> EventPage:
    """A page of the change feed."""
    return EventPage(tuple(map(event, data["data"])), data["cursor"], data["more"])


def page(item: Callable[[Json], Value], data: Json) -> Page[Value]:
    """A page of a listing; an empty cursor ends it like null."""
    return Page(tuple(map(item, data["data"] or ())), data.get("next_page") or None)


def session(data: Json) -> Session:
    """A `session`; resources other than memory stores are left out."""
    return Session(
        data["id"],
        data["agent"],
        data["environment_id"],
        data.get("title"),
        data.get("metadata") or {},
        tuple(data.get("vault_ids") or ()),
        tuple(
            _attached(resource)
            for resource in data["resources"]
            if resource["type"] == "memory_store"
        ),
        moment(data["created_at"]),
        moment(data["updated_at"]),
        _maybe(data["archived_at"]),
    )


def _attached(data: Json) -> AttachedStore:
    return AttachedStore(
        data["memory_store_id"],
        data.get("access") or "read_write",
        data.get("instructions"),
        data.get("name") or "",
        data.get("description") or "",
        data.get("mount_path") or "",
    )


def key(data: Json) -> Key:
    """An `api_key`, without its secret."""
    return Key(
        data["id"],
        data["workspace_id"],
        data["workspace"],
        data["name"],
        validate_scopes(data["scopes"]),
        moment(data["created_at"]),
        _maybe(data["revoked_at"]),
    )


def caller(data: Json) -> Caller:
    """A `caller`: who a credential stands for."""
    actor = Actor.from_wire(data["actor"])
    if actor is None:
        raise ValueError("a caller without an actor")
    grants = data.get("grants")
    return Caller(
        data["workspace_id"],
        actor,
        frozenset(data["scopes"]),
        None if grants is None else MappingProxyType(dict(grants)),
        data.get("session_id"),
    )


def precondition_body(precondition: ContentIs | None) -> Json | None:
    """The API's precondition object."""
    if precondition is None:
        return None
    return {"type": "content_sha256", "content_sha256": precondition.content_sha256}


def changes_body(changes: Iterable[Change]) -> Json:
    """The body of a batch."""
    return {"changes": [_change(change) for change in changes]}


def _change(change: Change) -> Json:
    if isinstance(change, CreateMemory):
        return {"type": "create", "path": change.path, "content": change.content}
    if isinstance(change, UpdateMemory):
        return {
            "type": "update",
            "memory_id": change.memory_id,
            **given(
                content=change.content,
                path=change.path,
                precondition=precondition_body(change.precondition),
            ),
        }
    return {
        "type": "delete",
        "memory_id": change.memory_id,
        **given(expected_content_sha256=change.expected_content_sha256),
    }


def session_body(
    agent: Any,
    environment_id: str,
    stores: Sequence[Attachment],
    title: str | None,
    metadata: Mapping[str, str] | None,
    vault_ids: Sequence[str],
) -> Json:
    """The body that opens a session."""
    resources = [
        {
            "type": "memory_store",
            "memory_store_id": attachment.store_id,
            "access": attachment.access,
            **given(instructions=attachment.instructions),
        }
        for attachment in stores
    ]
    return {
        "agent": agent,
        "environment_id": environment_id,
        "resources": resources,
        **given(
            title=title,
            metadata=None if metadata is None else dict(metadata),
            vault_ids=list(vault_ids) or None,
        ),
    }


def given(**fields: Any) -> Json:
    """The fields that are not None: an omitted argument is left out of the body."""
    return {name: value for name, value in fields.items() if value is not None}


def query_time(value: datetime | None) -> str | None:
    """A time filter of a query."""
    return None if value is None else clock.rfc3339(value)


def version_query(where: VersionFilter) -> Json:
    """The filters of a listing of versions."""
    return {
        "memory_id": where.memory_id,
        "operation": where.operation,
        "session_id": where.session_id,
        "api_key_id": where.api_key_id,
        "service_account_id": where.service_account_id,
        "created_at[gte]": query_time(where.created_from),
        "created_at[lte]": query_time(where.created_to),
    }
