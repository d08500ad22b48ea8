# SPDX-License-Identifier: Apache-2.0
"""Noisy one-way marginals by label, and records drawn from them.

A drawn record has a label, and in each column a value that is drawn for that label alone. Its columns go together only
as far as the label explains it, so drawn records are no release: they show a tree where people may be. What is drawn
from noisy counts costs no privacy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.frames import Table
from sfumato.private.encoding import PublicEncoding
from sfumato.private.mechanisms import noisy_counts
from sfumato.private.noise import Noise

Integers = NDArray[np.int64]

_FLOOR = 2.0
"""Counts below so many scales of the noise are taken for none: a long list of rare categories would be mostly noise."""


@dataclass(frozen=True, eq=False)
class Marginals:
    """Noisy counts of every label and cell of each column.

    Attributes
    ----------
    encoding : PublicEncoding
    counts : list of ndarray, shape (labels, cells)
        Noisy, not negative.
    floor : float
        Counts up to this are taken for none when records are drawn.
    """

    encoding: PublicEncoding
    counts: list[Integers]
    floor: float

    @property
    def of_labels(self) -> NDArray[np.float64]:
        """Noisy number of records of each label: the mean over columns, each of which counts all records."""
        totals: NDArray[np.float64] = np.mean([self._kept(counts).sum(axis=1) for counts in self.counts], axis=0)
        return totals

    @property
    def n_records(self) -> float:
        """Noisy number of records, at least 1."""
        return max(1.0, float(self.of_labels.sum()))

    def _kept(self, counts: Integers) -> Integers:
        return np.where(counts > self.floor, counts, 0)

    def draw(
        self, n_records: int, is_whole: Mapping[str, bool], random: np.random.Generator
    ) -> tuple[Any, NDArray[np.intp]]:
        """Draw records; return them as an Arrow table, and the number of each record's label.

        Parameters
        ----------
        n_records : int
        is_whole : mapping of str to bool
            Which columns of numbers are integers.
        random : Generator
            Any: nothing that is drawn here is secret.
        """
        import pyarrow as pa

        shares = self.of_labels
        shares = np.ones(len(shares)) if shares.sum() == 0 else shares
        label = random.choice(len(shares), n_records, p=shares / shares.sum())
        columns = {}
        for column, counts in zip(self.encoding.columns, self.counts, strict=True):
            cell = np.empty(n_records, np.int64)
            for own in range(len(shares)):
                rows = np.flatnonzero(label == own)
                cell[rows] = random.choice(column.n_cells, len(rows), p=_shares(self._kept(counts), own))
            if hasattr(column, "cuts"):
                drawn = _draw_numbers(column, cell, random, is_whole=is_whole.get(column.name, False))
            else:
                drawn = pa.array([*column.known, None]).take(pa.array(cell))
            columns[column.name] = drawn
        return pa.table(columns), label


def _draw_numbers(column: Any, cell: Integers, random: np.random.Generator, *, is_whole: bool) -> Any:
    """Draw a number from the interval of each cell, all as likely; the last cell stands for missing."""
    import pyarrow as pa

    edges = np.array([column.low, *column.cuts, column.high])
    missing = cell > len(column.cuts)
    place = np.minimum(cell, len(column.cuts))
    low, high = edges[place], edges[place + 1]
    if not is_whole:
        return pa.array(low + random.random(len(cell)) * (high - low), mask=missing)
    # Integers from the first in the interval to the last below its end; the last interval has its end, too.
    first = np.ceil(low)
    last = np.maximum(np.where(place == len(column.cuts), np.floor(high), np.ceil(high) - 1), first)
    return pa.array((first + np.floor(random.random(len(cell)) * (last - first + 1))).astype(np.int64), mask=missing)


def _shares(counts: Integers, label: int) -> NDArray[np.float64]:
    """Return the shares of a label's cells; of all labels where it has none, and equal ones where nobody has any."""
    for own in (counts[label], counts.sum(axis=0), np.ones(counts.shape[1])):
        if own.sum() > 0:
            break
    return np.asarray(own / own.sum())


def noisy_marginals(
    encoding: PublicEncoding,
    table: Table,
    label: NDArray[np.integer],
    n_labels: int,
    epsilon: float,
    *,
    rows: Integers | None = None,
    noise: Noise | None = None,
) -> Marginals:
    """Count every label and cell of each column, with two-sided geometric noise.

    Parameters
    ----------
    encoding : PublicEncoding
        The cells of the columns, known without the records.
    table : Table
    label : ndarray of int
        The number of each record's label.
    n_labels : int
    epsilon : float
        Of all marginals together: a record counts once in each column, so each column has an equal part.
    rows : ndarray of int, optional
        The records that count; None: all.
    noise : Noise, optional
        The secure source by default.
    """
    cells = encoding.cells(table)
    if rows is not None:
        cells, label = cells[rows], label[rows]
    n_columns = len(encoding.columns)
    counts = [
        np.bincount(label * column.n_cells + cells[:, place], minlength=n_labels * column.n_cells).reshape(n_labels, -1)
        for place, column in enumerate(encoding.columns)
    ]
    flat = np.concatenate([count.ravel() for count in counts])
    noisy = noisy_counts(flat, epsilon, most_per_person=n_columns, noise=noise)
    ends = np.cumsum([count.size for count in counts])[:-1]
    parts = [part.reshape(count.shape) for part, count in zip(np.split(noisy, ends), counts, strict=True)]
    return Marginals(encoding, parts, _FLOOR * n_columns / epsilon)


def whole_columns(bounds: Mapping[str, Sequence[float]] | None) -> dict[str, bool]:
    """Return which columns of numbers are integers: those whose bounds are all given as integers."""
    given = bounds or {}
    return {
        name: all(isinstance(edge, int | np.integer) and not isinstance(edge, bool) for edge in edges)
        for name, edges in given.items()
    }
