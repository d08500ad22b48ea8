# SPDX-License-Identifier: Apache-2.0
"""Metrics of membership scores: accuracy, AUC, and true positive rates at low false positive rates.

``membership`` calls `judged` for each attack. Thresholds for accuracy come from the half of the records that the
attacker knows and are judged on the other half, and the other way round, so that no record helps to judge itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, binom, norm, rankdata

from sfumato.attack.membership_signals import Floats
from sfumato.attack.result import Verdict, judge, wilson_interval

LOW_RATES = (0.01, 0.001)
_BASELINE = 0.5  # half of the records are members, so guessing is right half of the time
_N_TESTS = 1 + len(LOW_RATES)


@dataclass(frozen=True)
class LowRate:
    """The share of members found by a threshold that few others pass.

    Attributes
    ----------
    rate : float
        True positives. The threshold is the one that finds the most among those with at most the wanted share of
        false positives; records with equal scores stand or fall together.
    interval : (float, float)
        Of the share of members found where exactly the wanted share of all others passes. Nobody knows that threshold:
        with few others it may lie far from the one that was found, so the interval spans all where it may lie.
    interval_at_threshold : (float, float)
        Wilson's interval of the rate at the threshold that was found, whatever that lets through.
    false_positive_rate : float
        What the threshold lets through of these records.
    false_positive_interval : (float, float)
        Exact interval (Clopper and Pearson). An attack is only shown to work when the rate's interval at the threshold
        lies above this one: the threshold was chosen on these records, too.
    """

    rate: float
    interval: tuple[float, float]
    interval_at_threshold: tuple[float, float]
    false_positive_rate: float
    false_positive_interval: tuple[float, float]

    @property
    def is_shown(self) -> bool:
        """True if more members than others pass, beyond chance."""
        return self.interval_at_threshold[0] > self.false_positive_interval[1]


def judged(
    scores: Floats, is_member: NDArray[np.bool_], fold: NDArray[Any], confidence: float
) -> tuple[float, tuple[float, float], Verdict, dict[str, Any]]:
    """Return accuracy, its interval, the verdict and the other measures of an attack."""
    is_said = said_members(scores, is_member, fold)
    n_right = int((is_said == is_member).sum())
    accuracy, interval = n_right / len(scores), wilson_interval(n_right, len(scores), confidence)
    n_said, n_hit, n_members = int(is_said.sum()), int((is_said & is_member).sum()), int(is_member.sum())
    area, area_interval = area_under_curve(scores, is_member, confidence)
    details: dict[str, Any] = {
        "n_members": n_members,
        "n_others": len(scores) - n_members,
        "precision": n_hit / n_said if n_said else None,
        "precision_interval": wilson_interval(n_hit, n_said, confidence),
        "recall": n_hit / n_members,
        "recall_interval": wilson_interval(n_hit, n_members, confidence),
        "auc": area,
        "auc_interval": area_interval,
        "true_positives_at": {str(rate): _as_dict(low_rate(scores, is_member, rate, confidence)) for rate in LOW_RATES},
    }
    return accuracy, interval, _verdict(scores, is_member, n_right, confidence), details


def said_members(scores: Floats, is_member: NDArray[np.bool_], fold: NDArray[Any]) -> NDArray[np.bool_]:
    """Return the predicted members, by the threshold that is most accurate in the other fold."""
    said = np.zeros(len(scores), bool)
    for held_out in np.unique(fold):
        known = fold != held_out
        said[~known] = scores[~known] >= best_threshold(scores[known], is_member[known])
    return said


def best_threshold(scores: Floats, is_member: NDArray[np.bool_]) -> float:
    """Return the threshold with the most right answers, half way between two scores; the highest on ties."""
    order = np.argsort(-scores, kind="stable")
    ordered, gain = scores[order], np.where(is_member[order], 1, -1)
    right = np.concatenate([[0], np.cumsum(gain)])  # members found minus others let through, from the top down
    is_cut = np.concatenate([[True], ordered[1:] != ordered[:-1], [True]])
    best = int(np.flatnonzero(is_cut)[np.argmax(right[is_cut])])
    if best == 0:
        return np.inf
    if best == len(ordered):
        return -np.inf
    return float(ordered[best - 1] + ordered[best]) / 2


def area_under_curve(
    scores: Floats, is_member: NDArray[np.bool_], confidence: float = 0.95
) -> tuple[float, tuple[float, float]]:
    """Return the area under the curve of true against false positives, with DeLong's interval.

    References
    ----------
    E. R. DeLong, D. M. DeLong and D. L. Clarke-Pearson, "Comparing the areas under two or more correlated receiver
    operating characteristic curves", Biometrics 44 (1988).
    """
    members, others = scores[is_member], scores[~is_member]
    n_members, n_others = len(members), len(others)
    among_all = rankdata(np.concatenate([members, others]))
    beaten_others = (among_all[:n_members] - rankdata(members)) / n_others
    beaten_members = (among_all[n_members:] - rankdata(others)) / n_members
    area = float(beaten_others.mean())
    variance = np.var(beaten_others) / max(n_members - 1, 1) + np.var(beaten_members) / max(n_others - 1, 1)
    half = float(norm.ppf((1 + confidence) / 2) * np.sqrt(variance))
    return area, (max(0.0, area - half), min(1.0, area + half))


def low_rate(scores: Floats, is_member: NDArray[np.bool_], most: float, confidence: float = 0.95) -> LowRate:
    """Return the true positives where at most the share `most` of the others passes."""
    members, others = np.sort(scores[is_member]), np.sort(scores[~is_member])
    n_allowed = int(np.floor(most * len(others) + 1e-9))
    n_found, n_passed = _above(members, others, n_allowed), _above(others, others, n_allowed)
    tail = (1 - confidence) / 2
    low = 0.0 if n_passed == 0 else float(beta.ppf(tail, n_passed, len(others) - n_passed + 1))
    high = float(beta.ppf(1 - tail, n_passed + 1, len(others) - n_passed))
    at_threshold = wilson_interval(n_found, len(members), confidence)
    interval = _around(members, others, most, confidence)
    return LowRate(n_found / len(members), interval, at_threshold, n_passed / len(others), (low, high))


def _above(scores: Floats, others: Floats, n_allowed: int) -> int:
    """Count the scores above all of the others but a number; both are sorted."""
    if n_allowed >= len(others):
        return len(scores)
    # The highest score of those that must not pass; equal scores do not pass either.
    return len(scores) - int(np.searchsorted(scores, others[len(others) - n_allowed - 1], side="right"))


def _around(members: Floats, others: Floats, most: float, confidence: float) -> tuple[float, float]:
    """Return the interval of the true positives at the threshold that the share `most` of all others passes.

    Of so many others, a number that follows the binomial distribution passes it: half of the error is for that number,
    the other half for the members found at the strictest and at the loosest threshold it leaves.
    """
    tail = (1 - confidence) / 4
    fewest, largest = (int(number) for number in binom.ppf([tail, 1 - tail], len(others), most))
    each = 1 - 2 * tail
    # If no other may pass, the threshold is an unknown distance above all of them.
    strict = _above(members, others, fewest - 1) if fewest else 0
    loose = _above(members, others, largest)
    return wilson_interval(strict, len(members), each)[0], wilson_interval(loose, len(members), each)[1]


def _verdict(scores: Floats, is_member: NDArray[np.bool_], n_right: int, confidence: float) -> Verdict:
    # Three chances to be called stronger, so each is judged with a third of the error.
    strict = 1 - (1 - confidence) / _N_TESTS
    interval = wilson_interval(n_right, len(scores), strict)
    verdict = judge(n_right / len(scores), interval, _BASELINE)
    if any(low_rate(scores, is_member, rate, strict).is_shown for rate in LOW_RATES):
        return "stronger than baseline"
    return verdict


def _as_dict(low: LowRate) -> Mapping[str, Any]:
    return {
        "rate": low.rate,
        "interval": low.interval,
        "interval_at_threshold": low.interval_at_threshold,
        "false_positive_rate": low.false_positive_rate,
        "false_positive_interval": low.false_positive_interval,
    }
