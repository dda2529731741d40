"""`log`, `show`, `diff`, `blame`: what happened to a memory."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Annotated

import typer

from memstore.cli import coloured, lineage, names, output
from memstore.cli.exits import NOT_FOUND, REFUSED, USAGE, Stop
from memstore.cli.lineage import ActorId, Key, OneOperation, Session, Since, Until
from memstore.cli.options import AsJson, MaybePath, MemoryPath, OneVersion, StoreName
from memstore.cli.service import opened
from memstore.model import clock, diffs, ids, objects
from memstore.model.actors import Actor
from memstore.model.limits import PAGE_MAX_FULL
from memstore.model.memories import Memory
from memstore.model.versions import Version, VersionFilter

if TYPE_CHECKING:
    from memstore.backend import Backend


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (log, show, diff, blame):
        app.command()(command)


def log(
    store: StoreName,
    path: MaybePath = None,
    operation: OneOperation = None,
    session: Session = None,
    key: Key = None,
    actor: ActorId = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="The newest N only.")] = None,
    json: AsJson = False,
) -> None:
    """List versions, newest first: of a store, or of whatever was at PATH or below it.

    Renames are followed, deleted memories are there, and all the options must match.
    """
    where = lineage.chosen(
        session=session, key=key, actor=actor, operation=operation, since=since, until=until
    )
    with opened() as backend:
        id = names.store_id(backend, store)
        if path is not None:
            listed = lineage.within(backend, id, names.memory_path(path.rstrip("/")), where)
        else:
            listed = lineage.versions(backend, id, where)
        found = list(itertools.islice(listed, limit))
    if json:
        output.data(objects.version(version) for version in found)
        return
    output.table(("version", "time", "operation", "by", "path"), [_row(v) for v in found])


def _row(version: Version) -> tuple[str, ...]:
    where = "(redacted)" if version.redacted_at else version.path or ""
    time = clock.rfc3339(version.created_at)
    return version.id, time, version.operation, _author(version.created_by), where


def _author(actor: Actor | None) -> str:
    return "" if actor is None else actor.id


def show(
    store: StoreName, path: MaybePath = None, version: OneVersion = None, json: AsJson = False
) -> None:
    """Show a memory, or a version: who, when, hash, and the text."""
    with opened() as backend:
        id = names.store_id(backend, store)
        if version is not None:
            found = backend.get_version(id, version)
            shown, pairs, text = objects.version(found), _of_version(found), found.content
        elif path is not None:
            memory = names.memory_at(backend, id, names.memory_path(path))
            shown, pairs, text = objects.memory(memory), _of_memory(memory), memory.content
        else:
            raise Stop(USAGE, "Name the memory's PATH, or a version with --version.")
    if json:
        output.as_json(shown)
        return
    output.fields(pairs)
    if text is not None:
        output.write("\n")
        output.content(text)


def _of_memory(memory: Memory) -> list[tuple[str, str]]:
    return [
        ("path", memory.path),
        ("memory", memory.id),
        ("version", memory.version_id),
        ("size", f"{memory.content_size_bytes} bytes"),
        ("sha256", memory.content_sha256),
        ("created", clock.rfc3339(memory.created_at)),
        ("updated", clock.rfc3339(memory.updated_at)),
    ]


def _of_version(version: Version) -> list[tuple[str, str]]:
    pairs = [
        ("version", version.id),
        ("memory", version.memory_id),
        ("operation", version.operation),
        ("path", version.path or ""),
        ("created", clock.rfc3339(version.created_at)),
        ("by", _author(version.created_by)),
    ]
    if version.content_size_bytes is not None:
        pairs.append(("size", f"{version.content_size_bytes} bytes"))
        pairs.append(("sha256", version.content_sha256 or ""))
    if version.redacted_at:
        pairs.append(("redacted", clock.rfc3339(version.redacted_at)))
        pairs.append(("redacted by", _author(version.redacted_by)))
    return pairs


def diff(
    store: StoreName,
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH] [VERSION VERSION]", help="A memory, or versions.", show_default=False
        ),
    ] = None,
    version: Annotated[
        list[str] | None,
        typer.Option("--version", metavar="ID", help="Given twice: from and to."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Compare two versions; with one, that one and the present text; with none, the last two.

    On a terminal the words that differ stand out.
    """
    versions = [*(version or []), *(one for one in what or [] if ids.is_id(one, ids.VERSION))]
    places = [one for one in what or [] if not ids.is_id(one, ids.VERSION)]
    if len(places) > 1:
        raise Stop(USAGE, "A diff is of one memory: name one PATH, or two versions.")
    with opened() as backend:
        id = names.store_id(backend, store)
        old, new = _two(backend, id, places[0] if places else None, versions)
    for one in (old, new):
        if one.redacted_at is not None:
            raise Stop(REFUSED, f"Version {one.id} was redacted: there is nothing to compare.")
    text = _unified(old, new)
    if json:
        output.as_json({"from": objects.version(old), "to": objects.version(new), "diff": text})
    else:
        coloured.show(text)


def _two(
    backend: Backend, store: str, path: str | None, versions: list[str]
) -> tuple[Version, Version]:
    if len(versions) > 2:
        raise Stop(USAGE, "A diff takes two versions.")
    if len(versions) == 2:
        return backend.get_version(store, versions[0]), backend.get_version(store, versions[1])
    if versions:
        old = backend.get_version(store, versions[0])
        memory = backend.get_memory(store, old.memory_id, view="basic")
        return old, backend.get_version(store, memory.version_id)
    if path is None:
        raise Stop(USAGE, "Name the memory's PATH, or versions with --version.")
    found = lineage.history(backend, store, names.memory_path(path))
    found = [version for version in found if version.memory_id == found[0].memory_id]
    if len(found) < 2:
        raise Stop(NOT_FOUND, f"{path!r} has one version only: there is nothing to compare.")
    return backend.get_version(store, found[1].id), backend.get_version(store, found[0].id)


def _unified(old: Version, new: Version) -> str:
    """The diff of two versions, each named by its path and id."""
    return diffs.unified(
        old.content or "",
        new.content or "",
        f"{old.path or diffs.NOWHERE}\t{old.id}",
        f"{new.path or diffs.NOWHERE}\t{new.id}",
    )


def blame(store: StoreName, path: MemoryPath, json: AsJson = False) -> None:
    """Show each line of a memory with the version that brought it, its author and its time.

    A line of a version that was redacted since counts for the next one that has it.
    """
    with opened() as backend:
        id = names.store_id(backend, store)
        memory = names.memory_at(backend, id, names.memory_path(path), view="basic")
        past = names.every(
            lambda page: backend.list_versions(
                id,
                where=VersionFilter(memory_id=memory.id),
                view="full",
                limit=PAGE_MAX_FULL,
                page=page,
            )
        )
        known = [version for version in past if version.content is not None][::-1]
    lines = diffs.blame((version, version.content or "") for version in known)
    if json:
        output.data(
            {
                "line": number,
                "text": text.removesuffix("\n"),
                "memory_version_id": version.id,
                "created_by": objects.version(version)["created_by"],
                "created_at": clock.rfc3339(version.created_at),
            }
            for number, (version, text) in enumerate(lines, 1)
        )
        return
    rows = [
        (v.id, _author(v.created_by), clock.rfc3339(v.created_at)[:19] + "Z", str(number), text)
        for number, (v, text) in enumerate(lines, 1)
    ]
    output.table(
        ("version", "by", "time", "line", "text"),
        [(*row[:4], row[4].removesuffix("\n")) for row in rows],
    )
