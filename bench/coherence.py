"""Coherence: how soon a change elsewhere is read in a mount, and that nothing is lost or hidden."""

from __future__ import annotations

import bisect
import contextlib
import errno
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.harness import BenchError
from bench.measure import OURS, Goal, Samples
from bench.product import Mount
from bench.reader import text
from bench.setting import Setting

GROUP = "coherence"
LAG_BOUND_S = 1.0
_READER_PAUSE_S = 0.0002


@dataclass(slots=True)
class Change:
    """One change: when it was asked for and when it was acknowledged."""

    number: int
    asked: float
    acknowledged: float


def run(setting: Setting) -> None:
    service = setting.need_service()
    count = setting.many(400, 100)
    store = service.store(GROUP, {"seen.md": text(0), "mount.md": text(0), "fight.md": "base\n"})
    one = Mount(setting.stage, store, service.environ)
    other = Mount(setting.stage, store, service.environ)
    memories = {item["path"]: item["id"] for item in service.api.memories(store)}

    def by_api(number: int) -> None:
        service.api.update(store, memories["/seen.md"], text(number))

    def by_mount(number: int) -> None:
        (other.path / "mount.md").write_text(text(number))

    lost = _visible(setting, "API commit", one.path / "seen.md", by_api, count)
    lost += _visible(setting, "save in a mount", one.path / "mount.md", by_mount, count)
    for path in ("/seen.md", "/mount.md"):
        versions = service.api.versions(store, memory_id=memories[path])
        lost += count + 1 - len(versions)
    _appends(setting, one, other, lost)
    _conflicts(setting, store, memories["/fight.md"], one.path / "fight.md")
    _killed(setting, store, other)


def _visible(
    setting: Setting, what: str, path: Path, change: Callable[[int], None], count: int
) -> int:
    """Make numbered changes while a reader looks; answers how many were never seen in the end."""
    setting.stage.check_time(3 if setting.quick else 20)
    changes = []
    chance = random.Random(7)
    with _reader(path, count) as answer:
        for number in range(1, count + 1):
            asked = time.monotonic()
            change(number)
            changes.append(Change(number, asked, time.monotonic()))
            time.sleep(chance.uniform(0.002, 0.02))
        found = answer()
    seen = {int(number): moment for number, moment in found["seen"].items()}
    lags, asked_lags, late = _lags(changes, seen)
    unseen = count - max(seen, default=0)
    if not lags:
        raise BenchError(f"{what}: no change became visible")
    note = f"{count} changes, {found['reads']} reads; from asking: p50 "
    note += f"{_at(asked_lags, 50):.1f}, p99 {_at(asked_lags, 99):.1f} ms"
    _row(setting, f"{what} to visible read, p50", _at(lags, 50), Goal(below=10), note=note)
    _row(setting, f"{what} to visible read, p99", _at(lags, 99), Goal(below=50))
    bad = int(found["torn"]) + int(found["back"]) + late
    note = f"torn {found['torn']}, older than one seen before {found['back']}, late {late}"
    note += "".join(f"; {example}" for example in found["examples"])
    _row(setting, f"{what}: torn or stale reads", bad, Goal(exactly=0), unit="", note=note)
    return unseen


def _row(
    setting: Setting, what: str, figure: float, goal: Goal, *, unit: str = "ms", note: str = ""
) -> None:
    setting.figure(GROUP, what, unit, lambda: float(figure), [goal], note=note or None)


def _lags(changes: list[Change], seen: Mapping[int, float]) -> tuple[list[float], list[float], int]:
    """Milliseconds from acknowledgement and from asking to the first read at least as new.

    And how many took longer than the lag bound.
    """
    numbers = sorted(seen)
    moments = [seen[number] for number in numbers]
    lags, asked = [], []
    for change in changes:
        position = bisect.bisect_left(numbers, change.number)
        if position < len(numbers):
            moment = min(moments[position:])
            lags.append(max(0.0, moment - change.acknowledged) * 1e3)
            asked.append((moment - change.asked) * 1e3)
    return lags, asked, sum(1 for lag in lags if lag > LAG_BOUND_S * 1e3)


