# SPDX-License-Identifier: Apache-2.0
"""LibSVM's machine on records of which many are equal: equal ones become one whose losses weigh as much as theirs.

The sum that is minimized stays the same, and LibSVM's time grows with the square of the records: Bank Marketing has
four columns, and of its 39,922 records 9,308 are different.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.svm import SVC


class MergedMachine(SVC):
    """Support vector machine that merges equal records of a class before it is trained."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the minimum; a weight multiplies C."""
        X, y = np.asarray(X, np.float64), np.asarray(y)
        classes = np.unique(y, return_inverse=True)[1]
        rows = np.column_stack([X, classes])
        _, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        weights = np.bincount(place.ravel(), sample_weight).astype(np.float64)
        super().fit(X[first], y[first], sample_weight=weights)
        return self
