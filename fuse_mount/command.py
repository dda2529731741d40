"""`memstore mount`, `memstore prepare` and `memstore umount`."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from memstore.cli.exits import DONE, REFUSED, UNAVAILABLE, UNEXPECTED, USAGE, Stop

if TYPE_CHECKING:
    from fuse_mount.spec import Spec
    from memstore.settings import Settings

SUPERVISOR = (sys.executable, "-P", "-m", "fuse_mount.supervisor")
START_S = 95.0
"""How long a driver may take to be ready."""


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("mount", no_args_is_help=False)(mount)
    app.command("prepare")(prepare)
    app.command("umount")(umount)


def mount(
    store: Annotated[
        str | None, typer.Argument(metavar="[STORE]", help="A store's id or unique name.")
    ] = None,
    directory: Annotated[
        str | None,
        typer.Argument(
            metavar="[DIR]", help="Where; by default the store's slug below the mount root."
        ),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Nothing can be written through it.")
    ] = False,
    session: Annotated[
        str | None,
        typer.Option(
            "--session", metavar="ID", help="Mount as this session: all its stores, or STORE."
        ),
    ] = None,
    root: Annotated[
        str | None,
        typer.Option("--root", metavar="DIR", help="The mount root (/mnt/memory)."),
    ] = None,
    foreground: Annotated[
        bool, typer.Option("--foreground", help="Stay; Ctrl-C drains and unmounts.")
    ] = False,
    options: Annotated[
        list[str] | None,
        typer.Option("-o", metavar="KEY=VALUE,...", help="Mount options; may be repeated."),
    ] = None,
) -> None:
    """Mount a store as a directory; returns when it is ready, a daemon behind it.

    MEMSTORE_STORE names the store when neither STORE nor --session is given.
    """
    from fuse_mount.errors import MountError
    from fuse_mount.plan import plan
    from fuse_mount.spec import parse_options
    from memstore.cli import service

    own = service.settings(mount_root=root)
    if store is None and session is None:
        store = own.get("store") or None
    if store is None and session is None:
        raise Stop(USAGE, "Name a STORE, set MEMSTORE_STORE, or give --session ID.")
    try:
        given = parse_options(
            options or [], uid=os.geteuid(), gid=os.getegid(), root=os.geteuid() == 0
        )
        if read_only:
            given["options"]["read_only"] = True
        specs = plan(own, given, store=store, place=directory, session=session)
        if foreground:
            _serve_here(specs)  # does not return
        else:
            _start_daemons(specs, own)
    except MountError as error:
        raise Stop(error.status, error.message) from None


def _serve_here(specs: Sequence[Spec]) -> NoReturn:
    """One mount, whose supervisor this process becomes."""
    from fuse_mount.kernel import mounting

    if len(specs) != 1:
        raise Stop(USAGE, "--foreground serves one mount: name the STORE beside --session.")
    spec = specs[0]
    inherited = mounting.inherited(spec.place)
    if inherited is not None:
        os.set_inheritable(inherited, True)
    words = os.memfd_create("memstore-mount", 0)  # inherited: it holds a secret, unlike arguments
    os.write(words, spec.dumps())
    os.lseek(words, 0, os.SEEK_SET)
    os.execv(SUPERVISOR[0], [*SUPERVISOR, str(words), "--foreground"])  # noqa: S606


def _start_daemons(specs: Sequence[Spec], own: Settings) -> None:
    """A supervisor and a driver for each mount; on a failure the ones already up are ended again."""
    import dataclasses

    started: list[subprocess.Popen[bytes]] = []
    try:
        for spec in specs:
            default = own.data_dir / "logs" / f"mount-{spec.store_id}.log"
            told = dataclasses.replace(spec, log=spec.log or str(default))
            started.append(_spawn(told))
        for spec, process in zip(specs, started, strict=True):
            print(f"mounted {spec.name} at {_wait_ready(spec, process)}", flush=True)
    except BaseException:
        for process in started:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        raise
    for process in started:
        process.returncode = DONE  # it outlives this command; nobody waits for it here


def _spawn(spec: Spec) -> subprocess.Popen[bytes]:
    from fuse_mount.kernel import mounting

    inherited = mounting.inherited(spec.place)
    process = subprocess.Popen(
        [*SUPERVISOR, "0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None,
        start_new_session=True,
        pass_fds=[] if inherited is None else [inherited],
    )
    assert process.stdin is not None
    try:
        process.stdin.write(spec.dumps())
        process.stdin.close()
    except BrokenPipeError:
        pass  # it has died; its end tells why
    return process


def _wait_ready(spec: Spec, process: subprocess.Popen[bytes]) -> str:
    """The place, once the driver serves; its own refusal otherwise."""
    assert process.stdout is not None
    with process.stdout:
        if not select.select([process.stdout], [], [], START_S)[0]:
            raise Stop(UNAVAILABLE, f"{spec.place} was not ready after {START_S:g} s.")
        line = process.stdout.readline()
    if not line:
        raise Stop(
            UNEXPECTED,
            f"The driver for {spec.place} ended with status {process.wait()}; see its messages above.",
        )
    answer: dict[str, Any] = json.loads(line)
    if "error" in answer:
        raise Stop(int(answer["status"]), str(answer["error"]))
    return str(answer["ready"])


def prepare(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="Where to mount.")],
    command: Annotated[
        list[str],
        typer.Argument(metavar="COMMAND...", help="Serves it; {} becomes /dev/fd/N."),
    ],
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Nothing can be written through it.")
    ] = False,
    name: Annotated[
        str, typer.Option("--name", help="Shown in the mount table as memstore:NAME.")
    ] = "prepared",
) -> None:
    """Mount with this user's rights, and let COMMAND serve it without any.

    memstore prepare /mnt/notes -- CONTAINER-COMMAND memstore mount STORE {} --foreground
    """
    from fuse_mount.errors import MountError
    from fuse_mount.kernel.mounting import Options
    from fuse_mount.preparing import serve_by

    if not name.replace("-", "").replace("_", "").isalnum():
        raise Stop(USAGE, "NAME consists of letters, digits, - and _.")
    try:
        options = Options(name, read_only, allow_other=os.geteuid() == 0)
        status = serve_by(directory, command, options)
    except MountError as error:
        raise Stop(error.status, error.message) from None
    except OSError as error:
        raise Stop(USAGE, f"{command[0]} could not be run ({error.strerror}).") from None
    raise typer.Exit(status)


def umount(
    directory: Annotated[str, typer.Argument(metavar="DIR", help="A mounted store's place.")],
) -> None:
    """Unmount a store: what is dirty is committed first; returns when the driver has ended."""
    from fuse_mount.unmounting import Outcome, end_mount

    path = Path(directory)
    try:
        outcome = end_mount(path)
    except OSError as error:
        raise Stop(REFUSED, f"{path} could not be unmounted ({error.strerror}).") from None
    if outcome is Outcome.NOT_MOUNTED:
        raise Stop(USAGE, f"No store is mounted at {path}: see `mount -t fuse.memstore`.")
    if outcome is Outcome.FORCED:
        print(f"{path}: the driver did not answer and was cut off.", file=sys.stderr)
