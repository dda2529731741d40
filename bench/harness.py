"""The stage of a run: a private directory, and every process and mount in it, always cleaned up."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any


class BenchError(Exception):
    """Something of the stage did not work; one sentence."""


class OutOfTime(BenchError):
    """The run's time is used up."""


class Stage:
    """A temporary directory on disk with processes and mounts; leaves nothing behind."""

    def __init__(self, *, budget_s: float) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="memstore-bench-", dir=_disk_directory()))
        self._deadline = time.monotonic() + budget_s
        self._part_deadline = self._deadline
        self._undo: list[Callable[[], None]] = []
        self._numbers = iter(range(1_000_000))
        atexit.register(self.close)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, _leave)

    def __enter__(self) -> Stage:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def begin_part(self, share: float) -> None:
        """Give the next part of the run a share of the time that is left."""
        now = time.monotonic()
        self._part_deadline = now + max(0.0, self._deadline - now) * share

    def check_time(self, needed_s: float = 0.0) -> None:
        """OutOfTime when this part of the run has less left than needed."""
        if self._part_deadline - time.monotonic() < needed_s:
            raise OutOfTime("the rest is not measured: the time for it is used up")

    def directory(self, name: str) -> Path:
        """A fresh directory of the stage."""
        path = self.root / f"{next(self._numbers):03d}-{name}"
        path.mkdir(parents=True)
        return path

    def on_close(self, undo: Callable[[], None]) -> Callable[[], None]:
        """Register what undoes a step; last first. Answers a handle that undoes it now, once."""
        self._undo.append(undo)

        def undo_now() -> None:
            if undo in self._undo:
                self._undo.remove(undo)
                undo()

        return undo_now

    def spawn(
        self, command: Sequence[str], *, log: Path, environ: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """A background process of the stage, its output in a file; ended at close."""
        with log.open("ab") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, **(environ or {})},
                start_new_session=True,
            )
        self.on_close(lambda: end(process))
        return process

    def close(self) -> None:
        """Undo everything; safe to call twice."""
        while self._undo:
            undo = self._undo.pop()
            with contextlib.suppress(Exception):
                undo()
        unmount_below(self.root)
        shutil.rmtree(self.root, ignore_errors=True)


def _disk_directory() -> str | None:
    """The default temporary directory, or the working directory's cache where that is in memory."""
    chosen = os.environ.get("MEMSTORE_BENCH_DIR")
    if chosen:
        return chosen
    if file_system(Path(tempfile.gettempdir())) == "tmpfs":
        cache = Path(__file__).parent / ".cache"
        cache.mkdir(exist_ok=True)
        return str(cache)
    return None


def file_system(path: Path) -> str:
    """The type of the file system that holds a path, as the kernel names it."""
    best, kind = "", "unknown"
    resolved = str(path.resolve())
    for point, fstype in mounts():
        inside = resolved == point or resolved.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, fstype
    return kind


def mounts() -> list[tuple[str, str]]:
    """Mount points and their types."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return [(line.split()[1].replace("\\040", " "), line.split()[2]) for line in lines]


def unmount(point: Path) -> None:
    """Unmount for certain: politely, then lazily."""
    for command in (["umount", str(point)], ["fusermount3", "-u", "-z", str(point)]):
        if not is_mounted(point):
            return
        with contextlib.suppress(subprocess.TimeoutExpired, FileNotFoundError):
            subprocess.run(command, capture_output=True, timeout=15)
    if is_mounted(point):
        subprocess.run(["umount", "-l", str(point)], capture_output=True, timeout=15)


def is_mounted(point: Path) -> bool:
    return str(point) in {mounted for mounted, _ in mounts()}


def unmount_below(root: Path) -> None:
    for point, _ in reversed(mounts()):
        if point.startswith(f"{root}/"):
            unmount(Path(point))


def end(process: subprocess.Popen[bytes], patience_s: float = 10.0) -> None:
    """SIGTERM, then SIGKILL."""
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.kill()
    process.wait()


def wait_until(holds: Callable[[], bool], *, what: str, deadline_s: float) -> None:
    """Poll a condition; BenchError when it does not come true in time."""
    until = time.monotonic() + deadline_s
    while not holds():
        if time.monotonic() > until:
            raise BenchError(f"{what} did not happen within {deadline_s:g} s")
        time.sleep(0.01)


def run(
    command: Sequence[str],
    *,
    timeout_s: float = 120.0,
    environ: Mapping[str, str] | None = None,
    codes: Sequence[int] = (0,),
) -> str:
    """Run a program to its end and answer its output; BenchError on another exit status."""
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_s,
            env={**os.environ, **(environ or {})},
        )
    except subprocess.TimeoutExpired:
        raise BenchError(f"{command[0]} did not end within {timeout_s:g} s") from None
    if done.returncode not in codes:
        words = " ".join(done.stderr.decode(errors="replace").split())
        raise BenchError(
            f"{' '.join(command)[:120]}: exit status {done.returncode}: {words[-200:]}"
        )
    return done.stdout.decode(errors="replace")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def resident_mb(pids: Sequence[int]) -> float:
    """The resident memory of processes together, in MB."""
    total = 0
    for pid in pids:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1])
    return total / 1024


def fuse_servers(mark: str) -> tuple[int, ...]:
    """The processes that hold `/dev/fuse` open and name `mark` in their command or environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            links = {str(descriptor.readlink()) for descriptor in (entry / "fd").iterdir()}
            told = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
            if "/dev/fuse" in links and mark.encode() in told:
                found.append(int(entry.name))
    return tuple(found)


def _leave(number: int, frame: FrameType | None) -> Any:
    sys.exit(128 + number)
