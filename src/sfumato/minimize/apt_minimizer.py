# SPDX-License-Identifier: Apache-2.0
"""Apt: approximate a model by a tree, and generalize while the model's decisions stay the same."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from sfumato.arguments import Names, Seed, check_integer, check_share, thread_count
from sfumato.coded_columns import CodedColumn
from sfumato.generalization.building import SAFE_SIZE
from sfumato.grouping import merge_rows
from sfumato.minimize.bucket_utility import Codes, CodesClassifier, held_out_and_learned, one_thread
from sfumato.minimize.minimizer import Output, WeightedMinimizer
from sfumato.minimize.sample import Buckets, Sample
from sfumato.minimize.tree_buckets import buckets_of_tree
from sfumato.partition import guides
from sfumato.partition.binning import DEFAULT_MAX_BINS
from sfumato.partition.grower import Grower
from sfumato.partition.records import make_layout, pack_records
from sfumato.partition.tree import Tree

_ROWS_AT_ONCE = 1 << 20
"""Rows per call of the model; small calls cost more than their predictions."""


class AptMinimizer(WeightedMinimizer):
    """Generalize while a model trained on full resolution keeps its decisions.

    A tree learns the model's decisions. It is pruned level by level while the model, shown one value per bucket, agrees
    with its full-resolution decisions on the required share of held-out records. If even the whole tree is too coarse,
    attributes are restored to full resolution, each time the one with the least information per agreement gained.

    Parameters
    ----------
    target_accuracy : float, default=0.99
        Share of held-out records on which the model must decide as it does at full resolution.
    estimator : classifier, optional
        The model, unfitted; it takes the matrix of fine codes. None: gradient boosting. To follow a model of your
        own, pass its predictions as `y`.
    max_depth : int, default=10
        Maximum depth of the tree.
    min_samples_leaf : int, default=1
        Minimum number of records of a leaf.
    validation_fraction : float, default=0.3
        Share of the records that the agreement is measured on; the model and the tree do not see them.
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
        Seed for the held-out records and for gradient boosting.
    n_jobs : int, optional
        Threads; None: one, -1: all cores. Their number never changes the result.

    Attributes
    ----------
    generalization_ : Generalization
    accuracy_ : float
        Agreement reached on the held-out records.
    restored_ : tuple of str
        Attributes restored to full resolution.
    personal_ : tuple of str
    classes_ : ndarray

    References
    ----------
    Goldsteen, A. et al. (2021). Data minimization for GDPR compliance in machine learning models.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import AptMinimizer
    >>> X = np.column_stack([np.arange(200) % 50, np.arange(200) % 7])
    >>> AptMinimizer(random_state=0).fit(X, X[:, 0] >= 20).generalization_.n_buckets
    (2, 1)
    """

    def __init__(
        self,
        target_accuracy: float = 0.99,
        *,
        estimator: Any = None,
        max_depth: int = 10,
        min_samples_leaf: int = 1,
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
        self.target_accuracy = target_accuracy
        self.estimator = estimator
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
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
        """Return nine agreements between that of full resolution and that of everything generalized."""
        most_lost = max(0.0, errors[1] - errors[0])
        return {"target_accuracy": [float(1 - lost) for lost in np.linspace(0, most_lost, 9)]}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("target_accuracy", self.target_accuracy, hint="0.99 is usual.")
        check_share("validation_fraction", self.validation_fraction, is_open=True, hint="0.3 is usual.")
        check_integer("max_depth", self.max_depth, 1)
        check_integer("min_samples_leaf", self.min_samples_leaf, 1)

    def _buckets(self, sample: Sample) -> Buckets:
        found = _Search(self, sample).run(float(self.target_accuracy))
        self.accuracy_, self.restored_ = found.accuracy, found.restored
        return found.buckets

    def _buckets_of_settings(self, sample: Sample, settings: Sequence[Mapping[str, Any]]) -> Iterator[Buckets]:
        """Train the model and grow the tree once for all target accuracies."""
        searches: dict[str, _Search] = {}
        for own, key in self._with_settings(settings, "target_accuracy"):
            if key not in searches:
                searches[key] = _Search(own, sample)
            yield searches[key].run(float(own.target_accuracy)).buckets


class _Found:
    """The result of a search."""

    def __init__(self, buckets: Buckets, accuracy: float, restored: tuple[str, ...] = ()) -> None:
        self.buckets = buckets
        self.accuracy = accuracy
        self.restored = restored


class _Search:
    """Search with one model and one tree for the coarsest buckets that keep the model's decisions."""

    def __init__(self, minimizer: AptMinimizer, sample: Sample) -> None:
        seed = int(check_random_state(minimizer.random_state).randint(2**31))
        held_out, learned = held_out_and_learned(sample.n_records, sample.weight, minimizer.validation_fraction, seed)
        weight = None if sample.weight is None else sample.weight[learned]
        self.columns = sample.columns
        self.names = sample.names
        columns = [column.codes.astype(np.int64) for column in sample.columns]
        codes = Codes(columns, sample.n_codes, [column.bins.is_ordered for column in sample.columns])
        self.classifier = CodesClassifier(minimizer.estimator, seed=seed)
        decided = np.broadcast_to(
            self.classifier.predictions(codes, sample.y[learned], learned, weight), sample.y.shape
        )
        self.counts = [
            np.bincount(column[learned], weight, minlength=size)
            for column, size in zip(columns, sample.n_codes, strict=True)
        ]
        # Equal held-out records are predicted once.
        first, group = merge_rows([column[held_out] for column in columns], sample.n_codes, len(held_out))
        self.held_out = np.column_stack([column[held_out][first] for column in columns])
        self.decided = decided[held_out][first]
        counts = np.bincount(group, None if sample.weight is None else sample.weight[held_out])
        self.weights = counts / counts.sum()
        self.informative = [place for place, size in enumerate(sample.n_codes) if size > 1]
        self.tree = _grow(minimizer, sample, learned, decided)
        self._levels: list[_Found] = []
        self._restored: list[_Found] = []

    def run(self, target: float) -> _Found:
        """Return the coarsest level of the tree that reaches the target, or the whole tree with attributes restored."""
        levels = self._pruned_levels()
        if levels[0].accuracy < target:
            return self._restore(target)
        n_good = next((n for n, level in enumerate(levels) if level.accuracy < target), len(levels))
        return levels[n_good - 1]

    def _pruned_levels(self) -> list[_Found]:
        """Return the whole tree, then the tree without its lowest level, and so on down to the root alone."""
        if not self._levels:
            depth = _depths(self.tree)
            for level in range(int(depth.max()), -1, -1):
                tree = self.tree.without_splits(np.flatnonzero(depth >= level))
                buckets = buckets_of_tree(tree, self.columns)
                self._levels.append(_Found(buckets, float(self._agreements([buckets])[0])))
        return self._levels

    def _restore(self, target: float) -> _Found:
        """Restore attributes until the target is reached; the order is the same for all targets."""
        if not self._restored:
            self._restored.append(self._pruned_levels()[0])
        for found in self._restored:
            if found.accuracy >= target:
                return found
        while self._restored[-1].accuracy < target:
            following = self._restore_one(self._restored[-1])
            if following is None:
                break
            self._restored.append(following)
        return self._restored[-1]

    def _restore_one(self, found: _Found) -> _Found | None:
        """Restore one attribute; None if all are restored."""
        places, tried, losses = [], [], []
        for place, (column, own, counts) in enumerate(zip(self.columns, found.buckets, self.counts, strict=True)):
            loss = _information_loss(column, own, counts)
            if loss > 0:
                places.append(place)
                losses.append(loss)
                tried.append([*found.buckets[:place], np.arange(len(own)), *found.buckets[place + 1 :]])
        if not places:
            return None
        accuracies = self._agreements(tried)
        # Least information restored per agreement gained; if nothing is gained, the least information.
        ranks = [
            (won <= 0, loss / won if won > 0 else loss, place)
            for won, loss, place in zip(accuracies - found.accuracy, losses, places, strict=True)
        ]
        best = ranks.index(min(ranks))
        return _Found(tried[best], float(accuracies[best]), (*found.restored, self.names[places[best]]))

    def _agreements(self, candidates: Sequence[Buckets]) -> NDArray[np.float64]:
        """Return the share of held-out records whose decision stays the same with one value per bucket."""
        if not hasattr(self.classifier, "fitted_"):  # one class: the model has nothing to decide
            return np.ones(len(candidates))
        result = []
        step = max(1, _ROWS_AT_ONCE // len(self.held_out))
        for start in range(0, len(candidates), step):
            seen = [self._seen(buckets) for buckets in candidates[start : start + step]]
            with one_thread():
                predicted = self.classifier.fitted_.predict(np.concatenate([rows for rows, _ in seen]))
            stops = np.cumsum([len(rows) for rows, _ in seen])
            for (rows, group), stop in zip(seen, stops, strict=True):
                own = predicted[stop - len(rows) : stop]
                result.append(self.weights @ (own[group] == self.decided))
        return np.array(result)

    def _seen(self, buckets: Buckets) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the held-out records as the model sees them: distinct rows, and the row of each record."""
        columns = []
        for place in self.informative:
            own = buckets[place]
            columns.append(_most_frequent(own, self.counts[place])[own][self.held_out[:, place]])
        first, group = merge_rows(columns, [int(column.max()) + 1 for column in columns], len(self.held_out))
        return np.column_stack([column[first] for column in columns]), group


def _grow(minimizer: AptMinimizer, sample: Sample, learned: NDArray[np.int64], decided: NDArray[Any]) -> Tree:
    """Grow a tree on the decisions of a model, and cut it at the depth limit."""
    guide = guides.from_labels(decided[learned].astype(np.int64), max(2, sample.n_classes))
    weight = None if sample.weight is None else guides.integer_weights(sample.weight[learned], guide.value_bits)
    columns = [column.codes[learned] for column in sample.columns]
    records = pack_records(columns, guide.code_blocks, guide.dense, weight)
    grower = Grower(
        records,
        make_layout([column.bins for column in sample.columns]),
        guide,
        min_records=int(minimizer.min_samples_leaf),
        fall_back=False,
        n_threads=thread_count(minimizer.n_jobs),
    )
    tree, _ = grower.grow()
    return tree.without_splits(np.flatnonzero(_depths(tree) >= minimizer.max_depth))


def _depths(tree: Tree) -> NDArray[np.int64]:
    depth = np.zeros(tree.n_nodes, np.int64)
    for node in range(tree.n_nodes):  # children come after their parent
        if tree.left[node] >= 0:
            depth[tree.left[node]] = depth[tree.right[node]] = depth[node] + 1
    return depth


def _most_frequent(buckets: NDArray[np.int64], counts: NDArray[Any]) -> NDArray[np.int64]:
    """Return the code that most records of each bucket have, the lowest on ties."""
    order = np.lexsort((np.arange(len(buckets)), -counts, buckets))
    result = np.zeros(int(buckets.max()) + 1, np.int64)
    firsts = np.flatnonzero(np.diff(buckets[order], prepend=-1))
    result[buckets[order][firsts]] = order[firsts]
    return result


def _information_loss(column: CodedColumn, buckets: NDArray[np.int64], counts: NDArray[Any]) -> float:
    """Return the normalized certainty penalty of an attribute, mean over the records.

    A bucket of one code loses nothing; else categories lose the share of all codes in the bucket, numbers the share of
    the range it spans, everything where missing lies in it.
    """
    n_codes = len(buckets)
    sizes = np.bincount(buckets)
    width = sizes / n_codes
    if column.bins.is_ordered:
        low, high = column.bins.positions
        own = buckets[: column.bins.n_values]
        first, last = np.full(len(sizes), np.inf), np.full(len(sizes), -np.inf)
        np.minimum.at(first, own, low)
        np.maximum.at(last, own, high)
        width = np.where(last >= first, last - first, 0.0)
        if column.bins.has_missing:
            width[buckets[-1]] = 1.0
    penalty = np.where(sizes > 1, width, 0.0)[buckets]
    return float(penalty @ counts / counts.sum())
