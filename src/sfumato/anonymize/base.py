# SPDX-License-Identifier: Apache-2.0
"""What all anonymizers that grow a tree share: validate, bin, grow, rewrite, recount.

A subclass says what guides the splits; everything that protects is here, once.
"""

from __future__ import annotations

import logging
import numbers
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sfumato.anonymize.partition import partition_from_tree
from sfumato.anonymize.release import Counter, Release, make_counter, verify
from sfumato.criteria import Criterion, KAnonymity
from sfumato.errors import GuaranteeError, InputError, ParameterError
from sfumato.frames import Table, read_table
from sfumato.loss import group_ncp
from sfumato.partition.binning import MAX_CODES
from sfumato.partition.grouping import Groups, collect, summarize, widths
from sfumato.partition.grower import Check, Grower
from sfumato.partition.guides import Guide, integer_weights
from sfumato.partition.merging import close_unsafe
from sfumato.partition.records import make_layout
from sfumato.representatives import check_representative, represent
from sfumato.schema import Schema, build_schema
from sfumato.sources import MemorySource

logger = logging.getLogger("sfumato")


@dataclass(frozen=True, eq=False)
class _Fit:
    """What fitting leaves for fit_transform to go on with; never stored on the estimator."""

    table: Table
    counters: list[Counter]
    group: NDArray[np.int32]


