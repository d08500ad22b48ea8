# SPDX-License-Identifier: Apache-2.0
"""Measure how well a classifier predicts the class from buckets; equal records are merged into one with a weight.

Used by the sweep, and by the minimizers that use a classifier's error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sfumato.anonymize.guide_from_target import fit_weighted, takes_weights
from sfumato.grouping import merge_rows

_MOST_CATEGORIES = 255  # of a category column, as boosting takes them


@dataclass(frozen=True, eq=False)
class Codes:
    """Records as codes, one column per attribute.

    Attributes
    ----------
    columns : sequence of ndarray of int64
    sizes : sequence of int
        Number of codes of each column.
    is_ordered : sequence of bool
    """

    columns: Sequence[NDArray[np.int64]]
    sizes: Sequence[int]
    is_ordered: Sequence[bool]

    def informative(self) -> Codes:
        """Return the columns that have more than one code."""
        kept = [place for place, size in enumerate(self.sizes) if size > 1]
        return Codes(
            [self.columns[place] for place in kept],
            [self.sizes[place] for place in kept],
            [self.is_ordered[place] for place in kept],
        )


class CodesClassifier:
    """A classifier on merged records; predicts once per distinct row of codes.

    Parameters
    ----------
    estimator : classifier or None
        Takes the matrix of codes; None: gradient boosting, which knows which codes are categories.
    seed : int
        For gradient boosting.
    """

    def __init__(self, estimator: Any = None, *, seed: int = 0) -> None:
        self.estimator = estimator
        self.seed = seed

    def predictions(
        self,
        codes: Codes,
        y: NDArray[Any],
        learned: slice | NDArray[Any],
        weight: NDArray[np.float64] | None = None,
    ) -> NDArray[Any]:
        """Fit on some of the records and return the predicted class of all of them.

        Parameters
        ----------
        codes : Codes
        y : ndarray of int
            Classes of the records to learn from.
        learned : slice or ndarray
            Which records those are.
        weight : ndarray of float64, optional
            How much each of those records counts; None: all the same.
        """
        codes = codes.informative()
        n_records = len(codes.columns[0]) if codes.columns else 0
        if not n_records or len(np.unique(y)) < 2:
            return np.asarray(np.bincount(y, weight).argmax())
        first, cell_of = merge_rows(codes.columns, codes.sizes, n_records)
        matrix = np.column_stack([column[first] for column in codes.columns])
        with one_thread():
            self._fit(codes, matrix, cell_of[learned], y, weight)
            return np.asarray(self.fitted_.predict(matrix))[cell_of]

    def _fit(
        self,
        codes: Codes,
        matrix: NDArray[np.int64],
        cells: NDArray[np.int64],
        y: NDArray[Any],
        weight: NDArray[np.float64] | None,
    ) -> None:
        estimator = clone(self.estimator) if self.estimator is not None else default_estimator(codes, self.seed)
        if weight is None and not takes_weights(estimator):
            self.fitted_ = estimator.fit(matrix[cells], y)
            return
        n_classes = int(y.max()) + 1
        pairs, pair_of = np.unique(cells * n_classes + y, return_inverse=True)
        sums = np.bincount(pair_of, weight).astype(np.float64)
        self.fitted_ = fit_weighted(estimator, matrix[pairs // n_classes], pairs % n_classes, sums)


def one_thread() -> Any:
    """Limit OpenMP to one thread: merged records are few, and on a busy machine threads wait for each other."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="openmp")


def default_estimator(codes: Codes, seed: int) -> Any:
    """Return gradient boosting for merged records: leaves may hold one row, since a row may be a thousand records."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    is_category = [
        not ordered and size <= _MOST_CATEGORIES for ordered, size in zip(codes.is_ordered, codes.sizes, strict=True)
    ]
    return HistGradientBoostingClassifier(
        max_iter=60,
        min_samples_leaf=1,
        l2_regularization=1.0,
        categorical_features=is_category,
        early_stopping=False,
        random_state=seed,
    )


def held_out_and_learned(
    n_records: int, weight: NDArray[np.float64] | None, fraction: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the records that errors are measured on, drawn at random, and the others.

    Records of weight zero are in neither part. A single record is in both.
    """
    rows = np.random.default_rng(seed).permutation(n_records)
    if weight is not None:
        rows = rows[weight[rows] > 0]
    n_held_out = min(max(1, round(fraction * len(rows))), len(rows) - 1)
    return (rows[:n_held_out], rows[n_held_out:]) if n_held_out else (rows, rows)
