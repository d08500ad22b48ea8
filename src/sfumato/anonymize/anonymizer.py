# SPDX-License-Identifier: Apache-2.0
"""The anonymizer: fit, rewrite, release, recount. All protection is implemented here, once.

Methods differ in their partitioner, which forms the groups and joins those that fail, and in their guide. A public
class is a signature and a partitioner.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.anonymize.fit_inputs import GroupParameters
from sfumato.anonymize.group_description import (
    cells_for,
    describe_groups,
    group_widths,
    surroundings_for,
    warn_of_tight_ranges,
)
from sfumato.anonymize.guide_from_target import guide_from
from sfumato.anonymize.hierarchy_columns import in_tree_order
from sfumato.anonymize.partitioners import Fit, Partitioner, Task
from sfumato.anonymize.private_release import PrivateSettings, release_privately
from sfumato.anonymize.recoding import Recoding
from sfumato.anonymize.release import (
    Release,
    check_releasable,
    in_released_order,
    remembered,
    renumbered,
    verify,
    warn_of_real_records,
    with_criteria,
)
from sfumato.anonymize.suppression import drop_costly, suppress
from sfumato.arguments import as_table_like, check_choice, checked_weight
from sfumato.backends.memory import MemorySource
from sfumato.coded_columns import CodedColumn
from sfumato.criteria.base import saved_fields
from sfumato.criteria.criterion_counts import Counter, among_released, publishing_floor, shown
from sfumato.errors import GuaranteeError, ParameterError, named
from sfumato.fingerprints import Fingerprints
from sfumato.frames import Table, read_table
from sfumato.frames.pandas_frames import warn_of_telling_index
from sfumato.hierarchies import CodePaths, Hierarchy
from sfumato.loss import group_ncp
from sfumato.partition.group_summaries import Groups, collect
from sfumato.partition.guides import Guide
from sfumato.partition.records import make_layout
from sfumato.private.ledger import PrivacyLedger
from sfumato.regions import RegionCounting, Regions, TargetCoding, plan_regions
from sfumato.representatives import REPRESENTATIVES, looks_at_classes
from sfumato.schema import Schema

logger = logging.getLogger("sfumato")


class Anonymizer(TransformerMixin, GroupParameters):
    """Puts records into groups and rewrites each group."""

    partition_: Recoding
    hierarchies_: dict[str, Hierarchy]

    split_on = "quasi_identifiers"
    _counts_population = True
    _fitted_attribute = "partition_"

    def _partitioner(self) -> Partitioner:
        """Return the partitioner that forms the groups."""
        raise NotImplementedError

    def _grows_from_counts(self) -> bool:
        """Return True if counts determine the groups, so that tables need not be in memory."""
        return self._partitioner().by_counts

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("split_on", self.split_on, ("quasi_identifiers", "all"))

    def _split_columns(self, schema: Schema) -> list[str]:
        """Return the quasi-identifiers, then, if `split_on` is "all", the other columns that pass through."""
        names = list(schema.quasi_identifiers)
        if self.split_on == "all":
            names += [n for n in schema.with_role("other") if n not in schema.keep]
        return names

    def _make_guide(self, X: Any, y: Any, schema: Schema, n_records: int, sample_weight: Any) -> Guide:
        """Return the guide of the groups, which representatives also use."""
        return self._make_guide_for_release(y, n_records) or Guide(0)

    def _fit(self, X: Any, y: Any, sample_weight: Any = None, target: Any = None, finer: int = 0) -> Fit:
        """Form the groups and set the fitted attributes.

        With `finer`, the fewest people that a number of a region counts, what is returned has the codes of the records.
        """
        X, table, schema, counters = self._begin_fit(X, y if target is None else target)
        weight = checked_weight(sample_weight, table.n_records)
        hierarchies = self._checked_hierarchies(table, schema)
        guide = self._make_guide(X, y, schema, table.n_records, weight)
        names = self._split_columns(schema)
        source, paths = self._coded(table, names, schema, hierarchies, floor=publishing_floor(counters), finer=finer)
        coded = source.columns[: len(schema.quasi_identifiers)] if finer else ()  # before they are forgotten
        divided = self._partitioner().divide(
            Task(
                source, paths, guide, weight, counters, self._n_threads(), looks_at_classes(self.representative, guide)
            )
        )
        logger.info("%d groups of %d records", divided.groups.n_groups, table.n_records)
        self.schema_ = schema
        self.hierarchies_ = hierarchies
        columns = source.columns[: len(schema.quasi_identifiers)]
        partition = divided.make_partition(
            {}, divided.groups.sizes, **self._partition_facts(schema), fingerprints=self._fingerprints(table, schema)
        )
        self.partition_ = self._described(partition, columns, divided.codes, divided.groups, divided.guide, paths)
        return Fit(table, counters, divided.group, coded)

    def _fingerprints(self, table: Table, schema: Schema) -> Fingerprints:
        """Return the fingerprints of the records that the groups are formed of."""
        kept = [name for name in table.names if name not in schema.dropped]
        return Fingerprints.of(table, self._split_columns(schema), kept, n_threads=self._n_threads())

    def _partition_facts(self, schema: Schema) -> dict[str, Any]:
        """Return the fields of a partition that follow from the parameters and the schema."""
        criteria = self._all_criteria()
        return {
            "dropped": schema.dropped,
            "limits": schema.to_dict()["limits"],
            "categorical": schema.categorical_features,
            "representative": self.representative,
            "guarantees": tuple(criterion.describe() for criterion in criteria),
            "criteria": tuple(saved_fields(criterion) for criterion in criteria),
        }

    def _begin_fit(self, X: Any, target: Any) -> tuple[Any, Table, Schema, list[Counter]]:
        """Check the parameters, read the records, and check that the whole table meets the criteria."""
        self._check_parameters()
        X = as_table_like(X)
        read_table(X)  # explains what is not a table before scikit-learn looks at it
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
        finer: int = 0,
    ) -> tuple[MemorySource, dict[str, CodePaths]]:
        """Return columns as codes in the order of their hierarchies, and the labels above the codes."""
        source = MemorySource(
            table, names,
            limits=schema.limits, max_bins=self.max_bins, floor=floor, finer=finer, n_threads=self._n_threads(),
        )  # fmt: skip
        source.columns, paths = in_tree_order(source.columns, hierarchies)
        return source, paths

    def _make_guide_for_release(self, y: Any, n_records: int) -> Guide | None:
        """Return the guide of the representatives ``"model"`` and ``"member"``; groups never depend on it."""
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
            The target for criteria on it, if `y` holds something else, such as predictions. None: `y`.

        Returns
        -------
        self
        """
        self._fit(X, y, None, target)
        return self

    def fit_transform(self, X: Any, y: Any = None, *, target: Any = None) -> Any:
        """Learn the groups of the records of X and return X rewritten; all rows are kept, in their order.

        The result is recounted before it is returned. It is for training, not for publishing: categorical types still
        list all categories, and the row order can reveal which member of a group is which. To publish, use
        ``release(X, shuffle=True)``. Parameters as in `fit`.

        Raises
        ------
        GuaranteeError
            If a criterion does not hold on the result.
        """
        return self._fit_transform(X, y, None, target)

    def _fit_transform(self, X: Any, y: Any, sample_weight: Any, target: Any) -> Any:
        return self._fit_recounted(X, y, sample_weight, target)

    def _fit_recounted(self, X: Any, y: Any, sample_weight: Any, target: Any) -> Any:
        """Form the groups and return the rewritten table, which was recounted."""
        fitted = self._fit_keeping_rows(X, y, sample_weight, target)
        released = self._rewrite_fitted(fitted)
        try:
            names = self._released_quasi_identifiers(released)
            verify(released, names, fitted.counters, None, n_threads=self._n_threads())
        except GuaranteeError:
            delattr(self, self._fitted_attribute)  # nothing that failed stays usable
            raise
        self._warn_of_unique_values(fitted.table, y if target is None else target)
        warn_of_telling_index(X)
        return released

    def _fit_for_regions(self, X: Any, y: Any, sample_weight: Any, floor: int) -> Fit:
        """Form the groups without writing a table; their records are counted once more."""
        fitted = self._fit_keeping_rows(X, y, sample_weight, None, floor)
        smallest = int(np.bincount(fitted.group).min())
        if smallest < self.k:
            delattr(self, self._fitted_attribute)
            raise GuaranteeError(
                f"a group has {smallest} records: expected at least k = {self.k}. No model is trained. Please report "
                "this."
            )
        return fitted

    def _fit_keeping_rows(self, X: Any, y: Any, sample_weight: Any, target: Any, finer: int = 0) -> Fit:
        """Form groups of all records, with no suppression and no join; `finer` is for regions."""
        self._check_parameters()
        if self.suppression_limit > 0:
            raise ParameterError(
                f"{named('suppression_limit', self.suppression_limit)} with fit_transform, which keeps all rows: "
                "expected 0. Use fit(X, y).release(X), which may suppress records."
            )
        for criterion in self._all_criteria():
            if criterion.counting == "presence":
                raise ParameterError(
                    f"{shown(criterion)} with fit_transform, which joins no groups: expected it with release. Use "
                    "fit(X, y).release(X)."
                )
        return self._fit(X, y, sample_weight, target, finer)

    def _describe_regions(self, fitted: Fit, target: TargetCoding, y: NDArray[Any], floor: int) -> Regions:
        """Describe fitted groups by the values that several of their people share, with their target."""
        columns = fitted.columns
        if not columns:
            names = self.schema_.quasi_identifiers
            source, _ = self._coded(fitted.table, names, self.schema_, self.hierarchies_, floor=floor, finer=floor)
            columns = source.columns
        columns = [column.finer for column in columns]
        counting = RegionCounting(plan_regions(columns, target, floor), len(fitted.group), n_threads=self._n_threads())
        counting.add(lambda j: columns[j].codes, collect(fitted.group, self.n_groups_), *target.coded(y))
        partition = getattr(self, "partition_", None)
        return counting.regions(None if partition is None else partition.cell_columns(columns, {}))

    def _rewrite_fitted(self, fitted: Fit) -> Any:
        return self.partition_.rewrite(fitted.table, fitted.group, n_threads=self._n_threads())

    def _described(
        self,
        partition: Recoding,
        columns: Sequence[CodedColumn],
        codes: NDArray[Any],
        groups: Groups,
        guide: Guide | None,
        paths: Mapping[str, CodePaths],
    ) -> Any:
        """Set the attributes of the fitted groups, and return the partition with the values of each group."""
        layout = make_layout([c.bins for c in columns])
        cells = cells_for(self.representative, partition, columns, paths)
        warn_of_tight_ranges(self.representative, cells, stacklevel=5)
        found = describe_groups(
            self.representative, columns, codes, groups, layout, paths,
            guide=guide, random_state=self._generator(), n_threads=self._n_threads(), cells=cells,
            around=surroundings_for(self.representative, partition, columns, paths, groups.sizes),
        )  # fmt: skip
        self.group_sizes_ = groups.sizes
        self.n_groups_ = groups.n_groups
        self.information_loss_ = group_ncp(found.width, groups.sizes)
        return replace(partition, values=found.values, group_sizes=groups.sizes)  # type: ignore[type-var]

    # -- using -----------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> Any:
        """Rewrite records as the fitted ones were rewritten.

        For records at prediction time: their number per group is not guaranteed, and categorical types keep their list
        of categories. To publish records other than the fitted ones, use `release`.
        """
        _, table = self._read_later(X)
        return self.partition_.rewrite(table, self.partition_.apply_to(table))

    def _read_later(self, X: Any) -> tuple[Any, Table]:
        """Read records other than the fitted ones, as they were read when fitting."""
        check_is_fitted(self, self._fitted_attribute)
        X = as_table_like(X)
        table = read_table(X, categorical=self.schema_.categorical_features)
        validate_data(self, X, reset=False, skip_check_array=True)
        return X, table

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
        mechanism: str | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        rate: float | None = None,
        k: int | None = None,
        labels: Sequence[Any] | None = None,
        unit: str | int | None = None,
        most_per_person: int | None = None,
        fitted_on: Any = None,
        ledger: PrivacyLedger | None = None,
        regions: Regions | None = None,
    ) -> Release:
        """Return a publishable version of any records, or raise.

        Groups of the fitted partition that fail a criterion with these records are joined with their sibling
        subtree, or with the next run of a curve, until they pass. `suppression_limit` is spent on the smallest failing
        groups first, then on the records that widen their groups most. Values come from the released records alone,
        and categorical types list only categories of released records. Columns that pass through must not be near
        unique in these records.

        Parameters
        ----------
        X : frame or array
        y : array-like, optional
            Predictions for these records, for the representatives ``"model"`` and ``"member"``. None: both take the
            member nearest the group's median.
        target : array-like of shape (n,), optional
            The target for criteria on it, if `y` holds something else. None: `y`.
        earlier : list of Release or Publication, optional
            Releases whose readers may also get this one. A `PrivacyWarning` counts the people whom two releases
            together single out: their two groups share fewer than k people, or fewer than k were added or removed
            with them. Another one counts those whom only all releases together single out. The release itself does
            not change.
        persons : name or position of a column, optional
            The person of each record, each person once. People are then recognized in earlier releases by keyed
            digests. None: the smaller of two counts is taken for people in both releases, which is right if batches
            only grow or only shrink.
        shuffle : bool, optional
            True: random order, not reproducible, with a new index; use it to publish. False: the order of X, to compare
            with X row by row. None: as False, with a warning, since its place can reveal whose record it is.
        keep_index : bool, default=False
            Whether a pandas frame keeps its index. False: the rows are numbered, since an index of account numbers or
            dates identifies people; join other columns by position (``.to_numpy()``).
        mechanism : {"counts", "sample"}, optional
            Promise differential privacy for these records instead of k-anonymity. ``"counts"`` writes a noisy number of
            records of every cell and label; ``"sample"`` samples records and drops rare combinations. Both need a
            partition that was fitted on other people; `earlier`, `persons`, `shuffle` and `keep_index` do not apply.
        epsilon : float, optional
            The promise for one person, with a mechanism.
        delta, rate, k
            Of ``"sample"``: keep each record with probability `rate` and drop combinations of fewer than `k` sampled
            records. Give `k`, or a `delta` for which the smallest k is found.
        labels : list, optional
            With a mechanism and `y`: all labels, listed without looking at the records. ``release.target`` has the
            released ones.
        unit : name or position of a column, optional
            With a mechanism: the person of each record, if a person has several; the column is not released.
        most_per_person : int, optional
            Records of a person that count, with `unit`. The noise grows with it.
        fitted_on : "others" or Fingerprints, optional
            Your statement that the partition was fitted on other people, or the fingerprints of the fitted records.
        ledger : PrivacyLedger, optional
            Where the release is entered; needed from the second release on.
        regions : Regions, optional
            With a mechanism: ``regions_`` of the `AnonymizedClassifier` whose ``anonymizer_`` this is. Each record gets
            values drawn from what several of the fitted people of its cell share, not those of its representative:
            better for models that meet raw records.

        Returns
        -------
        Release
            Keep its `publication` for the next release; it holds no records. With a mechanism, `privacy` is its
            promise.
        """
        settings = PrivateSettings(
            mechanism, epsilon, delta, rate, k, labels, unit, most_per_person, fitted_on, ledger, regions
        )
        if mechanism is not None:
            _check_unused(earlier=earlier, persons=persons, target=target, shuffle=shuffle, keep_index=keep_index)
            check_is_fitted(self, self._fitted_attribute)
            X = as_table_like(X)  # with the unit beside the fitted columns; no other is let through
            table = read_table(X, categorical=self.schema_.categorical_features)
            return release_privately(self.partition_, X, table, y, settings)
        X, table = self._read_later(X)
        settings.check_absent()
        self.schema_.check_passing(table)
        target = y if target is None else target
        self._warn_of_unique_values(table, target)
        if keep_index:
            warn_of_telling_index(X)
        partition = self.partition_
        counters = self._counters(table, self._all_criteria(), target, partition)
        leaf = suppress(partition.apply_to(table), partition.n_groups, counters, self.suppression_limit)
        counters = among_released(counters, leaf)
        check_releasable(leaf, counters, self.k)
        group, n_merged, counters = renumbered(self._partitioner().join(partition, leaf, counters), leaf, counters)
        group, leaf, counters = self._without_costly(table, group, leaf, counters)
        groups = collect(group, int(group.max()) + 1)
        guide = None if y is None else self._make_guide_for_release(y, table.n_records)
        made = self._rewrite_release(table, groups, leaf, counters, guide, n_merged)
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
        """Spend the rest of the suppression limit on the costliest records, and number the groups again."""
        budget = int(self.suppression_limit * table.n_records) - int((group < 0).sum())
        # Presence compares each group with a population that was counted by the present groups.
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
            lambda summary: group_widths(summary, layout, source.columns, paths),
            counters,
            self.k,
            budget,
        )
        is_left = left >= 0
        _, numbers = np.unique(left[is_left], return_inverse=True)
        left[is_left] = numbers
        return left, np.where(is_left, leaf, np.int32(-1)), [counter.among(is_left) for counter in counters]

    def _rewrite_release(
        self,
        table: Table,
        groups: Groups,
        leaf: NDArray[np.int32],
        counters: list[Counter],
        guide: Guide | None,
        n_merged: int,
    ) -> Release:
        schema = self.schema_
        hierarchies, floor = getattr(self, "hierarchies_", {}), publishing_floor(counters)
        source, paths = self._coded(table, schema.quasi_identifiers, schema, hierarchies, floor=floor)
        codes = source.records(Guide(0)).codes
        group_of_leaf = np.full(self.partition_.n_groups, -1, np.int64)
        group_of_leaf[leaf[leaf >= 0]] = groups.group[leaf >= 0]
        cells = cells_for(self.representative, self.partition_, source.columns, paths, group_of_leaf)
        found = describe_groups(
            self.representative, source.columns, codes, groups, source.layout, paths,
            guide=guide, random_state=self._generator(), n_threads=self._n_threads(), cells=cells,
            around=surroundings_for(
                self.representative, self.partition_, source.columns, paths, groups.sizes, group_of_leaf
            ),
        )  # fmt: skip
        source.forget_codes()
        del codes, guide  # free their memory: both have a row for every record
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
        measures = with_criteria(measures, counters, groups.group, groups.n_groups)
        return Release(released, n_merged, n_suppressed, measures)

    def _released_quasi_identifiers(self, released: Any) -> list[str]:
        names = self._output_names(self.schema_.quasi_identifiers)
        if not isinstance(released, np.ndarray):
            return names
        every = self._output_names(self.schema_.names)  # arrays have no names: find the columns by their places
        return [f"x{every.index(name)}" for name in names]

    def _output_names(self, names: Sequence[str]) -> list[str]:
        """Return the names under which columns are released."""
        return self.partition_.output_names(names)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the columns of the result."""
        check_is_fitted(self, self._fitted_attribute)
        if input_features is not None and list(input_features) != list(self.schema_.names):
            raise ValueError("input_features is not equal to feature_names_in_")
        return np.array(self._output_names(self.schema_.names), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _check_unused(**given: Any) -> None:
    """Raise ParameterError for settings of `release` that a mechanism has no use for."""
    for name, value in given.items():
        is_absent = value is None or value is False or (isinstance(value, list | tuple) and not value)
        if not is_absent and not (name == "shuffle" and value is True):  # they are shuffled anyway
            raise ParameterError(
                f"{named(name)} with a mechanism: expected it only without one. The released records are drawn from "
                "counts: they belong to nobody and are shuffled. Leave it out."
            )


class GuidedAnonymizer(Anonymizer):
    """An anonymizer whose splits follow predictions or labels, in which records can have weights."""

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, target: Any = None) -> Self:
        """Learn the groups of the records of X.

        Parameters
        ----------
        X : frame or array of shape (n, columns)
            The records.
        y : array-like, optional
            The predictions or labels that guide the splits; see the class.
        sample_weight : array-like of shape (n,), optional
            The weight of each record when a guide is trained and splits are compared. k and all criteria count records
            or persons, never weights.
        target : array-like of shape (n,), optional
            The target for criteria on it, if `y` holds something else, such as predictions. None: `y`.

        Returns
        -------
        self
        """
        self._fit(X, y, sample_weight, target)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, *, target: Any = None) -> Any:
        """Learn the groups of the records of X and return X rewritten, as other anonymizers do.

        The result is for training, not for publishing: see ``release``. Parameters as in `fit`.
        """
        return self._fit_transform(X, y, sample_weight, target)
