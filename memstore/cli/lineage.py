"""Which versions a user means: by path, author, operation and time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from memstore.backend import NotSupported
from memstore.cli import moments, names
from memstore.cli.exits import USAGE, Stop
from memstore.model import ids
from memstore.model.errors import NotFound
from memstore.model.limits import PAGE_MAX
from memstore.model.versions import OPERATIONS, Version, VersionFilter

if TYPE_CHECKING:
    from memstore.backend import Backend

Session = Annotated[
    str | None, typer.Option("--session", metavar="ID", help="Written in this session.")
]
Key = Annotated[str | None, typer.Option("--key", metavar="ID", help="Written with this API key.")]
ActorId = Annotated[
    str | None, typer.Option("--actor", metavar="ID", help="Written by this author.")
]
OneOperation = Annotated[
    str | None, typer.Option("--operation", help=f"One of {', '.join(OPERATIONS)}.")
]
Since = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help=f"Not before. {moments.HELP}")
]
Until = Annotated[str | None, typer.Option("--until", metavar="TIME", help="Not after.")]


def chosen(
    *,
    session: str | None = None,
    key: str | None = None,
    actor: str | None = None,
    operation: str | None = None,
    since: str | None = None,
    until: str | None = None,
) -> VersionFilter:
    """The filter of a command's options; stops when they do not go together."""
    if operation is not None and operation not in OPERATIONS:
        raise Stop(USAGE, f"--operation is one of {', '.join(OPERATIONS)}.")
    if sum(one is not None for one in (session, key, actor)) > 1:
        raise Stop(USAGE, "A version has one author: give one of --session, --key, --actor.")
    if actor is not None and actor.startswith(f"{ids.SESSION}_"):
        session, actor = actor, None
    elif actor is not None and actor.startswith(f"{ids.KEY}_"):
        key, actor = actor, None
    return VersionFilter(
        operation=operation,
        session_id=session,
        api_key_id=key,
        service_account_id=actor,
        created_from=moments.moment(since, "--since"),
        created_to=moments.moment(until, "--until"),
    )


def versions(
    backend: Backend, store: str, where: VersionFilter = VersionFilter()
) -> Iterator[Version]:
    """Versions of a store, newest first, as far as they are asked for."""
    return names.every(
        lambda page: backend.list_versions(store, where=where, limit=PAGE_MAX, page=page)
    )


def all_versions(backend: Backend, store: str) -> list[Version]:
    """Every version of a store, newest first."""
    return list(versions(backend, store))


def within(
    backend: Backend, store: str, path: str, where: VersionFilter = VersionFilter()
) -> Iterator[Version]:
    """Versions of whatever was ever at a path or below it, newest first; renames are followed.

    NotFound when nothing ever was. Where the server cannot be asked by path, it is all walked.
    """
    try:
        found = _asked(backend, store, path, where)
        first = next(found, None)
        if first is None and (
            where == VersionFilter() or not backend.list_history(store, path, limit=1).data
        ):
            raise NotFound("memory", path, message=f"No memory was ever at {path!r}.")
    except NotSupported:
        yield from _walked(backend, store, path, where)
        return
    if first is not None:
        yield first
        yield from found


def _asked(backend: Backend, store: str, path: str, where: VersionFilter) -> Iterator[Version]:
    return names.every(
        lambda page: backend.list_history(store, path, where=where, limit=PAGE_MAX, page=page)
    )


def _walked(backend: Backend, store: str, path: str, where: VersionFilter) -> Iterator[Version]:
    """Two walks: the hosted API finds versions by memory, not by path."""
    below = f"{path}/"
    ever = {
        version.memory_id
        for version in versions(backend, store)
        if version.path is not None and (version.path == path or version.path.startswith(below))
    }
    if not ever:
        raise NotFound("memory", path, message=f"No memory was ever at {path!r}.")
    return (version for version in versions(backend, store, where) if version.memory_id in ever)


def history(backend: Backend, store: str, path: str) -> list[Version]:
    """Versions of every memory that ever was at exactly this path, newest first."""
    found = list(within(backend, store, path))
    ever = {version.memory_id for version in found if version.path == path}
    if not ever:
        raise NotFound("memory", path, message=f"No memory was ever at {path!r}.")
    return [version for version in found if version.memory_id in ever]
