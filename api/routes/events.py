"""The change feed: a page of it, or a live stream."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from anyio import to_thread
from fastapi import APIRouter, Header, Query
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from api import wire
from api.requests import JsonRoute, Port, ViewQuery, call_of
from api.schemas.responses import EventPageOut

extensions = APIRouter(
    prefix="/v1/memory_stores/{memory_store_id}", route_class=JsonRoute, tags=["events"]
)

MAX_HEARTBEAT_SECONDS = 15.0
FROM_NOW = -1
_NO_CURSOR = -2
"""What no feed accepts: the verb refuses it, after it has looked for the store."""


@extensions.get("/events", response_model=EventPageOut)
async def list_events(
    request: Request,
    port: Port,
    memory_store_id: str,
    after: Annotated[int, Query(description="The cursor; 0: the beginning, -1: from now on.")] = 0,
    limit: Annotated[int, Query(description="Events a page, 1 to 1,000.")] = 100,
    view: ViewQuery = "basic",
    heartbeat: Annotated[
        float | None, Query(gt=0, le=MAX_HEARTBEAT_SECONDS, allow_inf_nan=False)
    ] = None,
    accept: Annotated[str, Header()] = "",
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """Events of a store, oldest first.

    With `Accept: text/event-stream` a live stream: `id` is the cursor, `event` the kind, `data`
    the event; a comment every `heartbeat` seconds when nothing happens. `Last-Event-ID` resumes.
    It ends after the event of the store's deletion, and when the credential is revoked.
    """
    stream = "text/event-stream" in accept
    if stream and last_event_id:
        resumed = last_event_id.isdecimal() and last_event_id.isascii()
        after = int(last_event_id[:20]) if resumed else _NO_CURSOR
    read = partial(
        port.list_events, memory_store_id, after=after, limit=1 if stream else limit, view=view
    )
    page = await to_thread.run_sync(read)
    if not stream:
        return wire.reply(wire.event_page(page))
    state = request.app.state
    frames = state.feeds.stream(
        port,
        call_of(request).secret,
        memory_store_id,
        request_id=call_of(request).request_id,
        after=page.cursor if after == FROM_NOW else after,
        view=view,
        heartbeat=heartbeat or state.heartbeat,
    )
    headers = {"x-accel-buffering": "no"}
    return StreamingResponse(frames, media_type="text/event-stream", headers=headers)
