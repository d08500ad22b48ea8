# SPDX-License-Identifier: Apache-2.0
"""Synthetic records from a chain of decision trees, the method of R's synthpop: a strong opponent without a promise.

Columns are drawn one after the other. A tree predicts each from those before it, and the new value is one of a random
real record in the same leaf.

References
----------
B. Nowok, G. M. Raab and C. Dibben, "synthpop: bespoke creation of synthetic data in R", Journal of Statistical Software
74 (2016).
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator


class TreeSynthesizer(BaseEstimator):
    """Fit a chain of trees on a pandas frame, and sample frames like it.

    Parameters
    ----------
    min_samples_leaf : int, default=5
        Real records of a leaf, as in synthpop.
    random_state : int, default=0
    """

    def __init__(self, min_samples_leaf: int = 5, random_state: int = 0) -> None:
        self.min_samples_leaf = min_samples_leaf
        self.random_state = random_state

    def fit(self, table: Any) -> Self:
        """Grow a tree for every column; the last column, the target, comes first."""
        from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

        names = [table.columns[-1], *table.columns[:-1]]
        self.names_, self.like_ = list(table.columns), table.iloc[:0]
        self.values_ = {name: table[name].array for name in names}
        codes = {name: _codes(table[name]) for name in names}
        self.chain_: list[tuple[str, Any, Any]] = [(names[0], None, codes[names[0]])]
        for place, name in enumerate(names[1:], 1):
            before = np.column_stack([codes[other] for other in names[:place]])
            kind = DecisionTreeRegressor if table[name].dtype.kind in "if" else DecisionTreeClassifier
            tree = kind(min_samples_leaf=self.min_samples_leaf, random_state=self.random_state)
            tree.fit(before, codes[name])
            leaf = tree.apply(before)
            self.chain_.append((name, (tree, np.argsort(leaf, kind="stable"), np.sort(leaf)), codes[name]))
        return self

    def sample(self, n: int) -> Any:
        """Draw so many synthetic records."""
        import pandas as pd

        draw = np.random.default_rng(self.random_state)
        rows: dict[str, NDArray[np.intp]] = {}
        drawn: list[NDArray[np.float64]] = []
        for name, grown, codes in self.chain_:
            if grown is None:
                rows[name] = draw.integers(0, len(codes), n)
            else:
                tree, order, leaves = grown
                leaf = tree.apply(np.column_stack(drawn))
                first, end = np.searchsorted(leaves, leaf, "left"), np.searchsorted(leaves, leaf, "right")
                rows[name] = order[first + (draw.random(n) * (end - first)).astype(np.intp)]
            drawn.append(codes[rows[name]])
        return pd.DataFrame({name: self.values_[name].take(rows[name]) for name in self.names_})


def _codes(column: Any) -> NDArray[np.float64]:
    """Return numbers as they are, with missing ones below all others, and categories as codes."""
    if column.dtype.kind in "if":
        return np.asarray(column.fillna(column.min() - 1), np.float64)
    return np.asarray(column.astype("category").cat.codes, np.float64)
