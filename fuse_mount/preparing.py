"""`memstore prepare`: mount with the rights of this process, let a command without them serve it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from fuse_mount.kernel import mounting
from fuse_mount.mount import END_SIGNALS

PLACEHOLDER = "{}"
"""Stands for `/dev/fd/N` in the words of the command."""
DEVICE_VARIABLE = "MEMSTORE_DEVICE"
"""Holds `/dev/fd/N` in the command's environment."""


def serve_by(place: str, words: Sequence[str], options: mounting.Options) -> int:
    """Mount at a place, run a command that inherits the descriptor, unmount when it has ended.

    Returns the command's exit status, 128 and the number where a signal ended it. Signals are
    passed on. MountError when the place cannot be mounted; OSError when there is no such command.
    """
    point = mounting.mount(place, options)
    try:
        device = f"/dev/fd/{point.fd}"
        process = subprocess.Popen(
            [word.replace(PLACEHOLDER, device) for word in words],
            env={**os.environ, DEVICE_VARIABLE: device},
            pass_fds=[point.fd],
        )
    except BaseException:
        os.close(point.fd)
        _leave(point)
        raise
    os.close(point.fd)  # the command alone has it, so its end is the mount's end
    before = {
        number: signal.signal(number, lambda given, _frame: process.send_signal(given))
        for number in END_SIGNALS
    }
    try:
        status = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        _leave(point)
    return status if status >= 0 else 128 - status


def _leave(point: mounting.Mountpoint) -> None:
    """Take the mount away, which nobody serves any more."""
    try:
        if point.mounted():
            mounting.unmount(Path(str(point.path)), lazy=True)
    except OSError as error:
        print(f"memstore: {point.path} could not be unmounted: {error}", file=sys.stderr)
    point.remove_created()
