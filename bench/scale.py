"""Scale: many files in one directory, in one store; and how each cost grows with number and size."""

from __future__ import annotations

import time
from pathlib import Path

from bench.baselines import Target, tree, write_tree
from bench.harness import BenchError, resident_mb
from bench.measure import OURS, PLAIN, Goal, Row, Samples, Trial
from bench.product import Mount
from bench.read import grep, ls
from bench.setting import Setting
from bench.workers import program, work

GROUP = "scale"
TEXTS_MB = 256
"""The default bound of the driver's cache of texts."""


def run(setting: Setting) -> None:
    setting.need_service()
    _many(setting, "10,000 in one directory", setting.many(10_000, 2_000), 0, Goal(below=1))
    for count in (500, 2_000) if setting.quick else (1_000, 2_000, 5_000, 10_000):
        _by_count(setting, count)
    for size in (2_000, 100_000) if setting.quick else (100, 2_000, 20_000, 100_000):
        _by_size(setting, size)
    if not setting.quick:
        _many(setting, "100,000 in a store", 100_000, 500, Goal(below=3))


def _many(setting: Setting, what: str, count: int, directories: int, goal: Goal) -> None:
    """Mount to the end of the first `ls`, then the driver's memory after all was read."""
    setting.stage.check_time(60 if count > 10_000 else 3)
    service = setting.need_service()
    if setting.quick:
        what = what.replace("10,000", f"{count:,}")
    texts = tree(count, 2_048, directories)
    started = time.monotonic()
    store = service.store(f"{GROUP}-{count}", texts)
    loaded = f"loaded through the API in {time.monotonic() - started:.1f} s"
    mount = Mount(setting.stage, store, service.environ)
    _look(mount.path, directories)
    seconds: list[float] = []
    for _ in range(1 if setting.quick else 3):
        mount.unmount()
        started = time.monotonic()
        mount.mount()
        _look(mount.path, directories)
        seconds.append(time.monotonic() - started)
    row = Row(GROUP, f"{what}: mount to first ls", "s", {OURS: Samples(tuple(seconds))}, (goal,))
    row.note = f"{loaded}; the mount command's own start included"
    setting.printer.row(row)
    if not mount.pids:
        raise BenchError("the driver's process was not found")
    fresh = resident_mb(mount.pids)
    listing, reading = ls(mount.path), grep(mount.path)
    full = resident_mb(mount.pids)
    held = min(count * 2_048 / 1e6, TEXTS_MB)
    setting.figure(
        GROUP,
        f"{what}: driver besides texts",
        "MB",
        lambda: max(0.0, full - held),
        [Goal(at_most=150)],
        note=f"resident {fresh:.0f} MB after ls, {full:.0f} MB after all was read; "
        f"texts {held:.0f} MB; ls -lR {listing:.0f} ms, first grep -r {reading:.0f} ms",
    )
    mount.unmount()


def _look(path: Path, directories: int) -> None:
    """The first `ls`: the root, and a directory below it where there are any."""
    program(["ls", str(path)])
    if directories:
        program(["ls", str(path / "dir-000")])


def _pair(setting: Setting, name: str, texts: dict[str, str]) -> tuple[Mount, dict[str, Target]]:
    service = setting.need_service()
    mount = Mount(setting.stage, service.store(name, texts), service.environ)
    plain = setting.stage.directory("plain")
    write_tree(plain, texts)
    places = {
        OURS: Target(OURS, mount.path, fsync=False),
        PLAIN: Target(PLAIN, plain, fsync=False),
    }
    return mount, places


def _by_count(setting: Setting, count: int) -> None:
    """The cost of one file when there are `count` of 2 KB."""
    setting.stage.check_time(3 if setting.quick else 20)
    texts = tree(count, 2_048, 50)
    mount, places = _pair(setting, f"{GROUP}-count-{count}", texts)

    def remount(_: int) -> None:
        mount.unmount()
        mount.mount()

    cold = {
        OURS: Trial(lambda _: grep(mount.path) / count * 1e3, before=remount),
        PLAIN: Trial(lambda _: grep(places[PLAIN].path) / count * 1e3),
    }
    setting.row(GROUP, f"{count:,} files: cold grep -r, a file", "us", cold, runs=3, warmups=0)
    warm = {
        name: Trial(lambda _, path=place.path: grep(path) / count * 1e3)  # type: ignore[misc]
        for name, place in places.items()
    }
    setting.row(GROUP, f"{count:,} files: warm grep -r, a file", "us", warm, runs=3)
    _creates(setting, f"{count:,} files: create 2 KB", places, 2_048)
    mount.unmount()


def _by_size(setting: Setting, size: int) -> None:
    """The cost of one file of `size` bytes among 200."""
    setting.stage.check_time(3 if setting.quick else 15)
    count = setting.many(200, 50)
    texts = tree(count, size, 10)
    mount, places = _pair(setting, f"{GROUP}-size-{size}", texts)
    what = f"{size / 1000:g} KB"
    reads = {}
    for name, place in places.items():
        paths = [str(place.path / relative) for relative in texts]
        job = {"job": "read", "paths": paths, "rounds": 3}
        reads[name] = Trial(lambda _, job=job: work(job).micros)  # type: ignore[misc]
    setting.row(GROUP, f"{what}: open+read+close, warm", "us", reads, runs=3)
    _creates(setting, f"{what}: create", places, size)
    mount.unmount()


def _creates(setting: Setting, what: str, places: dict[str, Target], size: int) -> None:
    """Microseconds a create+write+close; the plain directory with an fsync a file."""

    def creating(place: Target) -> Trial:
        def run(number: int) -> float:
            home = place.path / f"new-{number}"
            home.mkdir()
            job = {"job": "create", "dir": str(home), "size": size, "salt": f"{size}-{number}"}
            count = setting.many(100, 30)
            return work({**job, "count": count, "fsync": place.name == PLAIN}).micros

        return Trial(run)

    trials = {name: creating(place) for name, place in places.items()}
    setting.row(GROUP, what, "us", trials, runs=3, note="plain: with an fsync a file")
