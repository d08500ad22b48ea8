# SPDX-License-Identifier: Apache-2.0
"""Risks of re-identification by the quasi-identifiers, before and after: prosecutor, journalist and marketer.

All of it follows from group sizes, which the judge counts. With the share of the population that is in the table, the
number of people of a group in the population is estimated by the negative binomial model of Benedetti and Franconi.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.measurement.measurement import MISSING_MEANS, THRESHOLDS
from sfumato.measurement.population_uniqueness import (
    UniquenessEstimate,
    estimate_from_weights,
    estimates_from_sizes,
    expected_inverse,
)
from sfumato.report.risk_data import AttackerRisk, Reidentification, RiskProfile

_DIGITS = 3  # of shares
_MISSING = MISSING_MEANS["value"]


def measure_reidentification(
    before: NDArray[np.int64],
    after: NDArray[np.int64],
    *,
    context: Mapping[str, Any],
    smallest_shown: int,
    counted: Literal["records", "persons"] = "records",
) -> tuple[Reidentification, dict[str, float]]:
    """Return the risks of two tables for the report, and those of the second, exact, by the conditions of a gate.

    Parameters
    ----------
    before, after : ndarray of int64
        Sizes of the groups of the original table and of the release, in records or in persons.
    context : mapping
        As a policy says it: ``threshold`` and ``sampling_fraction``, if they are there.
    smallest_shown : int
        Shares of fewer, but not of none, are None.
    counted : {"records", "persons"}
    """
    threshold, fraction = context.get("threshold"), context.get("sampling_fraction")
    thresholds = sorted({*THRESHOLDS, *([] if threshold is None else [threshold])})
    first, second = (_profile(sizes, fraction, thresholds, smallest_shown) for sizes in (before, after))
    prosecutor, estimated = 1 / after, _in_population(after, fraction)
    measured = {
        "max_risk": float(prosecutor.max()),
        "max_journalist_risk": float(estimated.max()),
        "max_marketer_risk": _average(estimated, after),
    }
    if threshold is not None:
        measured["max_share_at_risk"] = _average(prosecutor > threshold, after)
    if fraction is not None:  # the least favorable estimate; each has tables that it is too low for
        measured["max_population_unique"] = max(one.share or 0.0 for one in _alone_in_population(after, fraction))
    return Reidentification(first, second, counted, fraction, threshold), measured


def _in_population(sizes: NDArray[np.int64], fraction: float | None) -> NDArray[np.float64]:
    """Return the chance to find a record of each group in the population; without a fraction, that is the table."""
    different, place = np.unique(sizes, return_inverse=True)
    chance = 1 / different if fraction is None else expected_inverse(different, different / fraction)
    return np.asarray(chance[place])


def _average(of_groups: NDArray[Any], sizes: NDArray[np.int64]) -> float:
    # Added up exactly: a limit must not be met or missed by the order of the groups.
    return math.fsum((of_groups * sizes).tolist()) / int(sizes.sum())


def _profile(
    sizes: NDArray[np.int64], fraction: float | None, thresholds: list[float], smallest_shown: int
) -> RiskProfile:
    n_people, n_unique = int(sizes.sum()), int((sizes == 1).sum())

    def share(count: int) -> float | None:
        return None if 0 < count < smallest_shown else round(count / n_people, _DIGITS)

    def summary(risk: NDArray[np.float64]) -> tuple[float, float, dict[str, float | None]]:
        above = {f"{threshold:g}": share(int(sizes[risk > threshold].sum())) for threshold in thresholds}
        return float(risk.max()), round(_average(risk, sizes), _DIGITS), above

    estimated = _in_population(sizes, fraction)
    attackers = (
        AttackerRisk("prosecutor", *summary(1 / sizes)),
        AttackerRisk("journalist", *summary(estimated)),
        AttackerRisk("marketer", None, round(_average(estimated, sizes), _DIGITS)),
    )
    if fraction is None:
        return RiskProfile(share(n_unique), attackers)
    is_masked = share(n_unique) is None  # an estimate could tell a number that is not shown
    shares = {
        one.estimator: None if one.share is None or is_masked else round(one.share, _DIGITS)
        for one in _alone_in_population(sizes, fraction)
    }
    return RiskProfile(share(n_unique), attackers, shares)


def _alone_in_population(sizes: NDArray[np.int64], fraction: float) -> list[UniquenessEstimate]:
    """Return estimates of the share of people who are alone in the population."""
    n_people, n_unique = int(sizes.sum()), int((sizes == 1).sum())
    found = estimates_from_sizes(sizes, round(n_people / fraction), missing=_MISSING, reason=None)
    return [*found, estimate_from_weights(n_unique * fraction, n_people, n_unique, missing=_MISSING, reason=None)]


def smallest_group_for(limit: float, fraction: float | None) -> int:
    """Return the size from which on groups keep the chance to find a record within a limit.

    Examples
    --------
    >>> smallest_group_for(0.09, None), smallest_group_for(0.09, 0.1)
    (12, 2)
    """
    enough = math.ceil(1 / limit - 1e-9)  # where the table is the population
    low = enough if fraction is None else 1
    while low < enough:  # the chance falls with the size
        middle = (low + enough) // 2
        is_enough = _in_population(np.array([middle]), fraction)[0] <= limit
        low, enough = (low, middle) if is_enough else (middle + 1, enough)
    return enough
