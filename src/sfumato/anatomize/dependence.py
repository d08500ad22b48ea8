# SPDX-License-Identifier: Apache-2.0
"""How far one sensitive column tells another, which matters where each has a table of its own.

An attacker who knows how two columns depend on each other keeps only candidates of both tables that fit together. The
anatomizer warns of columns that nearly determine each other; ``sfumato.attack.intersect_tables`` measures what that
gives away.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import PrivacyWarning, named

MOST_TOLD = 0.8
"""Share of the published records from which on a warning is given; no value of a column has more than 1/l of these."""


def share_told(first: NDArray[np.integer[Any]], second: NDArray[np.integer[Any]]) -> float:
    """Return the share of records whose second value others with the same first value have most often.

    A record does not speak for itself, so that a column of single values tells nothing.

    Examples
    --------
    >>> share_told(np.array([0, 0, 0, 1]), np.array([5, 5, 7, 9]))
    0.25
    """
    n_others = int(second.max()) + 1
    pairs, counts = np.unique(first.astype(np.int64) * n_others + second, return_counts=True)
    of_first = pairs // n_others
    starts = np.flatnonzero(np.diff(of_first, prepend=-1))
    return float((np.maximum.reduceat(counts, starts) - 1).sum() / len(first))


def apart(tables: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Return all pairs of columns, in both orders, that are in tables of their own."""
    home = {column: number for number, own in enumerate(tables) for column in own}
    return [(one, two) for one, two in permutations(sorted(home), 2) if home[one] != home[two]]


def warn_of(shares: Mapping[tuple[int, int], float], names: Sequence[str]) -> None:
    """Warn of columns in tables of their own of which one nearly determines the other; once for a pair."""
    told: dict[frozenset[int], tuple[float, int, int]] = {}
    for (one, two), share in shares.items():
        if share >= MOST_TOLD:
            pair = frozenset((one, two))
            told[pair] = max(told.get(pair, (0.0, one, two)), (share, one, two))
    for share, one, two in told.values():
        warnings.warn(
            PrivacyWarning(
                f"{names[two]!r} follows from {names[one]!r} in {share:.0%} of the records, and each has its own "
                "sensitive table. An attacker who knows how they are related can combine both tables and guess better "
                f"than 1 in l. Put them into one table with {named('joint', [[names[one], names[two]]])}."
            ),
            stacklevel=2,
        )
