"""The API's objects: values of the model as plain dicts, ready for JSON.

One place for every door that shows them: the HTTP API's answers and the command's `--json`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from memstore.model import clock
from memstore.model.access import Caller, Key
from memstore.model.actors import Actor
from memstore.model.events import Event, EventPage
from memstore.model.memories import Memory, MemoryPrefix
from memstore.model.pages import Page
from memstore.model.rejected_writes import RejectedWrite
from memstore.model.rollback import Rollback, RollbackChange
from memstore.model.sessions import AttachedStore, Session
from memstore.model.stores import Store, StoreUsage
from memstore.model.versions import Version

Item = TypeVar("Item")
Json = dict[str, Any]


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else clock.rfc3339(moment)


def _actor(actor: Actor | None) -> dict[str, str] | None:
    return None if actor is None else actor.to_wire()


def page(page: Page[Item], item: Callable[[Item], Json]) -> Json:
    """A page of a listing."""
    return {"data": [item(one) for one in page.data], "next_page": page.next_page}


def deleted(id: str, kind: str) -> Json:
    """What is left of a deleted object."""
    return {"id": id, "type": f"{kind}_deleted"}


def store(store: Store) -> Json:
    """A `memory_store`."""
    return {
        "type": "memory_store",
        "id": store.id,
        "name": store.name,
        "description": store.description,
        "metadata": dict(store.metadata),
        "created_at": clock.rfc3339(store.created_at),
        "updated_at": clock.rfc3339(store.updated_at),
        "archived_at": _moment(store.archived_at),
    }


def usage(usage: StoreUsage) -> Json:
    """How full a store is."""
    return {
        "type": "memory_store_usage",
        "memories": usage.memories,
        "bytes": usage.bytes,
        "max_memories": usage.max_memories,
        "max_bytes": usage.max_bytes,
    }


def memory(memory: Memory) -> Json:
    """A `memory`."""
    return {
        "type": "memory",
        "id": memory.id,
        "memory_store_id": memory.store_id,
        "memory_version_id": memory.version_id,
        "path": memory.path,
        "content": memory.content,
        "content_size_bytes": memory.content_size_bytes,
        "content_sha256": memory.content_sha256,
        "created_at": clock.rfc3339(memory.created_at),
        "updated_at": clock.rfc3339(memory.updated_at),
    }


def memory_or_prefix(item: Memory | MemoryPrefix) -> Json:
    """An item of a memory listing."""
    if isinstance(item, MemoryPrefix):
        return {"type": "memory_prefix", "path": item.path}
    return memory(item)


def version(version: Version) -> Json:
    """A `memory_version`. The store's sequence is not among the API's fields."""
    return {
        "type": "memory_version",
        "id": version.id,
        "memory_id": version.memory_id,
        "memory_store_id": version.store_id,
        "operation": version.operation,
        "path": version.path,
        "content": version.content,
        "content_size_bytes": version.content_size_bytes,
        "content_sha256": version.content_sha256,
        "created_at": clock.rfc3339(version.created_at),
        "created_by": _actor(version.created_by),
        "redacted_at": _moment(version.redacted_at),
        "redacted_by": _actor(version.redacted_by),
    }


def rejected_write(write: RejectedWrite) -> Json:
    """A `rejected_write`."""
    return {
        "type": "rejected_write",
        "id": write.id,
        "memory_store_id": write.store_id,
        "seq": write.seq,
        "state": write.state,
        "reason": write.reason,
        "memory_id": write.memory_id,
        "path": write.path,
        "base_content_sha256": write.base_content_sha256,
        "content": write.content,
        "content_size_bytes": write.content_size_bytes,
        "content_sha256": write.content_sha256,
        "memory_version_id": write.version_id,
        "created_at": clock.rfc3339(write.created_at),
        "created_by": _actor(write.created_by),
        "resolved_at": _moment(write.resolved_at),
        "resolved_by": _actor(write.resolved_by),
    }


def rollback(rollback: Rollback) -> Json:
    """A `rollback`."""
    return {
        "type": "rollback",
        "memory_store_id": rollback.store_id,
        "dry_run": rollback.dry_run,
        "before": _moment(rollback.before),
        "changes": [_rollback_change(change) for change in rollback.changes],
    }


def _rollback_change(change: RollbackChange) -> Json:
    return {
        "memory_id": change.memory_id,
        "path": change.path,
        "old_path": change.old_path,
        "operation": change.operation,
        "version_id_before": change.version_id_before,
        "version_id_after": change.version_id_after,
        "outcome": change.outcome,
        "reason": change.reason,
        "diff": change.diff,
        "diff_omitted": change.diff_omitted,
    }


def event(event: Event) -> Json:
    """An event of the change feed."""
    return {
        "type": "event",
        "memory_store_id": event.store_id,
        "seq": event.seq,
        "kind": event.kind,
        "created_at": clock.rfc3339(event.created_at),
        "created_by": _actor(event.created_by),
        "memory_id": event.memory_id,
        "memory_version_id": event.version_id,
        "path": event.path,
        "content": event.content,
        "content_size_bytes": event.content_size_bytes,
        "content_sha256": event.content_sha256,
    }


def event_page(page: EventPage) -> Json:
    """A page of the change feed."""
    return {"data": [event(one) for one in page.events], "cursor": page.cursor, "more": page.more}


def session(session: Session) -> Json:
    """A `session`, with everything the SDK's model requires."""
    until = session.archived_at or clock.from_us(clock.now_us())
    return {
        "type": "session",
        "id": session.id,
        "agent": _agent(session.agent),
        "environment_id": session.environment_id,
        "title": session.title,
        "metadata": dict(session.metadata),
        "vault_ids": list(session.vault_ids),
        "resources": [_resource(attached) for attached in session.stores],
        "status": "idle" if session.archived_at is None else "terminated",
        "created_at": clock.rfc3339(session.created_at),
        "updated_at": clock.rfc3339(session.updated_at),
        "archived_at": _moment(session.archived_at),
        "budget": None,
        "deployment_id": None,
        "outcome_evaluations": [],
        "stats": {
            "active_seconds": 0.0,
            "duration_seconds": max(0.0, (until - session.created_at).total_seconds()),
        },
        "usage": {"input_tokens": 0, "output_tokens": 0, "cache_read_input_tokens": 0},
    }


