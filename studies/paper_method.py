# SPDX-License-Identifier: Apache-2.0
"""Algorithm 1 of Goldsteen et al., as the paper has it: one-hot columns, scikit-learn's tree, a member per leaf.

A category is a column of its own, so that the tree cuts off one category at a time, and the member that stands for a
leaf is the nearest to the median among those with the leaf's commonest label. The same tree on true labels, by entropy,
is the paper's workload-aware rival.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone


class PaperAnonymizer(BaseEstimator):
    """Anonymize as Algorithm 1 says.

    Parameters
    ----------
    k : int
    quasi_identifiers : list of str
    criterion : {"gini", "entropy"}, default="gini"
        Of the tree.
    """

    identifiers = keep = criteria = None  # it has none, and takes every column into the model
    schema_ = SimpleNamespace(dropped=())

    def __init__(self, k: int, quasi_identifiers: list[str], criterion: str = "gini") -> None:
        self.k = k
        self.quasi_identifiers = quasi_identifiers
        self.criterion = criterion

    def fit(self, X: Any, predictions: Any) -> Self:
        """Grow the tree on a model's predictions, and choose a member for each leaf."""
        from sklearn.tree import DecisionTreeClassifier

        from studies.models import encoder

        own = X[self.quasi_identifiers]
        self._encoder = encoder(own, one_hot=True, scaled=False)
        coded = self._encoder.fit_transform(own)
        tree = DecisionTreeClassifier(criterion=self.criterion, min_samples_leaf=self.k, random_state=0)
        self._tree = tree.fit(coded, predictions)
        return self._choose(own, coded, predictions)

    def fit_transform(self, X: Any, predictions: Any) -> Any:
        """Grow the tree and return the records that it was grown on, rewritten."""
        return self.fit(X, predictions).transform(X)

    def release(self, X: Any, predictions: Any) -> Any:
        """Return other records than the tree grew on, each leaf's member chosen among them.

        As in the paper's evaluation, no leaf is joined with another: some hold fewer than k of these records.
        """
        own = X[self.quasi_identifiers]
        return self._choose(own, self._encoder.transform(own), predictions).transform(X)

    def _choose(self, own: Any, coded: Any, predictions: Any) -> Self:
        leaves = self._tree.apply(coded)
        self._leaves = np.unique(leaves)
        chosen = [_typical(coded, predictions, np.flatnonzero(leaves == leaf)) for leaf in self._leaves]
        self._members = own.iloc[chosen]
        self.n_groups_ = len(self._leaves)
        return self

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


class PaperClassifier(ClassifierMixin, BaseEstimator):
    """A model trained on raw records, and again on what Algorithm 1 makes of them.

    Parameters
    ----------
    estimator : estimator
    k : int
    quasi_identifiers : list of str
    """

    def __init__(self, estimator: Any, k: int, quasi_identifiers: list[str]) -> None:
        self.estimator = estimator
        self.k = k
        self.quasi_identifiers = quasi_identifiers

    def fit(self, X: Any, y: Any) -> Self:
        """Train, anonymize, train again."""
        raw = clone(self.estimator).fit(X, y)
        self.anonymizer_ = PaperAnonymizer(self.k, self.quasi_identifiers)
        self.estimator_ = clone(self.estimator).fit(self.anonymizer_.fit_transform(X, raw.predict(X)), y)
        self.classes_ = self.estimator_.classes_
        return self

    def predict(self, X: Any) -> Any:
        """Return classes of records as they are."""
        return self.estimator_.predict(X)

    def predict_proba(self, X: Any) -> Any:
        """Return probabilities of records as they are."""
        return self.estimator_.predict_proba(X)
