"""Whether the process lives, and whether it can serve."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from api import wire

router = APIRouter(tags=["health"])


@router.get("/livez")
async def livez() -> Response:
    """The process answers."""
    return wire.reply({"status": "ok"})


@router.get("/readyz")
def readyz(request: Request) -> Response:
    """The database answers; else 503."""
    request.app.state.service.ping()
    return wire.reply({"status": "ok"})
