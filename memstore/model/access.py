"""What a credential may do: scopes for keys, an access per store for sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Literal

from memstore.model.actors import Actor
from memstore.model.errors import Forbidden, Invalid

Scope = Literal["admin", "read", "write", "redact", "audit"]
SCOPES: tuple[Scope, ...] = ("admin", "read", "write", "redact", "audit")
"""`admin` implies the others and covers keys; `write` implies `read`."""

Access = Literal["read_write", "read_only"]
ACCESSES: tuple[Access, ...] = ("read_write", "read_only")

_IMPLIED: dict[str, frozenset[str]] = {
    "admin": frozenset(SCOPES),
    "write": frozenset({"write", "read"}),
}


def validate_scopes(scopes: tuple[str, ...] | list[str]) -> tuple[Scope, ...]:
    """The scopes in canonical order; Invalid for an unknown one or none at all."""
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        raise Invalid(
            f"Scopes are some of {', '.join(SCOPES)}; got {', '.join(unknown) or 'none'}."
        )
    return tuple(scope for scope in SCOPES if scope in scopes)


@dataclass(frozen=True, slots=True)
class Key:
    """An API key as it can be shown again; the secret itself is shown once and kept as a hash."""

    id: str
    workspace_id: str
    workspace: str
    name: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    revoked_at: datetime | None


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever a backend handle is bound to.

    `grants` is None for a key (every store of its workspace) and an access per store id for a
    session's token, which reaches those stores only.
    """

    workspace_id: str
    actor: Actor
    scopes: frozenset[str]
    grants: Mapping[str, Access] | None = None
    session_id: str | None = None

    def may(self, scope: Scope, store_id: str | None = None) -> bool:
        """Whether the caller has the scope (on that store, for a session)."""
        if not any(scope in _IMPLIED.get(own, (own,)) for own in self.scopes):
            return False
        if self.grants is None or store_id is None:
            return True
        access = self.grants.get(store_id)
        return access == "read_write" or (access == "read_only" and scope == "read")

    def require(self, scope: Scope, store_id: str | None = None) -> None:
        """Forbidden unless the caller has the scope."""
        if not self.may(scope, store_id):
            raise Forbidden(f"This credential has no '{scope}' access here.")

    def sees(self, store_id: str) -> bool:
        """Whether the store exists for this caller (its workspace is checked by the storage)."""
        return self.grants is None or store_id in self.grants


def for_session(workspace_id: str, session_id: str, grants: Mapping[str, Access]) -> Caller:
    """The caller a session's token stands for: reads and writes as attached, never redacts."""
    return Caller(
        workspace_id=workspace_id,
        actor=Actor("session_actor", session_id),
        scopes=frozenset({"read", "write"}),
        grants=MappingProxyType(dict(grants)),
        session_id=session_id,
    )
