"""Running `memstore` in a process of its own, in pipes or on a terminal."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

DEADLINE_SECONDS = 90.0
PROGRAM = (sys.executable, "-m", "memstore.cli")


@dataclass(frozen=True)
class Ran:
    """How a command ended."""

    status: int
    raw: bytes
    err: str

    @property
    def out(self) -> str:
        """Standard output as text."""
        return self.raw.decode()

    @property
    def json(self) -> Any:
        """Standard output as JSON."""
        return json.loads(self.raw)

    @property
    def sentence(self) -> str:
        """The one line on standard error, without the program's name."""
        lines = self.err.splitlines()
        assert len(lines) == 1 and lines[0].startswith("memstore: "), self.err
        assert "Traceback" not in self.err
        return lines[0].removeprefix("memstore: ")


class Command:
    """`memstore` with a fixed environment; nothing of the tester's own settings gets in."""

    def __init__(self, **environ: str) -> None:
        plain = {k: v for k, v in os.environ.items() if not k.startswith("MEMSTORE_")}
        for name in ("VISUAL", "EDITOR"):
            plain.pop(name, None)
        self.environ = {**plain, **environ}

    def but(self, **environ: str) -> Command:
        """The same with other settings."""
        return Command(**{**self.environ, **environ})

    def run(self, *arguments: str, stdin: bytes | str = b"") -> Ran:
        """Run it to its end in pipes."""
        data = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            [*PROGRAM, *arguments],
            input=data,
            capture_output=True,
            env=self.environ,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr.decode())

    def good(self, *arguments: str, stdin: bytes | str = b"") -> Ran:
        """Run it; it succeeds and complains of nothing."""
        ran = self.run(*arguments, stdin=stdin)
        assert (ran.status, ran.err) == (0, ""), (arguments, ran)
        return ran

    def bad(self, status: int, *arguments: str, stdin: bytes | str = b"") -> str:
        """Run it; it fails with the status, says one sentence and prints nothing else."""
        ran = self.run(*arguments, stdin=stdin)
        assert (ran.status, ran.raw) == (status, b""), (arguments, ran)
        return ran.sentence

    def on_terminal(self, *arguments: str, typed: str = "") -> tuple[int, str]:
        """Run it on a terminal of its own; its status, and everything that reached the screen."""
        leader, follower = pty.openpty()
        process = subprocess.Popen(
            [*PROGRAM, *arguments],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env=self.environ,
            start_new_session=True,
        )
        os.close(follower)
        os.write(leader, typed.encode())
        screen = b""
        end = time.monotonic() + DEADLINE_SECONDS
        try:
            while time.monotonic() < end:
                if not select.select([leader], [], [], 1.0)[0]:
                    continue
                part = os.read(leader, 65536)
                if not part:
                    break
                screen += part
        except OSError:
            pass  # EIO: the other side of the terminal is closed.
        finally:
            os.close(leader)
            process.kill() if time.monotonic() >= end else None
            status = process.wait(DEADLINE_SECONDS)
        return status, screen.decode().replace("\r\n", "\n")
