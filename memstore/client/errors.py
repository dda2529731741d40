"""An error body of the API becomes the class of the model that it stands for.

Two closed tables. A server of this project names its own code in `error.details.error_code`; a
server that does not is read by `error.type`, then by the status. `tests/house` proves the first
table complete against the drawn tree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from memstore.backend import NotSupported
from memstore.model.errors import (
    Conflict,
    Forbidden,
    HeadNotRedactable,
    Invalid,
    InvalidContent,
    InvalidPath,
    MemstoreError,
    NotFound,
    PathConflict,
    PathTooLong,
    PreconditionFailed,
    RateLimited,
    RequestTooLarge,
    StoreArchived,
    StoreFull,
    TooLarge,
    Unauthenticated,
    Unavailable,
)

BY_CODE: dict[str, type[MemstoreError]] = {
    "error": MemstoreError,
    "not_found": NotFound,
    "path_conflict": PathConflict,
    "precondition_failed": PreconditionFailed,
    "conflict": Conflict,
    "invalid": Invalid,
    "invalid_path": InvalidPath,
    "path_too_long": PathTooLong,
    "invalid_content": InvalidContent,
    "content_too_large": TooLarge,
    "store_full": StoreFull,
    "store_archived": StoreArchived,
    "head_not_redactable": HeadNotRedactable,
    "request_too_large": RequestTooLarge,
    "unauthenticated": Unauthenticated,
    "forbidden": Forbidden,
    "rate_limited": RateLimited,
    "unavailable": Unavailable,
    "not_supported": NotSupported,
}
"""Our stable codes."""

BY_TYPE: dict[str, type[MemstoreError]] = {
    "memory_path_conflict_error": PathConflict,
    "memory_precondition_failed_error": PreconditionFailed,
    "conflict_error": Conflict,
    "invalid_request_error": Invalid,
    "authentication_error": Unauthenticated,
    "billing_error": Forbidden,
    "permission_error": Forbidden,
    "not_found_error": NotFound,
    "request_too_large": RequestTooLarge,
    "rate_limit_error": RateLimited,
    "timeout_error": Unavailable,
    "overloaded_error": Unavailable,
}
"""The hosted API's error types (the SDK's `_error_classes.py` and the platform's error page)."""

BY_STATUS: dict[int, type[MemstoreError]] = {
    400: Invalid,
    401: Unauthenticated,
    402: Forbidden,
    403: Forbidden,
    404: NotFound,
    405: NotSupported,
    408: Unavailable,
    409: Conflict,
    412: PreconditionFailed,
    413: RequestTooLarge,
    414: Invalid,
    422: Invalid,
    429: RateLimited,
    431: RequestTooLarge,
    501: NotSupported,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
    529: Unavailable,
}
"""What a status means where the body says nothing, a proxy's answer for example."""


def refusal(
    status: int, body: Mapping[str, Any] | None, retry_after: float | None = None
) -> MemstoreError:
    """The refusal that an answer other than 200 stands for."""
    error = _mapping((body or {}).get("error"))
    details = _mapping(error.get("details"))
    kind = (
        BY_CODE.get(_text(details, "error_code"))
        or BY_TYPE.get(_text(error, "type"))
        or BY_STATUS.get(status)
        or MemstoreError
    )
    message = _text(error, "message") or f"The service answered with status {status}."
    build = _BUILDERS.get(kind)
    made = build(message, {**details, **error}) if build else kind(message)
    if isinstance(made, RateLimited) and retry_after is not None:
        made.retry_after = retry_after
    return made


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def _number(fields: Mapping[str, Any], name: str) -> int:
    value = fields.get(name)
    return value if isinstance(value, int) else 0


_Builder = Callable[[str, Mapping[str, Any]], MemstoreError]

_BUILDERS: dict[type[MemstoreError], _Builder] = {
    NotFound: lambda message, f: NotFound(_text(f, "kind"), _text(f, "id"), message=message),
    PathConflict: lambda message, f: PathConflict(
        _text(f, "path"),
        conflicting_path=_text(f, "conflicting_path"),
        conflicting_memory_id=_text(f, "conflicting_memory_id"),
        message=message,
    ),
    PreconditionFailed: lambda message, f: PreconditionFailed(
        _text(f, "memory_id"), message=message
    ),
    TooLarge: lambda message, f: TooLarge(_number(f, "size"), _number(f, "limit"), message=message),
    StoreFull: lambda message, f: StoreFull(
        _text(f, "store_id"), cap=_text(f, "cap"), message=message
    ),
    StoreArchived: lambda message, f: StoreArchived(_text(f, "store_id"), message=message),
    HeadNotRedactable: lambda message, f: HeadNotRedactable(
        _text(f, "version_id"), message=message
    ),
}
"""The classes with fields of their own; the others take the sentence alone."""
