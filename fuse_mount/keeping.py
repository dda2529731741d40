"""The driver's side of its supervisor: what it gets from it, and what it tells it."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fuse_mount.kernel.mounting import Mountpoint
from fuse_mount.kernel.session import Negotiated
from fuse_mount.vfs.journal import Journal

_PR_SET_PDEATHSIG = 1


class Keeper:
    """One driver's line to the supervisor.

    `kept` is the mount to go on with: None when it is still to be made.
    """

    def __init__(self, told: Mapping[str, Any]) -> None:
        self._control = socket.socket(fileno=int(told["control"]))
        first, second = told["journal"]
        self.journal = Journal((first, second))
        self._kept: Mapping[str, Any] | None = told["kept"]
        self._device = int(told["device"])
        self.pid = os.getppid()
        for fd in (self._control.fileno(), first, second, self._device):
            if fd >= 0:
                os.set_inheritable(fd, False)
        _end_with_parent(self.pid)

    def resumed(self) -> tuple[Mountpoint, Negotiated] | None:
        """The mount that an earlier driver made; None when it is still to be made."""
        if self._kept is None:
            return None
        kept = self._kept
        point = Mountpoint(
            fd=self._device,
            path=Path(kept["path"]) if kept["path"] else None,
            device=kept["device"],
            created=[Path(each) for each in kept["created"]],
        )
        return point, Negotiated(**kept["negotiated"])

    def mounted(self, point: Mountpoint, negotiated: Negotiated) -> None:
        """Hand the mount over, to be kept."""
        kept = {
            "path": None if point.path is None else str(point.path),
            "device": point.device,
            "created": [str(each) for each in point.created],
            "negotiated": {
                "minor": negotiated.minor,
                "flags": negotiated.flags,
                "stateless": negotiated.stateless,
            },
        }
        with contextlib.suppress(OSError):
            socket.send_fds(self._control, [json.dumps({"mounted": kept}).encode()], [point.fd])

    def tell(self, message: Mapping[str, object]) -> None:
        """`ready`, `ending` or `error`; nobody may be there to hear it."""
        with contextlib.suppress(OSError):
            self._control.send(json.dumps(message).encode())


def _end_with_parent(parent: int) -> None:
    """Have the kernel send SIGTERM when the supervisor dies (prctl(2))."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGTERM)
