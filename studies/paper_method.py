# SPDX-License-Identifier: Apache-2.0
"""Algorithm 1 of Goldsteen et al., as the paper has it: one-hot columns, scikit-learn's tree, a member per leaf.

The method ``paper`` of ``methods`` is sfumato's engine with the paper's settings, which finds subsets of categories by
itself. Here a category is a column of its own, so that the tree cuts off one category at a time, and the member that
stands for a leaf is the nearest to the median among those with the leaf's commonest label.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator


class PaperAnonymizer(BaseEstimator):
    """Anonymize as Algorithm 1 says.

    Parameters
    ----------
    k : int
    quasi_identifiers : list of str
    """

    identifiers = keep = criteria = None  # it has none, and takes every column into the model
    schema_ = SimpleNamespace(dropped=())

    def __init__(self, k: int, quasi_identifiers: list[str]) -> None:
        self.k = k
        self.quasi_identifiers = quasi_identifiers

    def fit(self, X: Any, predictions: Any) -> Self:
        """Grow the tree on a model's predictions, and choose a member for each leaf."""
        from sklearn.tree import DecisionTreeClassifier

        from studies.models import encoder

        own = X[self.quasi_identifiers]
        self._encoder = encoder(own, one_hot=True, scaled=False)
        coded = self._encoder.fit_transform(own)
        self._tree = DecisionTreeClassifier(min_samples_leaf=self.k, random_state=0).fit(coded, predictions)
        leaves = self._tree.apply(coded)
        self._leaves = np.unique(leaves)
        chosen = [_typical(coded, predictions, np.flatnonzero(leaves == leaf)) for leaf in self._leaves]
        self._members = own.iloc[chosen]
        self.n_groups_ = len(self._leaves)
        return self

    def fit_transform(self, X: Any, predictions: Any) -> Any:
        """Grow the tree and return the records that it was grown on, rewritten."""
        return self.fit(X, predictions).transform(X)

    def transform(self, X: Any) -> Any:
        """Return records with the quasi-identifiers of their leaf's member."""
        leaves = self._tree.apply(self._encoder.transform(X[self.quasi_identifiers]))
        members = self._members.iloc[np.searchsorted(self._leaves, leaves)].set_axis(X.index)
        return X.assign(**{name: members[name] for name in self.quasi_identifiers})


def _typical(coded: Any, predictions: Any, members: Any) -> int:
    """Return the record nearest to the median of a leaf, of those with its commonest label."""
    labels, counts = np.unique(predictions[members], return_counts=True)
    likely = members[predictions[members] == labels[counts.argmax()]]
    distance = np.linalg.norm(coded[likely] - np.median(coded[members], axis=0), axis=1)
    return int(likely[distance.argmin()])
