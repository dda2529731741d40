"""Ending a mount from outside: its driver is asked to, and waited for."""

from __future__ import annotations

import errno
import os
import select
import signal
import threading
from enum import Enum, auto
from pathlib import Path

from fuse_mount.kernel import mounting
from fuse_mount.kernel.operations import DRIVER_XATTR
from fuse_mount.mount import identity

END_S = 60.0
"""How long a driver may drain: its commits retry for 30 s, and some."""


class Outcome(Enum):
    """How it went."""

    NOT_MOUNTED = auto()
    ENDED = auto()
    FORCED = auto()


def end_mount(place: Path) -> Outcome:
    """Drain and unmount the store at a place; bounded, also when the driver hangs. OSError when
    this user may not."""
    path = mounting.canonical(str(place))
    if not _is_mounted(path):
        path = path.resolve()  # a link to a mount point; one that hangs is mounted, not a link
        if not _is_mounted(path):
            return Outcome.NOT_MOUNTED
    answer = _driver(path)
    if answer is None:
        mounting.unmount(path, lazy=True)
        return Outcome.FORCED
    pid = _pid(answer)
    if pid:
        return _end_driver(path, pid)
    try:
        mounting.unmount(path)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        mounting.unmount(path, lazy=True)
    return Outcome.ENDED


def _is_mounted(path: Path) -> bool:
    return mounting.mounted_type(path) == mounting.FSTYPE


def _driver(path: Path) -> bytes | None:
    """What the driver says of itself; empty when it is dead or says nothing, None when it hangs."""
    answers: list[bytes] = []

    def ask() -> None:
        try:
            answers.append(os.getxattr(path, DRIVER_XATTR))
        except OSError:
            answers.append(b"")

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(mounting.PROBE_S)
    return answers[0] if answers else None


def _pid(answer: bytes) -> int:
    """The driver's process id when it lives in this process's namespace, 0 otherwise."""
    first = answer.partition(b" ")[0]
    pid = int(first) if first.isdigit() else 0
    return pid if pid and identity(pid) == answer else 0


def _end_driver(path: Path, pid: int) -> Outcome:
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return _leave(path, Outcome.ENDED)
    try:
        signal.pidfd_send_signal(handle, signal.SIGTERM)
        ended = bool(select.select([handle], [], [], END_S)[0])
    except PermissionError:
        mounting.unmount(path)
        return Outcome.ENDED
    except ProcessLookupError:
        ended = True
    finally:
        os.close(handle)
    return _leave(path, Outcome.ENDED if ended else Outcome.FORCED)


def _leave(path: Path, outcome: Outcome) -> Outcome:
    """Take away what a driver that died left behind."""
    if _is_mounted(path):
        mounting.unmount(path, lazy=True)
    return outcome
