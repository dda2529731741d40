"""A small process of its own that does one timed job on files.

It takes a job as one line of JSON, says `ready`, starts at the next line and answers one line of
JSON with when it started and ended (seconds of the monotonic clock, which every process shares)
and how many operations it did. Standard library only, so that it starts fast and nothing else of
the harness runs in its interpreter.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

Job = dict[str, Any]


def text(size: int, salt: str) -> bytes:
    """A text of `size` bytes that no other salt gives."""
    line = f"{salt} the quick brown fox jumps over the lazy dog\n".encode()
    return (line * (size // len(line) + 1))[: size - 1] + b"\n" if size else b""


def _write(path: str, flags: int, data: bytes, fsync: bool) -> None:
    descriptor = os.open(path, flags, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        if fsync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read(job: Job) -> int:
    for _ in range(job["rounds"]):
        for path in job["paths"]:
            descriptor = os.open(path, os.O_RDONLY)
            os.read(descriptor, 131072)
            os.close(descriptor)
    return len(job["paths"]) * int(job["rounds"])


def create(job: Job) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    for number in range(job["count"]):
        data = text(job["size"], f"{job['salt']}-{number}")
        _write(f"{job['dir']}/note-{number:05d}.md", flags, data, job["fsync"])
    return int(job["count"])


def overwrite(job: Job) -> int:
    for number, path in enumerate(job["paths"]):
        data = text(job["size"], f"{job['salt']}-{number}")
        _write(path, os.O_WRONLY | os.O_TRUNC, data, job["fsync"])
    return len(job["paths"])


def append(job: Job) -> int:
    for path in job["paths"]:
        _write(path, os.O_WRONLY | os.O_APPEND, f"{job['salt']}\n".encode(), job["fsync"])
    return len(job["paths"])


def replace(job: Job) -> int:
    """Write a temporary file beside the target, fsync it, rename it over the target."""
    for number, path in enumerate(job["paths"]):
        temporary = f"{path}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        _write(temporary, flags, text(job["size"], f"{job['salt']}-{number}"), job["fsync"])
        os.rename(temporary, path)
    return len(job["paths"])


def rename(job: Job) -> int:
    for path in job["paths"]:
        os.rename(path, f"{path}.{job['salt']}")
        if job["fsync"]:
            _sync_directory(os.path.dirname(path))
    return len(job["paths"])


def unlink(job: Job) -> int:
    for path in job["paths"]:
        os.unlink(path)
        if job["fsync"]:
            _sync_directory(os.path.dirname(path))
    return len(job["paths"])


def sed(job: Job) -> int:
    """`sed -i` on each file, one process a file; with `fsync` the result is made durable."""
    for path in job["paths"]:
        expression = f"1s/^/{job['salt']} /"
        pid = os.posix_spawnp("sed", ["sed", "-i", expression, path], os.environ)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status:
            raise RuntimeError(f"sed -i ended with status {status}")
        if job["fsync"]:
            descriptor = os.open(path, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)
    return len(job["paths"])


def program(job: Job) -> int:
    """Run a program with its output thrown away."""
    null = [(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)]
    pid = os.posix_spawnp(job["argv"][0], job["argv"], os.environ, file_actions=null)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if status not in job["codes"]:
        raise RuntimeError(f"{' '.join(job['argv'])[:100]} ended with status {status}")
    return 1


JOBS = {job.__name__: job for job in (read, create, overwrite, append, replace, rename, unlink)}
JOBS |= {"sed": sed, "program": program}


def main() -> None:
    job = json.loads(sys.stdin.readline())
    work = JOBS[job["job"]]
    print("ready", flush=True)
    sys.stdin.readline()
    started = time.monotonic()
    try:
        operations = work(job)
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}), flush=True)
        return
    ended = time.monotonic()
    print(json.dumps({"started": started, "ended": ended, "operations": operations}), flush=True)


if __name__ == "__main__":
    main()
