"""What one author changed in a store, memory by memory, as something to review."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from memstore.cli import lineage
from memstore.model.diffs import unified
from memstore.model.versions import Version, VersionFilter

if TYPE_CHECKING:
    from memstore.backend import Backend

_LEAST = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class MemoryChanges:
    """One memory, from before the author's first version to after the last.

    `path` is where they left it, `old_path` where they found it; None: it was not there. `others`
    says that somebody else wrote it in between; `redacted` that a text it takes is gone.
    """

    memory_id: str
    path: str | None
    old_path: str | None
    version_id_before: str | None
    version_id_after: str
    versions: int
    others: bool
    redacted: bool
    diff: str


def of_author(
    backend: Backend, store: str, where: VersionFilter, path: str | None = None
) -> list[MemoryChanges]:
    """The memories the filter's author wrote, in order of paths; at a path or below, if given."""
    own: dict[str, list[Version]] = {}
    listed = (
        lineage.versions(backend, store, where)
        if path is None
        else lineage.within(backend, store, path, where)
    )
    for version in listed:
        own.setdefault(version.memory_id, []).append(version)
    found = [_changes(backend, store, written[::-1]) for written in own.values()]
    return sorted(found, key=lambda one: ((one.path or one.old_path or "").encode(), one.memory_id))


def as_json(found: MemoryChanges) -> dict[str, Any]:
    """As `--json` prints it."""
    return {"type": "memory_changes", **dataclasses.asdict(found)}


def _changes(backend: Backend, store: str, written: list[Version]) -> MemoryChanges:
    """Of one memory; `written` are the author's versions, oldest first."""
    first, last = written[0], written[-1]
    before = None
    if first.operation != "created":
        # Times of a store rise from version to version, so just before is the one before.
        where = VersionFilter(memory_id=first.memory_id, created_to=first.created_at - _LEAST)
        before = next(
            iter(backend.list_versions(store, where=where, view="full", limit=1).data), None
        )
    after = last if last.operation == "deleted" else backend.get_version(store, last.id)
    redacted = any(
        one is not None and one.redacted_at is not None and one.operation != "deleted"
        for one in (before, after)
    )
    old, new = _state(before), _state(after)
    return MemoryChanges(
        memory_id=first.memory_id,
        path=new[0],
        old_path=old[0],
        version_id_before=None if before is None else before.id,
        version_id_after=last.id,
        versions=len(written),
        others=_others(backend, store, written),
        redacted=redacted,
        diff="" if redacted else unified(old[1], new[1], old[0], new[0]),
    )


def _state(version: Version | None) -> tuple[str | None, str]:
    if version is None or version.operation == "deleted":
        return None, ""
    return version.path, version.content or ""


def _others(backend: Backend, store: str, written: list[Version]) -> bool:
    """Whether the memory has versions between the author's that are not theirs."""
    if len(written) == 1:
        return False
    where = VersionFilter(
        memory_id=written[0].memory_id,
        created_from=written[0].created_at,
        created_to=written[-1].created_at,
    )
    own = {version.id for version in written}
    return any(version.id not in own for version in lineage.versions(backend, store, where))
