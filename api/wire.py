"""Values of the model as the API's objects, and as answers."""

from __future__ import annotations

from starlette.responses import Response

from api.errors import json_bytes
from memstore.model.objects import (
    Json,
    agent_reference,
    caller,
    deleted,
    event,
    event_page,
    key,
    memory,
    memory_or_prefix,
    page,
    rejected_write,
    rollback,
    session,
    store,
    usage,
    version,
)

__all__ = [
    "Json",
    "agent_reference",
    "caller",
    "deleted",
    "event",
    "event_page",
    "key",
    "memory",
    "memory_or_prefix",
    "page",
    "rejected_write",
    "reply",
    "rollback",
    "session",
    "store",
    "usage",
    "version",
]


def reply(value: Json) -> Response:
    """200 with a JSON body."""
    return Response(json_bytes(value), media_type="application/json")
