"""`ls`, `cat`, `put`, `mv`, `rm`: memories by path."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memstore.cli import names, output
from memstore.cli.exits import INVALID, REFUSED, Stop
from memstore.cli.options import (
    AsJson,
    Expected,
    MaybePath,
    MemoryPath,
    OneVersion,
    StoreName,
    Yes,
)
from memstore.cli.service import opened
from memstore.model import clock, content, limits, objects
from memstore.model.errors import NotFound, PathConflict, PreconditionFailed
from memstore.model.memories import DeleteMemory, Memory, MemoryPrefix, UpdateMemory
from memstore.model.preconditions import ContentIs

if TYPE_CHECKING:
    from memstore.backend import Backend

RACES = 20
"""How often `put` starts again when others create and delete the path under its hands."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (ls, cat, put, mv, rm):
        app.command()(command)


def ls(
    store: StoreName,
    path: Annotated[
        str, typer.Argument(metavar="[PATH]", help="A directory or a memory.", show_default=False)
    ] = "/",
    depth: Annotated[
        int, typer.Option("--depth", help="1 folds deeper directories; 0 lists everything.")
    ] = 0,
    long: Annotated[bool, typer.Option("--long", "-l", help="Size, time and id, too.")] = False,
    json: AsJson = False,
) -> None:
    """List the memories of a store, or below a directory."""
    with opened() as backend:
        id = names.store_id(backend, store)
        prefix = names.directory(path)
        items = list(names.listed(backend, id, prefix, depth=depth))
        if not items and prefix != "/":
            items = [names.memory_at(backend, id, prefix[:-1], view="basic")]
    if json:
        output.data(objects.memory_or_prefix(item) for item in items)
    elif long:
        output.table(("size", "updated", "id", "path"), [_long(item) for item in items])
    else:
        output.write("".join(f"{_shown(item.path)}\n" for item in items))


def _shown(path: str) -> str:
    return output.visible(path) if output.on_terminal() else path


def _long(item: Memory | MemoryPrefix) -> tuple[str, str, str, str]:
    if isinstance(item, MemoryPrefix):
        return "", "", "", item.path
    updated = clock.rfc3339(item.updated_at)[:19] + "Z"
    return str(item.content_size_bytes), updated, item.id, item.path


def cat(
    store: StoreName, path: MaybePath = None, version: OneVersion = None, json: AsJson = False
) -> None:
    """Print a memory's text, or a version's."""
    with opened() as backend:
        id = names.store_id(backend, store)
        if version is not None:
            found = backend.get_version(id, version)
            shown, text = objects.version(found), found.content
        else:
            memory = names.memory_at(backend, id, names.memory_path(_needed(path)))
            shown, text = objects.memory(memory), memory.content
    if json:
        output.as_json(shown)
    elif text is None:
        raise Stop(REFUSED, f"Version {version} holds no text: it was redacted, or is a deletion.")
    else:
        output.content(text)


def _needed(path: str | None) -> str:
    if path is None:
        raise Stop(2, "Name the memory's PATH, or a version with --version.")
    return path


def put(
    store: StoreName,
    path: MemoryPath,
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="The text; standard input when absent or -.")
    ] = "-",
    if_sha256: Expected = None,
    json: AsJson = False,
) -> None:
    """Write a memory from a file or standard input: create it, or make its next version."""
    text = content.decode(_read(file))
    expected = None if if_sha256 is None else ContentIs(if_sha256)
    with opened() as backend:
        memory = save(
            backend, names.store_id(backend, store), names.memory_path(path), text, expected
        )
    output.as_json(objects.memory(memory)) if json else output.line(memory.version_id)


def _read(file: str) -> bytes:
    """At most one byte over the limit: enough to refuse what is too large."""
    if file == "-":
        return sys.stdin.buffer.read(limits.CONTENT_BYTES + 1)
    try:
        with Path(file).open("rb") as opened_file:
            return opened_file.read(limits.CONTENT_BYTES + 1)
    except OSError as error:
        raise Stop(INVALID, f"{file} cannot be read: {error.strerror}.") from None


def save(
    backend: Backend, store: str, path: str, text: str, expected: ContentIs | None = None
) -> Memory:
    """Create or update the memory at a path, whatever others do to it meanwhile."""
    for _ in range(RACES):
        try:
            held = names.memory_at(backend, store, path, view="basic")
        except NotFound as error:
            if expected is not None:
                raise
            missing = error
        else:
            try:
                return backend.update_memory(store, held.id, content=text, precondition=expected)
            except NotFound as error:
                missing = error
                continue
        try:
            return backend.create_memory(store, path=path, content=text)
        except PathConflict as error:
            if error.conflicting_path != path:
                raise
    raise missing


