"""`memstore serve`: the service alone."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from memstore.cli.exits import INVALID, UNAVAILABLE, USAGE, Stop, status_of
from memstore.model.errors import Invalid, MemstoreError
from memstore.settings import Settings

if TYPE_CHECKING:
    from api.listen import Address


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("serve")(serve)


def serve(
    data_dir: Annotated[
        Path | None, typer.Option(help="Where the database and keys live.", show_default=False)
    ] = None,
    database: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The database; SQLite in the data directory."),
    ] = None,
    listen: Annotated[
        list[str] | None,
        typer.Option(metavar="HOST:PORT|unix:PATH", help="Where to listen; may be repeated."),
    ] = None,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that serve.")] = 1,
    extensions: Annotated[
        bool,
        typer.Option(
            "--extensions/--no-extensions", help="Offer more than the hosted API's endpoints."
        ),
    ] = True,
    heartbeat: Annotated[
        float,
        typer.Option(min=0.05, max=15.0, help="Seconds between signs of life of an idle stream."),
    ] = 10.0,
    log_level: Annotated[
        str, typer.Option(metavar="LEVEL", help="debug, info (a line a request), warning, error.")
    ] = "warning",
) -> None:
    """Serve the API until interrupted; prints one line when ready."""
    from api.logs import LEVELS

    if log_level not in LEVELS:
        raise Stop(USAGE, f"--log-level is one of {', '.join(LEVELS)}, not {log_level!r}.")
    flags = {
        "data_dir": None if data_dir is None else str(data_dir),
        "database_url": database,
        "listen": ",".join(listen) if listen else None,
    }
    try:
        settings = Settings(flags)
        caps = settings.integer("max_memories"), settings.integer("max_bytes")
    except ValueError as error:
        raise Stop(INVALID, f"{error}.") from None
    _run(settings, caps, workers, extensions, heartbeat, log_level)


def _run(
    settings: Settings,
    caps: tuple[int, int],
    workers: int,
    extensions: bool,
    heartbeat: float,
    log_level: str,
) -> None:
    """Prepare everything that can be refused, then serve."""
    # Imported here: every other command would pay for them.
    from api import listen, server

    try:
        addresses = [listen.parse(text.strip()) for text in settings.get("listen").split(",")]
    except Invalid as refusal:
        raise Stop(USAGE, refusal.message) from None
    _make_private(settings.data_dir)
    options = server.Options(
        settings.database_url,
        *caps,
        extensions,
        heartbeat=heartbeat,
        log_level=log_level,
        keys=settings.key_source,
    )
    try:
        sockets = listen.bind(addresses)
        try:
            server.prepare(options, settings.admin_key_file)
            urls = " and ".join(listen.url_of(bound) for bound in sockets)
            _warn_when_open(addresses)
            server.serve(options, sockets, workers, lambda: _say(f"memstore is ready at {urls}"))
        finally:
            listen.release(sockets, addresses)
    except MemstoreError as refusal:
        raise Stop(status_of(refusal), refusal.message) from None


def _make_private(folder: Path) -> None:
    """Make the data directory, for its owner only; stops when it cannot be used."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise Stop(
            UNAVAILABLE, f"{folder} is not a directory: choose another --data-dir."
        ) from None
    except OSError as error:
        raise Stop(
            UNAVAILABLE, f"{folder} cannot be made ({error.strerror}): choose another --data-dir."
        ) from None
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise Stop(
            UNAVAILABLE, f"{folder} cannot be read and written: mend its mode or choose another."
        )


def _warn_when_open(addresses: list[Address]) -> None:
    """Say that keys and texts travel readable when others can listen in."""
    if not all(address.is_local for address in addresses):
        print(
            "memstore: listening beyond this machine without TLS; put a TLS proxy in front.",
            file=sys.stderr,
        )


def _say(line: str) -> None:
    """One line on standard output, at once; nobody needs to listen."""
    try:
        print(line, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
