"""`memstore key ...`."""

from __future__ import annotations

from typing import Annotated

import typer

from memstore.cli import names, output
from memstore.cli.options import AsJson
from memstore.cli.service import opened, settings
from memstore.model import clock, objects
from memstore.model.access import SCOPES, validate_scopes
from memstore.model.limits import PAGE_MAX

app = typer.Typer(
    no_args_is_help=True, help="Make, list and revoke API keys; rotate the master key."
)


@app.command()
def create(
    name: Annotated[str, typer.Option("--name", help="For people.")] = "",
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", help=f"One of {', '.join(SCOPES)}; repeatable, or with commas."),
    ] = None,
    workspace: Annotated[
        str, typer.Option("--workspace", help="A workspace's name, made when new.")
    ] = "",
    json: AsJson = False,
) -> None:
    """Make a key (read and write unless told otherwise); the secret is shown once."""
    asked = [part for item in scope or ["read,write"] for part in item.split(",") if part]
    scopes = validate_scopes(asked)
    with opened() as backend:
        key, secret = backend.create_key(name=name, scopes=scopes, workspace=workspace)
    if json:
        output.as_json({**objects.key(key), "key": secret})
    else:
        output.fields([("id", key.id), ("key", secret)])


@app.command("list")
def list_(json: AsJson = False) -> None:
    """List the workspace's keys, newest first, revoked ones too."""
    with opened() as backend:
        found = list(names.every(lambda page: backend.list_keys(limit=PAGE_MAX, page=page)))
    if json:
        output.data(objects.key(key) for key in found)
        return
    output.table(
        ("id", "name", "scopes", "created", "state"),
        [
            (
                key.id,
                key.name,
                ",".join(key.scopes),
                clock.rfc3339(key.created_at)[:19] + "Z",
                "revoked" if key.revoked_at else "",
            )
            for key in found
        ],
    )


@app.command("rotate-master")
def rotate_master(
    data_dir: Annotated[
        str | None, typer.Option("--data-dir", metavar="DIR", help="Where the database lives.")
    ] = None,
    database: Annotated[
        str | None,
        typer.Option("--database", metavar="URL", help="sqlite:///FILE, postgresql://..."),
    ] = None,
    new_file: Annotated[
        str | None,
        typer.Option(
            "--new-file", metavar="FILE", help="Use the key in FILE, made when it is not there."
        ),
    ] = None,
    json: AsJson = False,
) -> None:
    """Put every key under a new master key; texts stay as they are, the service may run."""
    from memstore.service.database import rotate_master as rotate

    own = settings(data_dir=data_dir, database_url=database)
    rotate(own.key_source, new_file)
    where = new_file or str(own.key_source.master_file)
    if json:
        output.as_json({"type": "master_key_rotated", "file": where})
    else:
        output.line(f"The master key is now the one in {where}.")
    if new_file is not None:
        output.tell("Let MEMSTORE_MASTER_KEY_FILE name that file, then restart the service.")


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key's id.", show_default=False)],
    json: AsJson = False,
) -> None:
    """Make a key useless within a second, in live mounts too."""
    with opened() as backend:
        revoked = backend.revoke_key(key)
    output.as_json(objects.key(revoked)) if json else output.line(revoked.id)
