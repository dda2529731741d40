"""Undo (an extension)."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from api import wire
from api.requests import JsonRoute, Port
from api.schemas.requests import RollbackRequest
from api.schemas.responses import RollbackOut

extensions = APIRouter(
    prefix="/v1/memory_stores/{memory_store_id}/rollback",
    route_class=JsonRoute,
    tags=["rollback"],
)


@extensions.post("", response_model=RollbackOut)
def rollback(port: Port, memory_store_id: str, body: RollbackRequest) -> Response:
    """Undo what the body says, as one act; with `dry_run` only tell what that would be."""
    done = port.rollback(memory_store_id, body.value(), dry_run=body.dry_run)
    return wire.reply(wire.rollback(done))
