# SPDX-License-Identifier: Apache-2.0
"""The anonymizer: fit, rewrite, release, recount. Everything that protects is here, once.

Methods differ in their partitioner, which forms the groups and joins those that fail, and in what guides it; a public
class is a signature and the partitioner that it stands for.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.anonymize.guidance import guide_from
from sfumato.anonymize.hierarchy_columns import in_tree_order
from sfumato.anonymize.partitioners import Partitioner, Task
from sfumato.anonymize.reading import GroupParameters
from sfumato.anonymize.recoding import Recoding
from sfumato.anonymize.recounting import verify
from sfumato.anonymize.release import Release, check_releasable, in_released_order, remembered, warn_of_real_records
from sfumato.anonymize.suppression import drop_costly, suppress
from sfumato.arguments import as_table_like, checked_weight
from sfumato.backends.memory import MemorySource
from sfumato.coded_columns import CodedColumn
from sfumato.criteria.criterion_counts import Counter, among_released, publishing_floor, shown
from sfumato.errors import GuaranteeError, ParameterError, named
from sfumato.frames import Table, read_table
from sfumato.frames.pandas_frames import warn_of_telling_index
from sfumato.hierarchies import CodePaths, Hierarchy
from sfumato.loss import group_ncp
from sfumato.partition.group_summaries import Groups, Summary, collect, summarize, widths
from sfumato.partition.guides import Guide
from sfumato.partition.records import Layout, make_layout
from sfumato.representatives import REPRESENTATIVES, GroupValues, looks_at_classes, represent, shown_of
from sfumato.schema import Schema

logger = logging.getLogger("sfumato")


@dataclass(frozen=True, eq=False)
class Fit:
    """What fitting leaves for fit_transform to go on with; never stored on the estimator."""

    table: Table
    counters: list[Counter]
    group: NDArray[np.int32]


class _Description(NamedTuple):
    """What is known of groups: their widths in each column, and the values their records get."""

    width: NDArray[np.float64]
    values: dict[str, list[GroupValues]]


class Anonymizer(TransformerMixin, GroupParameters):
    """Puts records into groups and rewrites each group."""

    partition_: Recoding
    hierarchies_: dict[str, Hierarchy]

    split_on = "quasi_identifiers"
    _counts_population = True

    def _partitioner(self) -> Partitioner:
        """Return what forms the groups."""
        raise NotImplementedError

    def _grows_from_counts(self) -> bool:
        """Whether counts determine the groups, so that tables need not lie in memory."""
        return self._partitioner().by_counts

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.split_on not in ("quasi_identifiers", "all"):
            raise ParameterError(
                f"{named('split_on', self.split_on)}: expected 'quasi_identifiers' or 'all'. "
                "The first is the paper's algorithm."
            )

    def _split_columns(self, schema: Schema) -> list[str]:
        """The quasi-identifiers first, then, when asked for, the other columns that pass through."""
        names = list(schema.quasi_identifiers)
        if self.split_on == "all":
            names += [n for n in schema.with_role("other") if n not in schema.keep]
        return names

    def _make_guide(self, X: Any, y: Any, schema: Schema, n_records: int, sample_weight: Any) -> Guide:
        """Return what guides the groups, and what representatives look at."""
        return self._make_guide_for_release(y, n_records) or Guide(0)

    def _fit(self, X: Any, y: Any, sample_weight: Any = None, target: Any = None) -> Fit:
        """Form the groups and set the fitted attributes."""
        X, table, schema, counters = self._begin_fit(X, y if target is None else target)
        weight = checked_weight(sample_weight, table.n_records)
        hierarchies = self._checked_hierarchies(table, schema)
        guide = self._make_guide(X, y, schema, table.n_records, weight)
        names = self._split_columns(schema)
        source, paths = self._coded(table, names, schema, hierarchies, floor=publishing_floor(counters))
        divided = self._partitioner().divide(
            Task(
                source, paths, guide, weight, counters, self._n_threads(), looks_at_classes(self.representative, guide)
            )
        )
        logger.info("%d groups of %d records", divided.groups.n_groups, table.n_records)
        self.schema_ = schema
        self.hierarchies_ = hierarchies
        columns = source.columns[: len(schema.quasi_identifiers)]
        values = self._describe_groups(columns, divided.codes, divided.groups, divided.guide, paths)
        self.partition_ = divided.make_partition(
            values,
            self.group_sizes_,
            dropped=schema.dropped,
            limits=schema.to_dict()["limits"],
            categorical=schema.categorical_features,
            representative=self.representative,
            guarantees=tuple(criterion.describe() for criterion in self._all_criteria()),
        )
        return Fit(table, counters, divided.group)

    def _begin_fit(self, X: Any, target: Any) -> tuple[Any, Table, Schema, list[Counter]]:
        """Check the parameters, read the records, and refuse what the whole table fails already."""
        self._check_parameters()
        X = as_table_like(X)
        read_table(X)  # says what is wrong with something that is no table before scikit-learn looks at it
        validate_data(self, X, skip_check_array=True)
        criteria = self._all_criteria()
        table, schema = self._read(X, criteria, target)
        counters = self._counters(table, criteria, target)
        self._check_feasible(counters, table.n_records)
        return X, table, schema, counters

    def _coded(
        self,
        table: Table,
        names: Sequence[str],
        schema: Schema,
        hierarchies: Mapping[str, Hierarchy],
        *,
        floor: int = 0,
    ) -> tuple[MemorySource, dict[str, CodePaths]]:
        """Return columns as codes in the order of their hierarchies, and the labels above those."""
        source = MemorySource(
            table, names, limits=schema.limits, max_bins=self.max_bins, floor=floor, n_threads=self._n_threads()
        )
        source.columns, paths = in_tree_order(source.columns, hierarchies)
        return source, paths

    def _joined(self, leaf: NDArray[np.int32], counters: list[Counter]) -> tuple[NDArray[np.int32], int, list[Counter]]:
        """Join fitted groups that fail with these records.

        Returns
        -------
        group : ndarray of int32
            Of every record (-1: suppressed).
        n_merged : int
            Fitted groups that were joined with others.
        counters : list of Counter
            The same, which count a population by the joined groups.
        """
        joined = self._partitioner().join(self.partition_, leaf, counters)
        is_kept = leaf >= 0
        used = np.unique(leaf[is_kept])
        is_joined = np.bincount(joined[used])[joined[used]] > 1
        _, numbers = np.unique(np.where(is_kept, joined[leaf], -1), return_inverse=True)
        group = (numbers - int(not is_kept.all())).astype(np.int32)
        group_of_joined = np.full(int(joined.max()) + 1, -1, np.int64)
        group_of_joined[joined[leaf[is_kept]]] = group[is_kept]
        regrouped = [counter.regrouped(group, group_of_joined[joined]) for counter in counters]
        return group, int(is_joined.sum()), regrouped

    def _make_guide_for_release(self, y: Any, n_records: int) -> Guide | None:
        """Return what ``"model"`` and ``"member"`` look at; the groups themselves never depend on it."""
        if y is None or not REPRESENTATIVES[self.representative].facts.looks_at_predictions:
            return None
        return guide_from(y, n_records=n_records)

    # -- fitting ---------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, target: Any = None) -> Self:
        """Learn the groups of the records of X.

        Parameters
        ----------
        X : frame or array of shape (n, columns)
            The records.
        y : array-like, optional
            Predictions or labels, for the representatives ``"model"`` and ``"member"`` and for criteria on the target.
            The groups do not depend on them otherwise.
        target : array-like of shape (n,), optional
            What a criterion on the target counts, where `y` is something else, such as predictions; else `y`.

        Returns
        -------
        self
        """
        self._fit(X, y, None, target)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, target: Any = None) -> Any:
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
        return self._fit_transform(X, y, None, target)

    def _fit_transform(self, X: Any, y: Any, sample_weight: Any, target: Any) -> Any:
        self._check_parameters()
        if self.suppression_limit > 0:
            raise ParameterError(
                f"{named('suppression_limit', self.suppression_limit)} with fit_transform, which keeps all rows: "
                "expected 0. Use fit(X, y).release(X), which may leave records out."
            )
        for criterion in self._all_criteria():
            if criterion.counting == "presence":
                raise ParameterError(
                    f"{shown(criterion)} with fit_transform, which joins no groups: expected it with release. Use "
                    "fit(X, y).release(X)."
                )
        fitted = self._fit(X, y, sample_weight, target)
        released = self.partition_.rewrite(fitted.table, fitted.group, n_threads=self._n_threads())
        try:
            names = self._released_quasi_identifiers(released)
            verify(released, names, fitted.counters, None, n_threads=self._n_threads())
        except GuaranteeError:
            del self.partition_  # nothing that failed stays usable
            raise
        self._warn_of_unique_values(fitted.table, y if target is None else target)
        warn_of_telling_index(X)
        return released

    def _describe_groups(
        self,
        columns: Sequence[CodedColumn],
        codes: NDArray[Any],
        groups: Groups,
        guide: Guide | None,
        paths: Mapping[str, CodePaths],
    ) -> dict[str, list[GroupValues]]:
        """Set what is known of the fitted groups, and return the values each group's records get."""
        layout = make_layout([c.bins for c in columns])
        found = self._describe(columns, codes, groups, layout, guide, paths)
        self.group_sizes_ = groups.sizes
        self.n_groups_ = groups.n_groups
        self.information_loss_ = group_ncp(found.width, groups.sizes)
        return found.values

    def _describe(
        self,
        columns: Sequence[CodedColumn],
        codes: NDArray[Any],
        groups: Groups,
        layout: Layout,
        guide: Guide | None,
        paths: Mapping[str, CodePaths],
    ) -> _Description:
        may_show = shown_of(columns, layout).may_show
        summary = summarize(codes, groups, layout, may_show=may_show, n_threads=self._n_threads())
        values = represent(
            self.representative, columns, codes, groups, layout,
            guide=guide, random_state=self._generator(), summary=summary, n_threads=self._n_threads(), paths=paths,
        )  # fmt: skip
        return _Description(_widths(summary, layout, columns, paths), values)

    # -- using -----------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> Any:
        """Rewrite records the way the fitted ones were.

        For records at prediction time: nothing is promised about how many of them share a group, and categorical
        types keep their list of categories. To publish other records than the fitted ones use `release`.
        """
        check_is_fitted(self, "partition_")
        X = as_table_like(X)
        read_table(X)  # says what is wrong with something that is no table before its columns are compared
        validate_data(self, X, reset=False, skip_check_array=True)
        return self.partition_.transform(X)

    def release(
        self,
        X: Any,
        y: Any = None,
        target: Any = None,
        *,
        earlier: Any = (),
        persons: str | int | None = None,
        shuffle: bool | None = None,
        keep_index: bool = False,
    ) -> Release:
        """Return a publishable version of any records, or raise.

        Groups of the fitted partition that fail a criterion with these records are joined with their sibling
        subtree, or with the next run of a curve, until they pass. With `suppression_limit`, the smallest failing
        groups are left out first, while the limit lasts and what is left can still be released; then the records
        that cost most: those without which their groups are narrowest, and the widest groups. Values come from the
        released records alone, and categorical types list only categories that a released record has. Columns that
        pass through are refused when they are near unique in these records, whatever they were when fitting.

        Parameters
        ----------
        X : frame or array
        y : array-like, optional
            Predictions for these records, which the representatives ``"model"`` and ``"member"`` look at. Without
            them both take the member nearest the group's median.
        target : array-like of shape (n,), optional
            What a criterion on the target counts, where `y` is something else; else `y`.
        earlier : list of Release or Publication, optional
            Releases whose readers may get this one, too. A `PrivacyWarning` says how many people two releases
            together would single out: those whose two groups have fewer than k people in common, and those who came
            or went with fewer than k. The release itself is the same.
        persons : name or position of a column, optional
            Who each record belongs to, each person once. With it, people are recognised in earlier releases that had
            it, by keyed digests. Without, the smaller of two numbers of records is taken for people who are in both,
            which is right where batches grow or shrink and nobody is replaced.
        shuffle : bool, optional
            True puts the records in a random order that nobody can repeat, under a new index: use it for what you
            publish. False keeps the order of X, for records that are compared with X row by row. None keeps it, too,
            and warns: the place of a record can tell which member of its group it is.
        keep_index : bool, default=False
            Whether a pandas frame keeps its index. False numbers the rows anew, since an index of account numbers or
            dates identifies people as a column of them does; join other columns by position (``.to_numpy()``).

        Returns
        -------
        Release
            Keep its `publication` for the next release; it holds no records.
        """
        check_is_fitted(self, "partition_")
        X = as_table_like(X)
        table = read_table(X, categorical=self.schema_.categorical_features)
        validate_data(self, X, reset=False, skip_check_array=True)
        self.schema_.check_passing(table)
        self._warn_of_unique_values(table, y if target is None else target)
        if keep_index:
            warn_of_telling_index(X)
        target = y if target is None else target
        partition = self.partition_
        counters = self._counters(table, self._all_criteria(), target, partition)
        leaf = suppress(partition.apply_to(table), partition.n_groups, counters, self.suppression_limit)
        counters = among_released(counters, leaf)
        check_releasable(leaf, counters, self.k)
        group, n_merged, counters = self._joined(leaf, counters)
        group, leaf, counters = self._without_costly(table, group, leaf, counters)
        groups = collect(group, int(group.max()) + 1)
        made = self._rewrite_release(
            table, groups, counters, None if y is None else self._make_guide_for_release(y, table.n_records), n_merged
        )
        made = remembered(
            made, self.k, group, table=table, earlier=earlier, persons=persons,
            fingerprint=partition.fingerprint, leaf=leaf, n_leaves=partition.n_groups,
        )  # fmt: skip
        if REPRESENTATIVES[self.representative].facts.is_real_person:
            warn_of_real_records(
                X, made.table, self.schema_.quasi_identifiers, self._released_quasi_identifiers(made.table)
            )
        return in_released_order(made, shuffle, keep_index=keep_index)

    def _without_costly(
        self, table: Table, group: NDArray[np.int32], leaf: NDArray[np.int32], counters: list[Counter]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], list[Counter]]:
        """Spend what is left of the suppression limit on the records that cost most, and number the groups again."""
        budget = int(self.suppression_limit * table.n_records) - int((group < 0).sum())
        # Presence compares each group with a population that was counted by the groups as they are.
        if budget <= 0 or any(counter.population is not None for counter in counters):
            return group, leaf, counters
        schema = self.schema_
        hierarchies = getattr(self, "hierarchies_", {})
        source, paths = self._coded(table, schema.quasi_identifiers, schema, hierarchies)
        layout = source.layout
        left = drop_costly(
            group,
            source.records(Guide(0)).codes,
            layout,
            np.array([column.name in paths for column in source.columns], np.bool_),
            lambda summary: _widths(summary, layout, source.columns, paths),
            counters,
            self.k,
            budget,
        )
        is_left = left >= 0
        _, numbers = np.unique(left[is_left], return_inverse=True)
        left[is_left] = numbers
        return left, np.where(is_left, leaf, np.int32(-1)), [counter.among(is_left) for counter in counters]

    def _rewrite_release(
        self, table: Table, groups: Groups, counters: list[Counter], guide: Guide | None, n_merged: int
    ) -> Release:
        schema = self.schema_
        hierarchies, floor = getattr(self, "hierarchies_", {}), publishing_floor(counters)
        source, paths = self._coded(table, schema.quasi_identifiers, schema, hierarchies, floor=floor)
        codes = source.records(Guide(0)).codes
        found = self._describe(source.columns, codes, groups, source.layout, guide, paths)
        source.forget_codes()
        del codes, guide  # which nobody else holds: there is a row of both for every record
        n_kept = len(groups.order)
        n_suppressed = table.n_records - n_kept
        rows = np.flatnonzero(groups.group >= 0) if n_suppressed else None
        own = self.partition_.with_values(source.columns, found.values)
        released = own.rewrite(
            table, np.maximum(groups.group, 0),
            keep_rows=rows, compact_categories=True, n_threads=self._n_threads(),
        )  # fmt: skip
        names = self._released_quasi_identifiers(released)
        smallest = verify(released, names, counters, rows, n_threads=self._n_threads())
        by_column = groups.sizes @ found.width / groups.sizes.sum()
        measures: dict[str, Any] = {
            "n_records": n_kept,
            "n_groups": groups.n_groups,
            "smallest_group": smallest,
            "information_loss": group_ncp(found.width, groups.sizes),
            "loss_by_column": dict(zip(schema.quasi_identifiers, by_column.tolist(), strict=True)),
        }
        for counter in counters:
            measures[shown(counter.criterion)] = counter.value(groups.group, groups.n_groups)
        return Release(released, n_merged, n_suppressed, measures)

    def _released_quasi_identifiers(self, released: Any) -> list[str]:
        names = self.partition_.output_names(self.schema_.quasi_identifiers)
        if not isinstance(released, np.ndarray):
            return names
        # Arrays have no names: find the columns by their place in what leaves.
        every = self.partition_.output_names(self.schema_.names)
        return [f"x{every.index(name)}" for name in names]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of the result."""
        check_is_fitted(self, "partition_")
        if input_features is not None and list(input_features) != list(self.schema_.names):
            raise ValueError("input_features is not equal to feature_names_in_")
        return np.array(self.partition_.output_names(self.schema_.names), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class GuidedAnonymizer(Anonymizer):
    """An anonymizer whose splits follow predictions or labels, in which records can have weights."""

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


def _widths(
    summary: Summary, layout: Layout, columns: Sequence[CodedColumn], paths: Mapping[str, CodePaths]
) -> NDArray[np.float64]:
    """Return the width of each group in each column; of a column with a hierarchy, that of the group's label."""
    result = widths(summary, layout)
    for j, column in enumerate(columns):
        if column.name in paths:
            ends = (summary.lowest[:, j], summary.highest[:, j], summary.n_missing[:, j])
            result[:, j] = paths[column.name].group_widths(*ends)
    return result
