# SPDX-License-Identifier: Apache-2.0
"""Timing and results of the benchmarks; called by every ``bench_*.py`` and by the command."""

import gc
import operator
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

REPEATS = 5


@dataclass(frozen=True)
class Target:
    """A target for a value: at least, at most or below a limit."""

    comparison: Literal[">=", "<=", "<"]
    limit: float

    def is_met_by(self, value: float) -> bool:
        """Compare the value as measured, not as it will be rounded for the table."""
        compare = {">=": operator.ge, "<=": operator.le, "<": operator.lt}[self.comparison]
        return bool(compare(value, self.limit))


def at_least(limit: float) -> Target:
    """Ask for a value of ``limit`` or more."""
    return Target(">=", limit)


def at_most(limit: float) -> Target:
    """Ask for a value of ``limit`` or less."""
    return Target("<=", limit)


def below(limit: float) -> Target:
    """Ask for a value under ``limit``."""
    return Target("<", limit)


@dataclass(frozen=True)
class Result:
    """One measured number, or the reason why there is none.

    Attributes
    ----------
    name : str
        What was measured.
    value : float or None
        The number in ``unit``; None when it could not be measured, and then ``note`` says why.
    unit : str
        ``"s"``, ``"x"`` (a ratio), ``"GiB"``, ``"rows/s"`` or ``""``.
    target : Target or None
        What the number must reach; None for numbers that explain others.
    passed : bool or None
        None without a target, and in a quick run, whose sizes no target was set for.
    note : str
        How to read it: repeats, sizes, threads, what is left out.
    """

    name: str
    value: float | None
    unit: str
    target: Target | None = None
    passed: bool | None = None
    note: str = ""


@dataclass(frozen=True)
class Timing:
    """The seconds of each repeat."""

    seconds: tuple[float, ...]

    @property
    def best(self) -> float:
        """The fastest repeat: noise of other processes only ever adds."""
        return min(self.seconds)

    def describe(self) -> str:
        """Return how the number came about: best of how many, and how far the slowest was."""
        if len(self.seconds) == 1:
            return "one run"
        return f"best of {len(self.seconds)}, slowest {format_number(max(self.seconds))} s"


def measure(function: Callable[[], object], *, repeats: int = REPEATS) -> Timing:
    """Time a call: garbage is collected before each repeat, and what a repeat returns is freed untimed."""
    return measure_alternating([function], repeats=repeats)[0]


def measure_alternating(functions: Sequence[Callable[[], object]], *, repeats: int = REPEATS) -> tuple[Timing, ...]:
    """Time several calls in turns, so that a slow minute of the machine affects all of them."""
    seconds: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for times, function in zip(seconds, functions, strict=True):
            gc.collect()
            start = time.perf_counter()
            returned = function()
            times.append(time.perf_counter() - start)
            del returned  # two outputs alive at once would be another measurement
    return tuple(Timing(tuple(times)) for times in seconds)


@dataclass
class Context:
    """Options of a benchmark, and its results.

    Attributes
    ----------
    is_quick : bool
        Use tiny sizes, to see that everything runs; numbers mean nothing and no target is judged.
    repeats : int
        How often each call is timed.
    results : list of Result
        What has been measured so far.
    """

    is_quick: bool = False
    repeats: int = REPEATS
    say: Callable[[str], object] = print
    results: list[Result] = field(default_factory=list)

    def size(self, full: int, quick: int) -> int:
        """Choose the number of rows for this kind of run."""
        return quick if self.is_quick else full

    def measure(self, function: Callable[[], object], *, repeats: int | None = None) -> Timing:
        """Time a call as often as this run does."""
        return measure(function, repeats=self.repeats if repeats is None else repeats)

    def measure_alternating(self, functions: Sequence[Callable[[], object]]) -> tuple[Timing, ...]:
        """Time several calls in turns, as often as this run does."""
        return measure_alternating(functions, repeats=self.repeats)

    def record(
        self, name: str, value: float | None, unit: str, *, target: Target | None = None, note: str = ""
    ) -> None:
        """Judge a number, keep it, and say it."""
        passed = None
        if target is not None and not self.is_quick:
            passed = value is not None and target.is_met_by(value)  # not measured is not met
        result = Result(name, value, unit, target, passed, note)
        self.results.append(result)
        self.say(f"  {describe(result)}")

    def record_seconds(self, name: str, timing: Timing, *, target: Target | None = None, note: str = "") -> None:
        """Record the best of a timing, with how it came about in the note."""
        parts = [timing.describe(), note]
        self.record(name, timing.best, "s", target=target, note="; ".join(part for part in parts if part))


def format_number(value: float) -> str:
    """Write a number with three significant digits, without exponents: 0.0123, 4.56, 1,230,000."""
    if value == 0:
        return "0"
    magnitude = abs(value)
    if magnitude >= 100:
        return f"{value:,.0f}"
    n_decimals = 1 if magnitude >= 10 else 2 if magnitude >= 1 else 3
    while magnitude < 10.0 ** (2 - n_decimals) and n_decimals < 9:
        n_decimals += 1
    return f"{value:.{n_decimals}f}"


def format_value(result: Result) -> str:
    """Write a result's number and unit, or that there is none."""
    if result.value is None:
        return "not measured"
    return f"{format_number(result.value)} {result.unit}".strip()


def format_target(target: Target | None, unit: str) -> str:
    """Write what was asked for; nothing when nothing was."""
    return "" if target is None else f"{target.comparison} {target.limit:g} {unit}".strip()


def format_verdict(result: Result) -> str:
    """Write whether the target was met; nothing where none was judged."""
    return {True: "yes", False: "NO", None: ""}[result.passed]


def describe(result: Result) -> str:
    """Write a result as one line of the terminal."""
    line = f"{result.name}: {format_value(result)}"
    if result.target is not None:
        verdict = {True: "met", False: "MISSED", None: "not judged"}[result.passed]
        line += f" (target {format_target(result.target, result.unit)}, {verdict})"
    return f"{line} [{result.note}]" if result.note else line
