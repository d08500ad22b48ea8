# SPDX-License-Identifier: Apache-2.0
"""Secrets and those who guess them: categories guessed exactly, and numbers guessed within a tolerance.

Both count the most hits that any guess has in every cell, and both have an attacker that learns a guess per cell. A
missing value is a value of its own.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arguments import is_number
from sfumato.certificates.bounds import Counts, count_cells, count_pairs, fullest_windows
from sfumato.columns import Column
from sfumato.errors import ParameterError, named
from sfumato.grouping import encode

Guess = NDArray[np.float64]
"""One entry per cell: a value, or where a window begins."""

_SLACK = 1e-9  # of a window's width: rounding must not keep a record out of the window that a guess covers
CAUTION = (0.0, 2.0, 8.0, 32.0)
"""How many records of the whole sample count for each cell; a learner chooses one."""


@dataclass(frozen=True, eq=False)
class CategorySecret:
    """A secret that is guessed exactly.

    Attributes
    ----------
    name : str
    codes : ndarray of int, shape (records,)
        The value of each record, from 0.
    """

    name: str
    codes: NDArray[np.int64]
    tolerance: None = None

    @property
    def n_values(self) -> int:
        """Number of distinct values."""
        return int((np.bincount(self.codes) > 0).sum())

    def of(self, rows: Any) -> CategorySecret:
        """Return the secret of some rows: positions, or a slice."""
        return CategorySecret(self.name, self.codes[rows])

    def counts(self, cells: NDArray[np.int64], n_cells: int) -> Counts:
        """Count the cells, with the most frequent value of each."""
        return count_cells(cells, n_cells, self.codes)

    def learned(self, cells: NDArray[np.int64], n_cells: int, cautions: Sequence[float]) -> list[Guess]:
        """Return the value to guess in every cell, for each caution.

        In a cell, every value counts its records there and `caution` times its share of all records.
        """
        n_codes = int(self.codes.max()) + 1
        shares = np.bincount(self.codes, minlength=n_codes) / len(self.codes)
        place, value, counted = count_pairs(cells, n_cells, self.codes, n_codes)
        guesses = []
        for caution in cautions:
            prior = max(caution, 1e-6) * shares  # decides ties and cells without records, too
            guess, best = np.full(n_cells, float(prior.argmax())), np.full(n_cells, prior.max())
            score = counted + prior[value]
            order = np.lexsort((score, place))
            last = np.flatnonzero(np.append(place[order][1:] != place[order][:-1], True))  # the best of every cell
            chosen = order[last]
            is_better = score[chosen] > best[place[chosen]]
            guess[place[chosen[is_better]]] = value[chosen[is_better]]
            guesses.append(guess)
        return guesses

    def hits(self, cells: NDArray[np.int64], guess: Guess) -> int:
        """Return how many records a guess is right for."""
        return int((guess.astype(np.int64)[cells] == self.codes).sum())


@dataclass(frozen=True, eq=False)
class NumberSecret:
    """A number that is guessed within a tolerance.

    Attributes
    ----------
    name : str
    values : ndarray of float64, shape (records,)
    missing : ndarray of bool, shape (records,)
    tolerance : float
    """

    name: str
    values: NDArray[np.float64]
    missing: NDArray[np.bool_]
    tolerance: float

    @property
    def n_values(self) -> int:
        """Number of distinct values."""
        return len(np.unique(self.values[~self.missing])) + bool(self.missing.any())

    def of(self, rows: Any) -> NumberSecret:
        """Return the secret of some rows: positions, or a slice."""
        return NumberSecret(self.name, self.values[rows], self.missing[rows], self.tolerance)

    def counts(self, cells: NDArray[np.int64], n_cells: int) -> Counts:
        """Count the cells, with the records in the fullest window of each, or with those that miss the value."""
        most, _ = self._windows(cells, n_cells, 2 * self.tolerance * (1 + _SLACK))
        n_missing = np.bincount(cells[self.missing], minlength=n_cells)
        of_cell = np.bincount(cells, minlength=n_cells)
        return Counts(of_cell, np.maximum(most, n_missing), np.zeros(0, np.int64), math.nan)

    def learned(self, cells: NDArray[np.int64], n_cells: int, cautions: Sequence[float]) -> list[Guess]:
        """Return the start of the window to guess in every cell, for each caution; NaN: that the value is missing.

        A cell with no more records than `caution` gets the window of all records.
        """
        width = 2 * self.tolerance
        most, start = self._windows(np.zeros_like(cells), 1, width)
        of_all = math.nan if self.missing.sum() > most[0] else start[0]
        own, starts = self._windows(cells, n_cells, width)
        of_cell = np.where(np.bincount(cells[self.missing], minlength=n_cells) > own, math.nan, starts)
        n_records = np.bincount(cells, minlength=n_cells)
        return [np.where(n_records > caution, of_cell, of_all) for caution in cautions]

    def hits(self, cells: NDArray[np.int64], guess: Guess) -> int:
        """Return how many records a guess is right for."""
        own = guess[cells]
        beyond = self.values - own
        is_inside = (beyond >= 0) & (beyond <= 2 * self.tolerance) & ~self.missing
        return int((is_inside | (np.isnan(own) & self.missing)).sum())

    def _windows(
        self, cells: NDArray[np.int64], n_cells: int, width: float
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        there = np.flatnonzero(~self.missing)
        order = there[np.lexsort((self.values[there], cells[there]))]
        most, start = fullest_windows(cells[order], self.values[order], n_cells, width)
        return most, start


Secret = CategorySecret | NumberSecret


def as_secret(column: Column, tolerance: Any) -> Secret:
    """Return the secret of a column.

    Parameters
    ----------
    column : Column
    tolerance : float, datetime.timedelta, mapping of these by column, or None
    """
    own = tolerance.get(column.name) if isinstance(tolerance, Mapping) else tolerance
    if own is None or (column.kind == "category" and not isinstance(tolerance, Mapping)):
        return CategorySecret(column.name, encode(column).values.astype(np.int64))
    if column.kind == "category":
        raise ParameterError(
            f"{named('tolerance')} has one for {column.name!r}, which holds categories: expected numbers or moments. "
            "Leave it out."
        )
    if isinstance(own, datetime.timedelta) and column.kind == "moment":
        own = own / datetime.timedelta(microseconds=1)
    elif column.kind == "moment":
        raise ParameterError(
            f"{named('tolerance')} of {column.name!r}, which holds dates or times, is not a duration: expected a "
            "datetime.timedelta. Pass one, such as timedelta(days=30)."
        )
    if not is_number(own) or not 0 <= own < math.inf:
        raise ParameterError(
            f"{named('tolerance')} of {column.name!r} is {own!r}: expected a number of at least 0, in the unit of the "
            "column."
        )
    missing = np.zeros(column.n_records, np.bool_) if column.missing is None else column.missing
    return NumberSecret(column.name, column.values.astype(np.float64), missing, float(own))


def best_learned(secret: Secret, cells: NDArray[np.int64], n_cells: int) -> Guess:
    """Return the guess per cell that an attacker learns: with the caution that does best on half of the records."""
    half = len(cells) // 2
    first, second = secret.of(slice(half)), secret.of(slice(half, None))
    tried = [second.hits(cells[half:], guess) for guess in first.learned(cells[:half], n_cells, CAUTION)]
    return secret.learned(cells, n_cells, [CAUTION[int(np.argmax(tried))]])[0]
