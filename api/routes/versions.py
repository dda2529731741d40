"""Versions."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Body, Query
from starlette.responses import Response

from api import wire
from api.requests import FromQuery, JsonRoute, LimitQuery, PageQuery, Port, ToQuery, ViewQuery
from api.schemas.requests import Nothing
from api.schemas.responses import PageOut, ReceiptOut, VersionOut
from memstore.model.limits import PAGE_DEFAULT
from memstore.model.versions import VersionFilter

_PREFIX = "/v1/memory_stores/{memory_store_id}/memory_versions"
router = APIRouter(prefix=_PREFIX, route_class=JsonRoute, tags=["versions"])
extensions = APIRouter(prefix=_PREFIX, route_class=JsonRoute, tags=["versions"])


@router.get("", response_model=PageOut[VersionOut])
def list_versions(
    port: Port,
    memory_store_id: str,
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
    """Versions of a store, newest first; also of deleted memories. All filters must match."""
    where = VersionFilter(
        memory_id=memory_id,
        operation=operation,
        session_id=session_id,
        api_key_id=api_key_id,
        service_account_id=service_account_id,
        created_from=created_from,
        created_to=created_to,
    )
    found = port.list_versions(memory_store_id, where=where, view=view, limit=limit, page=page)
    return wire.reply(wire.page(found, wire.version))


@router.get("/{memory_version_id}", response_model=VersionOut)
def get_version(
    port: Port, memory_store_id: str, memory_version_id: str, view: ViewQuery = "full"
) -> Response:
    """One version, redacted or not."""
    version = port.get_version(memory_store_id, memory_version_id, view=view)
    return wire.reply(wire.version(version))


@router.post("/{memory_version_id}/redact", response_model=VersionOut)
def redact_version(
    port: Port,
    memory_store_id: str,
    memory_version_id: str,
    body: Annotated[Nothing | None, Body()] = None,
) -> Response:
    """Destroy a version's text, path, size and hash; keep who and when."""
    return wire.reply(wire.version(port.redact_version(memory_store_id, memory_version_id)))


@extensions.get("/{memory_version_id}/receipt", response_model=ReceiptOut)
def redaction_receipt(port: Port, memory_store_id: str, memory_version_id: str) -> Response:
    """What a redaction destroyed where, when and by whom, signed."""
    return wire.reply(port.redaction_receipt(memory_store_id, memory_version_id))
