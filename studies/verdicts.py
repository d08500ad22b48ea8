# SPDX-License-Identifier: Apache-2.0
"""Statistics of verdicts: differences with intervals, and the rules that make a verdict of them. Called by ``claims``.

A difference is positive where it speaks for the claim. Accuracies of one method minus another's, error of the rival
minus the own error: whoever makes differences turns their sign so.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

HELD, REFUTED, INCONCLUSIVE = "held", "refuted", "inconclusive"
UNTESTED = "cannot be tested here"
VERDICTS = (HELD, REFUTED, INCONCLUSIVE, UNTESTED)
LEVEL = 0.95


@dataclass(frozen=True)
class Difference:
    """One comparison: a mean difference, its standard error, and where it was measured.

    Attributes
    ----------
    where : str
        In words, such as ``k = 10, against Hilbert``.
    estimate, error : float
        The mean and its standard error; infinite where one split alone was run.
    freedom : float
        Degrees of freedom of Student's t; infinite for counted records.
    n : int
        Splits or folds; 1 where the interval counts records of one split.
    values : tuple of float
        Split by split, in the order of the splits; empty for counted records.
    overlap : float
        Test records per training record: what Nadeau and Bengio add to 1/n, because splits share records.
    """

    where: str
    estimate: float
    error: float
    freedom: float
    n: int
    values: tuple[float, ...] = ()
    overlap: float = 0.0

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Return the two-sided interval of a level."""
        if math.isinf(self.error):
            return -math.inf, math.inf
        half = float(_t().ppf((1 + level) / 2, self.freedom)) * self.error
        return self.estimate - half, self.estimate + half

    def chance_below(self, bound: float) -> float:
        """Return the one-sided p-value of the hypothesis that the true difference is at least `bound`."""
        if math.isinf(self.error):
            return 1.0
        if self.error == 0:
            return 0.0 if self.estimate < bound else 1.0
        return float(_t().cdf((self.estimate - bound) / self.error, self.freedom))

    def turned(self) -> Difference:
        """Return the difference with the other sign."""
        values = tuple(-value for value in self.values)
        return Difference(self.where, -self.estimate, self.error, self.freedom, self.n, values, self.overlap)


def paired(where: str, values: Sequence[float], *, overlap: float) -> Difference:
    """Return a difference over splits, with the corrected variance of Nadeau and Bengio (2003).

    Parameters
    ----------
    where : str
    values : sequence of float
        One difference for every split, both sides measured on the same split.
    overlap : float
        Number of test records per training record: 1/9 for ten folds, 0.25 for splits of 80/20.
    """
    found = np.asarray(values, np.float64)
    n = len(found)
    if n == 0:
        raise ValueError(f"no split of {where!r}: expected at least one. Run the study.")
    error = math.inf if n == 1 else float(found.std(ddof=1)) * math.sqrt(1 / n + overlap)
    return Difference(where, float(found.mean()), error, max(n - 1, 1), n, tuple(found.tolist()), overlap)


def counted(where: str, estimate: float, error: float) -> Difference:
    """Return a difference on the records of one split, with the standard error of counting them.

    It says how sure the number is for that split, and nothing about other splits.
    """
    return Difference(where, estimate, error, math.inf, 1)


def share_error(share: float, n: float) -> float:
    """Return the standard error of a share of n records; that of half a record where none or all count."""
    inside = min(max(share, 0.5 / n), 1 - 0.5 / n)
    return math.sqrt(inside * (1 - inside) / n)


def average(differences: Sequence[Difference]) -> Difference:
    """Return the mean over comparisons.

    Over splits, the mean of every split is one value, over the splits that all comparisons have. Standard errors of
    counted records are averaged, which is right for comparisons on the same records and too careful for others.
    """
    n = min(one.n for one in differences)
    where = f"mean of {len(differences)}"
    if all(one.values for one in differences):
        means = np.mean([one.values[:n] for one in differences], axis=0)
        return paired(where, means.tolist(), overlap=max(one.overlap for one in differences))
    estimate = float(np.mean([one.estimate for one in differences]))
    freedom = min(one.freedom for one in differences)
    return Difference(where, estimate, float(np.mean([one.error for one in differences])), freedom, n)


@dataclass(frozen=True)
class Judgement:
    """A verdict, with what decided it.

    Attributes
    ----------
    verdict : str
        One of `VERDICTS`.
    decisive : Difference
        The mean over comparisons, or the comparison that decided.
    level : float
        Of the interval that decided: 95%, or more where several comparisons were tested.
    reason : str
        Why, in words.
    """

    verdict: str
    decisive: Difference
    level: float
    reason: str


def holm(chances: Sequence[float], alpha: float) -> list[int]:
    """Return which hypotheses Holm's method rejects at a level of all together."""
    rejected: list[int] = []
    for step, place in enumerate(np.argsort(chances, kind="stable")):
        if chances[place] > alpha / (len(chances) - step):
            break
        rejected.append(int(place))
    return rejected


def _beyond(differences: Sequence[Difference], bound: float) -> list[int]:
    """Return the comparisons that lie below a bound, corrected for their number."""
    return holm([one.chance_below(bound) for one in differences], (1 - LEVEL) / 2)


