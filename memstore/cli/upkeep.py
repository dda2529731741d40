"""`check` and `migrate`: they open the database itself, not the service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memstore.cli import output
from memstore.cli.exits import NOT_FOUND, UNEXPECTED, Stop
from memstore.cli.options import AsJson
from memstore.cli.service import settings

DataDir = Annotated[
    str | None, typer.Option("--data-dir", metavar="DIR", help="Where the database lives.")
]
Database = Annotated[
    str | None, typer.Option("--database", metavar="URL", help="sqlite:///FILE, postgresql://...")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(check)
    app.command()(migrate)


def _url(data_dir: str | None, database: str | None) -> str:
    """The database's URL; a SQLite file that is not there is not made."""
    url = settings(data_dir=data_dir, database_url=database).database_url
    scheme, _, file = url.partition("///")
    if scheme == "sqlite:" and not Path(file).exists():
        raise Stop(NOT_FOUND, f"There is no database at {file}: `memstore up` makes one.")
    return url


def check(data_dir: DataDir = None, database: Database = None, json: AsJson = False) -> None:
    """Check every invariant of the database; exit 1 when one does not hold."""
    from memstore.service.database import check as find

    found = find(_url(data_dir, database))
    if json:
        output.data(found)
    elif found:
        for sentence in found:
            output.line(sentence)
    else:
        output.line("The database is in order.")
    if found:
        raise Stop(UNEXPECTED, f"{len(found)} findings: keep the file, and restore a backup.")


def migrate(data_dir: DataDir = None, database: Database = None, json: AsJson = False) -> None:
    """Bring the database's schema up to this version."""
    from memstore.service.database import open_database

    url = _url(data_dir, database)
    engine = open_database(url)
    try:
        revision = engine.schema_revision()
    finally:
        engine.close()
    if json:
        output.as_json({"type": "migration", "revision": revision})
    else:
        output.line(f"The database is at revision {revision}.")
