# SPDX-License-Identifier: Apache-2.0
"""Iterative: start from a few buckets per attribute, and merge them while classifier error stays within a limit."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sfumato.arguments import Names, Seed, check_integer, check_share
from sfumato.coded_columns import CodedColumn
from sfumato.generalization.building import SAFE_SIZE
from sfumato.grouping import merge_rows
from sfumato.minimize.bucket_utility import Codes, CodesClassifier, held_out_and_learned
from sfumato.minimize.minimizer import Output, WeightedMinimizer
from sfumato.minimize.sample import Buckets, Sample
from sfumato.partition.binning import DEFAULT_MAX_BINS


class IterativeMinimizer(WeightedMinimizer):
    """Generalize one attribute after the other while a classifier's error stays within a limit.

    Every attribute starts with at most `n_buckets` buckets: numbers are cut at quantiles, categories are grouped by
    their weights in a logistic regression. Attributes that matter little to the classifier and much to an attacker
    lose buckets first.

    Parameters
    ----------
    max_loss : float, default=0.01
        Maximum increase of the error on held-out records over full resolution, as a share.
    n_buckets : int, default=4
        Maximum number of buckets of an attribute. Missing numbers have one more until nothing is collected.
    estimator : classifier, optional
        What predicts the class from a matrix of codes; None: gradient boosting.
    validation_fraction : float, default=0.3
        Share of the records that errors are measured on.
    attributes : list of str or int, optional
        Columns to generalize, by name or position; None: all. Others pass through.
    personal : list of str or int, optional
        Personal attributes, which an attacker wants to learn. None: all categorical ones, or all if none is.
    categorical_features : list of str or int, optional
        Numeric categories: columns of numbers that are codes, not amounts.
    floor : int, default=10
        Minimum number of sample records of a listed category or a bucket of numbers. Rarer categories are pooled as
        "other", smaller buckets are joined with a neighbor. 1 lists values of single people.
    max_bins : int, default=255
        Number of bins of a numeric column with more distinct values.
    output : {"codes", "labels", "representatives"}, default="codes"
        Output of `transform`.
    random_state : int or RandomState, optional
        Seed for the held-out records and for gradient boosting.
    n_jobs : int, optional
        Threads for reading; None: one, -1: all cores. Their number never changes the result.

    Attributes
    ----------
    generalization_ : Generalization
    order_ : tuple of str
        Attributes in the order in which they lost buckets.
    error_ : float
        Error reached on the held-out records.
    personal_ : tuple of str
    classes_ : ndarray

    References
    ----------
    Staab, R. et al. (2024). From Principle to Practice: Vertical Data Minimization for Machine Learning, appendix C.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import IterativeMinimizer
    >>> X = np.column_stack([np.arange(400) % 50, np.arange(400) % 7])
    >>> IterativeMinimizer(n_buckets=2, random_state=0).fit(X, X[:, 0] >= 25).generalization_.n_buckets
    (2, 1)
    """

    def __init__(
        self,
        max_loss: float = 0.01,
        *,
        n_buckets: int = 4,
        estimator: Any = None,
        validation_fraction: float = 0.3,
        attributes: Names | None = None,
        personal: Names | None = None,
        categorical_features: Collection[str | int] | None = None,
        floor: int = SAFE_SIZE,
        max_bins: int = DEFAULT_MAX_BINS,
        output: Output = "codes",
        random_state: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        self.max_loss = max_loss
        self.n_buckets = n_buckets
        self.estimator = estimator
        self.validation_fraction = validation_fraction
        self.attributes = attributes
        self.personal = personal
        self.categorical_features = categorical_features
        self.floor = floor
        self.max_bins = max_bins
        self.output = output
        self.random_state = random_state
        self.n_jobs = n_jobs

    def default_grid(self, sample: Sample, errors: tuple[float, float]) -> Mapping[str, Sequence[Any]]:
        """Return nine losses between none and that of everything generalized."""
        return {"max_loss": [float(loss) for loss in np.linspace(0, max(0.0, errors[1] - errors[0]), 9)]}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("max_loss", self.max_loss, hint="0.01 is one percentage point.")
        check_integer("n_buckets", self.n_buckets, 1, hint="4 is usual.")
        check_share("validation_fraction", self.validation_fraction, is_open=True, hint="0.3 is usual.")

    def _buckets(self, sample: Sample) -> Buckets:
        search = _Search(self, sample)
        buckets, self.error_ = search.run(float(self.max_loss), int(self.n_buckets))
        self.order_ = tuple(sample.names[position] for position in search.order)
        return buckets

    def _buckets_of_settings(self, sample: Sample, settings: Sequence[Mapping[str, Any]]) -> Iterator[Buckets]:
        """Order the attributes once for all limits, and measure equal buckets once."""
        searches: dict[str, _Search] = {}
        for own, key in self._with_settings(settings, "max_loss", "n_buckets"):
            if key not in searches:
                searches[key] = _Search(own, sample)
            yield searches[key].run(float(own.max_loss), int(own.n_buckets))[0]


class _Search:
    """Errors on held-out records, the order of the attributes, and the way to fewer buckets."""

    def __init__(self, minimizer: IterativeMinimizer, sample: Sample) -> None:
        self.sample = sample
        seed = int(check_random_state(minimizer.random_state).randint(2**31))
        self.held_out, self.learned = held_out_and_learned(
            sample.n_records, sample.weight, minimizer.validation_fraction, seed
        )
        self.weight = None if sample.weight is None else sample.weight[self.learned]
        self.codes = [column.codes.astype(np.int64) for column in sample.columns]
        self.is_ordered = [column.bins.is_ordered for column in sample.columns]
        self.classifier = CodesClassifier(minimizer.estimator, seed=seed)
        self._errors: dict[bytes, float] = {}
        self.fine = [np.arange(n) for n in sample.n_codes]
        self.fine_error = self.error(self.fine)
        self.order = self._order()
        self.scores = _logistic_weights(self.codes, sample)

    def run(self, max_loss: float, n_buckets: int) -> tuple[Buckets, float]:
        """Merge buckets, attribute by attribute, while the error stays within the limit."""
        limit = self.fine_error + max_loss + 1e-12
        buckets = [self._grouped(position, n_buckets) for position in range(len(self.codes))]
        reached = self.error(buckets)
        for position in self.order:
            for fewer in range(int(buckets[position].max()), 0, -1):
                own = [*buckets[:position], self._grouped(position, fewer), *buckets[position + 1 :]]
                error = self.error(own)
                if error > limit:
                    break
                buckets, reached = own, error
        return buckets, reached

    def error(self, buckets: Buckets) -> float:
        """Return the share of held-out records whose class is predicted wrongly."""
        key = b"".join(own.tobytes() for own in buckets)
        if key not in self._errors:
            columns = [own[codes] for own, codes in zip(buckets, self.codes, strict=True)]
            coded = Codes(columns, [int(own.max()) + 1 for own in buckets], self.is_ordered)
            predicted = self.classifier.predictions(coded, self.sample.y[self.learned], self.learned, self.weight)
            wrong = np.broadcast_to(predicted, self.sample.y.shape) != self.sample.y
            self._errors[key] = self._mean(wrong)
        return self._errors[key]

    def _order(self) -> list[int]:
        """Return the attributes by the cost of their absence to the classifier minus that to the attacker, rising."""
        costs = []
        for position in range(len(self.codes)):
            without = [*self.fine[:position], np.zeros_like(self.fine[position]), *self.fine[position + 1 :]]
            costs.append(self.error(without) - self.fine_error - self._attackers_cost(position))
        return [int(position) for position in np.argsort(costs, kind="stable")]

    def _attackers_cost(self, position: int) -> float:
        """Return the increase of the attacker's mean error if one attribute alone is not collected.

        Only that attribute becomes unknown, if it is personal; it is guessed from the others.
        """
        if position not in self.sample.personal:
            return 0.0
        truth = self.codes[position]
        others = [place for place in range(len(self.codes)) if place != position]
        guessed = _guess_by_tree([self.codes[place] for place in others], truth, self.learned, self.weight)
        return self._mean(guessed != truth) / len(self.sample.personal)

    def _mean(self, is_wrong: NDArray[np.bool_]) -> float:
        """Return the share of the held-out records that are wrong, by weight where they have weights."""
        own = is_wrong[self.held_out]
        weight = self.sample.weight
        return float(own.mean() if weight is None else np.average(own, weights=weight[self.held_out]))

    def _grouped(self, position: int, n_buckets: int) -> NDArray[np.int64]:
        column = self.sample.columns[position]
        if column.bins.is_ordered:
            return quantile_buckets(column, n_buckets)
        return variance_buckets(self.scores[position], n_buckets)


def quantile_buckets(column: CodedColumn, n_buckets: int) -> NDArray[np.int64]:
    """Cut an ordered column into at most `n_buckets` runs of bins with about equally many records."""
    bins = column.bins
    counts = column.counts[: bins.n_values]
    before = np.cumsum(counts) - counts
    middle = (2 * before + counts) * n_buckets // (2 * max(1, counts.sum()))
    _, own = np.unique(np.minimum(middle, n_buckets - 1), return_inverse=True)
    if not bins.has_missing:
        return own.astype(np.int64)
    missing = own.max() + 1 if n_buckets > 1 and len(own) else 0
    return np.append(own, missing).astype(np.int64)


def variance_buckets(scores: NDArray[np.float64], n_buckets: int) -> NDArray[np.int64]:
    """Group values with similar scores so that the mean variance within groups is minimal.

    Dynamic programming over (values in falling number, groups): the last group starts at every place in turn.
    """
    n = len(scores)
    k = min(n_buckets, n)
    order = np.argsort(scores, kind="stable")
    ranked = scores[order] - scores.mean()
    sums = np.concatenate([[0.0], np.cumsum(ranked)])
    squares = np.concatenate([[0.0], np.cumsum(ranked**2)])
    best = np.full((k + 1, n + 1), np.inf)
    start = np.zeros((k + 1, n + 1), np.int64)
    best[0, 0] = 0.0
    for groups in range(1, k + 1):
        for stop in range(groups, n + 1):
            first = np.arange(groups - 1, stop)
            size = stop - first
            variance = (squares[stop] - squares[first]) / size - ((sums[stop] - sums[first]) / size) ** 2
            total = best[groups - 1, first] + np.maximum(variance, 0.0)
            at = int(total.argmin())
            best[groups, stop], start[groups, stop] = total[at], first[at]
    buckets = np.zeros(n, np.int64)
    stop = n
    for groups in range(k, 0, -1):
        buckets[order[start[groups, stop] : stop]] = groups - 1
        stop = start[groups, stop]
    return buckets


def _logistic_weights(codes: list[NDArray[np.int64]], sample: Sample) -> list[NDArray[np.float64]]:
    """Return the weight of every fine code in a logistic regression on one-hot codes.

    With more than two classes a code has several weights; they are laid along their first principal component.
    """
    sizes = sample.n_codes
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    if sample.n_classes < 2:
        return [np.zeros(size) for size in sizes]
    from scipy.sparse import csr_matrix
    from sklearn.linear_model import LogisticRegression

    first, cell = merge_rows([*codes, sample.y.astype(np.int64)], [*sizes, sample.n_classes], sample.n_records)
    weight = np.bincount(cell, sample.weight)
    columns = np.column_stack([own[first] + offset for own, offset in zip(codes, offsets[:-1], strict=True)])
    shape = (len(first), int(offsets[-1]))
    one_hot = csr_matrix(
        (np.ones(columns.size), columns.ravel(), np.arange(0, columns.size + 1, columns.shape[1])), shape
    )
    # Weights only rank values, so a rough fit will do; it is the same one every time.
    fitted = LogisticRegression(tol=1e-2, max_iter=300).fit(one_hot, sample.y[first], sample_weight=weight)
    scores = _along_first_component(fitted.coef_.T)
    return [scores[start:stop] for start, stop in pairwise(offsets)]


def _along_first_component(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    if weights.shape[1] == 1:
        return weights[:, 0]
    centered = weights - weights.mean(axis=0)
    _, vectors = np.linalg.eigh(centered.T @ centered)
    axis = vectors[:, -1]
    return np.asarray(centered @ (axis * np.sign(axis[np.abs(axis).argmax()])))


def _guess_by_tree(
    clues: list[NDArray[np.int64]],
    truth: NDArray[np.int64],
    learned: NDArray[Any],
    weight: NDArray[np.float64] | None,
) -> NDArray[Any]:
    """Guess an attribute of every record from others, learned on some of them."""
    if not clues:
        return np.full(len(truth), np.bincount(truth[learned], weight).argmax())
    from sklearn.tree import DecisionTreeClassifier

    tree = DecisionTreeClassifier(max_leaf_nodes=128, random_state=0)
    matrix = np.column_stack(clues).astype(np.float32)
    return np.asarray(tree.fit(matrix[learned], truth[learned], weight).predict(matrix))
