# SPDX-License-Identifier: Apache-2.0
"""Single people out of generalized records: attack A8 of the minimization paper.

Whoever is alone in a combination of buckets is isolated by the ranges that the buckets stand for, whatever else is
known. Called by audits.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.intervals import judge, wilson_interval
from sfumato.attack.result import AttackResult
from sfumato.generalization import Generalization
from sfumato.grouping import merge_rows

_SET_SIZES = (2, 3, 5, 10, 20)


def single_out(
    generalization: Generalization, breached: Any, *, prior: Any = None, confidence: float = 0.95
) -> AttackResult:
    """Count who is alone with the buckets that were breached (A8).

    Parameters
    ----------
    generalization : Generalization
    breached : frame or array
        The records in full resolution; the attacker sees them generalized only.
    prior : frame or array, optional
        Other records in full resolution that the attacker has. The baseline makes its predicates from those: it aims
        at the combinations of buckets that one of them has alone.
    confidence : float, default=0.95
        Of the interval, for another table of as many people from the same population.

    Returns
    -------
    AttackResult
        `rate` is the share of people who are alone. `details` holds the size of the rarest combination, how many
        combinations are that rare, the share of people in small sets, and how likely the best predicate isolates
        exactly one person: 1 where somebody is alone, else a predicate that holds by chance for one of the m records
        of the rarest combination. Chance alone, without any data, reaches about 0.37.

    Notes
    -----
    Coarser buckets join combinations, so the rarest never gets smaller.

    References
    ----------
    Staab, R. et al. (2024), section 5 and appendix A. Cohen, A. and Nissim, K. (2020). Towards formalizing the GDPR's
    notion of singling out.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato.minimize import UniformMinimizer
    >>> ages = np.array([[20.0], [21.0], [22.0], [60.0]])
    >>> single_out(UniformMinimizer(n_buckets=2, floor=1).fit(ages).generalization_, ages).rate
    0.25
    """
    start = time.perf_counter()
    buckets = generalization.codes(breached)
    sizes = np.asarray(generalization.n_buckets)
    first, cell_of = _cells(buckets, sizes)
    counts = np.bincount(cell_of)
    n_records, n_alone, rarest = len(buckets), int((counts == 1).sum()), int(counts.min())
    aimed_at = (
        np.zeros(len(counts), bool) if prior is None else _aimed_at(generalization.codes(prior), buckets[first], sizes)
    )
    rate, baseline = n_alone / n_records, float((aimed_at & (counts == 1)).sum() / n_records)
    interval = wilson_interval(n_alone, n_records, confidence)
    in_set_of = counts[cell_of]
    return AttackResult(
        attack="singling out (A8)",
        rate=rate,
        interval=interval,
        baseline=baseline,
        control=None,
        verdict=judge(rate, interval, baseline),
        seconds=time.perf_counter() - start,
        seed=None,
        details={
            "rarest": rarest,
            "n_rarest": int((counts == rarest).sum()),
            "n_combinations": len(counts),
            "n_records": n_records,
            "share_in_sets_below": {size: float((in_set_of < size).mean()) for size in _SET_SIZES},
            "best_predicate": _isolation(rarest),
            "best_predicate_by_chance": _isolation(n_records),
        },
    )


def _cells(buckets: NDArray[np.int32], sizes: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    columns = [column.astype(np.int64) for column in buckets.T]
    return merge_rows(columns, sizes.tolist(), len(buckets))


def _aimed_at(known: NDArray[np.int32], targets: NDArray[np.int32], sizes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Say of every combination whether exactly one of the attacker's own records has it."""
    _, cell_of = _cells(np.concatenate([targets, known]), sizes)
    counts = np.bincount(cell_of[len(targets) :], minlength=int(cell_of.max()) + 1)
    return np.asarray(counts[cell_of[: len(targets)]] == 1)


def _isolation(n_records: int) -> float:
    """Return how likely a predicate that each of some records meets with chance 1/n is met by exactly one."""
    return float((1 - 1 / n_records) ** (n_records - 1))