def _corrected(differences: Sequence[Difference]) -> float:
    return 1 - (1 - LEVEL) / len(differences)


def everywhere(differences: Sequence[Difference], margin: float) -> Judgement:
    """Judge that every comparison speaks for the claim.

    Refuted: some comparison lies below minus the margin, corrected by Holm's method. Held: no comparison can lie below
    minus the margin (95% each), and their mean lies above 0.
    """
    worst = min(differences, key=lambda one: one.estimate)
    wrong, mean = _beyond(differences, -margin), average(differences)
    if wrong:
        of = f"{len(wrong)} of {len(differences)} comparisons lie beyond the margin on the other side"
        return Judgement(REFUTED, worst, _corrected(differences), of if len(differences) > 1 else "beyond the margin")
    n_sure = sum(one.interval()[0] > -margin for one in differences)
    if n_sure == len(differences) and mean.interval()[0] > 0:
        return Judgement(HELD, mean, LEVEL, "")
    return Judgement(INCONCLUSIVE, worst, _corrected(differences), _undecided(differences, n_sure, mean))


def on_average(differences: Sequence[Difference], margin: float) -> Judgement:
    """Judge that the mean over comparisons speaks for the claim.

    Held: its interval lies above 0. Refuted: its interval lies below minus the margin.
    """
    mean = average(differences) if len(differences) > 1 else differences[0]
    low, high = mean.interval()
    if low > 0:
        return Judgement(HELD, mean, LEVEL, "")
    if high < -margin:
        return Judgement(REFUTED, mean, LEVEL, "beyond the margin on the other side")
    open_end = "the interval reaches into the margin" if high < 0 else "the interval holds differences of either sign"
    return Judgement(INCONCLUSIVE, mean, LEVEL, _single(mean) or open_end)


def not_worse(differences: Sequence[Difference], margin: float) -> Judgement:
    """Judge that no comparison speaks against the claim by more than the margin.

    Held: no comparison can lie below minus the margin (95% each). Refuted: some does, corrected by Holm's method.
    """
    worst = min(differences, key=lambda one: one.interval()[0])
    wrong = _beyond(differences, -margin)
    if wrong:
        lowest = min(differences, key=lambda one: one.estimate)
        of = f"{len(wrong)} of {len(differences)} comparisons are worse by more than the margin"
        return Judgement(REFUTED, lowest, _corrected(differences), of)
    n_sure = sum(one.interval()[0] > -margin for one in differences)
    if n_sure == len(differences):
        return Judgement(HELD, worst, LEVEL, "")
    return Judgement(INCONCLUSIVE, worst, LEVEL, _undecided(differences, n_sure))


def alike(differences: Sequence[Difference], margin: float) -> Judgement:
    """Judge that no comparison differs by more than the margin, in either direction.

    Held: every interval (95% each) lies within the margin. Refuted: some lies outside, corrected by Holm's method.
    """
    both = [*differences, *(one.turned() for one in differences)]
    wrong = {place % len(differences) for place in _beyond(both, -margin)}
    farthest = max(differences, key=lambda one: abs(one.estimate))
    if wrong:
        of = f"{len(wrong)} of {len(differences)} comparisons differ by more than the margin"
        return Judgement(REFUTED, farthest, _corrected(both), of)
    n_sure = sum(-margin < one.interval()[0] and one.interval()[1] < margin for one in differences)
    if n_sure == len(differences):
        return Judgement(HELD, farthest, LEVEL, "")
    return Judgement(INCONCLUSIVE, farthest, LEVEL, _undecided(differences, n_sure))


def somewhere(differences: Sequence[Difference], margin: float) -> Judgement:
    """Judge that at least one comparison speaks for the claim.

    Held: some comparison lies above 0, corrected by Holm's method. Refuted: none can lie above the margin (95% each).
    """
    best = max(differences, key=lambda one: one.estimate)
    right = _beyond([one.turned() for one in differences], 0.0)
    if right:
        return Judgement(HELD, best, _corrected(differences), f"in {len(right)} of {len(differences)} comparisons")
    if all(one.interval()[1] < margin for one in differences):
        return Judgement(REFUTED, best, LEVEL, "no comparison can lie beyond the margin")
    return Judgement(INCONCLUSIVE, best, _corrected(differences), _single(best) or "no comparison is beyond chance")


Rule = Callable[[Sequence[Difference], float], Judgement]
RULES: dict[str, Rule] = {
    "everywhere": everywhere,
    "on average": on_average,
    "not worse": not_worse,
    "alike": alike,
    "somewhere": somewhere,
}


def _undecided(differences: Sequence[Difference], n_sure: int, mean: Difference | None = None) -> str:
    if n_sure < len(differences):
        single = _single(max(differences, key=lambda one: one.error))
        if len(differences) == 1:
            return single or "the interval reaches across the margin"
        return single or f"the intervals decide {n_sure} of {len(differences)} comparisons"
    assert mean is not None
    return f"no comparison lies beyond the margin, and neither does their mean lie above 0 ({mean.estimate:+.3g})"


def _single(one: Difference) -> str:
    return "one split has no interval" if math.isinf(one.error) else ""


def _t() -> type:
    from scipy import stats

    return stats.t  # type: ignore[no-any-return]
