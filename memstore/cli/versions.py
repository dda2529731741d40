"""`log`, `show`, `diff`: what happened to a memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from memstore.cli import names, output
from memstore.cli.exits import NOT_FOUND, USAGE, Stop
from memstore.cli.options import AsJson, MaybePath, OneVersion, StoreName
from memstore.cli.service import opened
from memstore.model import clock, objects
from memstore.model.actors import Actor
from memstore.model.errors import NotFound
from memstore.model.limits import PAGE_MAX
from memstore.model.memories import Memory
from memstore.model.versions import OPERATIONS, Version, VersionFilter

if TYPE_CHECKING:
    from memstore.backend import Backend


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (log, show, diff):
        app.command()(command)


def history(
    backend: Backend, store: str, path: str, where: VersionFilter = VersionFilter()
) -> list[Version]:
    """Versions of every memory that ever was at a path, newest first: renamed and deleted ones too.

    Two walks when there is no such memory now: the API finds versions by memory, not by path.
    """
    versions = all_versions(backend, store)
    ever = {version.memory_id for version in versions if version.path == path}
    if not ever:
        raise NotFound("memory", path, message=f"No memory was ever at {path!r}.")
    if where == VersionFilter():
        return [version for version in versions if version.memory_id in ever]
    return [v for v in _versions(backend, store, where) if v.memory_id in ever]


def all_versions(backend: Backend, store: str) -> list[Version]:
    """Every version of a store, newest first."""
    return _versions(backend, store, VersionFilter())


def _versions(backend: Backend, store: str, where: VersionFilter) -> list[Version]:
    return list(
        names.every(
            lambda page: backend.list_versions(store, where=where, limit=PAGE_MAX, page=page)
        )
    )


def log(
    store: StoreName,
    path: MaybePath = None,
    operation: Annotated[
        str | None, typer.Option("--operation", help=f"One of {', '.join(OPERATIONS)}.")
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="ID", help="Made in this session.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="ID", help="Made with this API key.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="The newest N only.")] = None,
    json: AsJson = False,
) -> None:
    """List versions, newest first: of a store, or of whatever was at PATH, deleted memories too."""
    if operation is not None and operation not in OPERATIONS:
        raise Stop(USAGE, f"--operation is one of {', '.join(OPERATIONS)}.")
    where = VersionFilter(operation=operation, session_id=session, api_key_id=key)
    with opened() as backend:
        id = names.store_id(backend, store)
        if path is not None:
            found = history(backend, id, names.memory_path(path), where)[:limit]
        else:
            found = []
            for version in names.every(
                lambda page: backend.list_versions(id, where=where, limit=PAGE_MAX, page=page)
            ):
                if limit is not None and len(found) >= limit:
                    break
                found.append(version)
    if json:
        output.data(objects.version(version) for version in found)
        return
    output.table(("version", "time", "operation", "by", "path"), [_row(v) for v in found])


def _row(version: Version) -> tuple[str, ...]:
    where = "(redacted)" if version.redacted_at else version.path or ""
    time = clock.rfc3339(version.created_at)[:23] + "Z"
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
    path: MaybePath = None,
    version: Annotated[
        list[str] | None,
        typer.Option("--version", metavar="ID", help="Given twice: from and to."),
    ] = None,
    json: AsJson = False,
) -> None:
    """Compare two versions; with one, that one and the present text; with none, the last two."""
    with opened() as backend:
        old, new = _two(backend, names.store_id(backend, store), path, version or [])
    text = _unified(old, new)
    if json:
        output.as_json({"from": objects.version(old), "to": objects.version(new), "diff": text})
    else:
        output.content(text)


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
    found = history(backend, store, names.memory_path(path))
    found = [version for version in found if version.memory_id == found[0].memory_id]
    if len(found) < 2:
        raise Stop(NOT_FOUND, f"{path!r} has one version only: there is nothing to compare.")
    return backend.get_version(store, found[1].id), backend.get_version(store, found[0].id)


def _unified(old: Version, new: Version) -> str:
    """A unified diff, with git's mark where a text ends without a newline."""
    import difflib

    marked = "\n\\ No newline at end of file\n"
    lines = difflib.unified_diff(
        (old.content or "").splitlines(keepends=True),
        (new.content or "").splitlines(keepends=True),
        f"{old.path or '/dev/null'}\t{old.id}",
        f"{new.path or '/dev/null'}\t{new.id}",
    )
    return "".join(line if line.endswith("\n") else line + marked for line in lines)
