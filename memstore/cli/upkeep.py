"""`check`, `migrate`, `copy` and `verify`: they open the database itself, not the service."""

from __future__ import annotations

from json import loads
from pathlib import Path
from typing import Annotated, Any

import typer

from memstore.cli import output
from memstore.cli.exits import INVALID, NOT_FOUND, UNEXPECTED, Stop
from memstore.cli.options import AsJson
from memstore.cli.service import settings
from memstore.settings import KeySource

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
    app.command()(verify)
    app.command()(copy)


def place(data_dir: str | None, database: str | None) -> tuple[str, KeySource]:
    """The database's URL and its keys; a SQLite file that is not there is not made."""
    own = settings(data_dir=data_dir, database_url=database)
    url = own.database_url
    scheme, _, file = url.partition("///")
    if scheme == "sqlite:" and not Path(file).exists():
        raise Stop(NOT_FOUND, f"There is no database at {file}: `memstore up` makes one.")
    return url, own.key_source


def check(data_dir: DataDir = None, database: Database = None, json: AsJson = False) -> None:
    """Check every invariant of the database; exit 1 when one does not hold."""
    from memstore.service.database import check as find

    found = find(*place(data_dir, database))
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

    url, source = place(data_dir, database)
    engine = open_database(url, source=source)
    try:
        revision = engine.schema_revision()
    finally:
        engine.close()
    if json:
        output.as_json({"type": "migration", "revision": revision})
    else:
        output.line(f"The database is at revision {revision}.")


def copy(
    to: Annotated[
        str, typer.Option("--to", metavar="URL", help="A new, empty database: postgresql://...")
    ],
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="URL", help="The database to copy; the local service's."),
    ] = None,
    data_dir: DataDir = None,
    json: AsJson = False,
) -> None:
    """Copy a whole service into an empty database, keys included, and compare; stop it first."""
    from memstore.service.database import copy as copy_all

    url, keys = place(data_dir, source)
    counts = copy_all(url, keys, to, settings(data_dir=data_dir).key_source_of(to))
    if json:
        output.as_json({"type": "copy", "rows": counts})
    else:
        said = ", ".join(f"{name} {counts[name]}" for name in ("stores", "memories", "versions"))
        output.line(f"Copied, compared and checked: {said}.")


def verify(
    receipt: Annotated[
        Path,
        typer.Option(
            "--receipt", metavar="FILE", help="A redaction's receipt: its signature and its claims."
        ),
    ],
    data_dir: DataDir = None,
    database: Database = None,
    json: AsJson = False,
) -> None:
    """Check a redaction's receipt against the signing key and the live database; exit 1 if not so."""
    from memstore.service.database import verify_receipt

    found = [
        sentence
        for one in _receipts(receipt)
        for sentence in verify_receipt(*place(data_dir, database), one)
    ]
    if json:
        output.data(found)
    elif found:
        for sentence in found:
            output.line(sentence)
    else:
        output.line("The receipt is true.")
    if found:
        raise Stop(UNEXPECTED, f"{len(found)} findings: do not rely on the receipt.")


def _receipts(file: Path) -> list[dict[str, Any]]:
    """The receipts in a file: one, or a list under `data`, each as the API or `redact` gave it."""
    try:
        found = loads(file.read_text())
    except OSError as error:
        raise Stop(NOT_FOUND, f"{file} cannot be read: {error.strerror}.") from None
    except ValueError:
        raise Stop(INVALID, f"{file} is not JSON.") from None
    items = found.get("data", [found]) if isinstance(found, dict) else [None]
    receipts = [one.get("receipt", one) for one in items if isinstance(one, dict)]
    if not receipts or len(receipts) < len(items) or not all(map(_is_receipt, receipts)):
        raise Stop(INVALID, f"{file} holds no receipt.")
    return receipts


def _is_receipt(value: Any) -> bool:
    """Whether it has the shape of one."""
    return (
        isinstance(value, dict)
        and value.get("type") == "redaction_receipt"
        and isinstance(value.get("store_id"), str)
        and isinstance(value.get("version_id"), str)
        and isinstance(value.get("destroyed"), list)
        and all(isinstance(one, dict) for one in value["destroyed"])
    )
