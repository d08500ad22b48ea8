# SPDX-License-Identifier: Apache-2.0
"""Noisy one-way marginals by label.

A drawn record has a label, and in each column a cell that is drawn for that label alone. Its columns go together only
as far as the label explains it, so drawn records are no release: they show a tree where people may be.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.private.drawing import draw_places
from sfumato.private.encoding import PublicEncoding
from sfumato.private.noise import Noise, add_gaussian

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

FLOOR = 2.0
"""Counts below so many scales of the noise are taken for none: a long list of rare categories would be mostly noise."""


@dataclass(frozen=True, eq=False)
class Marginals:
    """Noisy counts of every label and cell of each column.

    Attributes
    ----------
    counts : list of ndarray, shape (labels, cells)
        0 where noise explains them.
    """

    counts: list[Floats]

    @property
    def of_labels(self) -> Floats:
        """Noisy number of records of each label: the mean over columns, each of which counts all records."""
        totals: Floats = np.mean([counts.sum(axis=1) for counts in self.counts], axis=0)
        return totals

    @property
    def n_records(self) -> float:
        """Noisy number of records, at least 1."""
        return max(1.0, float(self.of_labels.sum()))

    def draw_cells(self, n_records: int, random: np.random.Generator) -> Integers:
        """Draw the cells of some records, one column for each of the table."""
        label = draw_places(self.of_labels, n_records, random)
        cells = np.empty((n_records, len(self.counts)), np.int64)
        for place, counts in enumerate(self.counts):
            for own in range(len(counts)):
                rows = np.flatnonzero(label == own)
                # A label without any cell above the noise has the cells of all labels.
                weights = counts[own] if counts[own].sum() > 0 else counts.sum(axis=0)
                cells[rows, place] = draw_places(weights, len(rows), random)
        return cells


def noisy_marginals(
    encoding: PublicEncoding,
    cells: Integers,
    label: Integers,
    n_labels: int,
    mu: float,
    *,
    noise: Noise | None = None,
) -> Marginals:
    """Count every label and cell of each column, with Gaussian noise.

    Parameters
    ----------
    encoding : PublicEncoding
        The cells of the columns, known without the records.
    cells : ndarray of shape (n_records, n_columns)
    label : ndarray of int
        The number of each record's label.
    n_labels : int
    mu : float
        Gaussian privacy of all marginals together. A record counts once in each column, so that it moves the counts by
        the root of the number of columns.
    noise : Noise, optional
        The secure source by default.
    """
    sizes = [column.n_cells for column in encoding.columns]
    scale = math.sqrt(len(sizes)) / mu
    counts = []
    for place, size in enumerate(sizes):
        exact = np.bincount(label * size + cells[:, place], minlength=n_labels * size).reshape(n_labels, size)
        noisy = add_gaussian(exact, scale, noise)
        counts.append(np.where(noisy > FLOOR * scale, noisy, 0.0))
    return Marginals(counts)
