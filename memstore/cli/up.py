"""`up`, `down`, `status`: the service and the mounts of this machine."""

from __future__ import annotations

import json as json_text
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from memstore.cli import output
from memstore.cli.exits import DONE, REFUSED, UNAVAILABLE, UNEXPECTED, Stop
from memstore.cli.options import AsJson
from memstore.cli.service import settings
from memstore.settings import Settings

DOWN_S = 90.0
"""Longer than mounts may drain and the service may finish."""

DataDir = Annotated[
    str | None, typer.Option("--data-dir", metavar="DIR", help="Where the database lives.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (up, down, status):
        app.command()(command)


def up(
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Return when ready.")] = False,
    root: Annotated[
        str | None, typer.Option("--root", metavar="DIR", help="Mount stores below it.")
    ] = None,
    data_dir: DataDir = None,
    database: Annotated[str | None, typer.Option("--database", metavar="URL")] = None,
    listen: Annotated[
        list[str] | None, typer.Option("--listen", metavar="HOST:PORT", help="Repeatable.")
    ] = None,
    report_to: Annotated[int | None, typer.Option("--report-to", hidden=True)] = None,
) -> None:
    """Start the service, mount every store, and keep both running until Ctrl-C."""
    own = settings(
        data_dir=_absolute(data_dir),
        database_url=database,
        listen=",".join(listen) if listen else None,
        mount_root=_absolute(root),
    )
    if detach:
        _detach(own, root, data_dir, database, listen)
    elif report_to is not None:
        _run_detached(own, report_to)
    else:
        _run(own)


def _absolute(path: str | None) -> str | None:
    return None if path is None else str(Path(path).absolute())


def _plan(own: Settings) -> Any:
    from memstore.cli.local.supervisor import Plan

    return Plan(own, Path(own.get("mount_root")).absolute())


def _run(own: Settings) -> None:
    from memstore.cli.local.supervisor import Supervisor

    def tell(sentence: str) -> None:
        output.tell(f"memstore: {sentence}")

    def ready(state: dict[str, Any]) -> None:
        _announce(state)
        output.tell("Ctrl-C unmounts and stops.")

    Supervisor(_plan(own), tell, tell, ready).run()


def _announce(state: dict[str, Any]) -> None:
    """Where everything is."""
    output.line(f"memstore is up at {' and '.join(state['urls']) or state['socket']}")
    output.line(f"key:    {state['key_file']}")
    for mount in state["mounts"]:
        if mount["state"] == "mounted":
            output.line(f"mount:  {mount['path']}")


def _detach(
    own: Settings,
    root: str | None,
    data_dir: str | None,
    database: str | None,
    listen: list[str] | None,
) -> None:
    """Start another process that does it, and wait for its word."""
    from memstore.cli.local.place import Place

    place = Place(own.data_dir)
    place.prepare()
    command = [sys.executable, "-m", "memstore.cli", "up", "--data-dir", str(own.data_dir)]
    command += ["--root", str(Path(root).absolute())] if root else []
    command += ["--database", database] if database else []
    for address in listen or []:
        command += ["--listen", address]
    reader, writer = os.pipe()
    with (place.logs / "up.log").open("ab") as log:
        process = subprocess.Popen(
            [*command, "--report-to", str(writer)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            pass_fds=(writer,),
            start_new_session=True,
            cwd="/",
        )
    os.close(writer)
    with os.fdopen(reader) as words:
        said = [json_text.loads(line) for line in words]
    last = said[-1] if said else {}
    for word in said:
        if "report" in word:
            output.tell(f"memstore: {word['report']}")
    if "ready" in last:
        _announce(last["ready"])
        output.line(f"log:    {place.logs / 'up.log'}")
        return
    process.wait()
    if "failed" in last:
        raise Stop(last["status"], last["failed"])
    raise Stop(UNEXPECTED, f"It ended before it was ready: see {place.logs / 'up.log'}.")


def _run_detached(own: Settings, descriptor: int) -> None:
    """The process behind `--detach`: reports to the pipe until it is ready, then to its log."""
    from memstore.cli.local.supervisor import Supervisor

    pipe: Any = os.fdopen(descriptor, "w")
    os.set_inheritable(descriptor, False)

    def say(word: dict[str, Any]) -> None:
        if not pipe.closed:
            try:
                pipe.write(json_text.dumps(word) + "\n")
                pipe.flush()
            except BrokenPipeError:
                return

    def tell(sentence: str) -> None:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        output.tell(f"{stamp} {sentence}")

    def report(sentence: str) -> None:
        tell(sentence)
        say({"report": sentence})

    def ready(state: dict[str, Any]) -> None:
        say({"ready": state})
        pipe.close()

    try:
        Supervisor(_plan(own), report, tell, ready).run()
    except Stop as stop:
        say({"failed": str(stop), "status": stop.status})
        raise


def down(data_dir: DataDir = None) -> None:
    """Stop the running `up`: save what is dirty, unmount, end the service."""
    from memstore.cli.local.place import Place

    place = Place(settings(data_dir=_absolute(data_dir)).data_dir)
    pid = place.holder()
    if pid is None:
        output.line("memstore is not up.")
        return
    mounts = [mount["path"] for mount in place.read_state().get("mounts", [])]
    try:
        os.kill(pid, signal.SIGTERM)
    except PermissionError:
        raise Stop(REFUSED, f"memstore (pid {pid}) belongs to another user.") from None
    except ProcessLookupError:
        pass
    deadline = time.monotonic() + DOWN_S
    while place.holder() == pid or _still_mounted(mounts):
        if time.monotonic() > deadline:
            raise Stop(UNEXPECTED, f"memstore (pid {pid}) has not ended: see {place.logs}.")
        time.sleep(0.05)
    output.line("memstore is down.")


def _still_mounted(mounts: list[str]) -> bool:
    from memstore.cli.local.points import mounted

    return any(mounted(Path(mount)) for mount in mounts)


def status(data_dir: DataDir = None, json: AsJson = False) -> None:
    """Show the service and the mounts, and whether each answers; exit 6 when the service does not."""
    from memstore.cli.local.status import look

    found = look(settings(data_dir=_absolute(data_dir)))
    if json:
        output.as_json(found)
    else:
        _print_status(found)
    if not found["service"]["answers"]:
        raise typer.Exit(UNAVAILABLE)
    raise typer.Exit(DONE)


def _print_status(found: dict[str, Any]) -> None:
    service = found["service"]
    answers = "answers" if service["answers"] else f"does not answer: {service['problem']}"
    pairs = [
        ("up", f"pid {found['pid']}" if found["pid"] else "no"),
        ("service", f"{service['url']} {answers}"),
        ("version", service["version"] or "unknown"),
        ("database", found["database"]),
    ]
    for mount in found["mounts"]:
        state = "answers" if mount["answers"] else f"does not answer: {mount['problem']}"
        pairs.append(("mount", f"{mount['path']} ({mount['name']}) {state}"))
    if found["problem"]:
        pairs.append(("problem", found["problem"]))
    output.fields(pairs)
