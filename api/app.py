"""The application: the endpoints over a service, and the answers for what no endpoint took."""

from __future__ import annotations

from typing import Any

from anyio import to_thread
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from api import errors, openapi
from api.feeds import HEARTBEAT_SECONDS, Feeds
from api.middleware import Door
from api.requests import call_of
from api.routes import (
    events,
    health,
    history,
    keys,
    memories,
    rejected_writes,
    rollback,
    sessions,
    stores,
    versions,
)
from memstore import __version__
from memstore.model.errors import MemstoreError, NotFound
from memstore.service import Service

# Routes are tried in order: the busiest come first.
_ROUTERS = (memories.router, versions.router, stores.router, sessions.router, health.router)
_EXTENSIONS = (
    memories.extensions,
    events.extensions,
    stores.extensions,
    versions.extensions,
    rejected_writes.extensions,
    rollback.extensions,
    history.extensions,
    sessions.extensions,
    keys.extensions,
)


def create_app(
    service: Service, *, extensions: bool = True, heartbeat: float = HEARTBEAT_SECONDS
) -> FastAPI:
    """The API over an open service, which stays the caller's to close.

    Without `extensions` only the hosted API's endpoints are there. `heartbeat` is the seconds
    between two signs of life of an idle stream.
    """
    app = FastAPI(
        title="memstore",
        version=__version__,
        description="Versioned memory stores for agents.",
        docs_url="/docs",
        redoc_url=None,
        redirect_slashes=False,
        swagger_ui_oauth2_redirect_url=None,
    )
    app.state.service = service
    app.state.feeds = Feeds(service)
    app.state.heartbeat = heartbeat
    for router in (*_ROUTERS, *(_EXTENSIONS if extensions else ())):
        # Taken over as they are: a router included in another is matched twice a request.
        app.router.routes.extend(router.routes)
    app.add_middleware(Door, service=service)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    openapi.install(app)
    return app


async def _on_invalid(request: Request, error: Any) -> Response:
    """400; but a store that is not there comes before arguments that are wrong."""
    call = call_of(request)
    findings = error.errors()
    store_id = request.path_params.get("memory_store_id")
    if errors.is_unparsable(findings):
        return errors.invalid("The body is not valid JSON.", call.request_id)
    if store_id is not None and call.backend is not None:
        try:
            await to_thread.run_sync(call.backend.get_store, store_id)
        except NotFound as refusal:
            return errors.answer(refusal, call.request_id)
        except MemstoreError:
            pass
    return errors.invalid(errors.sentence(findings), call.request_id)


async def _on_http(request: Request, error: Any) -> Response:
    """What the framework itself refuses: an unknown path, a wrong method, a body cut short."""
    request_id = call_of(request).request_id
    return errors.plain(error.status_code, str(error.detail), request_id, error.headers or {})
