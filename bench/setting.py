"""What every group of measurements is handed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.baselines import Bindfs, Target, write_tree
from bench.harness import BenchError, Stage
from bench.measure import (
    BINDFS,
    FSYNC,
    JUICEFS,
    OURS,
    PLAIN,
    Goal,
    Row,
    Trial,
    measure,
)
from bench.product import Mount, Service
from bench.report import Printer


@dataclass(slots=True)
class Setting:
    """The stage, the product if it runs, the baselines that can take part, and how much to do."""

    stage: Stage
    printer: Printer
    quick: bool
    runs: int
    service: Service | None
    with_bindfs: bool
    juicefs: Path | None
    stores: list[str] = field(default_factory=list)

    def many(self, full: int, quick: int) -> int:
        return quick if self.quick else full

    def need_service(self) -> Service:
        if self.service is None:
            raise BenchError("not measured: the service does not run")
        return self.service

    def row(
        self,
        group: str,
        what: str,
        unit: str,
        trials: Mapping[str, Trial],
        goals: Sequence[Goal] = (),
        *,
        note: str | None = None,
        warmups: int = 1,
        runs: int | None = None,
    ) -> None:
        """Measure and print one row, unless the time is used up."""
        self.stage.check_time(1 if self.quick else 3)
        present = {name: trial for name, trial in trials.items() if trial is not None}
        self.printer.row(
            measure(
                group,
                what,
                unit,
                present,
                runs=runs or self.runs,
                warmups=warmups,
                goals=goals,
                note=note,
            )
        )

    def figure(
        self,
        group: str,
        what: str,
        unit: str,
        take: Callable[[], float],
        goals: Sequence[Goal] = (),
        *,
        note: str | None = None,
    ) -> None:
        """A row of the product alone, taken once."""
        self.row(
            group, what, unit, {OURS: Trial(lambda _: take())}, goals, note=note, runs=1, warmups=0
        )

    def broken(self, group: str, what: str, error: BaseException) -> None:
        """A row for what could not be measured at all."""
        text = " ".join(str(error).split())
        self.printer.row(Row(group, what, "", broken=f"{type(error).__name__}: {text}"[:400]))


def targets(
    setting: Setting, name: str, texts: Mapping[str, str], *, fsynced: bool
) -> dict[str, Target]:
    """The same files in the product and in every baseline that can take part.

    With `fsynced` the baselines make each save durable, as the product does, and the plain
    directory takes part both with and without.
    """
    stage = setting.stage
    found: dict[str, Target] = {}
    if setting.service is not None:
        store = setting.service.store(name, texts)
        try:
            mount = Mount(stage, store, setting.service.environ)
            found[OURS] = Target(OURS, mount.path, fsync=False)
        except BenchError as error:
            setting.broken(name, f"memstore mount ({name})", error)
    plain = stage.directory("plain")
    write_tree(plain, texts)
    found[PLAIN] = Target(PLAIN, plain, fsync=False)
    if fsynced:
        durable = stage.directory("plain-fsync")
        write_tree(durable, texts)
        found[FSYNC] = Target(FSYNC, durable, fsync=True)
    if setting.with_bindfs:
        source = stage.directory("bindfs-source")
        write_tree(source, texts)
        found[BINDFS] = Target(BINDFS, Bindfs(stage, source).path, fsync=fsynced)
    if setting.juicefs is not None and (fsynced or not setting.quick):
        path = setting.juicefs / name
        write_tree(path, texts)
        found[JUICEFS] = Target(JUICEFS, path, fsync=fsynced)
    return found
