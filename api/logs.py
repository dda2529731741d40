"""The service's log: a JSON object a line on standard error. Never texts, queries or secrets."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

from starlette.types import Scope

from memstore.model import clock

LEVELS = ("debug", "info", "warning", "error")
_FIELDS = ("request_id", "method", "path", "status", "milliseconds", "actor", "where")
_access = logging.getLogger("memstore.access")


class JsonLines(logging.Formatter):
    """One JSON object a line; what a memory or a header held can never break it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        line: dict[str, Any] = {
            "time": clock.rfc3339_us(int(record.created * 1e6)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line.update({name: getattr(record, name) for name in _FIELDS if hasattr(record, name)})
        if record.exc_info and record.exc_info[0]:
            line["error"] = record.exc_info[0].__name__
        return json.dumps(line)


def setup(level: str) -> None:
    """Send this process's log to standard error from a level on."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # Below an error the server only repeats our lines, or tells of each stranger's broken HTTP.
    if level != "debug":
        logging.getLogger("uvicorn").setLevel(logging.ERROR)


def access(scope: Scope, call: Any, request_id: str, status: int, seconds: float) -> None:
    """One line a request, at info: the path has ids only, the query is left out."""
    if not _access.isEnabledFor(logging.INFO):
        return
    caller = getattr(call, "caller", None)
    _access.info(
        "request",
        extra={
            "request_id": request_id,
            "method": scope["method"],
            "path": scope["path"][:300],
            "status": status,
            "milliseconds": round(seconds * 1000, 3),
            "actor": caller.actor.id if caller is not None else None,
        },
    )
