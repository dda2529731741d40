"""Refusals as answers: one closed table from a refusal's code to a status and an error type.

The shape is the API's: `{"type": "error", "error": {"type", "message", ...}, "request_id"}`.
`error.details.error_code` is the refusal's stable code, from which a client rebuilds the class.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import orjson
from starlette.responses import Response

from memstore.model.errors import MemstoreError, RateLimited

INVALID = "invalid_request_error"

TABLE: dict[str, tuple[int, str]] = {
    "error": (500, "api_error"),
    "not_found": (404, "not_found_error"),
    "path_conflict": (409, "memory_path_conflict_error"),
    "precondition_failed": (409, "memory_precondition_failed_error"),
    "conflict": (409, "conflict_error"),
    "invalid": (400, INVALID),
    "invalid_path": (400, INVALID),
    "path_too_long": (400, INVALID),
    "invalid_content": (400, INVALID),
    "content_too_large": (400, INVALID),
    "store_full": (400, INVALID),
    "store_archived": (400, INVALID),
    "head_not_redactable": (400, INVALID),
    "request_too_large": (413, "request_too_large"),
    "unauthenticated": (401, "authentication_error"),
    "forbidden": (403, "permission_error"),
    "rate_limited": (429, "rate_limit_error"),
    "unavailable": (503, "api_error"),
    "not_supported": (404, "not_found_error"),
}
"""Every code of the tree: HTTP status and `error.type` (the platform's error page and the SDK's
`types/shared/error_type.py`). `tests/house` proves it complete."""

BESIDE_MESSAGE = ("conflicting_path", "conflicting_memory_id")
"""Fields that sit directly inside `error`, as the API documents them for path conflicts."""
IN_DETAILS = ("kind", "id", "path", "memory_id", "size", "limit", "store_id", "cap", "version_id")
"""Fields of our classes, kept for a client that rebuilds the refusal."""

RETRY_AFTER_SECONDS = 1
MESSAGE_CHARS = 1000
"""A sentence that quotes what the caller sent stays bounded."""

_PLAIN = {400: INVALID, 404: "not_found_error", 413: "request_too_large"}


def json_bytes(value: Any) -> bytes:
    """Compact JSON in UTF-8."""
    return orjson.dumps(value)


def answer(refusal: MemstoreError, request_id: str) -> Response:
    """The answer that stands for a refusal."""
    status, type_ = TABLE.get(refusal.code, TABLE["error"])
    fields: dict[str, Any] = {
        name: getattr(refusal, name) for name in BESIDE_MESSAGE if hasattr(refusal, name)
    }
    known = {name: getattr(refusal, name, None) for name in IN_DETAILS}
    details = {"error_code": refusal.code, **{k: v for k, v in known.items() if v}}
    headers: dict[str, str] = {}
    if status == 409:
        # Deterministic: the official client would otherwise ask twice more (its default).
        headers["x-should-retry"] = "false"
    if isinstance(refusal, RateLimited):
        headers["retry-after"] = f"{max(1, round(refusal.retry_after))}"
    elif status == 503:
        headers["retry-after"] = str(RETRY_AFTER_SECONDS)
    return envelope(
        status, type_, refusal.message, request_id, {**fields, "details": details}, headers
    )


def envelope(
    status: int,
    type_: str,
    message: str,
    request_id: str,
    fields: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """An error answer; `fields` sit beside its type and message."""
    body = {
        "type": "error",
        "error": {"type": type_, "message": _safe(message)[:MESSAGE_CHARS], **(fields or {})},
        "request_id": request_id,
    }
    return Response(json_bytes(body), status, dict(headers or {}), "application/json")


def plain(status: int, message: str, request_id: str, headers: Mapping[str, str] = {}) -> Response:
    """An error answer for what is not a refusal of a verb: an unknown path, a wrong method."""
    type_ = _PLAIN.get(status, INVALID if status < 500 else "api_error")
    return envelope(status, type_, message, request_id, headers=headers)


def invalid(message: str, request_id: str) -> Response:
    """A validation failure found before any verb was called."""
    fields = {"details": {"error_code": "invalid"}}
    return envelope(400, INVALID, message, request_id, fields)


def is_unparsable(errors: Sequence[Any]) -> bool:
    """Whether a validation failed because the body is not JSON at all."""
    return any(error.get("type") == "json_invalid" for error in errors)


def sentence(errors: Iterable[Any]) -> str:
    """What is wrong with a request, from pydantic's findings; never the value that was sent."""
    found = []
    for error in list(errors)[:3]:
        where = ".".join(str(part)[:80] for part in error.get("loc", ())[1:])
        what = str(error.get("msg", "is not valid")).removeprefix("Value error, ")
        found.append(f"{where}: {what[:200]}" if where else what[:200])
    return "; ".join(found) or "Request validation failed"


def _safe(text: str) -> str:
    """Text that can be written as UTF-8."""
    return text.encode("utf-8", "replace").decode()
