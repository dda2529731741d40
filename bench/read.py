"""Reading: 2,000 files of 2 KB in 50 directories, warm and cold, one reader and eight."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.baselines import Bindfs, Target, tree, write_tree
from bench.harness import BenchError
from bench.measure import BINDFS, OURS, PLAIN, Goal, Trial
from bench.product import Mount
from bench.setting import Setting, targets
from bench.workers import program, work

GROUP = "read"
ABSENT = "zebra-crossing-that-is-in-no-file"
READERS = 8


def grep(root: Path) -> float:
    """Every text is read: the word is in none, so that grep cannot stop early."""
    return program(["grep", "-r", ABSENT, str(root)], codes=(1,))


def cat(root: Path) -> float:
    return program(["sh", "-c", f"cat '{root}'/*/*"])


def ls(root: Path) -> float:
    return program(["ls", "-lR", str(root)])


def find(root: Path) -> float:
    return program(["find", str(root)])


TOOLS: dict[str, Callable[[Path], float]] = {
    "grep -r": grep,
    "cat of all": cat,
    "ls -lR": ls,
    "find": find,
}
_READS = ("grep -r", "cat of all")


def run(setting: Setting) -> None:
    texts = _texts(setting)
    places = targets(setting, "read", texts, fsynced=False)
    for what, tool in TOOLS.items():
        goals = [Goal(PLAIN, at_most=3)]
        if what in _READS:
            goals.append(Goal(BINDFS, at_most=0.5))
        _tool(setting, f"warm {what}, writable mount", tool, places, goals)
    if setting.service is not None and OURS in places:
        _read_only(setting, places)
    _cold(setting, places)
    _opens(setting, places, sorted(texts))


def _texts(setting: Setting) -> dict[str, str]:
    return tree(setting.many(2000, 500), 2048, setting.many(50, 20))


def _tool(
    setting: Setting,
    what: str,
    tool: Callable[[Path], float],
    places: dict[str, Target],
    goals: Sequence[Goal],
) -> None:
    trials = {
        name: Trial(lambda _, path=place.path: tool(path))  # type: ignore[misc]
        for name, place in places.items()
    }
    setting.row(GROUP, what, "ms", trials, goals, warmups=1 if setting.quick else 2)


def _read_only(setting: Setting, places: dict[str, Target]) -> None:
    service = setting.need_service()
    store = next(item["id"] for item in _stores(setting) if item["name"] == GROUP)
    try:
        mount = Mount(setting.stage, store, service.environ, read_only=True)
    except BenchError as error:
        setting.broken(GROUP, "read-only mount", error)
        return
    two = {OURS: Target(OURS, mount.path, fsync=False), PLAIN: places[PLAIN]}
    for what, tool in TOOLS.items():
        _tool(setting, f"warm {what}, read-only mount", tool, two, [Goal(PLAIN, at_most=1.2)])


def _stores(setting: Setting) -> list[dict[str, str]]:
    return setting.need_service().api.pages("/v1/memory_stores")


def _cold(setting: Setting, places: dict[str, Target]) -> None:
    """Everything is mounted anew for each sample; the kernel's cache of the disk stays warm."""
    plain = places[PLAIN].path
    trials = {PLAIN: Trial(lambda _: grep(plain))}
    whole = {}
    if setting.service is not None and OURS in places:
        store = next(item["id"] for item in _stores(setting) if item["name"] == GROUP)
        mount = Mount(setting.stage, store, setting.service.environ)
        trials[OURS], whole[OURS] = _remounting(mount.unmount, mount.mount, mount.path)
    if setting.with_bindfs:
        source = setting.stage.directory("bindfs-source")
        write_tree(source, _texts(setting))
        bindfs = Bindfs(setting.stage, source)
        trials[BINDFS], whole[BINDFS] = _remounting(bindfs.unmount, bindfs.mount, bindfs.path)
    goals = [Goal(PLAIN, at_most=6), Goal(BINDFS, below=1)]
    setting.row(GROUP, "cold grep -r, once mount has returned", "ms", trials, goals)
    note = "mount and unmount are the commands, their start included"
    setting.row(GROUP, "mount, then cold grep -r", "ms", whole, note=note, warmups=0)


def _remounting(
    unmount: Callable[[], None], mount: Callable[[], None], path: Path
) -> tuple[Trial, Trial]:
    """A trial of grep on a fresh mount, and one that times the mount as well."""

    def remount(_: int) -> None:
        unmount()
        mount()

    def mount_and_grep(_: int) -> None:
        mount()
        grep(path)

    return (
        Trial(lambda _: grep(path), before=remount),
        Trial(mount_and_grep, before=lambda _: unmount()),
    )


def _opens(setting: Setting, places: dict[str, Target], names: Sequence[str]) -> None:
    rounds = setting.many(5, 2)
    single = {}
    eight = {}
    for name, place in places.items():
        paths = [str(place.path / relative) for relative in names]
        job = {"job": "read", "paths": paths, "rounds": rounds}
        shuffled = [
            {**job, "rounds": 2, "paths": random.Random(seed).sample(paths, len(paths))}
            for seed in range(READERS)
        ]
        single[name] = Trial(lambda _, job=job: work(job).micros)  # type: ignore[misc]
        eight[name] = Trial(
            lambda _, jobs=shuffled: work(*jobs).per_second  # type: ignore[misc]
        )
    setting.row(GROUP, "open+read+close, warm", "us", single, [Goal(BINDFS, below=1)])
    setting.row(
        GROUP, "open+read+close, warm, 8 processes", "/s", eight, [Goal(BINDFS, at_least=1)]
    )
