# SPDX-License-Identifier: Apache-2.0
"""Bounds on the best attacker of a population, from counts of a sample.

The best attacker of the population does not depend on the sample. Whatever it is, its hits on the sample are at most
those of the guess that is best on the sample, cell by cell. Bounds on a mean rise with the number of hits, so the bound
of that largest number holds for the best attacker, without a union over cells or attackers.

Records are drawn independently, one per person, and were not used to make the cells. ``error`` is the chance with which
a bound may fail.

References
----------
Clopper, C. J. and Pearson, E. S. (1934). The use of confidence or fiducial limits illustrated in the case of the
binomial. Hoeffding, W. (1963). Probability inequalities for sums of bounded random variables. Issa, I., Wagner, A. B.
and Kamath, S. (2020). An operational approach to information leakage.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import betaincinv

_MOST_COUNTED = 1 << 22  # pairs of a cell and a value that are counted in one table


def binomial_upper(hits: float, trials: float, error: float) -> float:
    """Return the upper end of Clopper and Pearson's one-sided interval of a chance.

    Examples
    --------
    >>> round(binomial_upper(60, 100, 0.05), 4), binomial_upper(100, 100, 0.05)
    (0.6825, 1.0)
    """
    return 1.0 if hits >= trials else float(betaincinv(hits + 1, trials - hits, 1 - error))


def binomial_lower(hits: float, trials: float, error: float) -> float:
    """Return the lower end of Clopper and Pearson's one-sided interval of a chance.

    Examples
    --------
    >>> round(binomial_lower(60, 100, 0.05), 4), binomial_lower(0, 100, 0.05)
    (0.513, 0.0)
    """
    return 0.0 if hits <= 0 else float(betaincinv(hits, trials - hits + 1, error))


@dataclass(frozen=True)
class BalancedBound:
    """The best attacker when every value of the secret counts the same, however rare it is.

    Attributes
    ----------
    n_values : int
        Values of the secret that occur in the holdout.
    observed : float
        Mean over the values of the share guessed right, of the guess that is best on the holdout.
    upper : float
        No attacker has a larger one. ``1 / n_values`` is blind guessing.
    """

    n_values: int
    observed: float
    upper: float

    @property
    def advantage(self) -> float:
        """From 0 (blind guessing) to 1 (certainty)."""
        return (self.n_values * self.upper - 1) / (self.n_values - 1) if self.n_values > 1 else 0.0

    @property
    def parity_distance(self) -> float | None:
        """Bound on the demographic-parity distance of any decision from the cells, for a secret with two values."""
        return 2 * self.upper - 1 if self.n_values == 2 else None

    @property
    def capacity(self) -> float:
        """Bayes capacity: by how much, at most, the cells multiply the chance to guess the secret, for any prior."""
        return self.n_values * self.upper

    @property
    def maximal_leakage(self) -> float:
        """Maximal leakage in nats: the logarithm of the capacity."""
        return math.log(self.capacity)


@dataclass(frozen=True, eq=False)
class Counts:
    """How often the cells of a sample occur, with the most frequent value of the secret in each.

    Attributes
    ----------
    of_cell : ndarray of int64, shape (cells,)
    most : ndarray of int64, shape (cells,)
        Records of the cell with its most frequent value.
    of_value : ndarray of int64, shape (values,)
    balanced : float
        Sum over the cells of the largest share that a value has of its own records there, divided by the values.
    """

    of_cell: NDArray[np.int64]
    most: NDArray[np.int64]
    of_value: NDArray[np.int64]
    balanced: float

    @property
    def hits(self) -> int:
        """Hits of the guess that is best on this sample: no attacker has more."""
        return int(self.most.sum())


def count_cells(cells: NDArray[np.integer[Any]], n_cells: int, values: NDArray[np.integer[Any]]) -> Counts:
    """Count the values of a secret in the cells of a sample.

    Examples
    --------
    >>> counts = count_cells(np.array([0, 0, 0, 1, 1]), 2, np.array([0, 0, 1, 1, 1]))
    >>> counts.hits, counts.of_cell.tolist(), counts.most.tolist(), round(counts.balanced, 3)
    (4, [3, 2], [2, 2], 0.833)
    """
    n_values = int(values.max(initial=0)) + 1
    of_value = np.bincount(values, minlength=n_values)
    place, values_of, counted = count_pairs(cells, n_cells, values, n_values)
    of_cell, most = np.zeros(n_cells, np.int64), np.zeros(n_cells, np.int64)
    share = np.zeros(n_cells)
    np.add.at(of_cell, place, counted)
    np.maximum.at(most, place, counted)
    np.maximum.at(share, place, counted / of_value[values_of])
    occurring = int((of_value > 0).sum())
    return Counts(of_cell, most, of_value, float(share.sum()) / occurring)


def count_pairs(
    cells: NDArray[np.integer[Any]], n_cells: int, values: NDArray[np.integer[Any]], n_values: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs of a cell and a value that occur, in their order, and how often each does."""
    keys = cells.astype(np.int64) * n_values + values
    if n_cells * n_values <= _MOST_COUNTED:
        counted = np.bincount(keys, minlength=n_cells * n_values)
        found = np.flatnonzero(counted)
        return found // n_values, found % n_values, counted[found]
    found, counted = np.unique(keys, return_counts=True)
    return found // n_values, found % n_values, counted


