"""Around every request: its id, who asks, how much may be sent, and the last net for errors.

Plain ASGI, because it runs on every request: no second event loop task, no wrapped streams. The
checks run in the order the API fixes: 401 credential, 413 size, 400 headers; the rest is judged
by the routes and the verbs behind them.
"""

from __future__ import annotations

import logging
import time
import traceback
from dataclasses import dataclass

from anyio import to_thread
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api import auth, errors, logs
from memstore.model import ids, limits
from memstore.model.access import Caller
from memstore.model.errors import Invalid, MemstoreError, RequestTooLarge
from memstore.service import LocalBackend, Service

KEY = "memstore.call"
"""Where a request's Call is kept in its ASGI scope."""

_log = logging.getLogger("memstore.api")
_JSON_TYPE = (b"content-type", b"application/json")


@dataclass(frozen=True, slots=True)
class Call:
    """One request: its id and, unless its path is open to all, who asks and their port."""

    request_id: str
    secret: str
    caller: Caller | None
    backend: LocalBackend | None


_NOT_KEPT = (b"cache-control", b"no-store")
"""On every answer: what is redacted later must be in no cache on the way."""


class Door:
    """The middleware. `max_body` and `max_batch` are bytes of a request's body."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        service: Service,
        max_body: int = limits.REQUEST_BYTES,
        max_batch: int = limits.BATCH_REQUEST_BYTES,
    ) -> None:
        self._app = app
        self._service = service
        self._max_body, self._max_batch = max_body, max_batch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, whatever happens inside."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        request_id = ids.new(ids.REQUEST)
        stamp = [(b"request-id", request_id.encode()), _NOT_KEPT]
        status = 0

        async def stamped(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *stamp]
            await send(message)

        try:
            receive = await self._admit(scope, receive, request_id, stamp)
            await self._app(scope, receive, stamped)
        except MemstoreError as refusal:
            await errors.answer(refusal, request_id)(scope, receive, stamped)
        except Exception as error:
            _report(error, request_id)
            if status:
                raise _Broken from None
            answer = errors.plain(500, "Something went wrong here.", request_id)
            await answer(scope, receive, stamped)
        finally:
            logs.access(scope, scope.get(KEY), request_id, status, time.perf_counter() - began)

    async def _admit(
        self, scope: Scope, receive: Receive, request_id: str, stamp: list[tuple[bytes, bytes]]
    ) -> Receive:
        """Run the checks of the headers and leave the Call in the scope."""
        path = scope["path"]
        head = _head(scope)
        secret, caller, backend = "", None, None
        if path not in auth.OPEN_PATHS:
            secret = auth.credential(head.get(b"authorization"), head.get(b"x-api-key")) or ""
            caller = self._service.recognise(secret)
            if caller is None:
                caller = await to_thread.run_sync(self._service.authenticate, secret)
            backend = self._service.backend_for(caller)
            stamp.append((b"anthropic-workspace-id", caller.workspace_id.encode()))
        scope[KEY] = Call(request_id, secret, caller, backend)
        receive = await self._sized(path, head, receive)
        auth.check_betas(path, head.get(b"anthropic-beta", ""))
        if caller is not None:
            auth.check_workspace(head.get(b"anthropic-workspace-id"), caller.workspace_id)
        return receive

    async def _sized(self, path: str, head: dict[bytes, str], receive: Receive) -> Receive:
        """RequestTooLarge over the limit; a body of unannounced length is read here, counted."""
        limit = self._max_batch if path.endswith("/batch") else self._max_body
        length = head.get(b"content-length")
        if length is not None:
            if int(length) > limit:
                raise _too_large(limit)
            return receive
        if b"transfer-encoding" not in head:
            return receive
        return _replay(await _read(receive, limit), receive)


class _Broken(Exception):
    """An answer broke after its first bytes; the connection is closed. Already reported."""


def _head(scope: Scope) -> dict[bytes, str]:
    """The headers by name; repeated ones joined. Any body counts as JSON, whatever its type says."""
    head: dict[bytes, str] = {}
    headers = scope["headers"]
    for index, (name, value) in enumerate(headers):
        text = value.decode("latin-1")
        head[name] = f"{head[name]},{text}" if name in head else text
        if name == b"content-type" and value != b"application/json":
            scope["headers"] = headers = [*headers]
            headers[index] = _JSON_TYPE
    if b"content-type" not in head and (b"content-length" in head or b"transfer-encoding" in head):
        scope["headers"] = [*headers, _JSON_TYPE]
    return head


async def _read(receive: Receive, limit: int) -> bytes:
    """A whole body; RequestTooLarge as soon as it is over the limit."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Invalid("The connection ended before the body did.")
        body += message.get("body", b"")
        if len(body) > limit:
            raise _too_large(limit)
        if not message.get("more_body", False):
            return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    """A `receive` that gives the body once, then what the connection says."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replayed() -> Message:
        return messages.pop() if messages else await receive()

    return replayed


def _too_large(limit: int) -> RequestTooLarge:
    return RequestTooLarge(f"A request's body is at most {limit} bytes here.")


def _report(error: Exception, request_id: str) -> None:
    """Where an unexpected error came from; not its message, which may quote a memory's text."""
    where = "".join(traceback.format_tb(error.__traceback__))
    _log.error(
        "unexpected %s", type(error).__name__, extra={"request_id": request_id, "where": where}
    )
