"""The history of a path (an extension)."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from api import wire
from api.requests import FromQuery, JsonRoute, LimitQuery, PageQuery, Port, ToQuery, ViewQuery
from api.schemas.responses import PageOut, VersionOut
from memstore.model.limits import PAGE_DEFAULT
from memstore.model.versions import VersionFilter

extensions = APIRouter(
    prefix="/v1/memory_stores/{memory_store_id}/history",
    route_class=JsonRoute,
    tags=["versions"],
)


@extensions.get("", response_model=PageOut[VersionOut])
def list_history(
    port: Port,
    memory_store_id: str,
    path: Annotated[str, Query(description="A memory's path, or a directory's.")],
    memory_id: str | None = None,
    operation: Literal["created", "modified", "deleted"] | None = None,
    session_id: Annotated[str | None, Query(description="Written by this session.")] = None,
    api_key_id: Annotated[str | None, Query(description="Written with this key.")] = None,
    service_account_id: str | None = None,
    created_from: FromQuery = None,
    created_to: ToQuery = None,
    view: ViewQuery = "basic",
    limit: LimitQuery = PAGE_DEFAULT,
    page: PageQuery = None,
) -> Response:
    """Versions of what is or ever was at a path or below it, newest first, renames followed."""
    where = VersionFilter(
        memory_id=memory_id,
        operation=operation,
        session_id=session_id,
        api_key_id=api_key_id,
        service_account_id=service_account_id,
        created_from=created_from,
        created_to=created_to,
    )
    found = port.list_history(memory_store_id, path, where=where, view=view, limit=limit, page=page)
    return wire.reply(wire.page(found, wire.version))
