"""`memstore rejected ...`: texts that lost a conflict, until somebody decides."""

from __future__ import annotations

from typing import Annotated, get_args

import typer

from memstore.cli import names, output
from memstore.cli.exits import USAGE, Stop
from memstore.cli.options import AsJson, Expected, StoreName, Yes
from memstore.cli.service import opened
from memstore.model import clock, objects
from memstore.model.limits import PAGE_MAX
from memstore.model.preconditions import ContentIs
from memstore.model.rejected_writes import STATES, RejectedWrite, State

app = typer.Typer(
    no_args_is_help=True, help="List, read, apply and dismiss writes that lost a conflict."
)

WriteId = Annotated[
    str, typer.Argument(metavar="ID", help="A rejected write, rejw_...", show_default=False)
]
_EVERY = "all"


@app.command("list")
def list_(
    store: StoreName,
    state: Annotated[
        str, typer.Option("--state", help=f"One of {', '.join((*STATES, _EVERY))}.")
    ] = "open",
    json: AsJson = False,
) -> None:
    """List rejected writes, newest first: the open ones unless told otherwise."""
    wanted = _state(state)
    with opened() as backend:
        id = names.store_id(backend, store)
        found = list(
            names.every(
                lambda page: backend.list_rejected_writes(
                    id, state=wanted, limit=PAGE_MAX, page=page
                )
            )
        )
    if json:
        output.data(objects.rejected_write(write) for write in found)
        return
    output.table(("id", "time", "state", "by", "size", "path"), [_row(write) for write in found])


def _state(text: str) -> State | None:
    """The state of that name, None for all."""
    for state in get_args(State):
        if text == state:
            found: State = state
            return found
    if text == _EVERY:
        return None
    raise Stop(USAGE, f"--state is one of {', '.join((*STATES, _EVERY))}.")


def _row(write: RejectedWrite) -> tuple[str, ...]:
    time = clock.rfc3339(write.created_at)[:23] + "Z"
    size = "" if write.content_size_bytes is None else str(write.content_size_bytes)
    return write.id, time, write.state, _author(write), size, write.path or ""


def _author(write: RejectedWrite) -> str:
    return "" if write.created_by is None else write.created_by.id


@app.command()
def show(store: StoreName, id: WriteId, json: AsJson = False) -> None:
    """Show a rejected write: who, when, where it was to be saved, and the text."""
    with opened() as backend:
        write = backend.get_rejected_write(names.store_id(backend, store), id)
    if json:
        output.as_json(objects.rejected_write(write))
        return
    output.fields(_fields(write))
    if write.content is not None:
        output.write("\n")
        output.content(write.content)


def _fields(write: RejectedWrite) -> list[tuple[str, str]]:
    resolver = "" if write.resolved_by is None else write.resolved_by.id
    pairs = (
        ("rejected write", write.id),
        ("state", write.state),
        ("reason", write.reason),
        ("path", write.path),
        ("memory", write.memory_id),
        ("version", write.version_id),
        ("written", clock.rfc3339(write.created_at)),
        ("by", _author(write)),
        ("size", None if write.path is None else f"{write.content_size_bytes} bytes"),
        ("sha256", write.content_sha256),
        ("base sha256", write.base_content_sha256),
        (write.state, None if write.resolved_at is None else clock.rfc3339(write.resolved_at)),
        (f"{write.state} by", resolver or None),
    )
    return [(name, value) for name, value in pairs if value is not None]


@app.command()
def apply(store: StoreName, id: WriteId, if_sha256: Expected = None, json: AsJson = False) -> None:
    """Save the text after all, as your own version; print that version's id."""
    belief = None if if_sha256 is None else ContentIs(if_sha256)
    with opened() as backend:
        write = backend.apply_rejected_write(
            names.store_id(backend, store), id, precondition=belief
        )
    if json:
        output.as_json(objects.rejected_write(write))
    else:
        output.line(write.version_id or "")


@app.command()
def dismiss(store: StoreName, id: WriteId, yes: Yes = False, json: AsJson = False) -> None:
    """Destroy the text, path and hashes for ever; who and when stay."""
    with opened() as backend:
        store_id = names.store_id(backend, store)
        output.confirm(f"Destroy the text of rejected write {id}, for ever?", yes=yes)
        write = backend.dismiss_rejected_write(store_id, id)
    output.as_json(objects.rejected_write(write)) if json else output.line(write.id)