class TreeAnonymizer(TransformerMixin, BaseEstimator):
    """Base of the anonymizers that split a table top-down and rewrite each group."""

    # Parameters shared by all subclasses; each lists them in its own signature, as scikit-learn asks.
    k: int
    quasi_identifiers: Any
    identifiers: Any
    keep: Any
    criteria: Any
    categorical_features: Any
    limits: Any
    split_on: str
    representative: str
    suppression_limit: float
    max_bins: int
    random_state: Any
    n_jobs: int | None

    def _make_guide(self, X: Any, y: Any, schema: Schema, n_records: int, sample_weight: Any) -> Guide:
        raise NotImplementedError

    # -- fitting ---------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the groups of the records of X.

        Parameters
        ----------
        X : frame or array of shape (n, columns)
            The records.
        y : array-like, optional
            What guides the splits; see the class.
        sample_weight : array-like of shape (n,), optional
            Weights of the records for the guide; k always counts records or persons, never weights.

        Returns
        -------
        self
        """
        self._fit(X, y, sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Learn the groups of the records of X and return X rewritten; all rows are kept.

        The result is recounted before it is returned.

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
        fitted = self._fit(X, y, sample_weight)
        released = self.partition_.rewrite(fitted.table, fitted.group)
        verify(released, self._released_quasi_identifiers(released), fitted.counters, None)
        return released

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> _Fit:
        self._check_parameters()
        X = _as_table_like(X)
        validate_data(self, X, skip_check_array=True)
        criteria = self._all_criteria()
        table, schema = self._read(X, criteria)
        counters = self._counters(table, criteria)
        self._check_feasible(counters, table.n_records)
        weight = checked_weight(sample_weight, table.n_records)
        guide = self._make_guide(X, y, schema, table.n_records, weight)
        source = MemorySource(
            table,
            self._split_columns(schema),
            limits=schema.limits,
            max_bins=self.max_bins,
            n_threads=self._n_threads(),
        )
        whole = None if weight is None else integer_weights(weight, guide.value_bits)
        records = source.records(guide, whole)
        grower = Grower(
            records,
            source.layout,
            guide,
            min_records=max(c.k for c in criteria if isinstance(c, KAnonymity)),
            checks=[_check_of(counter) for counter in counters if counter.value_of_row is not None],
            fall_back=self._falls_back(),
            n_threads=self._n_threads(),
        )
        tree, group = grower.grow()
        logger.info("%d groups of %d records", tree.n_groups, table.n_records)
        groups = collect(group, tree.n_groups)
        n_rewritten = len(schema.quasi_identifiers)
        columns = source.columns[:n_rewritten]
        layout = make_layout([c.bins for c in columns])
        summary = summarize(records.codes, groups, layout, n_threads=self._n_threads())
        values = represent(
            self.representative, columns, records.codes, groups, layout,
            guide=guide, random_state=self._generator(), summary=summary, n_threads=self._n_threads(),
        )  # fmt: skip
        self.schema_ = schema
        self.group_sizes_ = groups.sizes
        self.n_groups_ = groups.n_groups
        self.information_loss_ = group_ncp(widths(summary, layout), groups.sizes)
        self.partition_ = partition_from_tree(
            tree,
            source.columns,
            values,
            groups.sizes,
            dropped=schema.dropped,
            limits=schema.to_dict()["limits"],
            categorical=schema.categorical_features,
            representative=self.representative,
            guarantees=tuple(c.describe() for c in criteria),
        )
        return _Fit(table, counters, group)

    def _check_parameters(self) -> None:
        check_representative(self.representative)
        if self.split_on not in ("quasi_identifiers", "all"):
            raise ParameterError(
                f"split_on={self.split_on!r}: expected 'quasi_identifiers' or 'all'. "
                "The first is the paper's algorithm."
            )
        if not _is_number(self.suppression_limit) or not 0 <= self.suppression_limit <= 1:
            raise ParameterError(
                f"suppression_limit={self.suppression_limit!r}: expected a share of the records from 0 to 1, "
                "such as 0.05."
            )
        if not _is_integer(self.max_bins) or not 2 <= self.max_bins < MAX_CODES - 2:
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
                    "KAnonymity(10, unit='customer'). Import them from sfumato."
                )
            result.append(criterion)
        return result

    def _read(self, X: Any, criteria: list[Criterion]) -> tuple[Table, Schema]:
        table = read_table(X)
        units = {c.column for c in criteria if c.counting == "distinct"}
        if len(units) > 1:
            raise ParameterError(f"criteria name {len(units)} different unit columns: expected one.")
        schema = build_schema(
            table,
            quasi_identifiers=self.quasi_identifiers,
            identifiers=self.identifiers,
            sensitive=list(
                dict.fromkeys(c.column for c in criteria if c.counting == "values" and c.column is not None)
            ),
            unit=next(iter(units), None),
            keep=self.keep,
            categorical_features=self.categorical_features,
            limits=self.limits,
        )
        return table.with_categorical(schema.categorical_features), schema

    def _split_columns(self, schema: Schema) -> list[str]:
        """The quasi-identifiers first, then, when asked for, the other columns that pass through."""
        names = list(schema.quasi_identifiers)
        if self.split_on == "all":
            names += [n for n in schema.with_role("other") if n not in schema.keep]
        return names

    def _counters(self, table: Table, criteria: list[Criterion]) -> list[Counter]:
        return [make_counter(c, None if c.column is None else table.column(c.column)) for c in criteria]

    def _check_feasible(self, counters: list[Counter], n_records: int) -> None:
        """Refuse what the whole table already fails, before any work."""
        everything = np.zeros(n_records, np.int64)
        for counter in counters:
            counts = counter.count(everything, 1)
            if not counter.passes(counts)[0]:
                criterion = counter.criterion
                has = f"{int(counts[0, 0])} {'persons' if criterion.counting == 'distinct' else 'records'}"
                raise ParameterError(
                    f"{_shown(criterion)} with n_samples={n_records} ({has}): expected that {criterion.describe()}, "
                    "which not even the whole table meets. Lower the requirement, or collect more records."
                )

    def _falls_back(self) -> bool:
        """Whether information loss decides where the guide sees no gain."""
        return True

    def _n_threads(self) -> int:
        available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        if self.n_jobs is None:
            return available  # the number of threads never changes the result
        if not _is_integer(self.n_jobs) or self.n_jobs == 0:
            raise ParameterError(
                f"n_jobs={self.n_jobs!r}: expected a positive integer, or -1 or None for all cores. Leave it out."
            )
        return int(self.n_jobs) if self.n_jobs > 0 else max(1, available + 1 + int(self.n_jobs))

    def _generator(self) -> np.random.Generator | None:
        if self.representative != "sample":
            return None
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31))

    # -- using -----------------------------------------------------------------------------------------------

    def transform(self, X: Any) -> Any:
        """Rewrite records the way the fitted ones were.

        For records at prediction time: nothing is promised about how many of them share a group. To publish other
        records than the fitted ones use `release`.
        """
        check_is_fitted(self, "partition_")
        X = _as_table_like(X)
        read_table(X)  # says what is wrong with something that is no table before its columns are compared
        validate_data(self, X, reset=False, skip_check_array=True)
        return self.partition_.transform(X)

    def release(self, X: Any, y: Any = None) -> Release:
        """Return a publishable version of any records, or raise.

        Groups of the fitted partition that fail a criterion with these records are joined with their sibling
        subtree until they pass. With `suppression_limit`, the smallest failing groups are left out first, while the
        limit lasts. Values come from the released records alone.

        Parameters
        ----------
        X : frame or array
        y : array-like, optional
            Predictions for these records, which the representatives ``"model"`` and ``"member"`` look at. Without
            them both take the member nearest the group's median.

        Returns
        -------
        Release
        """
        check_is_fitted(self, "partition_")
        X = _as_table_like(X)
        table = read_table(X, categorical=self.schema_.categorical_features)
        validate_data(self, X, reset=False, skip_check_array=True)
        counters = self._counters(table, self._all_criteria())
        leaf = self._suppress(self.partition_.apply_to(table), counters)
        counters = [counter.among(leaf >= 0) for counter in counters]
        group, n_merged = self._safe_groups(leaf, counters)
        groups = collect(group, int(group.max()) + 1)
        guide = None if y is None else self._make_guide_for_release(y, table.n_records)
        return self._rewrite_release(table, groups, counters, guide, n_merged)

    def _make_guide_for_release(self, y: Any, n_records: int) -> Guide | None:
        return None

    def _safe_groups(self, leaf: NDArray[np.int32], counters: list[Counter]) -> tuple[NDArray[np.int32], int]:
        """Return the group of each record (-1: suppressed) and how many fitted groups were joined with others."""
        tree = self.partition_.tree

        def is_safe(first: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.bool_]:
            # Runs handed in together never overlap, so each leaf belongs to one of them or to none.
            run_of_leaf = np.full(tree.n_groups, -1, np.int64)
            for run, (a, b) in enumerate(zip(first, stop, strict=True)):
                run_of_leaf[a:b] = run
            group = np.where(leaf >= 0, run_of_leaf[leaf], -1)
            safe = np.ones(len(first), np.bool_)
            for counter in counters:
                safe &= counter.passes(counter.count(group, len(first)))
            safe[np.bincount(group[group >= 0], minlength=len(first)) == 0] = True
            return safe

        first_leaf = close_unsafe(tree, is_safe)
        n_left = int((leaf >= 0).sum())
        if first_leaf is None or n_left == 0:
            raise GuaranteeError(
                f"{n_left} records to release: expected that "
                f"{' and '.join(c.criterion.describe() for c in counters)}, which not even all of them together "
                "meet. Release more records at once, or lower the requirement."
            )
        used = np.unique(leaf[leaf >= 0])
        is_joined = np.bincount(first_leaf[used], minlength=tree.n_groups)[first_leaf[used]] > 1
        _, group = np.unique(np.where(leaf >= 0, first_leaf[leaf], -1), return_inverse=True)
        return (group - int((leaf < 0).any())).astype(np.int32), int(is_joined.sum())

    def _suppress(self, leaf: NDArray[np.int32], counters: list[Counter]) -> NDArray[np.int32]:
        """Leave out the smallest failing groups while the suppression limit lasts."""
        budget = int(self.suppression_limit * len(leaf))
        if budget == 0:
            return leaf
        n_leaves = self.partition_.tree.n_groups
        sizes = np.bincount(leaf, minlength=n_leaves)
        failing = np.zeros(n_leaves, np.bool_)
        for counter in counters:
            failing |= ~counter.passes(counter.count(leaf, n_leaves))
        candidates = np.flatnonzero(failing & (sizes > 0))
        candidates = candidates[np.argsort(sizes[candidates], kind="stable")]
        dropped = candidates[np.cumsum(sizes[candidates]) <= budget]
        leaf[np.isin(leaf, dropped)] = -1
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
        codes = source.records(Guide(0)).codes
        summary = summarize(codes, groups, source.layout, n_threads=self._n_threads())
        values = represent(
            self.representative, source.columns, codes, groups, source.layout,
            guide=guide, random_state=self._generator(), summary=summary, n_threads=self._n_threads(),
        )  # fmt: skip
        kept = np.flatnonzero(groups.group >= 0)
        n_suppressed = table.n_records - len(kept)
        rows = kept if n_suppressed else None
        own = self.partition_.with_values(source.columns, values)
        released = own.rewrite(table, np.maximum(groups.group, 0), keep_rows=rows)
        smallest = verify(released, self._released_quasi_identifiers(released), counters, rows)
        measures: dict[str, Any] = {
            "n_records": len(kept),
            "n_groups": groups.n_groups,
            "smallest_group": smallest,
            "information_loss": group_ncp(widths(summary, source.layout), groups.sizes),
        }
        for counter in counters:
            counts = counter.count(groups.group.astype(np.int64), groups.n_groups)
            measures[_shown(counter.criterion)] = counter.criterion.value(counts, counter.reference)
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


def _as_table_like(X: Any) -> Any:
    """Return lists as arrays; frames and arrays as they are."""
    return np.asarray(X) if isinstance(X, list | tuple) else X


def checked_weight(weight: Any, n_records: int) -> NDArray[np.float64] | None:
    """Return one weight per record, or None where none were given; refuse what is no weight."""
    if weight is None:
        return None
    try:
        array = np.asarray(weight, np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "sample_weight has something else than numbers: expected one weight of at least 0 per record. Convert it."
        ) from None
    if array.ndim == 0:
        array = np.full(n_records, float(array))
    if array.shape != (n_records,):
        raise InputError(
            f"sample_weight of shape {array.shape} for {n_records} records: expected one weight per record."
        )
    if not np.isfinite(array).all() or array.min() < 0:
        raise InputError(
            "sample_weight has NaN, infinite or negative weights: expected weights of at least 0. Replace them."
        )
    if array.max() == 0:
        raise InputError(
            "sample_weight is zero for all records: expected a weight above 0 for at least one. Leave the weights out."
        )
    return array


def _is_integer(value: object) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _check_of(counter: Counter) -> Check:
    assert counter.value_of_row is not None
    reference = counter.reference
    criterion = counter.criterion
    return Check(
        counter.value_of_row.astype(np.int32),
        counter.n_values,
        criterion.counting == "distinct",
        lambda counts: criterion.passes(counts, reference),
    )


def _shown(criterion: Criterion) -> str:
    if isinstance(criterion, KAnonymity) and criterion.unit is None:
        return f"k={criterion.k}"
    return repr(criterion)
