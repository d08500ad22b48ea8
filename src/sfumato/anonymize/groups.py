# SPDX-License-Identifier: Apache-2.0
"""What every anonymizer that rewrites groups of records shares, however it forms them: validate, rewrite, recount.

A subclass forms the groups (``_fit``) and says how groups that fail are joined (``_safe_groups``); everything that
protects is here, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.anonymize.hierarchy_columns import checked_hierarchies, in_tree_order, numbers_with_hierarchy
from sfumato.anonymize.publications import compare, earlier_publications, make_publication
from sfumato.anonymize.recoding import Recoding
from sfumato.anonymize.release import Counter, Release, make_counter, verify
from sfumato.anonymize.target import names_target, target_column
from sfumato.arguments import as_table_like, is_integer, is_number, thread_count
from sfumato.criteria import Criterion, KAnonymity
from sfumato.errors import GuaranteeError, ParameterError
from sfumato.frames import Table, read_table
from sfumato.frames.row_labels import warn_of_telling_index
from sfumato.hierarchies import CodePaths, Hierarchy
from sfumato.loss import group_ncp
from sfumato.partition.binning import MAX_CODES
from sfumato.partition.grouping import Groups, Summary, collect, summarize, widths
from sfumato.partition.guides import Guide
from sfumato.partition.records import Layout, make_layout
from sfumato.representatives import GroupValues, check_representative, represent
from sfumato.schema import Schema, build_schema
from sfumato.sources import CodedColumn, MemorySource


@dataclass(frozen=True, eq=False)
class Fit:
    """What fitting leaves for fit_transform to go on with; never stored on the estimator."""

    table: Table
    counters: list[Counter]
    group: NDArray[np.int32]


class GroupAnonymizer(TransformerMixin, BaseEstimator):
    """Base of the anonymizers that put records into groups and rewrite each group."""

    # Parameters shared by all subclasses; each lists them in its own signature, as scikit-learn asks.
    k: int
    quasi_identifiers: Any
    identifiers: Any
    keep: Any
    criteria: Any
    categorical_features: Any
    limits: Any
    hierarchies: Any = None
    representative: str
    suppression_limit: float
    max_bins: int
    random_state: Any
    n_jobs: int | None
    partition_: Recoding
    hierarchies_: dict[str, Hierarchy]

    _counts_population = False  # whether `_safe_groups` joins groups until a criterion on presence is met

    def _fit(self, X: Any, y: Any, sample_weight: Any, target: Any = None) -> Fit:
        """Form the groups and set the fitted attributes."""
        raise NotImplementedError

    def _safe_groups(self, leaf: NDArray[np.int32], counters: list[Counter]) -> tuple[NDArray[np.int32], int]:
        """Return the group of each record (-1: suppressed) and how many fitted groups were joined with others."""
        raise NotImplementedError

    # -- fitting ---------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, target: Any = None) -> Self:
        """Learn the groups of the records of X.

        Parameters
        ----------
        X : frame or array of shape (n, columns)
            The records.
        y : array-like, optional
            What guides the splits; see the class.
        sample_weight : array-like of shape (n,), optional
            Weights of the records for the guide; k always counts records or persons, never weights.
        target : array-like of shape (n,), optional
            What a criterion on the target counts, where `y` is something else, such as predictions; else `y`.

        Returns
        -------
        self
        """
        self._fit(X, y, sample_weight, target)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None, target: Any = None) -> Any:
        """Learn the groups of the records of X and return X rewritten; all rows are kept.

        The result is recounted before it is returned. Categorical types keep their list of categories, which models
        need and which names also those that no record has any more: publish what `release` returns. Parameters as
        in `fit`.

        Raises
        ------
        GuaranteeError
            When a criterion does not hold on the result.
        """
        self._check_parameters()
        if self.suppression_limit > 0:
            raise ParameterError(
                f"suppression_limit={self.suppression_limit!r} with fit_transform, which keeps all rows: expected 0. "
                "Use fit(X, y).release(X), which may leave records out."
            )
        for criterion in self._all_criteria():
            if criterion.counting == "presence":
                raise ParameterError(
                    f"{shown(criterion)} with fit_transform, which joins no groups: expected it with release. Use "
                    "fit(X, y).release(X)."
                )
        fitted = self._fit(X, y, sample_weight, target)
        released = self.partition_.rewrite(fitted.table, fitted.group)
        try:
            names = self._released_quasi_identifiers(released)
            verify(released, names, fitted.counters, None, n_threads=self._n_threads())
        except GuaranteeError:
            del self.partition_  # nothing that failed stays usable
            raise
        warn_of_telling_index(X)
        return released

    def _describe_groups(
        self,
        columns: Sequence[CodedColumn],
        codes: NDArray[Any],
        groups: Groups,
        guide: Guide | None,
        paths: Mapping[str, CodePaths] | None = None,
    ) -> dict[str, list[GroupValues]]:
        """Set what is known of the groups, and return the values each group's records get."""
        layout = make_layout([c.bins for c in columns])
        summary = summarize(codes, groups, layout, n_threads=self._n_threads())
        self.group_sizes_ = groups.sizes
        self.n_groups_ = groups.n_groups
        self.information_loss_ = group_ncp(_widths(summary, layout, columns, paths or {}), groups.sizes)
        return represent(
            self.representative, columns, codes, groups, layout,
            guide=guide, random_state=self._generator(), summary=summary, n_threads=self._n_threads(), paths=paths,
        )  # fmt: skip

    def _check_parameters(self) -> None:
        check_representative(self.representative)
        if not is_number(self.suppression_limit) or not 0 <= self.suppression_limit <= 1:
            raise ParameterError(
                f"suppression_limit={self.suppression_limit!r}: expected a share of the records from 0 to 1, "
                "such as 0.05."
            )
        if not is_integer(self.max_bins) or not 2 <= self.max_bins < MAX_CODES - 2:
            raise ParameterError(
                f"max_bins={self.max_bins!r}: expected an integer from 2 to {MAX_CODES - 3}. 255 is fast and fine."
            )

    def _all_criteria(self) -> list[Criterion]:
        given: Any = () if self.criteria is None else self.criteria
        if isinstance(given, Criterion) or not isinstance(given, Iterable):
            given = [given]
        result: list[Criterion] = [KAnonymity(self.k)]
        for criterion in given:
            if not isinstance(criterion, Criterion):
                raise ParameterError(
                    f"criteria has a {type(criterion).__name__}: expected criteria such as "
                    "KAnonymity(10, unit='customer') or LDiversity(2, 'diagnosis'). Import them from sfumato."
                )
            result.append(criterion)
        return result

    def _read(
        self, X: Any, criteria: list[Criterion], target: Any = None, *, is_whole: bool = True
    ) -> tuple[Table, Schema]:
        table = read_table(X)
        sensitive = [c.column for c in criteria if c.counting == "values" and not names_target(c, table, target)]
        units = {c.column for c in criteria if c.counting == "distinct"}
        if len(units) > 1:
            raise ParameterError(f"criteria name {len(units)} different unit columns: expected one.")
        schema = build_schema(
            table,
            quasi_identifiers=self.quasi_identifiers,
            identifiers=self.identifiers,
            sensitive=list(dict.fromkeys(name for name in sensitive if name is not None)),
            unit=next(iter(units), None),
            keep=self.keep,
            categorical_features=self._categorical_features(table),
            limits=self.limits,
            is_whole=is_whole,
        )
        for criterion in criteria:
            if criterion.counting == "presence":
                schema.require(self._population_of(criterion, schema.categorical_features))
        return table.with_categorical(schema.categorical_features), schema

    def _categorical_features(self, table: Table) -> Any:
        """Return the columns of numbers that are codes: those named, and those with a hierarchy."""
        numbers = numbers_with_hierarchy(self.hierarchies, table)
        if not numbers:
            return self.categorical_features
        named = () if self.categorical_features is None else self.categorical_features
        return list(dict.fromkeys([*table.resolve(named, "categorical_features"), *numbers]))

    def _checked_hierarchies(self, table: Table, schema: Schema) -> dict[str, Hierarchy]:
        found = checked_hierarchies(self.hierarchies, table, schema.quasi_identifiers)
        both = [name for name in found if name in schema.limits]
        if both:
            raise ParameterError(
                f"the column {both[0]!r} has a hierarchy and a limit: expected one of them. Leave the finer levels out "
                "of the hierarchy instead of the limit."
            )
        return found

    def _counters(
        self, table: Table, criteria: list[Criterion], target: Any = None, partition: Recoding | None = None
    ) -> list[Counter]:
        """Return what counts for each criterion; a population by the groups of a partition, where there is one."""
        read_target = target_column(criteria, table, target)
        counters = []
        for criterion in criteria:
            if names_target(criterion, table, target):
                counters.append(make_counter(criterion, read_target))
                continue
            name = criterion.column
            if name is not None and name not in table.names:
                raise ParameterError(
                    f"sensitive={name!r} names no column of the table, nor the target as it was passed: expected one "
                    "of them. Pass the target as a series of that name, as when fitting, or call it 'y'."
                )
            counter = make_counter(criterion, None if name is None else table.column(name, for_counting=True))
            if criterion.counting == "presence":
                population = self._population_of(criterion, table.categorical)
                everybody = np.zeros(population.n_records, np.int32)
                groups = everybody if partition is None else partition.apply_to(population)
                counter = replace(counter, population=groups)
            counters.append(counter)
        return counters

    def _population_of(self, criterion: Any, categorical: Sequence[str]) -> Table:
        if not self._counts_population:
            raise ParameterError(
                f"{type(self).__name__} with {shown(criterion)}: expected criteria on the records alone, since these "
                "groups have no cells a population could fall into. Use a method that grows a tree, such as "
                "MondrianAnonymizer, and release."
            )
        if criterion.population is None:
            raise ParameterError(
                f"{shown(criterion)} without a population: expected the table of everybody the records were taken "
                "from. Pass population=."
            )
        return read_table(criterion.population, categorical=categorical)

    def _check_feasible(self, counters: list[Counter], n_records: int) -> None:
        """Refuse what the whole table already fails, before any work."""
        everything = np.zeros(n_records, np.int64)
        for counter in counters:
            counts = counter.count(everything, 1)
            if not counter.passes(counts)[0]:
                criterion = counter.criterion
                n_counted = int(counts[0, 0]) if criterion.counting == "distinct" else n_records
                has = f"{n_counted} {'persons' if criterion.counting == 'distinct' else 'records'}"
                remedy = getattr(criterion, "remedy", None)
                advice = "" if remedy is None else f"{remedy(counter.seen(counts)[0])} "
                raise ParameterError(
                    f"{shown(criterion)} with n_samples={n_records} ({has}): expected that {criterion.describe()}, "
                    f"which not even the whole table meets. {advice}Lower the requirement, or collect more records."
                )

    def _n_threads(self) -> int:
        return thread_count(self.n_jobs)

    def _generator(self) -> np.random.Generator | None:
        if self.representative != "sample":
            return None
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31))

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
        self, X: Any, y: Any = None, target: Any = None, *, earlier: Any = (), persons: str | int | None = None
    ) -> Release:
        """Return a publishable version of any records, or raise.

        Groups of the fitted partition that fail a criterion with these records are joined with their sibling
        subtree, or with the next run of a curve, until they pass. With `suppression_limit`, the smallest failing
        groups are left out first, while the limit lasts and what is left can still be released. Values come from the
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
        warn_of_telling_index(X)
        target = y if target is None else target
        counters = self._counters(table, self._all_criteria(), target, self.partition_)
        leaf = self._suppress(self.partition_.apply_to(table), counters)
        counters = [counter.among(leaf >= 0) for counter in counters]
        self._check_releasable(leaf, counters)
        group, n_merged = self._safe_groups(leaf, counters)
        counters = self._regrouped(leaf, group, counters)
        groups = collect(group, int(group.max()) + 1)
        guide = None if y is None else self._make_guide_for_release(y, table.n_records)
        made = self._rewrite_release(table, groups, counters, guide, n_merged)
        return self._remembered(made, table, leaf, group, earlier, persons)

    def _remembered(
        self,
        release: Release,
        table: Table,
        leaf: NDArray[np.int32] | None,
        group: NDArray[np.int32],
        earlier: Any,
        persons: str | int | None,
    ) -> Release:
        """Return the release with what to remember of it, and with what it shows together with earlier ones."""
        before = earlier_publications(earlier)
        who = None if persons is None else table.column(*table.resolve(persons, "persons"), for_counting=True)
        fingerprint, n_leaves = ("", 0) if leaf is None else (self.partition_.fingerprint, self.partition_.n_groups)
        publication = make_publication(self.k, fingerprint, leaf, n_leaves, group, who, before)
        together = compare(publication, before)
        measures = release.measures
        if before:
            measures = measures | {"together": [part.to_dict() for part in together]}
        return replace(release, measures=measures, publication=publication)

    def _regrouped(self, leaf: NDArray[np.int32], group: NDArray[np.int32], counters: list[Counter]) -> list[Counter]:
        """Return the counters that count a population by the joined groups."""
        return counters

    def _make_guide_for_release(self, y: Any, n_records: int) -> Guide | None:
        return None

    def _check_releasable(self, leaf: NDArray[np.int32], counters: list[Counter]) -> None:
        """Refuse records that do not meet the criteria even as one group."""
        n_left = int((leaf >= 0).sum())
        if not _hold_together(leaf, counters):
            has = f"fewer than {self.k}" if 0 < n_left < self.k else f"{n_left}"
            raise GuaranteeError(
                f"{has} records to release: expected that "
                f"{' and '.join(c.criterion.describe() for c in counters)}, which not even all of them together "
                "meet. Release more records at once, or lower the requirement."
            )

    def _suppress(self, leaf: NDArray[np.int32], counters: list[Counter]) -> NDArray[np.int32]:
        """Leave out the smallest failing groups while the limit lasts and what is left can still be released."""
        budget = int(self.suppression_limit * len(leaf))
        if budget == 0:
            return leaf
        n_leaves = self.partition_.n_groups
        sizes = np.bincount(leaf, minlength=n_leaves)
        failing = np.zeros(n_leaves, np.bool_)
        for counter in counters:
            failing |= ~counter.are_safe(leaf, n_leaves)
        candidates = np.flatnonzero(failing & (sizes > 0))
        candidates = candidates[np.argsort(sizes[candidates], kind="stable")]
        n_dropped = int((np.cumsum(sizes[candidates]) <= budget).sum())
        # Where too little is left, the largest groups come back first: few of them are enough.
        for n in range(n_dropped, 0, -1):
            left = np.where(np.isin(leaf, candidates[:n]), np.int32(-1), leaf)
            if _hold_together(left, [counter.among(left >= 0) for counter in counters]):
                return left
            if n == n_dropped and not _hold_together(leaf, counters):
                break  # not even all records can be released
        return leaf

    def _rewrite_release(
        self, table: Table, groups: Groups, counters: list[Counter], guide: Guide | None, n_merged: int
    ) -> Release:
        schema = self.schema_
        source = MemorySource(
            table,
            schema.quasi_identifiers,
            limits=schema.limits,
            max_bins=self.max_bins,
            n_threads=self._n_threads(),
        )
        source.columns, paths = in_tree_order(source.columns, getattr(self, "hierarchies_", {}))
        codes = source.records(Guide(0)).codes
        summary = summarize(codes, groups, source.layout, n_threads=self._n_threads())
        values = represent(
            self.representative, source.columns, codes, groups, source.layout, guide=guide,
            random_state=self._generator(), summary=summary, n_threads=self._n_threads(), paths=paths,
        )  # fmt: skip
        kept = np.flatnonzero(groups.group >= 0)
        n_suppressed = table.n_records - len(kept)
        rows = kept if n_suppressed else None
        own = self.partition_.with_values(source.columns, values)
        released = own.rewrite(table, np.maximum(groups.group, 0), keep_rows=rows, compact_categories=True)
        names = self._released_quasi_identifiers(released)
        smallest = verify(released, names, counters, rows, n_threads=self._n_threads())
        width = _widths(summary, source.layout, source.columns, paths)
        by_column = groups.sizes @ width / groups.sizes.sum()
        measures: dict[str, Any] = {
            "n_records": len(kept),
            "n_groups": groups.n_groups,
            "smallest_group": smallest,
            "information_loss": group_ncp(width, groups.sizes),
            "loss_by_column": dict(zip(schema.quasi_identifiers, by_column.tolist(), strict=True)),
        }
        for counter in counters:
            measures[shown(counter.criterion)] = counter.value(groups.group.astype(np.int64), groups.n_groups)
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


def _hold_together(leaf: NDArray[np.int32], counters: list[Counter]) -> bool:
    """Say whether the records that are not suppressed meet the criteria as one group."""
    together = np.where(leaf >= 0, 0, -1)
    return bool((leaf >= 0).any()) and all(bool(c.passes(c.count(together, 1))[0]) for c in counters)


def shown(criterion: Criterion) -> str:
    """Return how messages and measures name a criterion."""
    if isinstance(criterion, KAnonymity) and criterion.unit is None:
        return f"k={criterion.k}"
    return repr(criterion)
