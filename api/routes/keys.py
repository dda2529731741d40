"""API keys, and who a credential stands for."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body
from starlette.responses import Response

from api import wire
from api.requests import JsonRoute, LimitQuery, PageQuery, Port
from api.schemas.requests import KeyCreate, Nothing
from api.schemas.responses import CallerOut, KeyOut, PageOut
from memstore.model.limits import PAGE_DEFAULT

extensions = APIRouter(prefix="/v1", route_class=JsonRoute, tags=["keys"])


@extensions.get("/whoami", response_model=CallerOut)
def whoami(port: Port) -> Response:
    """Whom the credential of this request stands for."""
    return wire.reply(wire.caller(port.whoami()))


@extensions.post("/api_keys", response_model=KeyOut)
def create_key(port: Port, body: KeyCreate) -> Response:
    """A key; its secret, `key`, is shown this once."""
    key, secret = port.create_key(
        name=body.name, scopes=body.scopes, workspace=body.workspace or ""
    )
    return wire.reply({**wire.key(key), "key": secret})


@extensions.get("/api_keys", response_model=PageOut[KeyOut])
def list_keys(port: Port, limit: LimitQuery = PAGE_DEFAULT, page: PageQuery = None) -> Response:
    """Keys of the caller's workspace, newest first."""
    return wire.reply(wire.page(port.list_keys(limit=limit, page=page), wire.key))


@extensions.post("/api_keys/{api_key_id}/revoke", response_model=KeyOut)
def revoke_key(
    port: Port, api_key_id: str, body: Annotated[Nothing | None, Body()] = None
) -> Response:
    """Make a key useless, in open streams too."""
    return wire.reply(wire.key(port.revoke_key(api_key_id)))
