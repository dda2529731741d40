"""The files by which a running `memstore up` is found: a lock, and what it last said of itself.

The lock is an `flock` on `DATA_DIR/run/up.lock`, which ends with the process whatever happens to
it, so a stale pid in the file never misleads.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memstore.cli.exits import REFUSED, Stop

PRIVATE = 0o700
SOCKET_PATH_BYTES = 107
"""The longest path of a Unix socket (unix(7))."""


@dataclass(frozen=True, slots=True)
class Place:
    """The run files of a data directory."""

    data_dir: Path

    @property
    def run(self) -> Path:
        """The folder of the socket, the lock and the state."""
        return self.data_dir / "run"

    @property
    def logs(self) -> Path:
        """The folder of the logs."""
        return self.data_dir / "logs"

    @property
    def socket(self) -> Path:
        """The service's Unix socket."""
        return self.run / "memstore.sock"

    @property
    def has_socket(self) -> bool:
        """Whether the socket's path is short enough to be one."""
        return len(os.fsencode(self.socket)) <= SOCKET_PATH_BYTES

    @property
    def state(self) -> Path:
        """What the running `up` last said of itself, as JSON."""
        return self.run / "up.json"

    @property
    def lock(self) -> Path:
        """Locked while `up` runs; holds its pid."""
        return self.run / "up.lock"

    def prepare(self) -> None:
        """Make the folders, private to their owner; Stop when that cannot be."""
        for folder in (self.data_dir, self.run, self.logs):
            try:
                folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
            except OSError as error:
                raise Stop(
                    REFUSED,
                    f"{folder} cannot be made ({error.strerror}): choose another --data-dir.",
                ) from None

    def take(self) -> int:
        """Take the lock for this process; Stop, naming the holder, when another has it."""
        descriptor = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise Stop(
                REFUSED,
                f"Already up on {self.data_dir} (pid {self.holder() or 'unknown'}): "
                "see `memstore status`, or stop it with `memstore down`.",
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        return descriptor

    def holder(self) -> int | None:
        """The pid of the running `up`, or None."""
        try:
            descriptor = os.open(self.lock, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            text = os.pread(descriptor, 32, 0).strip()
            return int(text) if text.isdigit() else None
        finally:
            os.close(descriptor)
        return None

    def write_state(self, state: dict[str, Any]) -> None:
        """Replace the state in one step."""
        new = self.state.with_suffix(".new")
        new.write_text(json.dumps(state))
        new.replace(self.state)

    def read_state(self) -> dict[str, Any]:
        """The last state; empty when there is none."""
        try:
            state = json.loads(self.state.read_text())
        except (OSError, ValueError):
            return {}
        return state if isinstance(state, dict) else {}
