"""The process that keeps a mount while drivers come and go: `python -m fuse_mount.supervisor`.

It holds the mounted `/dev/fuse` descriptor and the driver's journal, and runs the driver as its
child. A driver that is killed or crashes is replaced by another on the same descriptor, so nobody
who uses the mount notices more than a pause. It imports next to nothing, since it stays in memory
beside every driver. A signal is passed on to the driver; when this process itself is killed, the
driver is told by the kernel (`PR_SET_PDEATHSIG`), saves what it has and unmounts.

The descriptor named by the first argument holds the `Spec`. With `--foreground` what happens is
said in words on standard output and error; without, one JSON line goes to standard output as soon
as the mount is ready or refused, and then the standard descriptors are given up.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import time
from typing import Any

ATTEMPTS = 10
"""How many drivers in a row may die before the mount is given up."""
STEADY_S = 30.0
"""A driver that served so long was no failure to start."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0
START_S = 90.0
"""How long a driver may take to be ready."""
_MESSAGE_BYTES = 65_536


class Supervisor:
    """One mount's keeper."""

    def __init__(self, spec: bytes, *, foreground: bool) -> None:
        self._spec, self._foreground = spec, foreground
        told: dict[str, Any] = json.loads(spec)
        self._place, self._log = str(told["place"]), str(told["log"])
        self._name = str(told["name"])
        self._journal = [os.memfd_create(f"memstore-journal-{each}") for each in range(2)]
        self._passed = _descriptor(self._place)
        self._kept: dict[str, Any] | None = None
        self._device = -1
        self._driver = 0
        self._announced = self._serving = self._ending = False
        self._woken, waker = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        os.set_blocking(waker, False)
        signal.set_wakeup_fd(waker, warn_on_full_buffer=False)

    def run(self) -> int:
        """Keep the mount until it ends; the exit status."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._pass_on)
        signal.signal(signal.SIGHUP, self._pass_on if self._foreground else signal.SIG_IGN)
        failures = 0
        while True:
            started = time.monotonic()
            status = self._one_driver()
            if self._kept is None or self._ending:
                return self._end(status)
            if os.WIFEXITED(status) and os.WEXITSTATUS(status) == GIVE_UP:
                return self._give_up("the kernel cannot ask again for what was in flight")
            served = self._serving and time.monotonic() - started > STEADY_S
            failures = 1 if served else failures + 1
            if failures > ATTEMPTS:
                return self._give_up(f"{ATTEMPTS} drivers in a row have died")
            self._say(f"the driver has ended ({_ending(status)}); another goes on with the mount")
            if failures > 1:
                self._pause(min(FIRST_PAUSE_S * 2 ** (failures - 2), LONGEST_PAUSE_S))
            if self._ending:
                return self._give_up("told to end while no driver was running")

    # One driver

    def _one_driver(self) -> int:
        """Start a driver and follow it to its end; its wait status."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._serving = False
        with ours:
            with theirs:
                self._driver = self._start(theirs.fileno())
            if self._ending:
                self._pass_on(signal.SIGTERM, None)
            self._follow(ours)
        _, status = os.waitpid(self._driver, 0)
        self._driver = 0
        return status

    def _start(self, control: int) -> int:
        inherited = [control, *self._journal]
        told = {
            "spec": json.loads(self._spec),
            "foreground": self._foreground,
            "control": control,
            "journal": self._journal,
            "kept": self._kept,
            "device": self._device,
        }
        if self._device >= 0:
            inherited.append(self._device)
        elif self._passed >= 0:
            inherited.append(self._passed)
        words = os.memfd_create("memstore-driver")
        try:
            os.write(words, json.dumps(told).encode())
            os.lseek(words, 0, os.SEEK_SET)
            null = (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_RDWR, 0)
            for fd in inherited:
                os.set_inheritable(fd, True)
            return os.posix_spawn(
                sys.executable,
                [sys.executable, "-P", "-m", "fuse_mount.driver"],
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, words, 0), null],
                setsigmask=[],
                setsigdef=[signal.SIGTERM, signal.SIGINT, signal.SIGHUP],
            )
        finally:
            for fd in inherited:
                os.set_inheritable(fd, False)
            os.close(words)

    def _follow(self, control: socket.socket) -> None:
        """Take the driver's messages until it is gone, or does not become ready in time."""
        end = time.monotonic() + START_S
        while True:
            left = None if self._serving or self._ending else end - time.monotonic()
            if left is not None and left <= 0:
                self._say(f"the driver was not ready after {START_S:g} s")
                os.kill(self._driver, signal.SIGKILL)
                self._serving = True
                continue
            watched: list[Any] = [control, self._woken]
            readable, _, _ = select.select(watched, [], [], left)
            if self._woken in readable:
                self._drain_wakeups()
            if control in readable and not self._message(control):
                return

    def _message(self, control: socket.socket) -> bool:
        """Take one message; False when there are no more."""
        try:
            data, descriptors, _, _ = socket.recv_fds(control, _MESSAGE_BYTES, 1)
        except ConnectionResetError:
            return False
        if not data:
            return False
        message: dict[str, Any] = json.loads(data)
        if "mounted" in message:
            self._kept, self._device = message["mounted"], descriptors[0]
            if self._passed >= 0:
                os.close(self._passed)
                self._passed = -1
        elif "ready" in message:
            self._serving = True
            self._announce(message)
        elif "ending" in message:
            self._ending = True
            self._let_go()
        elif "error" in message:
            self._announce(message)
        return True

    def _announce(self, message: dict[str, Any]) -> None:
        """Tell whoever started this, once."""
        if self._announced:
            if "error" in message:
                self._say(message["error"])
            return
        self._announced = True
        if not self._foreground:
            _write(1, json.dumps(message))
            if "ready" in message:
                _give_up_terminal()
        elif "ready" in message:
            _write(1, f"mounted {self._name} at {message['ready']}")
        else:
            _write(2, f"memstore: {message['error']}")

    # Signals and ends

    def _pass_on(self, number: int, _frame: object) -> None:
        self._ending = True
        if self._driver:
            try:
                os.kill(self._driver, number)
            except ProcessLookupError:
                return

    def _drain_wakeups(self) -> None:
        try:
            os.read(self._woken, 512)
        except BlockingIOError:
            return

    def _pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self._ending and (left := end - time.monotonic()) > 0:
            if select.select([self._woken], [], [], left)[0]:
                self._drain_wakeups()

    def _let_go(self) -> None:
        """Close the descriptor: the kernel ends the connection when the driver has closed its own."""
        if self._device >= 0:
            os.close(self._device)
            self._device = -1

    def _end(self, status: int) -> int:
        """The driver has ended, as it should or before the mount was made."""
        if os.WIFEXITED(status):
            return os.WEXITSTATUS(status)
        self._say(f"the driver has ended ({_ending(status)}) and could not save what it had")
        return self._unmount()

    def _give_up(self, reason: str) -> int:
        self._say(f"the mount is given up: {reason}")
        return self._unmount()

    def _unmount(self) -> int:
        """Take a mount that nobody serves out of the tree; whoever waits for it gets an error."""
        self._let_go()
        if self._kept is not None and self._kept["path"]:
            from pathlib import Path

            from fuse_mount.kernel import mounting

            point = mounting.Mountpoint(
                fd=-1,
                path=Path(self._kept["path"]),
                device=self._kept["device"],
                created=[Path(each) for each in self._kept["created"]],
            )
            try:
                if point.mounted():
                    mounting.unmount(Path(self._kept["path"]), lazy=True)
            except OSError as error:
                self._say(f"it could not be unmounted: {error}")
            point.remove_created()
        return 1

    def _say(self, sentence: str) -> None:
        """To the log, or to standard error."""
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        line = f"{stamp},000 WARNING {self._place}: {sentence}"
        try:
            fd = os.open(self._log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            _write(2, line)
            return
        _write(fd, line)
        os.close(fd)


GIVE_UP = 75
"""A driver's exit status: the mount cannot go on (EX_TEMPFAIL of sysexits.h)."""


def _descriptor(place: str) -> int:
    """The descriptor that a place `/dev/fd/N` names; -1 for another place."""
    head, _, number = place.rpartition("/")
    return int(number) if head == "/dev/fd" and number.isdigit() else -1


def _ending(status: int) -> str:
    code = os.waitstatus_to_exitcode(status)
    return f"signal {-code}" if code < 0 else f"status {code}"


def _write(fd: int, line: str) -> None:
    try:
        os.write(fd, line.encode("utf-8", "surrogateescape") + b"\n")
    except OSError:
        return  # nobody listens any more


def _give_up_terminal() -> None:
    """Let go of the pipes, so that whoever reads them sees their end."""
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    os.close(null)


def main() -> int:
    """Read the spec and keep its mount."""
    descriptor = int(sys.argv[1])
    with open(descriptor, "rb") as words:
        spec = words.read()
    if descriptor == 0:
        os.open(os.devnull, os.O_RDONLY)
    foreground = "--foreground" in sys.argv[2:]
    os.chdir("/")
    return Supervisor(spec, foreground=foreground).run()


if __name__ == "__main__":
    sys.exit(main())
