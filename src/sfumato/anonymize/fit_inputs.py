# SPDX-License-Identifier: Apache-2.0
"""The parameters that all anonymizers share; read records, criteria and the target by them.

All checks before the first group is formed are here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state

from sfumato.anonymize.hierarchy_columns import checked_hierarchies, numbers_with_hierarchy
from sfumato.anonymize.recoding import Recoding
from sfumato.arguments import Names, Seed, check_integer, check_share, thread_count
from sfumato.columns import Column
from sfumato.criteria import TARGET, Criterion, KAnonymity
from sfumato.criteria.criterion_counts import Counter, make_counter, shown
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import Table, read_table
from sfumato.hierarchies import Hierarchy
from sfumato.partition.binning import MAX_CODES
from sfumato.representatives import REPRESENTATIVES, check_representative
from sfumato.schema import Schema, build_schema, warn_of_averaged_codes, warn_of_unique_values


class GroupParameters(BaseEstimator):
    """Base of the anonymizers: their parameters, and how records are read by them."""

    # Parameters shared by all subclasses; each lists them in its own signature, as scikit-learn asks.
    k: int
    quasi_identifiers: Names | None
    identifiers: Names | None
    keep: Names | None
    criteria: Any
    categorical_features: Names | None
    limits: Any
    hierarchies: Any = None
    representative: str
    suppression_limit: float
    max_bins: int
    random_state: Seed
    n_jobs: int | None

    schema_: Schema

    _counts_population = False  # whether a release joins groups until a criterion on presence is met

    def _check_parameters(self) -> None:
        check_representative(self.representative)
        check_share("suppression_limit", self.suppression_limit, hint="0.05 leaves out one record in twenty.")
        check_integer("max_bins", self.max_bins, 2, MAX_CODES - 3, hint="255 suits most columns.")

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
            coarsened=tuple(self.hierarchies) if isinstance(self.hierarchies, Mapping) else (),
            is_whole=is_whole,
        )
        for criterion in criteria:
            if criterion.counting == "presence":
                schema.require(self._population_of(criterion, schema.categorical_features))
        if REPRESENTATIVES[self.representative].facts.computes_numbers:
            numbers = [name for name in schema.quasi_identifiers if name not in schema.categorical_features]
            warn_of_averaged_codes(table, numbers, self.representative)
        return table.with_categorical(schema.categorical_features), schema

    def _warn_of_unique_values(self, table: Table, target: Any) -> None:
        """Warn of near-unique sensitive columns, and of a near-unique target among the columns."""
        schema = self.schema_
        own = getattr(target, "name", None)
        passed = [name for name in schema.released if name == own and name not in schema.quasi_identifiers]
        warn_of_unique_values(table, dict.fromkeys([*schema.sensitive, *passed]))

    def _categorical_features(self, table: Table) -> Any:
        """Return the numeric categories: those named, and numbers with a hierarchy."""
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
        """Return a counter for each criterion; a population is counted by the groups of a partition, if given."""
        read_target = target_column(criteria, table, target)
        counters = []
        for criterion in criteria:
            if names_target(criterion, table, target):
                counters.append(make_counter(criterion, read_target))
                continue
            name = criterion.column
            if name is not None and name not in table.names:
                raise ParameterError(
                    f"{named('sensitive', name)} names no column of the table, nor the target as it was passed: "
                    "expected one of them. Pass the target as a series of that name, as when fitting, or call it 'y'."
                )
            counter = make_counter(criterion, None if name is None else table.column(name, for_counting=True))
            if criterion.counting == "presence":
                population = self._population_of(criterion, table.categorical)
                one_group = np.zeros(population.n_records, np.int32)
                groups = one_group if partition is None else partition.apply_to(population)
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
                f"{shown(criterion)} without a population: expected the table of all people the records were taken "
                "from. Pass population=."
            )
        return read_table(criterion.population, categorical=categorical)

    def _check_feasible(self, counters: list[Counter], n_records: int) -> None:
        """Raise ParameterError if not even the whole table meets a criterion."""
        for counter in counters:
            counts = counter.count_all(n_records)
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
        if not REPRESENTATIVES[self.representative].facts.needs_seed:
            return None
        return np.random.default_rng(check_random_state(self.random_state).randint(2**31))


# -- the target, which is not a column of the table but is released with it ---------------------------------------


def names_target(criterion: Criterion, table: Table, target: Any) -> bool:
    """Return True if a criterion is on the target, named ``"y"`` or as itself, and no column has that name."""
    name = criterion.column
    if criterion.counting != "values" or name is None or name in table.names:
        return False
    return name in (TARGET, getattr(target, "name", None))


def target_column(criteria: Iterable[Criterion], table: Table, target: Any) -> Column | None:
    """Return the target as a column, or None when no criterion is on it.

    Raises
    ------
    ParameterError
        If a criterion is on the target and none was passed.
    InputError
        If the target is not one value per record.
    """
    names = [c.column for c in criteria if names_target(c, table, target)]
    if not names:
        return None
    if target is None:
        raise ParameterError(
            f"sensitive={names[0]!r} names the target, and none was passed: expected the target of the records. Pass "
            "it as y or target, or name a column of X."
        )
    return read_target(target, table.n_records)


def read_target(target: Any, n_records: int) -> Column:
    """Return a target, which may be a series, a frame of one column or an array, as a column.

    Raises InputError unless it has one value for each of the records.
    """
    if len(target) != n_records:
        raise InputError(
            f"the target has {len(target)} values for {n_records} records: expected one each. Pass the target of "
            "the same records."
        )
    if hasattr(target, "to_frame") and not hasattr(target, "columns"):  # a series, which keeps its type this way
        return _only_column(target.to_frame(name="y"))
    if getattr(target, "column_names", None) or hasattr(target, "columns"):
        return _only_column(target)
    if hasattr(target, "to_pylist"):
        import pyarrow as pa

        return _only_column(pa.table({"y": target}))
    array = np.asarray(target)
    return _only_column(array[:, None] if array.ndim == 1 else array)


def _only_column(frame: Any) -> Column:
    table = read_table(frame)
    if len(table.names) != 1:
        raise InputError(
            f"the target has {len(table.names)} columns and a criterion protects it: expected one value per record, "
            "not probabilities. Pass the labels as target, and what guides as y."
        )
    return table.column(table.names[0])
