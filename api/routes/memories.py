"""Memories."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from itertools import islice
from typing import Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from api import wire
from api.feeds import line
from api.requests import JsonRoute, LimitQuery, PageQuery, Port, ViewQuery
from api.schemas.requests import Batch, MemoryCreate, MemoryUpdate
from api.schemas.responses import BatchOut, DeletedOut, MemoryOut, PageOut, PrefixOut
from memstore.backend import Snapshot
from memstore.model.limits import PAGE_DEFAULT

_PREFIX = "/v1/memory_stores/{memory_store_id}"
router = APIRouter(prefix=f"{_PREFIX}/memories", route_class=JsonRoute, tags=["memories"])
extensions = APIRouter(prefix=_PREFIX, route_class=JsonRoute, tags=["memories"])

SNAPSHOT_CHUNK = 64
"""Memories a chunk of a snapshot's stream: one visit to a worker thread each."""
NDJSON = "application/x-ndjson"


@router.post("", response_model=MemoryOut)
def create_memory(
    port: Port, memory_store_id: str, body: MemoryCreate, view: ViewQuery = "basic"
) -> Response:
    """Write a text at a free path."""
    memory = port.create_memory(memory_store_id, path=body.path, content=body.content, view=view)
    return wire.reply(wire.memory(memory))


@router.get("", response_model=PageOut[MemoryOut | PrefixOut])
def list_memories(
    port: Port,
    memory_store_id: str,
    path_prefix: Annotated[str | None, Query(description="Ends with `/`.")] = None,
    depth: Annotated[int, Query(description="0: all below; 1: direct children, folded.")] = 0,
    view: ViewQuery = "basic",
    limit: LimitQuery = PAGE_DEFAULT,
    page: PageQuery = None,
) -> Response:
    """Live memories in byte order of their paths."""
    found = port.list_memories(
        memory_store_id, path_prefix=path_prefix, depth=depth, view=view, limit=limit, page=page
    )
    return wire.reply(wire.page(found, wire.memory_or_prefix))


@router.get("/{memory_id}", response_model=MemoryOut)
def get_memory(
    port: Port, memory_store_id: str, memory_id: str, view: ViewQuery = "full"
) -> Response:
    """One live memory."""
    return wire.reply(wire.memory(port.get_memory(memory_store_id, memory_id, view=view)))


@router.post("/{memory_id}", response_model=MemoryOut)
def update_memory(
    port: Port,
    memory_store_id: str,
    memory_id: str,
    body: MemoryUpdate,
    view: ViewQuery = "basic",
) -> Response:
    """Change a memory's content, path, or both."""
    memory = port.update_memory(
        memory_store_id,
        memory_id,
        content=body.content,
        path=body.path,
        precondition=body.belief(),
        view=view,
    )
    return wire.reply(wire.memory(memory))


# Some clients' documentation says PATCH; the official ones POST.
router.patch("/{memory_id}", include_in_schema=False)(update_memory)


@router.delete("/{memory_id}", response_model=DeletedOut)
def delete_memory(
    port: Port,
    memory_store_id: str,
    memory_id: str,
    expected_content_sha256: Annotated[
        str | None, Query(description="Refuse unless the content still has this hash.")
    ] = None,
) -> Response:
    """Delete a memory; its versions stay."""
    port.delete_memory(memory_store_id, memory_id, expected_content_sha256=expected_content_sha256)
    return wire.reply(wire.deleted(memory_id, "memory"))


@extensions.get("/memory_by_path", response_model=MemoryOut)
def get_memory_at(
    port: Port, memory_store_id: str, path: str, view: ViewQuery = "full"
) -> Response:
    """The live memory at a path."""
    return wire.reply(wire.memory(port.get_memory_at(memory_store_id, path, view=view)))


@extensions.post("/batch", response_model=BatchOut)
def apply_changes(port: Port, memory_store_id: str, body: Batch) -> Response:
    """Several changes in one transaction: all of them, or none."""
    memories = port.apply_changes(memory_store_id, [change.value() for change in body.changes])
    data = [None if memory is None else wire.memory(memory) for memory in memories]
    return wire.reply({"data": data})


@extensions.get("/snapshot", response_class=StreamingResponse)
def snapshot(port: Port, memory_store_id: str) -> Response:
    """Every live memory with its text at one moment, as lines of JSON.

    First `{"cursor": N}`, where the change feed continues; then a memory a line in path order;
    last `{"end": true, "count": N}`. A stream without its last line was cut.
    """
    return StreamingResponse(_lines(port.snapshot(memory_store_id)), media_type=NDJSON)


async def _lines(snapshot: Snapshot) -> AsyncIterator[bytes]:
    """The lines of a snapshot. Its reading ends with the stream, also when the reader leaves."""
    count = 0
    try:
        yield line({"cursor": snapshot.cursor}) + b"\n"
        while True:
            lines = await to_thread.run_sync(_chunk, snapshot.memories)
            if not lines:
                break
            count += len(lines)
            yield b"".join(lines)
        yield line({"end": True, "count": count}) + b"\n"
    finally:
        close: Any = getattr(snapshot.memories, "close", None)
        if close is not None:
            close()


def _chunk(memories: Iterator[Any]) -> list[bytes]:
    return [line(wire.memory(memory)) + b"\n" for memory in islice(memories, SNAPSHOT_CHUNK)]
