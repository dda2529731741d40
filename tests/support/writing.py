"""Writing processes to kill, and what must be there of what they said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memstore.backend import Backend
from memstore.model.errors import NotFound

ROOT = Path(__file__).parents[2]


class Child:
    """A writing process, and what it said was acknowledged."""

    def __init__(
        self, url: str, store_id: str, seed: int, threads: int = 3, **environ: str
    ) -> None:
        self.said: list[list[str]] = []
        command = [sys.executable, "-m", "tests.support.writer_child", url, store_id]
        self.process = subprocess.Popen(
            [*command, str(seed), str(threads)],
            cwd=ROOT,
            env={**os.environ, **environ},
            stdout=subprocess.PIPE,
            text=True,
        )

    def listen(self, lines: int) -> None:
        """Read some acknowledgements."""
        for _ in range(lines):
            self._hear()

    def listen_for(self, operation: str) -> None:
        """Read until one of an operation."""
        while self._hear() != operation:
            pass

    def listen_past(self, operation: str) -> None:
        """Read until one of any other operation."""
        while self._hear() == operation:
            pass

    def _hear(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the writer ended by itself"
        self.said.append(line.split())
        return self.said[-1][0]

    def kill(self) -> None:
        """SIGKILL; then read what was acknowledged in time. A line cut short was not."""
        self.process.send_signal(signal.SIGKILL)
        assert self.process.stdout is not None
        rest = self.process.stdout.read()
        self.said.extend(
            line.split() for line in rest.splitlines(keepends=True) if line[-1] == "\n"
        )
        self.process.wait()
        self.process.stdout.close()


def verify(backend: Backend, store_id: str, said: list[list[str]]) -> None:
    """Each acknowledged change is there, unless a later one by the same writer replaced it."""
    gone = {memory for operation, memory, _, _ in said if operation == "deleted"}
    redacted = {version for operation, _, version, _ in said if operation == "redacted"}
    for operation, memory, version, sha256 in said:
        if operation in ("created", "modified"):
            found = backend.get_version(store_id, version)
            assert (found.memory_id, found.operation) == (memory, operation)
            if version in redacted:
                assert found.redacted_at is not None and found.content is None
            elif found.redacted_at is None:
                assert found.content_sha256 == sha256 and found.content is not None
    for memory in gone:
        with pytest.raises(NotFound):
            backend.get_memory(store_id, memory)
