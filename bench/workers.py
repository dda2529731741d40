"""Starting workers together and adding up what they did."""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.harness import BenchError

_PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Work:
    """What workers did together: from the first start to the last end."""

    seconds: float
    operations: int

    @property
    def per_second(self) -> float:
        return self.operations / self.seconds

    @property
    def micros(self) -> float:
        """Microseconds an operation."""
        return self.seconds / self.operations * 1e6

    @property
    def millis(self) -> float:
        return self.seconds * 1e3


def work(*jobs: dict[str, Any], timeout_s: float = _PATIENCE_S) -> Work:
    """Run each job in a process of its own, all started at once; BenchError when one fails."""
    processes = [_start() for _ in jobs]
    try:
        for process, job in zip(processes, jobs, strict=True):
            _tell(process, json.dumps(job))
        for process in processes:
            _hear(process, timeout_s)
        for process in processes:
            _tell(process, "go")
        answers = [json.loads(_hear(process, timeout_s)) for process in processes]
    finally:
        for process in processes:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    if stream is not None:
                        stream.close()
    for answer in answers:
        if "error" in answer:
            raise BenchError(answer["error"])
    started = min(answer["started"] for answer in answers)
    ended = max(answer["ended"] for answer in answers)
    return Work(ended - started, sum(answer["operations"] for answer in answers))


def program(argv: Sequence[str], *, codes: Sequence[int] = (0,)) -> float:
    """Milliseconds a program takes, from its start to its end."""
    return work({"job": "program", "argv": list(argv), "codes": list(codes)}).millis


def _start() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", str(Path(__file__).with_name("worker.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def _tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def _hear(process: subprocess.Popen[str], timeout_s: float) -> str:
    """One line of a worker, which never sends more than one before it is told to go on."""
    assert process.stdout is not None
    until = time.monotonic() + timeout_s
    readable, _, _ = select.select([process.stdout], [], [], max(0.0, until - time.monotonic()))
    if not readable:
        raise BenchError(f"a worker did not answer within {timeout_s:g} s")
    line = process.stdout.readline()
    if not line:
        raise BenchError("a worker ended without an answer")
    return line
