"""Rejected writes: texts that lost a conflict (extensions)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Query
from starlette.responses import Response

from api import wire
from api.requests import JsonRoute, LimitQuery, PageQuery, Port, ViewQuery
from api.schemas.requests import Nothing, RejectedWriteApply, RejectedWriteCreate
from api.schemas.responses import PageOut, RejectedWriteOut
from memstore.model.limits import PAGE_DEFAULT
from memstore.model.rejected_writes import State

extensions = APIRouter(
    prefix="/v1/memory_stores/{memory_store_id}/rejected_writes",
    route_class=JsonRoute,
    tags=["rejected writes"],
)


@extensions.post("", response_model=RejectedWriteOut)
def record_rejected_write(port: Port, memory_store_id: str, body: RejectedWriteCreate) -> Response:
    """Keep a text that lost a conflict; one that is there already is not kept twice."""
    write = port.record_rejected_write(
        memory_store_id,
        path=body.path,
        content=body.content,
        memory_id=body.memory_id,
        base_content_sha256=body.base_content_sha256,
        reason=body.reason,
    )
    return wire.reply(wire.rejected_write(write))


@extensions.get("", response_model=PageOut[RejectedWriteOut])
def list_rejected_writes(
    port: Port,
    memory_store_id: str,
    state: Annotated[State | None, Query(description="Only those; all when left out.")] = None,
    view: ViewQuery = "basic",
    limit: LimitQuery = PAGE_DEFAULT,
    page: PageQuery = None,
) -> Response:
    """Rejected writes of a store, newest first."""
    found = port.list_rejected_writes(
        memory_store_id, state=state, view=view, limit=limit, page=page
    )
    return wire.reply(wire.page(found, wire.rejected_write))


@extensions.get("/{rejected_write_id}", response_model=RejectedWriteOut)
def get_rejected_write(
    port: Port, memory_store_id: str, rejected_write_id: str, view: ViewQuery = "full"
) -> Response:
    """One rejected write, open or not."""
    write = port.get_rejected_write(memory_store_id, rejected_write_id, view=view)
    return wire.reply(wire.rejected_write(write))


@extensions.post("/{rejected_write_id}/apply", response_model=RejectedWriteOut)
def apply_rejected_write(
    port: Port,
    memory_store_id: str,
    rejected_write_id: str,
    body: Annotated[RejectedWriteApply | None, Body()] = None,
) -> Response:
    """Save its text after all, as a version of the caller's."""
    belief = None if body is None else body.belief()
    write = port.apply_rejected_write(memory_store_id, rejected_write_id, precondition=belief)
    return wire.reply(wire.rejected_write(write))


@extensions.post("/{rejected_write_id}/dismiss", response_model=RejectedWriteOut)
def dismiss_rejected_write(
    port: Port,
    memory_store_id: str,
    rejected_write_id: str,
    body: Annotated[Nothing | None, Body()] = None,
) -> Response:
    """Destroy its text, path, size and hashes; keep who and when."""
    write = port.dismiss_rejected_write(memory_store_id, rejected_write_id)
    return wire.reply(wire.rejected_write(write))
