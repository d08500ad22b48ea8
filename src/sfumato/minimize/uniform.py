# SPDX-License-Identifier: Apache-2.0
"""Equal buckets for every attribute: the baseline that every method must beat."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from sfumato.arguments import Names, Seed, check_integer
from sfumato.generalization.building import SAFE_SIZE
from sfumato.minimize.minimizer import Minimizer, Output
from sfumato.minimize.sample import Buckets, Sample
from sfumato.partition.binning import DEFAULT_MAX_BINS


class UniformMinimizer(Minimizer):
    """Generalize every attribute to at most `n_buckets` buckets, whatever its use.

    Numbers and moments are cut into intervals of equal width; each category is sent to a bucket at random.

    Parameters
    ----------
    n_buckets : int, default=4
        Maximum number of buckets of an attribute; 1 collects nothing. Missing numbers have one more bucket, missing
        categories are a category.
    attributes : list of str or int, optional
        Columns to generalize, by name or position; None: all. Others pass through.
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
        Seed for the buckets of categories.
    n_jobs : int, optional
        Threads; None: one, -1: all cores. Their number never changes the result.

    Attributes
    ----------
    generalization_ : Generalization
    personal_ : tuple of str
    classes_ : ndarray

    References
    ----------
    Staab, R. et al. (2024). From Principle to Practice: Vertical Data Minimization for Machine Learning, section 6.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import UniformMinimizer
    >>> UniformMinimizer(n_buckets=2).fit_transform(np.repeat([[1.0], [2.0], [3.0], [9.0]], 10, axis=0))[::10].tolist()
    [[0], [0], [0], [1]]
    """

    _needs_target = False

    def __init__(
        self,
        n_buckets: int = 4,
        *,
        attributes: Names | None = None,
        personal: Names | None = None,
        categorical_features: Collection[str | int] | None = None,
        floor: int = SAFE_SIZE,
        max_bins: int = DEFAULT_MAX_BINS,
        output: Output = "codes",
        random_state: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        self.n_buckets = n_buckets
        self.attributes = attributes
        self.personal = personal
        self.categorical_features = categorical_features
        self.floor = floor
        self.max_bins = max_bins
        self.output = output
        self.random_state = random_state
        self.n_jobs = n_jobs

    def default_grid(self, sample: Sample, errors: tuple[float, float]) -> Mapping[str, Sequence[Any]]:
        """Return the numbers of buckets tried in the paper."""
        return {"n_buckets": [1, 2, 3, 4, 5]}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_integer("n_buckets", self.n_buckets, 1, hint="1 collects nothing.")

    def _buckets(self, sample: Sample) -> Buckets:
        generator = self._generator()
        buckets = []
        for column in sample.columns:
            bins = column.bins
            if not bins.is_ordered:
                buckets.append(generator.integers(0, self.n_buckets, bins.n_bins))
                continue
            low, _ = bins.positions
            own = np.minimum((low * self.n_buckets).astype(np.int64), self.n_buckets - 1)
            missing = [self.n_buckets if self.n_buckets > 1 else 0] if bins.has_missing else []
            buckets.append(np.concatenate([own, np.array(missing, np.int64)]))
        return buckets
