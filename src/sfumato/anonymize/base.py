# SPDX-License-Identifier: Apache-2.0
"""What all anonymizers that grow a tree share: validate, bin, grow, rewrite, recount.

A subclass says what guides the splits; everything that protects is here, once.
"""

from __future__ import annotations

import logging
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.groups import Fit, GroupAnonymizer
from sfumato.anonymize.hierarchy_columns import taxonomy_of
from sfumato.anonymize.partition import Partition, partition_from_tree
from sfumato.arguments import checked_weight
from sfumato.backends.base import check_of
from sfumato.backends.memory import MemorySource
from sfumato.criteria.criterion_counts import Counter, fewest_records, publishing_floor
from sfumato.errors import ParameterError, named
from sfumato.partition.group_summaries import lined_up
from sfumato.partition.grower import Grower, Grown
from sfumato.partition.guides import Guide, integer_weights
from sfumato.partition.records import Records
from sfumato.partition.taxonomy import NO_TAXONOMY, Taxonomy
from sfumato.partition.tree import close_unsafe
from sfumato.representatives import looks_at_classes
from sfumato.schema import Schema

logger = logging.getLogger("sfumato")


class TreeAnonymizer(GroupAnonymizer):
    """Base of the anonymizers that split a table top-down and rewrite each group."""

    split_on: str
    partition_: Partition
    _counts_population = True

    def _make_guide(self, X: Any, y: Any, schema: Schema, n_records: int, sample_weight: Any) -> Guide:
        raise NotImplementedError

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.split_on not in ("quasi_identifiers", "all"):
            raise ParameterError(
                f"{named('split_on', self.split_on)}: expected 'quasi_identifiers' or 'all'. "
                "The first is the paper's algorithm."
            )

    def _fit(self, X: Any, y: Any, sample_weight: Any = None, target: Any = None) -> Fit:
        X, table, schema, counters = self._begin_fit(X, y if target is None else target)
        weight = checked_weight(sample_weight, table.n_records)
        hierarchies = self._checked_hierarchies(table, schema)
        guide = self._make_guide(X, y, schema, table.n_records, weight)
        names = self._split_columns(schema)
        source, paths = self._coded(table, names, schema, hierarchies, floor=publishing_floor(counters))
        whole = None if weight is None else integer_weights(weight, guide.value_bits)
        records = source.records(guide, whole)
        taxonomy = taxonomy_of(source.columns, source.layout, paths)
        source.forget_codes()
        grown = self._grow(records, source, guide, counters, taxonomy)
        del records  # from here on they are needed in the order of their groups
        logger.info("%d groups of %d records", grown.tree.n_groups, table.n_records)
        self.schema_ = schema
        self.hierarchies_ = hierarchies
        columns = source.columns[: len(schema.quasi_identifiers)]
        with_classes = looks_at_classes(self.representative, guide)
        guide = guide.lined_up(grown.records, source.layout.n_columns, with_classes=with_classes)
        values = self._describe_groups(columns, grown.records.codes, lined_up(grown.sizes), guide, paths)
        self.partition_ = partition_from_tree(
            grown.tree,
            source.columns,
            values,
            grown.sizes,
            dropped=schema.dropped,
            limits=schema.to_dict()["limits"],
            categorical=schema.categorical_features,
            representative=self.representative,
            guarantees=tuple(criterion.describe() for criterion in self._all_criteria()),
        )
        return Fit(table, counters, grown.group)

    def _grow(
        self,
        records: Records,
        source: MemorySource,
        guide: Guide,
        counters: list[Counter],
        taxonomy: Taxonomy = NO_TAXONOMY,
    ) -> Grown:
        """Grow the tree over the source's bins."""
        grower = Grower(
            records,
            source.layout,
            guide,
            min_records=fewest_records(counters),
            checks=[check_of(counter) for counter in counters if counter.value_of_row is not None],
            fall_back=self._falls_back(),
            n_threads=self._n_threads(),
            taxonomy=taxonomy,
        )
        return grower.grow_in_order()

    def _split_columns(self, schema: Schema) -> list[str]:
        """The quasi-identifiers first, then, when asked for, the other columns that pass through."""
        names = list(schema.quasi_identifiers)
        if self.split_on == "all":
            names += [n for n in schema.with_role("other") if n not in schema.keep]
        return names

    def _grows_from_counts(self) -> bool:
        """Return True if the tree is the engine's own, which counts alone determine.

        Files and Spark grow that tree, so a method with a `_grow` of its own must not reach them.
        """
        return type(self)._grow is TreeAnonymizer._grow

    def _falls_back(self) -> bool:
        """Whether information loss decides where the guide sees no gain."""
        return True

    def _safe_groups(self, leaf: NDArray[np.int32], counters: list[Counter]) -> tuple[NDArray[np.int32], int]:
        """Return the group of each record (-1: suppressed) and how many fitted groups were joined with others."""
        first_leaf = self._join(leaf, counters)
        used = np.unique(leaf[leaf >= 0])
        is_joined = np.bincount(first_leaf[used], minlength=len(first_leaf))[first_leaf[used]] > 1
        _, group = np.unique(np.where(leaf >= 0, first_leaf[leaf], -1), return_inverse=True)
        return (group - int((leaf < 0).any())).astype(np.int32), int(is_joined.sum())

    def _regrouped(self, leaf: NDArray[np.int32], group: NDArray[np.int32], counters: list[Counter]) -> list[Counter]:
        if all(counter.population is None for counter in counters):
            return counters
        first_leaf = self._join(leaf, counters)
        group_of_first = np.full(len(first_leaf), -1, np.int64)
        group_of_first[first_leaf[leaf[leaf >= 0]]] = group[leaf >= 0]
        return [counter.regrouped(group, group_of_first[first_leaf]) for counter in counters]

    def _join(self, leaf: NDArray[np.int32], counters: list[Counter]) -> NDArray[np.int32]:
        """Return, for every leaf, the first leaf of the group it is part of."""
        tree = self.partition_.tree

        def is_safe(first: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.bool_]:
            # Runs handed in together never overlap, so each leaf belongs to one of them or to none.
            run_of_leaf = np.full(tree.n_groups, -1, np.int64)
            for run, (a, b) in enumerate(zip(first, stop, strict=True)):
                run_of_leaf[a:b] = run
            group = np.where(leaf >= 0, run_of_leaf[leaf], -1)
            safe = np.ones(len(first), np.bool_)
            for counter in counters:
                safe &= counter.are_safe(group, len(first), run_of_leaf)
            return safe

        first_leaf = close_unsafe(tree, is_safe)
        assert first_leaf is not None  # all records together meet the criteria
        return first_leaf


class GuidedAnonymizer(TreeAnonymizer):
    """Base of the tree anonymizers whose splits follow predictions or labels, in which records can have weights."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, target: Any = None) -> Self:
        """Learn the groups of the records of X.

        Parameters
        ----------
        X : frame or array of shape (n, columns)
            The records.
        y : array-like, optional
            What guides the splits; see the class.
        sample_weight : array-like of shape (n,), optional
            How much each record counts when a guide is trained and when splits are compared. k and all criteria count
            records or persons, never weights.
        target : array-like of shape (n,), optional
            What a criterion on the target counts, where `y` is something else, such as predictions; else `y`.

        Returns
        -------
        self
        """
        self._fit(X, y, sample_weight, target)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, *, target: Any = None) -> Any:
        """Learn the groups of the records of X and return X rewritten; all rows are kept, in their order.

        The result is recounted before it is returned. It is for training: categorical types keep their list of
        categories, which models need and which names also those that no record has any more, and the order of the rows
        can tell which member of a group is which. Publish what ``release(X, shuffle=True)`` returns. Parameters as in
        `fit`.

        Raises
        ------
        GuaranteeError
            When a criterion does not hold on the result.
        """
        return self._fit_transform(X, y, sample_weight, target)
