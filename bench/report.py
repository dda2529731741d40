"""The table a run prints, and its JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from bench.measure import BINDFS, FSYNC, JUICEFS, OURS, PLAIN, Goal, Row

COLUMNS = (OURS, PLAIN, FSYNC, BINDFS, JUICEFS)
_HEAD = f"{'':44}{'unit':>7}" + "".join(f"{name:>12}" for name in COLUMNS)
_HEAD += f"  {'ratio':>7}  {'goal':<20} "


def number(value: float) -> str:
    """Three significant digits, never in powers of ten."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def machine() -> str:
    """What this was measured on, in one line."""
    release, version = platform.release(), platform.python_version()
    return f"{os.cpu_count()} cores, Linux {release}, Python {version}"


def head(file_system: str, runs: int, reasons: Sequence[str]) -> str:
    lines = [
        f"{machine()}; plain directory on {file_system}; medians of {runs} runs, taken in turns",
        *reasons,
        "",
        _HEAD + "verdict",
        "-" * len(_HEAD + "verdict"),
    ]
    return "\n".join(lines)


def verdict(goal: Goal, row: Row) -> str:
    met = goal.met(row)
    return "not judged" if met is None else "met" if met else "MISSED"


def lines(row: Row) -> list[str]:
    """The lines of one row: figures and the first goal, then a line for each further goal."""
    figures = f"{row.what:44}{row.unit:>7}"
    for name in COLUMNS:
        samples = row.samples.get(name)
        figures += f"{number(samples.median) if samples else '-':>12}"
    ratio = ""
    if not row.goals and PLAIN in row.samples and OURS in row.samples:
        ratio = f"  {_ratio(Goal(subject=PLAIN), row):>7}  ({PLAIN})"
    result = [figures + ratio]
    indent = " " * len(figures)
    for position, goal in enumerate(row.goals):
        start = figures if position == 0 else indent
        text = f"  {_ratio(goal, row):>7}  {goal.describe():<20} {verdict(goal, row)}"
        if position == 0:
            result[0] = start + text
        else:
            result.append(start + text)
    others = {name: value for name, value in row.samples.items() if name not in COLUMNS}
    if others:
        listed = [
            f"{name} {number(value.median)} ({_ratio(Goal(subject=name), row)})"
            for name, value in others.items()
        ]
        result.append(f"    beside {', '.join(listed)}")
    if row.note:
        result.append(f"    {row.note}")
    if row.broken:
        result.append(f"    BROKEN {row.broken}")
    return result


def _ratio(goal: Goal, row: Row) -> str:
    figure = goal.figure(row)
    if figure is None:
        return "-"
    return f"{figure:.2f}x" if goal.subject else number(figure)


def summary(rows: Sequence[Row]) -> str:
    judged = [goal.met(row) for row in rows for goal in row.goals]
    broken = sum(1 for row in rows if row.broken)
    return (
        f"{judged.count(True)} goals met, {judged.count(False)} MISSED, "
        f"{judged.count(None)} not judged, {broken} rows with something broken"
    )


def write_json(path: Path, rows: Sequence[Row], **about: object) -> None:
    document = {"machine": machine(), **about, "rows": [row.as_json() for row in rows]}
    path.write_text(json.dumps(document, indent=2) + "\n")


class Printer:
    """Prints rows as they come, with a heading a group, and remembers them."""

    def __init__(self, out: TextIO) -> None:
        self._out, self._group = out, ""
        self.rows: list[Row] = []

    def row(self, row: Row) -> None:
        if row.group != self._group:
            self._group = row.group
            print(f"{row.group}", file=self._out)
        self.rows.append(row)
        print("\n".join(f"  {line}" for line in lines(row)), file=self._out, flush=True)
