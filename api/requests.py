"""How requests are read: bodies as JSON, parameters strictly, and who asks."""

from __future__ import annotations

import re
from collections.abc import Callable, Coroutine
from datetime import datetime
from typing import Annotated, Any, Literal

import orjson
from fastapi import Depends, Query
from fastapi.routing import APIRoute
from pydantic import BeforeValidator
from starlette.requests import Request
from starlette.responses import Response

from api.middleware import KEY, Call
from memstore.model.errors import Unauthenticated
from memstore.service import LocalBackend


class JsonRequest(Request):
    """A request whose JSON is read strictly: no NaN, no lone surrogate, no bottomless nesting."""

    async def json(self) -> Any:
        """The value of the body; a JSONDecodeError when it is not JSON."""
        return orjson.loads(await self.body())


class JsonRoute(APIRoute):
    """A route that reads its body as `JsonRequest` does."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler, given our kind of request."""
        handle = super().get_route_handler()

        async def handler(request: Request) -> Response:
            return await handle(JsonRequest(request.scope, request.receive))

        return handler


def call_of(request: Request) -> Call:
    """What the middleware found out about a request."""
    call = request.scope[KEY]
    assert isinstance(call, Call)
    return call


async def _port(request: Request) -> LocalBackend:
    """The port of whoever asks. Async, so that FastAPI runs it in place."""
    backend = call_of(request).backend
    if backend is None:
        raise Unauthenticated()
    return backend


Port = Annotated[LocalBackend, Depends(_port)]

_RFC3339 = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:[.,](\d+))?(?:([Zz])|([+ -])(\d\d:\d\d))"
)


def moment(text: Any) -> datetime:
    """An aware datetime of RFC 3339 text with any offset; ValueError otherwise.

    A `+` that was not percent-encoded arrives as a space and is read as what it was. Digits below
    a microsecond are dropped.
    """
    if isinstance(text, datetime):
        return text
    found = _RFC3339.fullmatch(text) if isinstance(text, str) else None
    if found is None or not text.isascii():
        raise ValueError("a time is written like 2026-01-31T12:00:00Z (RFC 3339)")
    date, clock, fraction, _, sign, offset = found.groups()
    zone = f"{'-' if sign == '-' else '+'}{offset}" if offset else "+00:00"
    try:
        return datetime.fromisoformat(f"{date}T{clock}.{(fraction or '0')[:6]:0<6}{zone}")
    except ValueError:
        raise ValueError("a time names a day and hour that exist (RFC 3339)") from None


Moment = Annotated[datetime, BeforeValidator(moment)]
Flag = Literal["true", "false"]

ViewQuery = Annotated[
    Literal["basic", "full"], Query(description="`full` carries content, `basic` leaves it null.")
]
LimitQuery = Annotated[int, Query(description="Items a page, 1 to 100 (20 with the full view).")]
PageQuery = Annotated[str | None, Query(description="The `next_page` of the page before.")]
FromQuery = Annotated[Moment | None, Query(alias="created_at[gte]", description="Inclusive.")]
ToQuery = Annotated[Moment | None, Query(alias="created_at[lte]", description="Inclusive.")]
ArchivedQuery = Annotated[Flag, Query(description="Also show archived ones.")]
