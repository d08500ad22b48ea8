# SPDX-License-Identifier: Apache-2.0
"""The result of an attack: a rate, its confidence interval, the rates it is compared with, and the verdict.

All attacks return an `AttackResult`; audits collect them and reports print them. With 95% confidence an attack without
any power is called stronger than its baseline in at most 2.5% of audits, and called failed in at most another 2.5%.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato import __version__
from sfumato.documents import plain, read_document, write_document
from sfumato.errors import ParameterError, named

Verdict = Literal["stronger than baseline", "not shown", "failed attack"]
"""The verdict on an attack. A *failed attack* did worse than an attacker who ignores the protected data: the attack is
invalid, and says nothing about safety."""

_DRAWN_AT_ONCE = 1 << 22  # counts held at a time while resampling


@dataclass(frozen=True, eq=False)
class Hits:
    """The success of an attack person by person. It stays with the owner: `AttackResult.to_dict` leaves it out.

    Attributes
    ----------
    rows : ndarray of int
        Positions of the attacked people in the original table.
    success : ndarray of float
        1 or 0 for each of them, or a chance where some is left to chance.
    baseline : ndarray of float
        The same for an attacker who does not see the attacked data.
    truth : ndarray of int, optional
        Code of what is guessed about each: an attacker who knows more of some people may name what most of them have.
    cluster : ndarray of int, optional
        People with equal numbers are not independent of each other.
    is_member : ndarray of bool, optional
        For membership: who is one. Rates are means of members and others then.
    """

    rows: NDArray[Any]
    success: NDArray[Any]
    baseline: NDArray[Any]
    truth: NDArray[Any] | None = None
    cluster: NDArray[Any] | None = None
    is_member: NDArray[np.bool_] | None = None

    def at(self, rows: NDArray[Any]) -> Hits:
        """Return the same people by their positions in a larger table, given those of the attacked rows in it."""
        return replace(self, rows=rows[self.rows])


@dataclass(frozen=True)
class AttackResult:
    """The success rate of an attack, the rates it is compared with, and its cost.

    Attributes
    ----------
    attack : str
        Its name.
    rate : float
        Success rate of the attacker, from 0 to 1; higher is riskier.
    interval : (float, float)
        Confidence interval of the rate.
    baseline : float
        Rate of an attacker who does not see the attacked data.
    control : float or None
        Rate of the same attack on records that it could not have learned from, where there is such a control.
    verdict : {"stronger than baseline", "not shown", "failed attack"}
    seconds : float
        Duration of the attack.
    seed : int or None
        The seed of everything random in it; None when nothing was.
    details : mapping
        More numbers, by name. No cell values: names of columns and counts only.
    hits : Hits or None
        Success person by person, where people are attacked one by one.
    """

    attack: str
    rate: float
    interval: tuple[float, float]
    baseline: float
    control: float | None
    verdict: Verdict
    seconds: float
    seed: int | None
    details: Mapping[str, Any] = field(default_factory=dict)
    hits: Hits | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, numbers and text; None (null in JSON) for numbers that are not finite."""
        document: dict[str, Any] = plain(replace(self, hits=None))
        del document["hits"]
        return document

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> AttackResult:
        """Rebuild a result from `to_dict`'s document."""
        return cls(**{**document, "interval": tuple(document["interval"])})

    def with_verdict(self, verdict: Verdict, **reasons: Any) -> AttackResult:
        """Return the same result under another verdict, with the reasons among its details."""
        return replace(self, verdict=verdict, details={**self.details, **reasons})


def result_of_counts(
    attack: str,
    successes: float,
    trials: int,
    baseline: float,
    *,
    control: float | None = None,
    confidence: float = 0.95,
    started: float,
    seed: int | None,
    details: Mapping[str, Any],
    hits: Hits | None = None,
) -> AttackResult:
    """Return the result of an attack on independent people: the share of successes with Wilson's interval.

    Parameters
    ----------
    attack : str
    successes : float
        Expected number where some are decided by chance.
    trials : int
    baseline, control, confidence, seed, details, hits
        As in `AttackResult` and `judge`.
    started : float
        ``time.perf_counter()`` when the attack began.
    """
    rate = successes / trials
    interval = wilson_interval(min(successes, trials), trials, confidence)  # sums of shares may exceed it by rounding
    verdict = judge(rate, interval, baseline, control=control)
    seconds = time.perf_counter() - started
    return AttackResult(attack, rate, interval, baseline, control, verdict, seconds, seed, details, hits)


