"""The rules of a store told a second time, as simply as possible: a dict of paths and texts.

It shares no code with the service, so that a mistake would have to be made twice.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field


class Refused(Exception):
    """A move is not allowed; `kind` names why, as the service's error classes do."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


def digest(text: str) -> str:
    """The hash of a text."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class Said:
    """What a version says: operation, memory, path and text."""

    operation: str
    memory: str
    path: str | None
    text: str | None
    redacted: bool = False


@dataclass
class ReferenceStore:
    """A store: live memories by id, and every version ever written, oldest first."""

    max_memories: int
    max_bytes: int
    live: dict[str, tuple[str, str]] = field(default_factory=dict)
    history: list[Said] = field(default_factory=list)
    events: list[str] = field(default_factory=list)
    archived: bool = False

    def _writable(self) -> None:
        if self.archived:
            raise Refused("StoreArchived")

    def _live(self, memory: str) -> tuple[str, str]:
        if memory not in self.live:
            raise Refused("NotFound")
        return self.live[memory]

    def _free(self, path: str, own: str = "") -> None:
        for memory, (other, _) in self.live.items():
            same = other == path
            if memory != own and (
                same or other.startswith(path + "/") or path.startswith(other + "/")
            ):
                raise Refused("PathConflict")

    def bytes(self) -> int:
        """Bytes of all live texts."""
        return sum(len(text.encode()) for _, text in self.live.values())

    def _said(self, operation: str, memory: str, path: str, text: str | None) -> None:
        self.history.append(Said(operation, memory, path, text))
        self.events.append(f"memory.{operation}")

    def may_create(self, path: str, text: str) -> None:
        """Refused when the create is not allowed."""
        self._writable()
        self._free(path)
        if len(self.live) >= self.max_memories:
            raise Refused("StoreFull")
        if text and self.bytes() + len(text.encode()) > self.max_bytes:
            raise Refused("StoreFull")

    def create(self, memory: str, path: str, text: str) -> None:
        """A memory begins, under the id the service gave it."""
        self.live[memory] = (path, text)
        self._said("created", memory, path, text)

    def update(self, memory: str, path: str | None, text: str | None, seen: str | None) -> bool:
        """Change path, text or both; whether there was anything to change."""
        self._writable()
        old_path, old_text = self._live(memory)
        new = (old_path if path is None else path, old_text if text is None else text)
        if new == (old_path, old_text):
            return False
        if seen is not None and seen != digest(old_text):
            raise Refused("PreconditionFailed")
        if new[0] != old_path:
            self._free(new[0], memory)
        growth = len(new[1].encode()) - len(old_text.encode())
        if growth > 0 and self.bytes() + growth > self.max_bytes:
            raise Refused("StoreFull")
        self.live[memory] = new
        self._said("modified", memory, *new)
        return True

    def delete(self, memory: str, seen: str | None) -> None:
        """A memory ends."""
        path, text = self._live(memory)
        if seen is not None and seen != digest(text):
            raise Refused("PreconditionFailed")
        del self.live[memory]
        self._said("deleted", memory, path, None)

    def redact(self, index: int) -> None:
        """A version of the history says nothing any more."""
        said = self.history[index]
        if said.redacted:
            return
        own = [n for n, one in enumerate(self.history) if one.memory == said.memory]
        if said.memory in self.live and own[-1] == index:
            raise Refused("HeadNotRedactable")
        said.path = said.text = None
        said.redacted = True
        self.events.append("version.redacted")

    def archive(self) -> None:
        """No more writes."""
        if not self.archived:
            self.archived = True
            self.events.append("store.archived")
