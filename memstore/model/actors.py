"""Who acted. Stamped when it happens and never rewritten, so an id may outlive its subject."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ActorKind = Literal["session_actor", "api_actor", "user_actor", "service_account_actor"]

ID_FIELD: dict[str, str] = {
    "session_actor": "session_id",
    "api_actor": "api_key_id",
    "user_actor": "user_id",
    "service_account_actor": "service_account_id",
}
"""The wire name of an actor's id, by kind (the SDK's `beta_managed_agents_*_actor.py`)."""


@dataclass(frozen=True, slots=True)
class Actor:
    """A session (an agent through its mount), an API key, a person, or a service account."""

    kind: ActorKind
    id: str

    def to_wire(self) -> dict[str, str]:
        """The API's object: `{type, <kind's id field>}`."""
        return {"type": self.kind, ID_FIELD[self.kind]: self.id}

    @classmethod
    def from_wire(cls, data: dict[str, str] | None) -> Actor | None:
        """The actor of an API object; None for null or a kind this version does not know."""
        field = ID_FIELD.get((data or {}).get("type", ""))
        if data is None or field is None:
            return None
        return cls(data["type"], data[field])  # type: ignore[arg-type]