def recalled(cache: str | Path | None, key: object, run: Callable[[], AttackResult]) -> AttackResult:
    """Return the cached result of an attack with the same key, or run it and cache the result.

    Parameters
    ----------
    cache : path or None
        Folder of finished results; an interrupted audit goes on from there. None: nothing is kept.
    key : object
        Everything the result depends on, with a complete `repr`.
    run : callable
    """
    if cache is None:
        return run()
    folder = Path(cache)
    # Another version may attack better; what an older one found is not its answer.
    path = folder / f"{hashlib.sha256(repr((__version__, key)).encode()).hexdigest()}.json"
    if path.exists():
        return AttackResult.from_dict(read_document(path, "a cached result", "an earlier attack"))
    result = run()
    folder.mkdir(parents=True, exist_ok=True)
    write_document(result.to_dict(), path)
    return result


# -- intervals and verdicts -----------------------------------------------------------------------------------------


def wilson_interval(successes: float, trials: float, confidence: float = 0.95) -> tuple[float, float]:
    """Return Wilson's score interval of a share of independent successes.

    Parameters
    ----------
    successes, trials : float
        Counts; weights that sum to the number of records are allowed.
    confidence : float, default 0.95

    Returns
    -------
    (float, float)
        (0, 1) when there were no trials.

    References
    ----------
    E. B. Wilson, "Probable inference, the law of succession, and statistical inference", JASA 22 (1927).

    Examples
    --------
    >>> low, high = wilson_interval(50, 100)
    >>> round(low, 3), round(high, 3)
    (0.404, 0.596)
    """
    _check_confidence(confidence)
    if not 0 <= successes <= trials:
        raise ParameterError(
            f"{named('successes', successes)} of {named('trials', trials)}: expected 0 <= successes <= trials. Count "
            "both again."
        )
    if trials == 0:
        return 0.0, 1.0
    share = successes / trials
    from scipy.stats import norm  # large, and not needed to read results

    squared = float(norm.ppf((1 + confidence) / 2)) ** 2 / trials
    middle = share + squared / 2
    half = float(np.sqrt(squared * (share * (1 - share) + squared / 4)))
    # At the ends the formula gives 0 and 1 exactly, up to rounding.
    low = 0.0 if successes == 0 else (middle - half) / (1 + squared)
    high = 1.0 if successes == trials else (middle + half) / (1 + squared)
    return float(low), float(high)


def bootstrap_interval(
    values: ArrayLike,
    *,
    counts: ArrayLike | None = None,
    statistic: Callable[[NDArray[Any]], float] | None = None,
    confidence: float = 0.95,
    n_resamples: int = 1000,
    random_state: int = 0,
) -> tuple[float, float]:
    """Return the percentile bootstrap interval of the mean, or of another statistic, over records.

    For values that are not counts of independent successes: scores of a record over several attributes, differences
    between two attackers on the same record.

    Parameters
    ----------
    values : array-like of shape (n,) or (n, m)
        One entry per record, or per kind of record when `counts` is given.
    counts : array-like of int, optional
        How many records have each entry; for the mean only.
    statistic : callable, optional
        Takes resampled values and returns a number. The default is the mean.
    confidence : float, default 0.95
    n_resamples : int, default 1000
    random_state : int, default 0

    Returns
    -------
    (float, float)

    Examples
    --------
    >>> low, high = bootstrap_interval([0, 1] * 50)
    >>> low < 0.5 < high
    True
    """
    _check_confidence(confidence)
    values = np.asarray(values)
    if len(values) == 0:
        raise ParameterError("no values to resample: expected at least one record. Attack a table that has records.")
    if statistic is not None and counts is not None:
        raise ParameterError("counts= beside statistic=: expected one of them. Repeat the values, or leave both out.")
    generator = np.random.default_rng(random_state)
    if statistic is None:
        resampled = _resampled_means(np.asarray(values, float), counts, n_resamples, generator)
    else:
        n = len(values)
        resampled = np.array([statistic(values[generator.integers(0, n, n)]) for _ in range(n_resamples)])
    tail = (1 - confidence) / 2
    low, high = np.quantile(resampled, [tail, 1 - tail])
    return float(low), float(high)


