"""The OpenAPI description: FastAPI's, with our errors and credentials in place of its own."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from api.auth import OPEN_PATHS
from api.schemas.responses import ErrorOut

_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer"},
    "key": {"type": "apiKey", "in": "header", "name": "x-api-key"},
}
_ERROR = {
    "description": "A refusal; `error.type` says which.",
    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorOut"}}},
}


def install(app: FastAPI) -> None:
    """Make the application describe itself so."""
    described = app.openapi

    def describe() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _corrected(described())
        return app.openapi_schema

    app.openapi = describe  # type: ignore[method-assign]


def _corrected(schema: dict[str, Any]) -> dict[str, Any]:
    """The description with 400 instead of 422 for what is invalid, and who may ask."""
    parts = schema.setdefault("components", {})
    shapes = parts.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        shapes.pop(name, None)
    shapes["ErrorOut"] = ErrorOut.model_json_schema()
    parts["securitySchemes"] = _SCHEMES
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            if path not in OPEN_PATHS:
                operation["responses"]["4XX"] = _ERROR
                operation["security"] = [{"bearer": []}, {"key": []}]
    return schema
