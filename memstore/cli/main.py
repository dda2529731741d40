"""`memstore`: parse, call one verb, print. A refusal is one sentence and an exit status.

`serve` and `mount` join by the entry points of the group `memstore.commands`; one that
does not load says so when it is asked for, and harms no other command.
"""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from memstore import __version__
from memstore.cli import (
    edit,
    exits,
    keys,
    memories,
    output,
    redact,
    rejected,
    rollback,
    sessions,
    stores,
    tool,
    up,
    upkeep,
    versions,
)
from memstore.model.errors import MemstoreError

GROUP = "memstore.commands"

app = typer.Typer(
    name="memstore",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Versioned memory for agents: a store, its service, and a live mount.",
)


def _version(wanted: bool) -> None:
    if wanted:
        output.line(f"memstore {__version__}")
        raise typer.Exit()


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Versioned memory for agents: a store, its service, and a live mount."""


up.register(app)
app.add_typer(stores.app, name="store")
for _module in (memories, edit, versions, rollback, redact):
    _module.register(app)
app.add_typer(rejected.app, name="rejected")
app.add_typer(sessions.app, name="session")
app.add_typer(keys.app, name="key")
upkeep.register(app)
tool.register(app)

_OWN = frozenset(
    {
        command.name or command.callback.__name__
        for command in app.registered_commands
        if command.callback
    }
    | {group.name for group in app.registered_groups}
)


def add_entry_points(app: typer.Typer) -> None:
    """Let the other layers add their commands."""
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP):
        try:
            point.load()(app)
        except Exception as error:
            _stand_in(app, point.name, f"{type(error).__name__}: {error}")


def _stand_in(app: typer.Typer, name: str, why: str) -> None:
    """A command in the place of one that does not load: says so, when it is asked for."""
    settings = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}

    def broken() -> None:
        raise exits.Stop(exits.UNEXPECTED, f"The command {name!r} could not be loaded ({why}).")

    app.command(name, context_settings=settings, help="(could not be loaded)")(broken)


def _command(arguments: list[str]) -> Any:
    """The parser; the entry points are loaded only when a word may be theirs."""
    if not (arguments and arguments[0] in _OWN):
        add_entry_points(app)
    return typer.main.get_command(app)


def main(arguments: list[str]) -> int:
    """Run one command; its exit status."""
    try:
        status = _command(arguments).main(arguments, prog_name="memstore", standalone_mode=False)
        sys.stdout.flush()
        return status if isinstance(status, int) else exits.DONE
    except exits.Stop as stop:
        return _failed(stop.status, str(stop))
    except MemstoreError as refusal:
        return _failed(exits.status_of(refusal), refusal.message)
    except BrokenPipeError:
        # Whoever read the output has gone; Python must not complain about it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.PIPE_CLOSED
    except KeyboardInterrupt:
        return exits.INTERRUPTED
    except Exception as error:
        if hasattr(error, "format_message"):
            return _misused(error)
        if type(error).__name__ == "Abort":
            return exits.INTERRUPTED
        if os.environ.get("MEMSTORE_DEBUG"):
            raise
        return _failed(
            exits.UNEXPECTED,
            f"Something unexpected went wrong ({type(error).__name__}: {error}); "
            "MEMSTORE_DEBUG=1 shows where.",
        )


def _failed(status: int, sentence: str) -> int:
    output.tell(f"memstore: {' '.join(sentence.split())}")
    return status


def _misused(error: Any) -> int:
    """A usage error of the parser: its sentence, and where the help is."""
    context = getattr(error, "ctx", None)
    if context is not None and type(error).__name__ == "NoArgsIsHelpError":
        sys.stderr.write(context.get_help() + "\n")
        return exits.USAGE
    sentence = error.format_message().rstrip(".")
    path = context.command_path if context is not None else "memstore"
    return _failed(exits.USAGE, f"{sentence}: see `{path} --help`.")


def run() -> None:
    """The console script."""
    sys.exit(main(sys.argv[1:]))
