"""Stores."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body
from starlette.responses import Response

from api import wire
from api.requests import ArchivedQuery, FromQuery, JsonRoute, LimitQuery, PageQuery, Port, ToQuery
from api.schemas.requests import Nothing, StoreCreate, StoreUpdate
from api.schemas.responses import DeletedOut, PageOut, StoreOut, UsageOut
from memstore.model.limits import PAGE_DEFAULT

router = APIRouter(prefix="/v1/memory_stores", route_class=JsonRoute, tags=["stores"])
extensions = APIRouter(prefix="/v1/memory_stores", route_class=JsonRoute, tags=["stores"])


@router.post("", response_model=StoreOut)
def create_store(port: Port, body: StoreCreate) -> Response:
    """Make a store."""
    store = port.create_store(name=body.name, description=body.description, metadata=body.metadata)
    return wire.reply(wire.store(store))


@router.get("", response_model=PageOut[StoreOut])
def list_stores(
    port: Port,
    created_from: FromQuery = None,
    created_to: ToQuery = None,
    include_archived: ArchivedQuery = "false",
    limit: LimitQuery = PAGE_DEFAULT,
    page: PageQuery = None,
) -> Response:
    """Stores, newest first."""
    found = port.list_stores(
        created_from=created_from,
        created_to=created_to,
        include_archived=include_archived == "true",
        limit=limit,
        page=page,
    )
    return wire.reply(wire.page(found, wire.store))


@router.get("/{memory_store_id}", response_model=StoreOut)
def get_store(port: Port, memory_store_id: str) -> Response:
    """One store, archived or not."""
    return wire.reply(wire.store(port.get_store(memory_store_id)))


@router.post("/{memory_store_id}", response_model=StoreOut)
def update_store(port: Port, memory_store_id: str, body: StoreUpdate) -> Response:
    """Change a store's name, description or metadata."""
    store = port.update_store(
        memory_store_id, name=body.name, description=body.description, metadata=body.metadata
    )
    return wire.reply(wire.store(store))


@router.delete("/{memory_store_id}", response_model=DeletedOut)
def delete_store(port: Port, memory_store_id: str) -> Response:
    """Remove a store with its memories and versions, for ever."""
    port.delete_store(memory_store_id)
    return wire.reply(wire.deleted(memory_store_id, "memory_store"))


@router.post("/{memory_store_id}/archive", response_model=StoreOut)
def archive_store(
    port: Port, memory_store_id: str, body: Annotated[Nothing | None, Body()] = None
) -> Response:
    """Archive a store for good."""
    return wire.reply(wire.store(port.archive_store(memory_store_id)))


@extensions.get("/{memory_store_id}/usage", response_model=UsageOut)
def store_usage(port: Port, memory_store_id: str) -> Response:
    """How full a store is."""
    return wire.reply(wire.usage(port.store_usage(memory_store_id)))
