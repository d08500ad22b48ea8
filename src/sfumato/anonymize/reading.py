# SPDX-License-Identifier: Apache-2.0
"""The parameters that all anonymizers of groups have, and reading records and criteria by them.

Everything that is refused before the first group is formed is refused here.
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
from sfumato.anonymize.target import names_target, target_column
from sfumato.arguments import is_integer, is_number, thread_count
from sfumato.criteria import Criterion, KAnonymity
from sfumato.criteria.criterion_counts import Counter, make_counter, shown
from sfumato.errors import ParameterError, named
from sfumato.frames import Table, read_table
from sfumato.hierarchies import Hierarchy
from sfumato.partition.binning import MAX_CODES
from sfumato.representatives import REPRESENTATIVES, check_representative
from sfumato.schema import Schema, build_schema, warn_of_averaged_codes, warn_of_unique_values


class GroupParameters(BaseEstimator):
    """Base of the anonymizers that put records into groups: their parameters, and what is read by them."""

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

    schema_: Schema

    _counts_population = False  # whether a release joins groups until a criterion on presence is met

    def _check_parameters(self) -> None:
        check_representative(self.representative)
        if not is_number(self.suppression_limit) or not 0 <= self.suppression_limit <= 1:
            raise ParameterError(
                f"{named('suppression_limit', self.suppression_limit)}: expected a share of the records from 0 to 1, "
                "such as 0.05."
            )
        if not is_integer(self.max_bins) or not 2 <= self.max_bins < MAX_CODES - 2:
            raise ParameterError(
                f"{named('max_bins', self.max_bins)}: expected an integer from 2 to {MAX_CODES - 3}. 255 is fast and "
                "fine."
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
        """Warn of sensitive columns, and of the target where it is a column of the table, that are near unique."""
        schema = self.schema_
        own = getattr(target, "name", None)
        passed = [name for name in schema.released if name == own and name not in schema.quasi_identifiers]
        warn_of_unique_values(table, dict.fromkeys([*schema.sensitive, *passed]))

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
                    f"{named('sensitive', name)} names no column of the table, nor the target as it was passed: "
                    "expected one of them. Pass the target as a series of that name, as when fitting, or call it 'y'."
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
