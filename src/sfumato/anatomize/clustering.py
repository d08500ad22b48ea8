# SPDX-License-Identifier: Apache-2.0
"""Cluster records of anatomized tables: one candidate per record, all of them weighted, or their mean."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal, Self, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClusterMixin, clone
from sklearn.utils.validation import validate_data

from sfumato.anatomize.bucketize import Assignment
from sfumato.anatomize.candidates import Candidates, Weighing, weigh, weighted_rows
from sfumato.anatomize.coordinates import CodingName
from sfumato.anatomize.learning import GUARANTEE, MORE_PARAMETERS, PARAMETERS, LearnsFromAnatomy
from sfumato.anatomize.prune import choose_candidates
from sfumato.anatomize.tables import AnatomizedTable
from sfumato.anonymize.guide_from_target import fit_weighted, takes_weights
from sfumato.arguments import Names, Seed, as_table_like, check_choice, check_integer
from sfumato.errors import ParameterError

LearnFrom = Literal["candidates", "expected", "pruned"]


class BucketClusterer(ClusterMixin, LearnsFromAnatomy):  # noqa: D101 - the text is put together below
    __doc__ = f"""Cluster records by an anatomized table, without knowing who has which sensitive value.
    {PARAMETERS.format(kind="clusterer").rstrip()}
    learn_from : {{"candidates", "expected", "pruned"}}, default="candidates"
        Candidates: every record with each candidate, weighted; the estimator must take ``sample_weight``. Expected:
        every record once, with the mean of its candidates' coordinates. Pruned: every record once, with the candidate
        that pruning keeps.
    weights : {{"learned", "even"}}, default="learned"
        How candidates are weighed; see ``BucketClassifier``. Pruning uses none.
    max_candidates : int, default=16
        Candidates of a record at the most; where it has more, so many are drawn by their weights.
    {MORE_PARAMETERS.strip()}

    Attributes
    ----------
    estimator_ : clusterer
        The trained one.
    coding_ : Coding
    n_groups_, n_suppressed_ : int
    {GUARANTEE.rstrip()} No labels of the
    training records are kept, since they follow from raw records; ``predict`` gives them.

    Examples
    --------
    >>> from sklearn.cluster import KMeans
    >>> from sklearn.datasets import load_iris
    >>> from sfumato import BucketClusterer
    >>> X, y = load_iris(return_X_y=True)
    >>> clusterer = BucketClusterer(KMeans(3, random_state=0), l=2, sensitive=3, random_state=0).fit(X)
    >>> sorted(set(clusterer.predict(X).tolist()))
    [0, 1, 2]
    """

    def __init__(
        self,
        estimator: Any,
        l: Any = 2,  # noqa: E741
        *,
        sensitive: Any = None,
        joint: Any = False,
        identifiers: Names | None = None,
        coding: CodingName = "one-hot",
        learn_from: LearnFrom = "candidates",
        weights: Weighing = "learned",
        max_candidates: int = 16,
        suppression_limit: float = 0.0,
        assignment: Assignment = "largest",
        categorical_features: Collection[str | int] | None = None,
        random_state: Seed = None,
    ) -> None:
        self.estimator = estimator
        self.l = l
        self.sensitive = sensitive
        self.joint = joint
        self.identifiers = identifiers
        self.coding = coding
        self.learn_from = learn_from
        self.weights = weights
        self.max_candidates = max_candidates
        self.suppression_limit = suppression_limit
        self.assignment = assignment
        self.categorical_features = categorical_features
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        """Anatomize the records and train the estimator on what the tables tell; they are not kept.

        Parameters
        ----------
        X : frame or array of shape (records, columns)
            With the sensitive columns.
        y : ignored
        """
        self._check()
        X = as_table_like(X)
        validate_data(self, X, skip_check_array=True)
        return self._learn(self._divided(X, self.sensitive, self.joint)[0])

    def fit_anatomized(self, anatomized: AnatomizedTable) -> Self:
        """Train on tables that were made before, such as those that ``AnatomizedTable.load`` reads."""
        self._check()
        return self._learn(self._received(anatomized))

    def fit_predict(self, X: Any, y: Any = None) -> Any:
        """Train on the records, and return the cluster of each."""
        return self.fit(X).predict(X)

    def _check(self) -> None:
        check_choice("learn_from", self.learn_from, get_args(LearnFrom))
        check_choice("weights", self.weights, get_args(Weighing))
        check_integer("max_candidates", self.max_candidates, 1)
        if not hasattr(self.estimator, "fit") or not hasattr(self.estimator, "predict"):
            raise ParameterError(
                f"estimator is a {type(self.estimator).__name__}: expected a clusterer with fit and predict, such as "
                "KMeans()."
            )
        if self.learn_from == "candidates" and not takes_weights(self.estimator):
            raise ParameterError(
                f"estimator is a {type(self.estimator).__name__}, whose fit takes no sample_weight: expected one that "
                "does, since candidates are weighted. Use learn_from='expected' with it."
            )

    def _learn(self, candidates: Candidates) -> Self:
        self.coding_ = candidates.codings(self.coding)
        estimator = clone(self.estimator)
        if self.learn_from == "pruned":
            pruned = choose_candidates(candidates, self.coding_, per="record")
            coded = candidates.coordinates(self.coding_, pruned.rows, list(pruned.candidates.T))
            self.estimator_ = estimator.fit(coded)
            return self
        weights = weigh(candidates, self.weights)
        rows = weighted_rows(weights, candidates.n_records, self.max_candidates, self._random())
        coded = candidates.coordinates(self.coding_, rows.records, rows.rows)
        if self.learn_from == "expected":
            self.estimator_ = estimator.fit(_means(coded, rows.records, rows.weight, candidates.n_records))
        else:
            self.estimator_ = fit_weighted(estimator, coded, None, rows.weight)
        return self


def _means(
    coded: NDArray[np.float64], records: NDArray[np.int64], weight: NDArray[np.float64], n_records: int
) -> NDArray[np.float64]:
    """Return the weighted mean of the rows of each record."""
    columns = [np.bincount(records, own * weight, minlength=n_records) for own in coded.T]
    total = np.bincount(records, weight, minlength=n_records)
    found: NDArray[np.float64] = np.stack(columns, axis=1) / total[:, None]
    return found