def _at(values: list[float], percent: int) -> float:
    if len(values) < 2:
        return values[0]
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


@contextlib.contextmanager
def _reader(path: Path, last: int) -> Iterator[Callable[[], Any]]:
    """A reader at work; call what it yields for its answer."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", str(Path(__file__).with_name("reader.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    job = {"path": str(path), "last": last, "deadline_s": 60, "pause_s": _READER_PAUSE_S}
    try:
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        process.stdout.readline()

        def answer() -> Any:
            """All that was seen, at the latest when the lag bound is well over."""
            line = process.communicate(timeout=90)[0]
            if not line:
                raise BenchError("the reader of the mount failed")
            return json.loads(line)

        yield answer
    finally:
        process.kill()
        process.wait()


def _appends(setting: Setting, one: Mount, other: Mount, lost: int) -> None:
    """Two mounts append to one file at once; every line acknowledged must be there."""
    lines = setting.many(100, 30)
    (one.path / "log.md").write_text("start\n")
    script = 'for i in $(seq 1 "$2"); do echo "$3 $i" >> "$1/log.md" || exit 1; done'
    writers = [
        subprocess.Popen(["sh", "-c", script, "sh", str(mount.path), str(lines), name])
        for mount, name in ((one, "one"), (other, "other"))
    ]
    failed = [writer for writer in writers if writer.wait(120)]
    content = _content(setting, "/log.md")
    expected = [f"{name} {number}" for name in ("one", "other") for number in range(1, lines + 1)]
    missing = sorted(set(expected) - set(content.splitlines()))
    note = f"of {2 * lines} appends in two mounts {len(missing)}; of numbered changes {lost}"
    if failed:
        note += f"; {len(failed)} writers were refused"
    _row(
        setting, "acknowledged saves lost", lost + len(missing), Goal(exactly=0), unit="", note=note
    )


def _content(setting: Setting, path: str) -> str:
    service = setting.need_service()
    store = next(
        item["id"] for item in service.api.pages("/v1/memory_stores") if item["name"] == GROUP
    )
    for item in service.api.memories(store, view="full"):
        if item["path"] == path:
            return str(item["content"])
    raise BenchError(f"{path} is not in the store")


def _conflicts(setting: Setting, store: str, memory: str, path: Path) -> None:
    """A save in the mount against a change of the same line: close must fail with ESTALE."""
    service = setting.need_service()
    made = setting.many(50, 15)
    detected = 0
    for number in range(made):
        descriptor = os.open(path, os.O_RDWR)
        try:
            os.read(descriptor, 4096)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"mine {number}\n".encode(), 0)
            service.api.update(store, memory, f"theirs {number}\n")
        except BaseException:
            os.close(descriptor)
            raise
        try:
            os.close(descriptor)
        except OSError as error:
            detected += error.errno == errno.ESTALE
    samples = {OURS: Samples((detected / made * 100,))}
    note = f"{detected} of {made} made"
    _row(
        setting, "conflicts detected", samples[OURS].median, Goal(exactly=100), unit="%", note=note
    )


def _killed(setting: Setting, store: str, mount: Mount) -> None:
    """Kill the driver right after the last close; what close acknowledged must be there."""
    saves = setting.many(100, 20)
    for number in range(saves):
        (mount.path / f"killed-{number}.md").write_text(f"saved {number}\n")
    if not mount.pids:
        raise BenchError("the driver's processes were not found")
    for pid in mount.pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    started = time.monotonic()
    mount.mount()
    again = time.monotonic() - started
    kept = {str(item["path"]) for item in setting.need_service().api.memories(store)}
    lost = sum(1 for number in range(saves) if f"/killed-{number}.md" not in kept)
    note = f"of {saves}; mounted again at the same place in {again:.1f} s"
    what = "saves lost when the driver is killed"
    _row(setting, what, lost, Goal(exactly=0), unit="", note=note)
