"""A child process that is kept alive: started, waited for, started again when it dies."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
STEADY_S = 60.0
"""A child that lived this long starts again with the first pause."""
LOG_BYTES = 4 << 20

_PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


def _end_with_parent() -> None:
    """In the child: end by SIGTERM when the parent dies, however it dies (prctl(2), Linux)."""
    if hasattr(_libc, "prctl"):
        _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


class Child:
    """One command. The first line it prints makes it ready, and is kept in `ready`.

    Its standard error goes to `log`. `report` is told, in sentences, what happens to it.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        log: Path,
        report: Callable[[str], None],
    ) -> None:
        self.name = name
        self.ready: str | None = None
        self.exit_status: int | None = None
        self.problem = ""
        self._command = list(command)
        self._environment = dict(environment)
        self._log = log
        self._report = report
        self._process: subprocess.Popen[bytes] | None = None
        self._output = b""
        self._started = 0.0
        self._pause = FIRST_PAUSE_S
        self._again = 0.0
        self._log_start = 0

    @property
    def pid(self) -> int | None:
        """Its process id while it runs."""
        return None if self._process is None else self._process.pid

    @property
    def running(self) -> bool:
        """Whether there is a process."""
        return self._process is not None

    def start(self) -> None:
        """Start it, in a session of its own: the terminal's Ctrl-C is for its parent."""
        if self._log.exists() and self._log.stat().st_size > LOG_BYTES:
            self._log.replace(self._log.with_suffix(".log.1"))
        with self._log.open("ab") as log:
            self._log_start = log.tell()
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=self._environment,
                start_new_session=True,
                preexec_fn=_end_with_parent,
            )
        self.ready, self.exit_status, self._output = None, None, b""
        self._started = time.monotonic()
        assert self._process.stdout is not None
        os.set_blocking(self._process.stdout.fileno(), False)

    @property
    def output(self) -> int | None:
        """The descriptor that becomes readable when it says something or ends."""
        if self._process is None or self._process.stdout is None:
            return None
        return self._process.stdout.fileno()

    @property
    def due(self) -> bool:
        """Whether it should be started now: it is not running, and its pause is over."""
        return self._process is None and time.monotonic() >= self._again

    def postpone(self) -> None:
        """Let the next start wait, each time longer."""
        self._again = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, LONGEST_PAUSE_S)

    def look(self) -> None:
        """Take in what it said, and whether it ended."""
        if self._process is None:
            return
        self._listen()
        status = self._process.poll()
        if status is not None:
            self._ended(status)

    def _listen(self) -> None:
        descriptor = self.output
        if descriptor is None:
            return
        try:
            said = os.read(descriptor, 4096)
        except BlockingIOError:
            return
        if not said:
            self._close_output()
        elif self.ready is None:
            self._output += said
            text, newline, _ = self._output.partition(b"\n")
            if newline:
                self.ready, self.problem = text.decode("utf-8", "replace"), ""

    def _ended(self, status: int) -> None:
        lived = time.monotonic() - self._started
        was_ready = self.ready is not None
        self._forget()
        self.exit_status = status
        if lived > STEADY_S:
            self._pause = FIRST_PAUSE_S
        self.problem = self.last_words() or f"it ended with status {status}"
        if was_ready:
            self._report(f"{self.name} ended unexpectedly ({self.problem}); starting it again.")
        self.postpone()

    def _forget(self) -> None:
        self._close_output()
        self._process, self.ready = None, None

    def _close_output(self) -> None:
        if self._process is not None and self._process.stdout is not None:
            self._process.stdout.close()
            self._process.stdout = None

    def last_words(self) -> str:
        """The last line it wrote to its log since it was started, without the program's name."""
        try:
            with self._log.open("rb") as log:
                log.seek(self._log_start)
                lines = log.read(1 << 16).decode("utf-8", "replace").split("\n")
        except OSError:
            return ""
        words = [line.strip() for line in lines if line.strip()]
        return words[-1].removeprefix("memstore: ").rstrip(".") if words else ""

    def terminate(self) -> None:
        """Ask it to end."""
        if self._process is not None:
            self._process.terminate()

    def finish(self, deadline: float) -> bool:
        """Wait for its end until the monotonic time; kill it then. Whether it ended by itself."""
        if self._process is None:
            return True
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
            orderly = True
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            orderly = False
        self.exit_status = self._process.returncode
        self._forget()
        return orderly
