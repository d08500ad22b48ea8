# SPDX-License-Identifier: Apache-2.0
"""Collect the attributes most informative of the class in full, and nothing of the others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.arguments import Names, Seed, check_choice, check_integer
from sfumato.coded_columns import CodedColumn
from sfumato.generalization.building import SAFE_SIZE
from sfumato.minimize.minimizer import Output, WeightedMinimizer
from sfumato.minimize.sample import Buckets, Sample
from sfumato.partition.binning import DEFAULT_MAX_BINS

Statistic = Literal["anova", "mutual_information", "chi_squared"]


class FeatureSelectionMinimizer(WeightedMinimizer):
    """Collect the `n_attributes` most useful attributes as they are, and nothing of the others.

    Parameters
    ----------
    n_attributes : int, default=4
        How many attributes are collected; all where there are fewer.
    statistic : {"anova", "mutual_information", "chi_squared"}, default="anova"
        How useful an attribute is for the class. ``"anova"``: the F value of a number, and of a category attribute
        the largest F value of its categories; ``"mutual_information"`` and ``"chi_squared"``: of the table of values
        by classes.
    attributes : list of str or int, optional
        Columns to choose from, by name or position; None: all. Others pass through.
    personal : list of str or int, optional
        Personal attributes, which an attacker wants to learn. None: all categorical ones. Not used by this method.
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
        Not used: nothing is drawn.
    n_jobs : int, optional
        Threads; None: one, -1: all cores. Their number never changes the result.

    Attributes
    ----------
    generalization_ : Generalization
    scores_ : dict of str to float
        Score of every attribute.
    personal_ : tuple of str
    classes_ : ndarray

    References
    ----------
    Staab, R. et al. (2024). From Principle to Practice: Vertical Data Minimization for Machine Learning, section 6
    and appendix E.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import FeatureSelectionMinimizer
    >>> X = np.repeat([[1, 7], [2, 7], [3, 8], [4, 7]], 10, axis=0)
    >>> FeatureSelectionMinimizer(n_attributes=1).fit_transform(X, np.repeat([0, 0, 1, 1], 10))[::10].tolist()
    [[0, 0], [1, 0], [2, 0], [3, 0]]
    """

    def __init__(
        self,
        n_attributes: int = 4,
        *,
        statistic: Statistic = "anova",
        attributes: Names | None = None,
        personal: Names | None = None,
        categorical_features: Collection[str | int] | None = None,
        floor: int = SAFE_SIZE,
        max_bins: int = DEFAULT_MAX_BINS,
        output: Output = "codes",
        random_state: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_attributes = n_attributes
        self.statistic = statistic
        self.attributes = attributes
        self.personal = personal
        self.categorical_features = categorical_features
        self.floor = floor
        self.max_bins = max_bins
        self.output = output
        self.random_state = random_state
        self.n_jobs = n_jobs

    def default_grid(self, sample: Sample, errors: tuple[float, float]) -> Mapping[str, Sequence[Any]]:
        """Return the numbers of attributes tried in the paper, and all."""
        n_all = len(sample.columns)
        return {"n_attributes": [*(n for n in (2, 4, 8, 10, 20) if n < n_all), n_all]}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_attributes", self.n_attributes, 0, hint="0 collects nothing.")
        check_choice("statistic", self.statistic, _STATISTICS)

    def _buckets(self, sample: Sample) -> Buckets:
        scores = [_STATISTICS[self.statistic](column, class_counts(column, sample)) for column in sample.columns]
        self.scores_ = dict(zip(sample.names, map(float, scores), strict=True))
        kept = set(np.argsort(-np.array(scores), kind="stable")[: self.n_attributes].tolist())
        return [
            np.arange(n_codes) if position in kept else np.zeros(n_codes, np.int64)
            for position, n_codes in enumerate(sample.n_codes)
        ]


def class_counts(column: CodedColumn, sample: Sample) -> NDArray[np.float64]:
    """Return the weight of the records with each fine code and class, shape (codes, classes)."""
    shape = (column.bins.n_bins, sample.n_classes)
    key = column.codes.astype(np.int64) * sample.n_classes + sample.y
    return np.bincount(key, sample.weight, minlength=shape[0] * shape[1]).reshape(shape).astype(np.float64)


def anova_f(values: NDArray[np.float64], counts: NDArray[np.float64]) -> float:
    """Return the F value of numbers by class, from how often each occurs in each class."""
    in_class = counts.sum(axis=0)
    counts, in_class = counts[:, in_class > 0], in_class[in_class > 0]
    n, n_classes = in_class.sum(), len(in_class)
    if n_classes < 2 or n <= n_classes:
        return 0.0
    means = values @ counts / in_class
    between = in_class @ (means - values @ counts.sum(axis=1) / n) ** 2
    within = float((counts * (values[:, None] - means) ** 2).sum())
    if within <= 1e-12 * between:
        return 0.0 if between <= 0 else np.inf
    return float(between / (n_classes - 1) / (within / (n - n_classes)))


def _anova(column: CodedColumn, counts: NDArray[np.float64]) -> float:
    bins = column.bins
    if bins.is_ordered:
        low, high = bins.positions
        return anova_f((low + high) / 2, counts[: bins.n_values])  # shifting and scaling changes no F value
    return max((anova_f(one, counts) for one in np.eye(bins.n_bins)), default=0.0)


def _mutual_information(column: CodedColumn, counts: NDArray[np.float64]) -> float:
    shares, expected = _shares_and_expected(counts)
    filled = shares > 0
    return float((shares[filled] * np.log(shares[filled] / expected[filled])).sum())


def _chi_squared(column: CodedColumn, counts: NDArray[np.float64]) -> float:
    shares, expected = _shares_and_expected(counts)
    filled = expected > 0
    return float(counts.sum() * ((shares - expected)[filled] ** 2 / expected[filled]).sum())


def _shares_and_expected(counts: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    shares = counts / counts.sum()
    return shares, shares.sum(axis=1, keepdims=True) * shares.sum(axis=0)


_STATISTICS = {"anova": _anova, "mutual_information": _mutual_information, "chi_squared": _chi_squared}
