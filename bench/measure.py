"""Samples, goals and fair comparison: what a measurement is, apart from what is measured."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Samples:
    """The figures of one subject, one a run, in the row's unit."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    def as_json(self) -> dict[str, float | list[float]]:
        return {
            "min": min(self.values),
            "median": self.median,
            "max": max(self.values),
            "runs": list(self.values),
        }


@dataclass(frozen=True, slots=True)
class Goal:
    """A promise about a row: the product's median against another subject's, or against a number.

    The bound is on the ratio to `subject`, or on the figure itself without one.
    """

    subject: str | None = None
    at_most: float | None = None
    at_least: float | None = None
    below: float | None = None
    exactly: float | None = None

    def describe(self) -> str:
        sign, bound = next(
            (sign, bound)
            for sign, bound in (
                ("<=", self.at_most),
                (">=", self.at_least),
                ("<", self.below),
                ("=", self.exactly),
            )
            if bound is not None
        )
        times = f"x {self.subject}" if self.subject else ""
        return f"{sign} {bound:g}{times}"

    def figure(self, row: Row) -> float | None:
        """What is bounded; None when the row lacks the product or the other subject."""
        ours = row.samples.get(OURS)
        if ours is None:
            return None
        if self.subject is None:
            return ours.median
        other = row.samples.get(self.subject)
        if other is None or other.median == 0:
            return None
        return ours.median / other.median

    def met(self, row: Row) -> bool | None:
        """None when it could not be judged in this run."""
        figure = self.figure(row)
        if figure is None:
            return None
        if self.at_most is not None:
            return figure <= self.at_most
        if self.at_least is not None:
            return figure >= self.at_least
        if self.exactly is not None:
            return figure == self.exactly
        return self.below is not None and figure < self.below


OURS = "memstore"
PLAIN = "plain"
FSYNC = "plain+fsync"
BINDFS = "bindfs"
JUICEFS = "juicefs"


@dataclass(slots=True)
class Row:
    """One line of the table: a measurement of several subjects in one unit."""

    group: str
    what: str
    unit: str
    samples: dict[str, Samples] = field(default_factory=dict)
    goals: tuple[Goal, ...] = ()
    broken: str | None = None
    note: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "group": self.group,
            "what": self.what,
            "unit": self.unit,
            "samples": {name: samples.as_json() for name, samples in self.samples.items()},
            "goals": [
                {"goal": goal.describe(), "figure": goal.figure(self), "met": goal.met(self)}
                for goal in self.goals
            ],
            "broken": self.broken,
            "note": self.note,
        }


@dataclass(frozen=True, slots=True)
class Trial:
    """How to take one sample of one subject; `before` and `after` are not timed.

    `run` answers the figure itself, or None to have its wall time taken in milliseconds.
    """

    run: Callable[[int], float | None]
    before: Callable[[int], None] | None = None
    after: Callable[[int], None] | None = None


def sample(trial: Trial, number: int) -> float:
    """One figure of one trial; `after` runs whatever happens."""
    if trial.before is not None:
        trial.before(number)
    try:
        started = time.perf_counter()
        figure = trial.run(number)
        elapsed_ms = (time.perf_counter() - started) * 1000
    finally:
        if trial.after is not None:
            trial.after(number)
    return elapsed_ms if figure is None else figure


def compare(
    trials: Mapping[str, Trial], *, runs: int, warmups: int = 1
) -> tuple[dict[str, Samples], dict[str, str]]:
    """Take turns: every round measures each subject once, starting with another one each time.

    Answers the samples, and for each subject that failed the sentence that says how; it does not
    hold up the others.
    """
    taken: dict[str, list[float]] = {name: [] for name in trials}
    failed: dict[str, str] = {}
    names = list(trials)
    for number in range(-warmups, runs):
        turn = number % len(names)
        for name in [*names[turn:], *names[:turn]]:
            if name in failed:
                continue
            try:
                figure = sample(trials[name], number)
            except Exception as error:
                failed[name] = _sentence(error)
                continue
            if number >= 0:
                taken[name].append(figure)
    return {name: Samples(tuple(values)) for name, values in taken.items() if values}, failed


def measure(
    group: str,
    what: str,
    unit: str,
    trials: Mapping[str, Trial],
    *,
    runs: int,
    warmups: int = 1,
    goals: Sequence[Goal] = (),
    note: str | None = None,
) -> Row:
    """A row of fairly compared trials; what failed is said in the row."""
    samples, failed = compare(trials, runs=runs, warmups=warmups)
    broken = "; ".join(f"{name}: {sentence}" for name, sentence in failed.items()) or None
    return Row(group, what, unit, samples, tuple(goals), broken, note)


def _sentence(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}"[:400]