def mv(
    store: StoreName,
    source: Annotated[str, typer.Argument(metavar="FROM", show_default=False)],
    target: Annotated[str, typer.Argument(metavar="TO", show_default=False)],
    json: AsJson = False,
) -> None:
    """Rename a memory or a directory; ids and history stay. Into a directory when TO is one."""
    with opened() as backend:
        id = names.store_id(backend, store)
        old = names.memory_path(source.rstrip("/"))
        new = _destination(backend, id, old, target)
        moved = _renamed(backend, id, old, new)
    if json:
        output.data(objects.memory(memory) for memory in moved)
    else:
        output.line(f"{old} -> {new}")


def _destination(backend: Backend, store: str, old: str, target: str) -> str:
    """TO itself, or the same name below it when it is a directory."""
    into = target.endswith("/")
    new = "/" if not target.strip("/") else names.memory_path(target.rstrip("/"))
    if not into and new != old:
        below = backend.list_memories(store, path_prefix=f"{new}/", limit=1)
        into = bool(below.data) and not old.startswith(f"{new}/")
    name = old[old.rindex("/") :]
    return names.memory_path(f"{new.rstrip('/')}{name}") if into else new


def _renamed(backend: Backend, store: str, old: str, new: str) -> list[Memory]:
    try:
        memory = names.memory_at(backend, store, old, view="basic")
    except NotFound:
        below = names.memories_below(backend, store, old)
        if not below:
            raise
        if new == old or new.startswith(f"{old}/"):
            raise Stop(INVALID, f"A directory cannot be moved into itself: {new!r}.") from None
        return _move_all(backend, store, [(m, new + m.path[len(old) :]) for m in below])
    return [backend.update_memory(store, memory.id, path=new)]


def _move_all(backend: Backend, store: str, moves: list[tuple[Memory, str]]) -> list[Memory]:
    """In one transaction where the server can (and there are not too many), else one by one."""
    from memstore.backend import NotSupported

    moved: list[Memory] = []
    for start in range(0, len(moves), limits.BATCH_CHANGES):
        some = moves[start : start + limits.BATCH_CHANGES]
        try:
            answers = backend.apply_changes(
                store, [UpdateMemory(memory.id, path=path) for memory, path in some]
            )
        except NotSupported:
            answers = [backend.update_memory(store, memory.id, path=path) for memory, path in some]
        moved.extend(memory for memory in answers if memory is not None)
    return moved


def rm(
    store: StoreName,
    path: MemoryPath,
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="A directory with all below it.")
    ] = False,
    if_sha256: Expected = None,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Delete a memory, or with -r a directory; the history stays."""
    with opened() as backend:
        id = names.store_id(backend, store)
        root = not path.strip("/")
        target = "/" if root else names.memory_path(path.rstrip("/"))
        try:
            if root:
                raise NotFound("memory", "/", message="The root is not a memory.")
            memory = names.memory_at(backend, id, target, view="basic")
        except NotFound:
            doomed = names.memories_below(backend, id, target)
            if not doomed:
                raise
            if not recursive:
                raise Stop(
                    INVALID, f"{target!r} is a directory of {len(doomed)} memories: say -r."
                ) from None
            output.confirm(f"Delete the {len(doomed)} memories below {target!r}?", yes=yes)
            _delete_all(backend, id, doomed)
        else:
            backend.delete_memory(id, memory.id, expected_content_sha256=if_sha256)
            doomed = [memory]
    if json:
        output.data(objects.deleted(gone.id, "memory") for gone in doomed)
    else:
        for gone in doomed:
            output.line(gone.path)


def _delete_all(backend: Backend, store: str, doomed: list[Memory]) -> None:
    from memstore.backend import NotSupported

    for start in range(0, len(doomed), limits.BATCH_CHANGES):
        some = [
            DeleteMemory(memory.id, memory.content_sha256)
            for memory in doomed[start : start + limits.BATCH_CHANGES]
        ]
        try:
            backend.apply_changes(store, some)
        except NotSupported:
            for change in some:
                backend.delete_memory(
                    store,
                    change.memory_id,
                    expected_content_sha256=change.expected_content_sha256,
                )
        except PreconditionFailed as error:
            raise PreconditionFailed(
                message=f"{error.message.rstrip('.')}; it was changed while being deleted."
            ) from None
