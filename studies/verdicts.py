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
        The mean over comparisons, or the comparison that decided, is open or is the weakest.
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


def _lower_end(one: Difference) -> float:
    return one.interval()[0]


def _farthest_end(one: Difference) -> float:
    return max(abs(end) for end in one.interval())


def _least(differences: Sequence[Difference]) -> Difference:
    return min(differences, key=lambda one: one.estimate)


def _corrected(differences: Sequence[Difference]) -> float:
    return 1 - (1 - LEVEL) / len(differences)


def everywhere(differences: Sequence[Difference], margin: float) -> Judgement:
    """Judge that every comparison speaks for the claim.

    Refuted: some comparison lies below minus the margin, corrected by Holm's method. Held: no comparison can lie below
    minus the margin (95% each), and their mean lies above 0. What is shown is the comparison that refutes, the one that
    is open, or, where the claim holds, the weakest: a mean over strong and weak rivals hides the nearest one.
    """
    wrong, mean = _beyond(differences, -margin), average(differences)
    if wrong:
        of = f"{len(wrong)} of {len(differences)} comparisons lie beyond the margin on the other side"
        reason = of if len(differences) > 1 else "beyond the margin"
        return Judgement(REFUTED, _least([differences[place] for place in wrong]), _corrected(differences), reason)
    still_open = [one for one in differences if _lower_end(one) <= -margin]
    if still_open:
        return Judgement(INCONCLUSIVE, _least(still_open), _corrected(differences), _undecided(differences, still_open))
    low, high = mean.interval()
    if low <= 0:
        return Judgement(INCONCLUSIVE, mean, LEVEL, "no comparison lies beyond the margin, nor their mean above 0")
    several = f"the mean of {len(differences)} is {mean.estimate:+.3g} [{low:+.3g}, {high:+.3g}]"
    weakest = min(differences, key=_lower_end)
    return Judgement(HELD, weakest, LEVEL, several if len(differences) > 1 else "")


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
    wrong = _beyond(differences, -margin)
    if wrong:
        of = f"{len(wrong)} of {len(differences)} comparisons are worse by more than the margin"
        return Judgement(REFUTED, _least([differences[place] for place in wrong]), _corrected(differences), of)
    still_open = [one for one in differences if _lower_end(one) <= -margin]
    if not still_open:
        return Judgement(HELD, min(differences, key=_lower_end), LEVEL, "")
    return Judgement(INCONCLUSIVE, _least(still_open), LEVEL, _undecided(differences, still_open))


def alike(differences: Sequence[Difference], margin: float) -> Judgement:
    """Judge that no comparison differs by more than the margin, in either direction.

    Held: every interval (95% each) lies within the margin. Refuted: some lies outside, corrected by Holm's method.
    """
    both = [*differences, *(one.turned() for one in differences)]
    wrong = _beyond(both, -margin)
    if wrong:
        places = sorted({place % len(differences) for place in wrong})
        farthest = max((differences[place] for place in places), key=lambda one: abs(one.estimate))
        of = f"{len(places)} of {len(differences)} comparisons differ by more than the margin"
        return Judgement(REFUTED, farthest, _corrected(both), of)
    still_open = [one for one in differences if _farthest_end(one) >= margin]
    if not still_open:
        return Judgement(HELD, max(differences, key=_farthest_end), LEVEL, "")
    farthest = max(still_open, key=lambda one: abs(one.estimate))
    return Judgement(INCONCLUSIVE, farthest, LEVEL, _undecided(differences, still_open))


def somewhere(differences: Sequence[Difference], margin: float) -> Judgement:
    """Judge that at least one comparison speaks for the claim.

    Held: some comparison lies above 0, corrected by Holm's method. Refuted: none can lie above the margin (95% each).
    """
    turned = [one.turned() for one in differences]
    right = _beyond(turned, 0.0)
    surest = min(range(len(differences)), key=lambda place: turned[place].chance_below(0.0))
    if right:
        reason = f"in {len(right)} of {len(differences)} comparisons"
        return Judgement(HELD, differences[surest], _corrected(differences), reason)
    highest = max(differences, key=lambda one: one.interval()[1])
    if highest.interval()[1] < margin:
        return Judgement(REFUTED, highest, LEVEL, "no comparison can lie beyond the margin")
    open_one = differences[surest]
    return Judgement(
        INCONCLUSIVE, open_one, _corrected(differences), _single(open_one) or "no comparison is beyond chance"
    )


Rule = Callable[[Sequence[Difference], float], Judgement]
RULES: dict[str, Rule] = {
    "everywhere": everywhere,
    "on average": on_average,
    "not worse": not_worse,
    "alike": alike,
    "somewhere": somewhere,
}


def _undecided(differences: Sequence[Difference], still_open: Sequence[Difference]) -> str:
    single = _single(max(differences, key=lambda one: one.error))
    if len(differences) == 1:
        return single or "the interval reaches across the margin"
    n_sure = len(differences) - len(still_open)
    return single or f"the intervals decide {n_sure} of {len(differences)} comparisons"


def _single(one: Difference) -> str:
    return "one split has no interval" if math.isinf(one.error) else ""


def _t() -> type:
    from scipy import stats

    return stats.t  # type: ignore[no-any-return]
