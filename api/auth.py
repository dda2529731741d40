"""What the headers of a request say: the credential, the betas, the workspace."""

from __future__ import annotations

from memstore.model.errors import Invalid

AGENT_MEMORY = "agent-memory-2026-07-22"
MANAGED_AGENTS = "managed-agents-2026-04-01"
MEMORY_BETAS = frozenset({AGENT_MEMORY, MANAGED_AGENTS})

STORES_PATH = "/v1/memory_stores"
SESSIONS_PATH = "/v1/sessions"

OPEN_PATHS = frozenset({"/livez", "/readyz", "/docs", "/openapi.json"})
"""Answered without a credential; they tell nothing about any store."""


def credential(authorization: str | None, api_key: str | None) -> str | None:
    """The secret of `Authorization: Bearer`, else of `x-api-key`; None when there is neither."""
    if authorization is not None:
        scheme, _, secret = authorization.partition(" ")
        if scheme.lower() == "bearer" and secret.strip():
            return secret.strip()
    return api_key or None


def check_betas(path: str, header: str) -> None:
    """Invalid when the `anthropic-beta` header contradicts the endpoint.

    None at all is accepted. A store's endpoints refuse both memory betas together; values we do
    not know are ignored beside a memory one, and refused alone (the platform's beta-header page).
    """
    on_stores = path.startswith(STORES_PATH)
    if not header or not (on_stores or path.startswith(SESSIONS_PATH)):
        return
    values = {value.strip() for value in header.split(",")} - {""}
    memory = values & MEMORY_BETAS
    if on_stores and len(memory) > 1:
        raise Invalid(
            f"The `anthropic-beta` header holds both {AGENT_MEMORY} and {MANAGED_AGENTS}; "
            "send exactly one of them."
        )
    if values and not memory:
        unknown = ", ".join(f"`{value[:80]}`" for value in sorted(values)[:5])
        raise Invalid(
            f"Unexpected value(s) {unknown} for the `anthropic-beta` header. "
            f"Send {AGENT_MEMORY} or {MANAGED_AGENTS}."
        )


def check_workspace(asked: str | None, own: str) -> None:
    """Invalid when `anthropic-workspace-id` is given and is not the credential's workspace."""
    if asked and asked != own:
        raise Invalid("anthropic-workspace-id is not the workspace of this credential.")
