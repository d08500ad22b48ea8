# SPDX-License-Identifier: Apache-2.0
"""How likely a record is found: the prosecutor, the journalist and the marketer. Called by ``measuring``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

THRESHOLDS = (0.05, 0.09, 0.2)


@dataclass(frozen=True)
class Risk:
    """The chance to find the right record, over all records of the table.

    Attributes
    ----------
    attacker : {"prosecutor", "journalist", "marketer"}
        The prosecutor knows that a person is in the table; the journalist knows that the person is in the population
        that the table was drawn from; the marketer matches all records with the population and counts the hits.
    maximum : float or None
        Of the record easiest to find.
    average : float or None
        Mean over records, not over groups: the share of records an attack on all of them is expected to find.
    above : dict of float to float, or None
        For 0.05, 0.09 and 0.2: the share of records whose risk is larger.
    basis : str or None
        What the numbers rest on: ``"table"``, ``"population"`` or ``"weights"``.
    missing : str
        What a missing quasi-identifier means.
    reason : str or None
        Why a number is not there.

    References
    ----------
    El Emam, K. and Dankar, F. K. (2008). Protecting privacy using k-anonymity.
    Dankar, F. K. and El Emam, K. (2010). A method for evaluating marketer re-identification risk.
    """

    attacker: str
    maximum: float | None
    average: float | None
    above: dict[float, float] | None
    basis: str | None
    missing: str
    reason: str | None = None


def risk_of(
    attacker: str,
    risk: NDArray[np.float64],
    n_records: NDArray[np.int64],
    *,
    basis: str,
    missing: str,
    reason: str | None = None,
) -> Risk:
    """Summarize the risks of groups whose records share one risk each.

    Parameters
    ----------
    attacker : str
    risk : ndarray of float64, shape (groups,)
    n_records : ndarray of int64, shape (groups,)
        Records of each group.
    """
    total = n_records.sum()
    average = float((risk * n_records).sum() / total)
    if attacker == "marketer":
        why = "an average by definition: the share of all records that are expected to be found"
        return Risk(attacker, None, min(1.0, average), None, basis, missing, reason or why)
    above = {threshold: float(n_records[risk > threshold].sum() / total) for threshold in THRESHOLDS}
    return Risk(attacker, float(risk.max()), min(1.0, average), above, basis, missing, reason)


def unknown_risk(attacker: str, *, missing: str, reason: str) -> Risk:
    """Say that a risk cannot be measured, and why."""
    return Risk(attacker, None, None, None, None, missing, reason)