def agent_reference(agent: Any) -> tuple[str, int]:
    """The id and version of an agent as it was given: an id, or an object with them."""
    if not isinstance(agent, Mapping):
        return str(agent), 1
    version = agent.get("version")
    return str(agent.get("id", "")), version if isinstance(version, int) else 1


def _agent(agent: Any) -> Json:
    """A resolved agent. Nothing is known of it here but its id, version and what was overridden."""
    id, version = agent_reference(agent)
    given: Mapping[str, Any] = agent if isinstance(agent, Mapping) else {}
    model = given.get("model")
    return {
        "type": "agent",
        "id": id,
        "version": version,
        "name": id,
        "description": None,
        "system": given.get("system"),
        "model": model if isinstance(model, Mapping) else {"id": model or "unspecified"},
        "execution_identity": {"type": "service_account"},
        "mcp_servers": given.get("mcp_servers") or [],
        "multiagent": None,
        "skills": given.get("skills") or [],
        "tools": given.get("tools") or [],
    }


def _resource(attached: AttachedStore) -> Json:
    """A `memory_store` resource of a session."""
    return {
        "type": "memory_store",
        "memory_store_id": attached.store_id,
        "access": attached.access,
        "instructions": attached.instructions,
        "name": attached.name,
        "description": attached.description,
        "mount_path": attached.mount_path,
    }


def key(key: Key) -> Json:
    """An `api_key`, without its secret."""
    return {
        "type": "api_key",
        "id": key.id,
        "workspace_id": key.workspace_id,
        "workspace": key.workspace,
        "name": key.name,
        "scopes": list(key.scopes),
        "created_at": clock.rfc3339(key.created_at),
        "revoked_at": _moment(key.revoked_at),
    }


def caller(caller: Caller) -> Json:
    """Whom a credential stands for."""
    return {
        "type": "caller",
        "workspace_id": caller.workspace_id,
        "actor": caller.actor.to_wire(),
        "scopes": sorted(caller.scopes),
        "grants": None if caller.grants is None else dict(caller.grants),
        "session_id": caller.session_id,
    }
