"""`rollback`, `changes`: undo, and what one author changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from memstore.cli import changesets, coloured, lineage, moments, names, output
from memstore.cli.exits import CONFLICT, USAGE, Stop
from memstore.cli.lineage import ActorId, Key, Session
from memstore.cli.options import AsJson, MaybePath, OneVersion, StoreName, Yes
from memstore.cli.service import opened
from memstore.model import clock, objects
from memstore.model.rollback import Rollback, RollbackChange, RollbackTarget

if TYPE_CHECKING:
    from memstore.backend import Backend


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (rollback, changes):
        app.command()(command)


def rollback(
    store: StoreName,
    path: MaybePath = None,
    version: OneVersion = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="TIME", help=f"Back to then. {moments.HELP}")
    ] = None,
    session: Session = None,
    key: Key = None,
    actor: ActorId = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would change, as a diff; change nothing.")
    ] = False,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Undo: one memory to a version, a store or PATH to a moment, or what one author wrote.

    It writes new versions and removes none, so it can be undone, too. What cannot be undone
    cleanly is listed and left as it is; the exit status is 4 then.
    """
    given = (version, to, session, key, actor)
    if sum(one is not None for one in given) != 1:
        raise Stop(USAGE, "Give one of --version, --to, --session, --key, --actor: undo what?")
    target = RollbackTarget(
        version_id=version,
        to=moments.moment(to, "--to"),
        session_id=session,
        api_key_id=key,
        actor_id=actor,
        path=None if path is None or path.strip("/") == "" else names.memory_path(path.rstrip("/")),
    )
    with opened() as backend:
        id = names.store_id(backend, store)
        if dry_run:
            found = backend.rollback(id, target, dry_run=True)
        else:
            _ask(backend, id, store, target, yes=yes)
            found = backend.rollback(id, target)
    if json:
        output.as_json(objects.rollback(found))
    else:
        _show(found, store)
    conflicts = sum(change.outcome == "conflict" for change in found.changes)
    if conflicts and not dry_run:
        raise Stop(CONFLICT, f"{conflicts} could not be undone cleanly and stay as they are.")


def _ask(backend: Backend, id: str, store: str, target: RollbackTarget, *, yes: bool) -> None:
    """Show on a terminal what is about to happen, and ask."""
    what = f"Roll back {store!r}?"
    if not yes and output.on_terminal():
        trial = backend.rollback(id, target, dry_run=True)
        _table(trial)
        count = sum(change.operation is not None for change in trial.changes)
        what = f"Write {count} new versions in {store!r}?"
    output.confirm(what, yes=yes)


def _show(found: Rollback, store: str) -> None:
    for change in found.changes:
        if change.diff:
            coloured.show(change.diff)
        if change.diff_omitted:
            output.line(f"{change.path}: not shown, since all of it would be too much.")
    if not found.changes:
        output.line("There is nothing to undo.")
        return
    _table(found)
    if found.before is not None and any(change.operation for change in found.changes):
        back = clock.rfc3339(found.before)
        output.line(f"To undo this, together with what is written after it: --to {back}")


def _table(found: Rollback) -> None:
    output.table(("outcome", "path", "version", "reason"), [_row(one) for one in found.changes])


def _row(change: RollbackChange) -> tuple[str, ...]:
    path = change.path or "(redacted)"
    if change.old_path not in (None, change.path):
        path = f"{change.old_path} -> {path}"
    return change.outcome, path, change.version_id_after or "", change.reason or ""


def changes(
    store: StoreName,
    path: MaybePath = None,
    session: Session = None,
    key: Key = None,
    actor: ActorId = None,
    json: AsJson = False,
) -> None:
    """Show what one author changed as one diff: each memory before their first and after their last.

    Where others wrote in between, their changes are part of the diff, and it says so.
    """
    where = lineage.chosen(session=session, key=key, actor=actor)
    if not (where.session_id or where.api_key_id or where.service_account_id):
        raise Stop(USAGE, "Whose changes? Give one of --session, --key, --actor.")
    with opened() as backend:
        id = names.store_id(backend, store)
        top = None if path is None else names.memory_path(path.rstrip("/"))
        found = changesets.of_author(backend, id, where, top)
    if json:
        output.data(changesets.as_json(one) for one in found)
        return
    for one in found:
        if one.others:
            output.line(f"# {one.path}: others wrote here in between")
        if one.redacted:
            output.line(f"# {one.path}: redacted, so there is nothing to compare")
        coloured.show(one.diff)
