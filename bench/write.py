"""Writing: every save acknowledged and durable, beside an fsync a file."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

from bench.baselines import Target, tree
from bench.harness import BenchError
from bench.measure import FSYNC, JUICEFS, OURS, PLAIN, Goal, Trial
from bench.product import Mount, local_store
from bench.setting import Setting, targets
from bench.workers import Work, program, work

GROUP = "write"
SIZE = 2048
WRITERS = 8
_numbers = count()
"""New directories of a run each have their own."""


def run(setting: Setting) -> None:
    texts = tree(setting.many(500, 60), SIZE, 10)
    places = targets(setting, "write", texts, fsynced=True)
    names = sorted(texts)
    _create(setting, places)
    if setting.quick:
        places.pop(JUICEFS, None)
    _saves(setting, places, names)
    _sed(setting, places, names)
    _moves(setting, places)


def _local(setting: Setting) -> Target | None:
    try:
        store, environ = local_store(setting.stage, "local")
        return Target("local", Mount(setting.stage, store, environ).path, fsync=False)
    except BenchError as error:
        setting.broken(GROUP, "mount of a local database", error)
        return None


def _create(setting: Setting, places: dict[str, Target]) -> None:
    saves = setting.many(500, 60)
    setting.row(
        GROUP,
        "create+write+close 2 KB, one writer",
        "/s",
        {name: _creating(place, 1, saves) for name, place in places.items()},
        [Goal(FSYNC, at_least=0.4), Goal(JUICEFS, at_least=2), Goal(at_least=300)],
    )
    setting.row(
        GROUP,
        "create+write+close 2 KB, 8 writers",
        "/s",
        {name: _creating(place, WRITERS, saves // 2) for name, place in places.items()},
        [Goal(FSYNC, at_least=0.4), Goal(JUICEFS, at_least=2)],
    )
    local = _local(setting) if setting.service is not None else None
    if local is not None:
        both = {OURS: local, FSYNC: places[FSYNC]}
        setting.row(
            GROUP,
            "create+write+close, local database",
            "/s",
            {name: _creating(place, 1, saves) for name, place in both.items()},
            [Goal(FSYNC, at_least=0.6)],
        )


def _creating(place: Target, writers: int, saves: int) -> Trial:
    homes: list[Path] = []

    def run(number: int) -> float:
        jobs = []
        for home in homes:
            jobs.append(
                {
                    "job": "create",
                    "dir": str(home),
                    "count": saves,
                    "size": SIZE,
                    "salt": home.name,
                    "fsync": place.fsync,
                }
            )
        return work(*jobs).per_second

    def before(number: int) -> None:
        homes[:] = [place.path / f"create-{next(_numbers)}" for _ in range(writers)]
        for home in homes:
            home.mkdir()

    return Trial(run, before=before)


def _job(
    name: str,
    place: Target,
    names: Sequence[str],
    figure: Callable[[Work], float],
    suffix: str = "",
) -> Trial:
    """A trial of one kind of save over the same files, with a text of its own each time."""
    paths = [str(place.path / relative) + suffix for relative in names]

    def run(number: int) -> float:
        job = {"job": name, "paths": paths, "size": SIZE, "salt": f"{name}{number + 9}"}
        return figure(work({**job, "fsync": place.fsync}))

    return Trial(run)


def _saves(setting: Setting, places: dict[str, Target], names: Sequence[str]) -> None:
    rows: list[tuple[str, str, list[Goal]]] = [
        ("overwrite", "overwrite 2 KB", []),
        ("append", "append a line (O_APPEND)", []),
        ("replace", "write temp, fsync, rename over", [Goal(FSYNC, at_most=2)]),
    ]
    for job, what, goals in rows:
        trials = {
            name: _job(job, place, names, lambda done: done.micros)
            for name, place in places.items()
        }
        setting.row(GROUP, what, "us", trials, goals)


def _sed(setting: Setting, places: dict[str, Target], names: Sequence[str]) -> None:
    few = names[: setting.many(200, 30)]
    trials = {
        name: _job("sed", place, few, lambda done: done.micros) for name, place in places.items()
    }
    setting.row(GROUP, "sed -i, one process a file", "us", trials, [Goal(FSYNC, at_most=2)])

    def all_at_once(place: Target) -> Trial:
        paths = [str(place.path / relative) for relative in names]

        def run(number: int) -> float:
            argv = ["sed", "-i", f"1s/^/all{number + 9} /", *paths]
            if not place.fsync:
                return program(argv)
            return program(["sh", "-c", '"$@" && shift 3 && sync -- "$@"', "sh", *argv])

        return Trial(run)

    setting.row(
        GROUP,
        f"sed -i over {len(names)} files, one process",
        "ms",
        {name: all_at_once(place) for name, place in places.items()},
        [Goal(FSYNC, at_most=2)],
        note="plain+fsync syncs the files after sed has ended, many with one journal commit",
    )


def _moves(setting: Setting, places: dict[str, Target]) -> None:
    files = setting.many(200, 30)

    def moving(name: str, place: Target) -> Trial:
        home = place.path / f"{name}-files"

        def before(number: int) -> None:
            with contextlib.suppress(FileExistsError):
                home.mkdir()
            job = {"job": "create", "dir": str(home), "count": files, "size": 100}
            work({**job, "salt": f"{name}{number}", "fsync": False})

        def run(number: int) -> float:
            paths = sorted(str(path) for path in home.iterdir())
            return work({"job": name, "paths": paths, "salt": "md", "fsync": place.fsync}).micros

        def after(number: int) -> None:
            for path in home.iterdir():
                path.unlink()

        return Trial(run, before=before, after=after)

    for name in ("rename", "unlink"):
        trials = {where: moving(name, place) for where, place in places.items()}
        setting.row(GROUP, name, "us", trials, runs=min(setting.runs, 3), warmups=0)


__all__ = ["PLAIN", "run"]
