"""`redact`: destroy what versions said, and show the receipts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from memstore.backend import NotSupported
from memstore.cli import names, output
from memstore.cli.exits import USAGE, Stop
from memstore.cli.lineage import all_versions, history
from memstore.cli.options import AsJson, MaybePath, OneVersion, StoreName, Yes
from memstore.cli.service import opened
from memstore.model import clock, objects
from memstore.model.errors import HeadNotRedactable, NotFound
from memstore.model.limits import PAGE_MAX
from memstore.model.memories import Memory
from memstore.model.paths import validate_prefix
from memstore.model.versions import Receipt, Version

if TYPE_CHECKING:
    from memstore.backend import Backend


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(redact)


def redact(
    store: StoreName,
    path: MaybePath = None,
    version: OneVersion = None,
    all_versions: Annotated[
        bool,
        typer.Option("--all-versions", help="Every version of what was at PATH (the default)."),
    ] = False,
    prefix: Annotated[
        bool, typer.Option("--prefix", help="PATH is a directory: whatever was ever below it.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only list what would be destroyed.")
    ] = False,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Destroy a version's text, path, size and hash; who and when stay, and a signed receipt.

    With PATH alone: every version of whatever was there but the one that is live now.
    """
    if version is None and path is None:
        raise Stop(USAGE, "Name a version with --version, or the memory's PATH.")
    if version is not None and (all_versions or prefix):
        raise Stop(USAGE, "--version names one version; leave --all-versions and --prefix out.")
    with opened() as backend:
        id = names.store_id(backend, store)
        if version is not None:
            found = [_at(backend, id, version, path)]
            live: set[str] = set()
        else:
            wanted = validate_prefix(path or "") if prefix else names.memory_path(path or "")
            found = [v for v in _ever(backend, id, wanted, prefix) if v.redacted_at is None]
            live = _live(backend, id, found)
        for one in found:
            if one.id in live:
                output.tell(
                    f"Version {one.id} is live and stays: "
                    "write a new version or delete the memory, then redact it."
                )
        chosen = [one for one in found if one.id not in live]
        if dry_run:
            _show(chosen, json)
            return
        what = f"version {version}" if version else f"{len(chosen)} versions of {path!r}"
        output.confirm(f"Destroy the text of {what}, for ever?", yes=yes)
        done = []
        for one in chosen:
            try:
                done.append(_destroyed(backend, id, one))
            except HeadNotRedactable:  # restored since it was looked at, or named by hand
                if version is not None:
                    raise
                output.tell(f"Version {one.id} became live and stays.")
    if not json:
        for redacted, receipt in done:
            output.line(_line(redacted, receipt))
    elif version is not None:
        output.as_json(_object(*done[0]))
    else:
        output.data(_object(*one) for one in done)


def _at(backend: Backend, store: str, version: str, path: str | None) -> Version:
    """The version of an id; NotFound when PATH is given and is none of its memory's."""
    found = backend.get_version(store, version, view="basic")
    if path is not None:
        wanted = names.memory_path(path)
        if found.memory_id not in {one.memory_id for one in history(backend, store, wanted)}:
            message = f"Version {version} is not of the memory at {wanted!r}."
            raise NotFound("memory version", version, message=message)
    return found


def _ever(backend: Backend, store: str, wanted: str, prefix: bool) -> list[Version]:
    """Versions of every memory that ever was at a path, or below a directory."""
    if not prefix:
        return history(backend, store, wanted)
    found = all_versions(backend, store)
    ever = {one.memory_id for one in found if (one.path or "").startswith(wanted)}
    if not ever:
        raise NotFound("memory", wanted, message=f"No memory was ever below {wanted!r}.")
    return [one for one in found if one.memory_id in ever]


def _live(backend: Backend, store: str, found: list[Version]) -> set[str]:
    """The heads of live memories among these versions."""
    if not found:
        return set()
    listed = names.every(lambda page: backend.list_memories(store, limit=PAGE_MAX, page=page))
    return {memory.version_id for memory in listed if isinstance(memory, Memory)}


def _destroyed(backend: Backend, store: str, version: Version) -> tuple[Version, Receipt | None]:
    """Redact one version; its receipt, where the service gives any."""
    redacted = backend.redact_version(store, version.id)
    try:
        return redacted, backend.redaction_receipt(store, version.id)
    except (NotFound, NotSupported):
        return redacted, None


def _show(chosen: list[Version], json: bool) -> None:
    """What a dry run found."""
    if json:
        output.data(objects.version(one) for one in chosen)
        return
    rows = [
        (one.id, clock.rfc3339(one.created_at)[:23] + "Z", one.operation, one.path or "")
        for one in chosen
    ]
    output.table(("version", "time", "operation", "path"), rows)
    output.tell(f"{len(rows)} versions would be destroyed; nothing was changed.")


def _line(version: Version, receipt: Receipt | None) -> str:
    """One redaction for people: what was destroyed, when, by whom, and the key that is gone."""
    if receipt is None:
        return version.id
    by = receipt["redacted_by"] or {}
    who = next((by[field] for field in by if field != "type"), "unknown")
    keys = [one["id"] for one in receipt["destroyed"] if "id" in one]
    return "  ".join((version.id, receipt["redacted_at"], str(who), *keys))


def _object(version: Version, receipt: Receipt | None) -> dict[str, Any]:
    """The API's version, with its receipt."""
    return {**objects.version(version), "receipt": receipt}