def resampled_interval(values: ArrayLike, test_over_train: float, confidence: float = 0.95) -> tuple[float, float]:
    """Return the interval of a mean over random splits of the same records, corrected for what they share.

    Splits overlap, so their results vary less than those of new records would. The correction adds the ratio of test to
    training records to the variance of the mean. For differences between two models, pass the difference on each split.

    Parameters
    ----------
    values : array-like of float
        One for each split; at least two.
    test_over_train : float
        Test records over training records of a split.
    confidence : float, default 0.95

    Returns
    -------
    (float, float)

    References
    ----------
    C. Nadeau and Y. Bengio, "Inference for the generalization error", Machine Learning 52 (2003).

    Examples
    --------
    >>> low, high = resampled_interval([0.84, 0.85, 0.86], 0.25)
    >>> round(low, 3), round(high, 3)
    (0.817, 0.883)
    """
    _check_confidence(confidence)
    array = np.asarray(values, float)
    if len(array) < 2 or not test_over_train > 0:
        raise ParameterError(
            f"{len(array)} splits with {named('test_over_train', test_over_train)}: expected at least 2, and a ratio "
            "above 0. Measure more splits."
        )
    from scipy.stats import t as student

    half = student.ppf((1 + confidence) / 2, len(array) - 1) * np.sqrt(
        (1 / len(array) + test_over_train) * array.var(ddof=1)
    )
    return float(array.mean() - half), float(array.mean() + half)


def judge(
    rate: float, interval: tuple[float, float], baseline: float, *, control: float | None = None, slack: float = 1e-12
) -> Verdict:
    """Return the verdict on a rate, given its interval, the baseline and the control.

    Parameters
    ----------
    rate : float
    interval : (float, float)
    baseline : float
        Rate of an attacker who does not see the attacked data.
    control : float, optional
        An attack must beat this too before it counts as stronger.
    slack : float
        Differences this small are rounding.

    Returns
    -------
    {"stronger than baseline", "not shown", "failed attack"}

    Examples
    --------
    >>> judge(0.7, (0.65, 0.75), 0.6), judge(0.61, (0.55, 0.67), 0.6), judge(0.4, (0.35, 0.45), 0.6)
    ('stronger than baseline', 'not shown', 'failed attack')
    """
    low, high = interval
    if high < baseline - slack and rate < baseline:
        return "failed attack"
    to_beat = baseline if control is None else max(baseline, control)
    return "stronger than baseline" if low > to_beat + slack else "not shown"


def _resampled_means(
    values: NDArray[np.float64], counts: ArrayLike | None, n_resamples: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    # Records with equal values are alike, so the number drawn of each kind is multinomial: no row is ever copied.
    kinds, kind_of = np.unique(values, return_inverse=True)
    n_of = np.bincount(kind_of, None if counts is None else np.asarray(counts, float))
    n_records = round(float(n_of.sum()))
    means = np.empty(n_resamples)
    step = max(1, _DRAWN_AT_ONCE // len(kinds))
    for start in range(0, n_resamples, step):
        stop = min(start + step, n_resamples)
        drawn = generator.multinomial(n_records, n_of / n_of.sum(), stop - start)
        means[start:stop] = drawn @ kinds / n_records
    return means


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise ParameterError(
            f"{named('confidence', confidence)}: expected a number between 0 and 1. The usual one is 0.95."
        )
