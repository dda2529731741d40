"""`python -m bench`: run the groups, print the table."""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from bench import api, coherence, read, scale, versions, write
from bench.baselines import bindfs_missing, juicefs
from bench.harness import BenchError, OutOfTime, Stage, file_system
from bench.product import Service
from bench.report import Printer, head, summary, write_json
from bench.setting import Setting

GROUPS: dict[str, tuple[Callable[[Setting], None], float]] = {
    "read": (read.run, 3),
    "write": (write.run, 4),
    "coherence": (coherence.run, 2),
    "versions": (versions.run_group, 2),
    "scale": (scale.run, 4),
    "api": (api.run_group, 1),
}
"""Each group with its weight when the run's time is shared out."""
QUICK_BUDGET_S = 115.0
FULL_BUDGET_S = 880.0


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--only", action="append", choices=GROUPS, help="run this group only")
    parser.add_argument("--quick", action="store_true", help="smaller and fewer: under 2 minutes")
    parser.add_argument("--runs", type=int, help="samples a figure (default 5; 3 with --quick)")
    parser.add_argument("--json", type=Path, help="write every figure to this file, too")
    parser.add_argument("--baselines", action="store_true", help="measure the baselines alone")
    return parser.parse_args()


def main() -> int:
    options = arguments()
    runs = options.runs or (3 if options.quick else 5)
    budget_s = QUICK_BUDGET_S if options.quick else FULL_BUDGET_S
    printer = Printer(sys.stdout)
    started = time.monotonic()
    with Stage(budget_s=budget_s) as stage:
        setting, reasons = _setting(stage, printer, options, runs)
        disk = file_system(stage.root)
        print(head(disk, runs, reasons), flush=True)
        names = options.only or list(GROUPS)
        for position, name in enumerate(names):
            weights = [GROUPS[each][1] for each in names[position:]]
            stage.begin_part(weights[0] / sum(weights))
            _group(setting, name)
    print(f"\n{summary(printer.rows)}; {time.monotonic() - started:.0f} s")
    if options.json:
        write_json(options.json, printer.rows, runs=runs, disk=disk, notes=reasons)
    return 0


def _setting(
    stage: Stage, printer: Printer, options: argparse.Namespace, runs: int
) -> tuple[Setting, list[str]]:
    """What can take part, and a sentence for each that cannot."""
    reasons = []
    service = None
    if not options.baselines:
        try:
            service = Service(stage)
        except (BenchError, OSError) as error:
            reasons.append(f"without memstore: {error}")
    without_bindfs = bindfs_missing()
    if without_bindfs:
        reasons.append(f"without bindfs: {without_bindfs}")
    jfs = None
    try:
        jfs = juicefs(stage)
    except (BenchError, OSError) as error:
        reasons.append(f"without juicefs: {error}")
    setting = Setting(
        stage=stage,
        printer=printer,
        quick=options.quick,
        runs=runs,
        service=service,
        with_bindfs=without_bindfs is None,
        juicefs=jfs,
    )
    return setting, reasons


def _group(setting: Setting, name: str) -> None:
    """One group; what breaks in it does not stop the others."""
    try:
        GROUPS[name][0](setting)
    except OutOfTime as error:
        print(f"  {name}: {error}")
    except Exception as error:
        setting.broken(name, "the rest of the group", error)
        if not isinstance(error, BenchError):
            traceback.print_exc()


if __name__ == "__main__":
    sys.exit(main())