def best_attacker_upper(
    cells: NDArray[np.integer[Any]], n_cells: int, values: NDArray[np.integer[Any]], error: float
) -> float:
    """Return the bound on how often any attacker who sees the cells guesses the values right.

    Examples
    --------
    >>> round(best_attacker_upper(np.array([0, 0, 0, 1, 1]), 2, np.array([0, 0, 1, 1, 1]), 0.05), 3)
    0.99
    """
    return binomial_upper(count_cells(cells, n_cells, values).hits, len(cells), error)


def balanced_bound(counts: Counts, error: float) -> BalancedBound:
    """Return the bound on balanced accuracy: Hoeffding's, given how many records have each value.

    Given the values, the cells of the records are independent. A fixed attacker's balanced accuracy on the sample is
    then a sum of independent terms from 0 to ``1 / (K n_s)``.
    """
    sizes = counts.of_value[counts.of_value > 0]
    n_values = len(sizes)
    spread = math.sqrt(math.log(1 / error) * float((1 / sizes).sum()) / (2 * n_values**2))
    return BalancedBound(n_values, counts.balanced, min(1.0, counts.balanced + spread))


def cell_bounds(counts: Counts, error: float) -> NDArray[np.float64]:
    """Return, for every cell with records, the bound on the chance of its most probable value; all hold together.

    Which value is the most probable one of a cell does not depend on the sample, so the union is over cells alone.
    """
    is_there = counts.of_cell > 0
    trials, hits = counts.of_cell[is_there], counts.most[is_there]
    own = error / max(1, len(trials))
    upper = betaincinv(hits + 1.0, np.maximum(trials - hits, 1), 1 - own)
    return np.where(hits == trials, 1.0, upper)


@njit(cache=True, nogil=True)
def fullest_windows(
    cells: NDArray[np.int64], values: NDArray[np.float64], n_cells: int, width: float
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the most records within a closed window of some width in every cell, and where that window begins.

    Records are sorted by cell, and by value within a cell.
    """
    most, start = np.zeros(n_cells, np.int64), np.zeros(n_cells)
    first = 0
    for i in range(cells.shape[0]):
        if i == 0 or cells[i] != cells[i - 1]:
            first = i
        while values[i] - values[first] > width:
            first += 1
        if i - first + 1 > most[cells[i]]:
            most[cells[i]], start[cells[i]] = i - first + 1, values[first]
    return most, start
