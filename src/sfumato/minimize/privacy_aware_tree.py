# SPDX-License-Identifier: Apache-2.0
"""PAT: grow a tree that separates classes but not personal attributes, and derive a generalization from its splits.

The gain of a split is the fall of PGini, which the engine computes as it computes every gain: label channels with a
positive weight, one-hot channels of the personal attributes with a negative one. Trees grow best-first, so one growth
per alpha answers all leaf limits of a sweep.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.hierarchy_columns import checked_hierarchies
from sfumato.arguments import Names, Seed, check_choice, check_integer, check_share, is_number, thread_count
from sfumato.errors import ParameterError
from sfumato.frames import read_table
from sfumato.generalization.building import SAFE_SIZE
from sfumato.minimize.category_orders import OrderName
from sfumato.minimize.known_categories import with_hierarchies
from sfumato.minimize.minimizer import Output, WeightedMinimizer
from sfumato.minimize.pgini_growth import ORDERS, SharedGrowth, held_out_fall, pgini_guide
from sfumato.minimize.sample import Buckets, Sample
from sfumato.minimize.tree_buckets import Presence, buckets_of_tree, without_small_buckets
from sfumato.partition.binning import DEFAULT_MAX_BINS
from sfumato.partition.grower import Grower
from sfumato.partition.tree import Tree

Search = Literal["greedy", "thorough"]


class PrivacyAwareTree(WeightedMinimizer):
    """Learn from a tree which values must be distinguished to predict the class, at the least cost in privacy.

    Numbers are cut at the thresholds of all splits on them; two categories share a bucket exactly when every split on
    their attribute sends both to the same side. An attribute with more than 8 categories is cut like a number, along
    the mean class of its categories. Means of rare categories are shrunken, and records do not take part in the order
    in which they are cut (cross-fitting). With fewer categories, all subsets are tried; a category without records in
    a node goes to the side that distinguishes fewer categories. Attributes that no split uses are not collected.

    Parameters
    ----------
    alpha : float, default=0.5
        Weight of privacy, from 0 (a plain classification tree) to 1 (no split at all).
    max_leaves : int, default=20
        Maximum number of leaves.
    min_samples_leaf : int, default=100
        Minimum number of records of a leaf.
    personal_weights : dict, optional
        Weight of each personal attribute, by name; 1 if not given. Only ratios matter.
    attributes : list of str or int, optional
        Columns to generalize, by name or position; None: all. Others pass through.
    personal : list of str or int, optional
        Personal attributes, which splits should reveal little about. None: all categorical ones, or all attributes if
        none is categorical. Numbers count through their bins.
    categorical_features : list of str or int, optional
        Numeric categories: columns of numbers that are codes, not amounts.
    hierarchies : dict, optional
        Hierarchies of category attributes, by name: a `Hierarchy`, a file, rows, or a nested mapping. Categories that
        few or no records have are placed where their parents are. All categories of a hierarchy are listed in the
        generalization, also those that nobody in the sample has.
    search : {"greedy", "thorough"}, default="greedy"
        ``"thorough"`` offers more orders of categories: by class among those that tell alike of the personal
        attributes. They are used where trees grown on one half of the records then do better on the other half. No
        table is known where that gains anything.
    floor : int, default=10
        Minimum number of sample records of a listed category or any bucket. Splits that leave a smaller bucket are
        undone, the latest first; rarer categories are pooled as "other". 1 lists values of single people.
    max_bins : int, default=255
        Number of bins of a numeric column with more distinct values.
    output : {"codes", "labels", "representatives"}, default="codes"
        Output of `transform`.
    random_state : int or RandomState, optional
        Not used: growing a tree draws nothing.
    n_jobs : int, optional
        Threads; None: one, -1: all cores. Their number never changes the result.

    Attributes
    ----------
    generalization_ : Generalization
    n_leaves_ : int
        Leaves of the tree.
    personal_ : tuple of str
    classes_ : ndarray

    Notes
    -----
    The generalization g distinguishes everything the tree T does: T(x) = T(g(x)) for every record. A split is made only
    if it lowers PGini; growing ends if none does, even below `max_leaves`.

    A generalization is not a guarantee: it states what is no longer collected, and an attack measures what can still be
    learned. Thresholds depend on the records of the sample.

    References
    ----------
    Staab, R. et al. (2024). From Principle to Practice: Vertical Data Minimization for Machine Learning, section 7.

    Examples
    --------
    >>> import numpy as np
    >>> from sfumato import PrivacyAwareTree
    >>> age, town = np.tile(np.arange(20, 80), 10), np.repeat(np.arange(10), 60)
    >>> X, y = np.column_stack([age, town]), age >= 64
    >>> minimizer = PrivacyAwareTree(personal=[1], min_samples_leaf=20).fit(X, y)
    >>> minimizer.generalization_.n_buckets
    (2, 1)
    """

    def __init__(
        self,
        alpha: float = 0.5,
        max_leaves: int = 20,
        *,
        min_samples_leaf: int = 100,
        personal_weights: Mapping[str, float] | None = None,
        attributes: Names | None = None,
        personal: Names | None = None,
        categorical_features: Collection[str | int] | None = None,
        hierarchies: Mapping[str, Any] | None = None,
        search: Search = "greedy",
        floor: int = SAFE_SIZE,
        max_bins: int = DEFAULT_MAX_BINS,
        output: Output = "codes",
        random_state: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        self.alpha = alpha
        self.max_leaves = max_leaves
        self.min_samples_leaf = min_samples_leaf
        self.personal_weights = personal_weights
        self.attributes = attributes
        self.personal = personal
        self.categorical_features = categorical_features
        self.hierarchies = hierarchies
        self.search = search
        self.floor = floor
        self.max_bins = max_bins
        self.output = output
        self.random_state = random_state
        self.n_jobs = n_jobs

    def default_grid(self, sample: Sample, errors: tuple[float, float]) -> Mapping[str, Sequence[Any]]:
        """Return the paper's nine leaf limits with twelve alphas from 0 to 1."""
        return {"alpha": [i / 11 for i in range(12)], "max_leaves": [2, 4, 6, 8, 10, 20, 50, 100, 200]}

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_share("alpha", self.alpha, hint="0 counts utility alone, 1 privacy alone.")
        check_integer("max_leaves", self.max_leaves, 1)
        check_integer("min_samples_leaf", self.min_samples_leaf, 1)
        check_choice("search", self.search, get_args(Search))

    def _categorical(self) -> tuple[str | int, ...]:
        given = super()._categorical()
        return (*given, *(name for name in self.hierarchies or {} if name not in given))

    def _read(self, X: Any, y: Any, sample_weight: Any) -> Sample:
        sample = super()._read(X, y, sample_weight)
        if not self.hierarchies:
            return sample
        table = read_table(X)
        return with_hierarchies(
            sample, checked_hierarchies(self.hierarchies, table, sample.names, listed_in="attributes")
        )

    def _buckets(self, sample: Sample) -> Buckets:
        growths = [SharedGrowth(sample, int(self.floor), orders) for orders in self._orders()]
        growth = self._chosen(growths, int(self.max_leaves))
        tree, presence = self._grow(growth, int(self.max_leaves), thread_count(self.n_jobs))
        tree, buckets = self._bounded(tree, presence, growth)
        self.n_leaves_ = tree.n_groups
        return buckets

    def _buckets_of_settings(self, sample: Sample, settings: Sequence[Mapping[str, Any]]) -> list[Buckets]:
        """Grow once for all settings that differ in the leaf limit alone, several growths at a time."""
        growths: dict[str, tuple[PrivacyAwareTree, list[int]]] = {}
        for place, (own, key) in enumerate(self._with_settings(settings, "max_leaves")):
            first, places = growths.setdefault(key, (own, []))
            first.max_leaves = max(first.max_leaves, own.max_leaves)
            places.append(place)
        result: list[Buckets] = [[] for _ in settings]
        wanted = {(int(own.floor), orders) for own, _ in growths.values() for orders in own._orders()}
        shared = {(floor, orders): SharedGrowth(sample, floor, orders) for floor, orders in wanted}

        def grow(own: PrivacyAwareTree, places: list[int]) -> None:
            growth = own._chosen([shared[int(own.floor), orders] for orders in own._orders()], own.max_leaves)
            tree, presence = own._grow(growth, own.max_leaves, 1)
            for place in places:
                limit = settings[place].get("max_leaves", self.max_leaves)
                result[place] = own._bounded(tree.pruned(limit), presence, growth)[1]

        with ThreadPoolExecutor(thread_count(self.n_jobs)) as pool:
            for done in [pool.submit(grow, *growth) for growth in growths.values()]:
                done.result()
        return result

    def _orders(self) -> tuple[tuple[OrderName, ...], ...]:
        """Return the sets of orders that are tried."""
        return ORDERS if self.search == "thorough" else ORDERS[:1]

    def _chosen(self, growths: Sequence[SharedGrowth], max_leaves: int) -> SharedGrowth:
        """Return the set of orders whose trees lower PGini most on records that they were not grown on."""
        if len(growths) == 1 or not growths[0].orders.every:
            return growths[0]
        guide = pgini_guide(growths[0].sample, float(self.alpha), self._shares(growths[0].sample))
        falls = [held_out_fall(growth, guide, max_leaves, int(self.min_samples_leaf)) for growth in growths]
        return growths[int(np.argmax(falls))]

    def _grow(self, growth: SharedGrowth, max_leaves: int, n_threads: int) -> tuple[Tree, Presence]:
        sample = growth.sample
        guide = pgini_guide(sample, float(self.alpha), self._shares(sample))
        records = growth.records_for(guide)
        grower = Grower(
            records,
            growth.layout,
            guide,
            min_records=int(self.min_samples_leaf),
            fall_back=False,
            n_threads=n_threads,
        )
        tree, groups = grower.grow(max_leaves)
        return tree, Presence(tree, groups, sample.columns, growth.orders)

    def _bounded(self, tree: Tree, presence: Presence, growth: SharedGrowth) -> tuple[Tree, Buckets]:
        columns, orders = growth.sample.columns, growth.orders
        tree = without_small_buckets(presence.joined(tree), columns, int(self.floor), orders)
        return tree, buckets_of_tree(tree, columns, orders)

    def _shares(self, sample: Sample) -> NDArray[np.float64]:
        """Return the weight of each personal attribute; the weights sum to 1."""
        names = [sample.names[position] for position in sample.personal]
        given = dict(self.personal_weights or {})
        others = [name for name in given if name not in names]
        if others:
            raise ParameterError(
                f"personal_weights names {', '.join(map(repr, others))}: expected personal attributes, which are "
                f"{', '.join(map(repr, names)) or 'none'}. Correct the names, or add them to personal."
            )
        weights = [given.get(name, 1.0) for name in names]
        if not all(is_number(w) and 0 <= w < np.inf for w in weights) or (names and sum(weights) <= 0):
            raise ParameterError(
                "personal_weights has a weight that is not a number, is negative, or all are zero: expected weights of "
                "at least 0, one of them above 0. Leave an attribute out of personal if it does not matter."
            )
        return np.array(weights, np.float64) / max(sum(weights), 1e-300)
