"""`memstore session ...`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from memstore.cli import names, output
from memstore.cli.options import AsJson
from memstore.cli.service import opened
from memstore.model import clock, objects
from memstore.model.access import Access
from memstore.model.limits import PAGE_MAX
from memstore.model.sessions import Attachment, Session

app = typer.Typer(no_args_is_help=True, help="Open, list and end sessions.")

SessionId = Annotated[str, typer.Argument(metavar="SESSION", show_default=False)]

_SUFFIXES: dict[str, Access] = {":ro": "read_only", ":rw": "read_write"}


def _attachment(text: str) -> tuple[str, Access]:
    """A store's id or name, and the access after it: `notes`, `notes:ro`, `notes:rw`."""
    for suffix, access in _SUFFIXES.items():
        if text.endswith(suffix):
            return text.removesuffix(suffix), access
    return text, "read_write"


@app.command()
def create(
    store: Annotated[
        list[str] | None,
        typer.Option("--store", metavar="NAME[:ro]", help="A store to attach; repeatable."),
    ] = None,
    title: Annotated[str | None, typer.Option("--title", help="For people.")] = None,
    agent: Annotated[str, typer.Option("--agent", help="The agent's id, kept as given.")] = "local",
    environment: Annotated[
        str, typer.Option("--environment", help="The environment's id, kept as given.")
    ] = "local",
    instructions: Annotated[
        str | None, typer.Option("--instructions", help="For the agent, on every store.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Open a session; prints its id and its token, which is shown once."""
    from memstore.backend import NotSupported

    with opened() as backend:
        attachments = [
            Attachment(names.store_id(backend, name), access, instructions)
            for name, access in map(_attachment, store or [])
        ]
        session = backend.create_session(
            agent=agent, environment_id=environment, stores=attachments, title=title
        )
        token: str | None
        try:
            token = backend.create_session_token(session.id)
        except NotSupported:
            token = None
    if json:
        output.as_json({**objects.session(session), "token": token})
    else:
        output.fields([("session", session.id), ("token", token or "(none on this server)")])


@app.command("list")
def list_(
    store: Annotated[
        str | None, typer.Option("--store", help="Those that this store is attached to.")
    ] = None,
    archived: Annotated[bool, typer.Option("--ended", help="Show ended sessions, too.")] = False,
    json: AsJson = False,
) -> None:
    """List sessions, newest first."""
    with opened() as backend:
        id = None if store is None else names.store_id(backend, store)
        found = list(
            names.every(
                lambda page: backend.list_sessions(
                    store_id=id, include_archived=archived, limit=PAGE_MAX, page=page
                )
            )
        )
    if json:
        output.data(objects.session(session) for session in found)
        return
    output.table(("session", "created", "state", "stores", "title"), [_row(s) for s in found])


def _row(session: Session) -> tuple[str, ...]:
    stores = ", ".join(
        store.name + (":ro" if store.access == "read_only" else "") for store in session.stores
    )
    state = "ended" if session.archived_at else "open"
    created = clock.rfc3339(session.created_at)[:19] + "Z"
    return session.id, created, state, stores, session.title or ""


@app.command()
def show(session: SessionId, json: AsJson = False) -> None:
    """Show one session and the stores attached to it."""
    with opened() as backend:
        found = backend.get_session(session)
    if json:
        output.as_json(objects.session(found))
        return
    pairs: list[tuple[str, Any]] = [
        ("session", found.id),
        ("title", found.title or ""),
        ("state", "ended" if found.archived_at else "open"),
        ("created", clock.rfc3339(found.created_at)),
    ]
    for store in found.stores:
        pairs.append(("store", f"{store.name} ({store.store_id}, {store.access})"))
        pairs.append(("mounted at", store.mount_path))
    output.fields(pairs)


@app.command()
def end(session: SessionId, json: AsJson = False) -> None:
    """End a session: its tokens stop working at once."""
    with opened() as backend:
        ended = backend.archive_session(session)
    output.as_json(objects.session(ended)) if json else output.line(ended.id)
