# SPDX-License-Identifier: Apache-2.0
"""Measure a Spark DataFrame: the measurement of the same table in memory, from groups that Spark counts."""

from __future__ import annotations

import numbers
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.spark.session import check_finite, check_frame, collected, example_of, kept, plain_column, quoted
from sfumato.errors import InputError, ParameterError
from sfumato.frames import read_table
from sfumato.measurement.criterion_values import presence
from sfumato.measurement.measurement import (
    THRESHOLDS,
    CriterionValue,
    Measurement,
    MissingPolicy,
    Risk,
    Uniqueness,
    risk_of,
)
from sfumato.measurement.measuring import Names, Roles, as_list, check_hierarchies, check_policy, resolve_roles
from sfumato.measurement.ranking import Ranking
from sfumato.measurement.tally import GroupTally, population_size
from sfumato.measurement.uniqueness import estimate_from_expected, expected_inverse
from sfumato.spark.matching import sum_of_equal, sum_of_matches
from sfumato.spark.sensitive import measure_column
from sfumato.spark.unique_sets import rank


def measure(
    frame: Any,
    quasi_identifiers: Names | None = None,
    sensitive: Names | None = None,
    *,
    population: Any = None,
    weights: str | None = None,
    unit: str | None = None,
    missing: MissingPolicy = "value",
    categorical_features: Names | None = None,
    hierarchies: Mapping[str, Any] | None = None,
    ranking: bool = True,
) -> Measurement:
    """Measure how well people hide in a Spark DataFrame.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    quasi_identifiers, sensitive, unit, missing, categorical_features, hierarchies
        As of :func:`sfumato.measure`.
    population : pyspark.sql.DataFrame or int, optional
        The people the table was drawn from: a table with the quasi-identifiers in the same form, or their number.
    weights : str, optional
        The column of survey weights.
    ranking : bool, default=True
        Whether to look for the columns that make records unique. That groups the records by every pair of columns,
        which is most of the work where there are many; without, the ranking is empty, and all columns are left out.

    Returns
    -------
    Measurement
        That of ``sfumato.measure`` for the same table; numbers with a fraction may differ in their last digits, since
        they are added up in another order.

    Notes
    -----
    What reaches the driver: how many groups there are of each size (and of each size in the population), one number
    per set of columns, and the different values of sensitive columns with their counts. A column with more than 65,536
    sensitive values has no value of any criterion, and the reason is said.
    """
    check_frame(frame)
    check_policy(missing)
    table = read_table(example_of(frame), categorical=as_list(categorical_features))
    if weights is not None and not isinstance(weights, str):
        raise ParameterError(
            "weights= is no name of a column: expected one, since a DataFrame has no order of records."
        )
    roles = resolve_roles(table, quasi_identifiers, sensitive, weights, unit)
    check_hierarchies(table, hierarchies, roles)
    names = [name for name in table.names if name not in roles.weight_column]
    for name in names:
        table.column(name, for_counting=True)  # says what is wrong with its type
    people = _checked_population(population, roles)
    n_records = check_finite(frame, names)
    if people is None and population is not None and population < n_records:
        raise ParameterError(
            f"population={population} with {n_records} records: expected at least as many people as records. Give the "
            "number of people that the table was drawn from."
        )
    with ExitStack() as stack:
        lent = _Lent(stack, frame, names, roles)
        return _measured(lent, population, people, missing, hierarchies or {}, table.categorical, n_records, ranking)


class _Lent:
    """The columns that count, as Spark compares them, and the groups of records that agree in the quasi-identifiers.

    Columns are called by their places, so that no name can be in the way.
    """

    def __init__(self, stack: ExitStack, frame: Any, names: Sequence[str], roles: Roles) -> None:
        from pyspark.sql import functions as sql

        self.stack, self.roles = stack, roles
        self.columns = {name: f"c{place}" for place, name in enumerate(names)}
        self.keys = [self.columns[name] for name in roles.quasi_identifiers]
        columns = [plain_column(frame, name).alias(own) for name, own in self.columns.items()]
        columns += [_as_weight(frame, name).alias("survey") for name in roles.weight_column]
        self.plain = stack.enter_context(kept(frame.select(*columns)))
        if roles.weight_column:
            _check_weights(self.plain)
        counted = [sql.count(sql.lit(1)).alias("size")]
        if roles.weight_column:
            counted.append(sql.sum("survey").alias("survey"))
        for name in roles.unit:
            person = sql.col(self.columns[name])
            # What is missing is one person, too, and countDistinct passes over it.
            counted.append((sql.countDistinct(person) + sql.max(person.isNull().cast("int"))).alias("persons"))
        self.groups = stack.enter_context(kept(self.plain.groupBy(*self.keys).agg(*counted)))

    def keys_of(self, people: Any) -> Any:
        """Return the groups of a population, by the same names."""
        from pyspark.sql import functions as sql

        named = zip(self.roles.quasi_identifiers, self.keys, strict=True)
        columns = [plain_column(people, name).alias(own) for name, own in named]
        groups = people.select(*columns).groupBy(*self.keys).agg(sql.count(sql.lit(1)).alias("in population"))
        return self.stack.enter_context(kept(groups))


def _measured(
    lent: _Lent,
    population: Any,
    people: Any,
    missing: MissingPolicy,
    hierarchies: Mapping[str, Any],
    categorical: Sequence[str],
    n_records: int,
    with_ranking: bool,
) -> Measurement:
    roles = lent.roles
    n_with_missing = _n_with_missing(lent.groups, lent.keys, "size")
    is_matching = missing == "wildcard" and n_with_missing > 0
    weighted = _weighted(lent.groups) if roles.weight_column else None
    tally, n_people, persons = _tally(lent, people, missing, is_matching)
    survey = None if weighted is None else np.array([weighted.total])
    if survey is not None and is_matching:  # says why weights are of no use then
        tally = replace(tally, weight=np.ones(len(tally.sizes)))
    size, basis = population_size(n_records, population, n_people, survey)
    uniqueness, risks = tally.uniqueness(size, basis), tally.risks_in_population()
    if weighted is not None and not is_matching:
        uniqueness = weighted.added_to(uniqueness, n_records, missing)
        risks = weighted.risks(n_records, missing) if people is None else risks
    n_groups = int(tally.n_groups.sum())
    k = CriterionValue("k-anonymity", None, int(tally.matched.min()), "records of the smallest group", missing)
    criteria = [k]
    for name in roles.sensitive:
        criteria += measure_column(
            lent.plain, lent.keys, name, lent.columns[name], n_groups=n_groups, is_category=name in categorical,
            is_matching=is_matching, hierarchy=hierarchies.get(name), missing=missing,
        )  # fmt: skip
    nothing = Ranking((), (), (), (), "value", tuple(lent.columns))
    return Measurement(
        n_records=n_records,
        quasi_identifiers=roles.quasi_identifiers,
        sensitive=roles.sensitive,
        missing=missing,
        n_with_missing=n_with_missing,
        groups=tally.described(None if is_matching else persons),
        prosecutor=tally.prosecutor(),
        **risks,
        uniqueness=uniqueness,
        ranking=rank(lent.plain, lent.columns, roles.quasi_identifiers, n_records) if with_ranking else nothing,
        criteria=(*criteria, presence(tally.matched, tally.in_population, missing)),
    )


# -- groups ------------------------------------------------------------------------------------------------------


def _n_with_missing(groups: Any, keys: Sequence[str], counted: str) -> int:
    from pyspark.sql import functions as sql

    lacks = sql.lit(False)
    for name in keys:
        lacks |= sql.col(name).isNull()
    found = collected(groups.where(lacks).agg(sql.coalesce(sql.sum(counted), sql.lit(0)).alias("n")))
    return int(found["n"][0].as_py())


def _tally(lent: _Lent, people: Any, missing: str, is_matching: bool) -> tuple[GroupTally, int | None, int | None]:
    """Count the groups of each kind; return them, the members of the population, and the fewest persons of a group."""
    from pyspark.sql import functions as sql

    groups, keys = lent.groups, lent.keys
    kinds = ["size"]
    if is_matching:
        sizes = groups.select(*keys, sql.col("size").alias("matched"))
        groups = sum_of_matches(groups, sizes, keys, "matched")
        kinds.append("matched")
    n_people = None
    if people is not None:
        theirs = lent.keys_of(people)
        n_people = int(collected(theirs.agg(sql.sum("in population").alias("n")))["n"][0].as_py() or 0)
        is_wild = is_matching or (missing == "wildcard" and _n_with_missing(theirs, keys, "in population") > 0)
        groups = (sum_of_matches if is_wild else sum_of_equal)(groups, theirs, keys, "in population")
        kinds.append("in population")
    fewest = [sql.min("persons").alias("persons")] if lent.roles.unit else []
    found = collected(groups.groupBy(*kinds).agg(sql.count(sql.lit(1)).alias("groups"), *fewest))

    def column(name: str) -> NDArray[np.int64]:
        return np.asarray(found[name].to_numpy(), np.int64)

    tally = GroupTally(
        sizes=column("size"),
        matched=column("matched" if is_matching else "size"),
        n_groups=column("groups"),
        in_population=None if people is None else column("in population"),
        weight=None,
        is_matching=is_matching,
        missing=missing,
    )
    return tally, n_people, int(column("persons").min()) if lent.roles.unit else None


def _checked_population(population: Any, roles: Roles) -> Any:
    """Return a population that is a table; refuse what is none and no number."""
    if population is None or (isinstance(population, numbers.Integral) and population is not True):
        return None
    if not hasattr(population, "mapInArrow"):
        raise InputError(
            f"the population is a {type(population).__name__}: expected a Spark DataFrame, or how many people there "
            "are. Make a DataFrame of it, with the same session."
        )
    check_frame(population)
    people = read_table(example_of(population))
    people.resolve(roles.quasi_identifiers, "quasi_identifiers", where="in the population")
    check_finite(population, roles.quasi_identifiers)
    return population


# -- weights -----------------------------------------------------------------------------------------------------


def _as_weight(frame: Any, name: str) -> Any:
    from pyspark.sql import functions as sql

    is_number = frame.schema[name].dataType.typeName() in (
        "byte", "short", "integer", "long", "float", "double", "decimal",
    )  # fmt: skip
    return sql.col(quoted(name)).cast("double") if is_number else sql.lit(None).cast("double")


def _check_weights(plain: Any) -> None:
    from pyspark.sql import functions as sql

    # NaN is above everything for Spark.
    is_fine = sql.coalesce((sql.col("survey") > 0) & (sql.col("survey") < float("inf")), sql.lit(False))
    row = collected(plain.agg(sql.count(sql.lit(1)).alias("n"), sql.sum((~is_fine).cast("int")).alias("wrong")))
    n_records, n_wrong = (int(row[name][0].as_py()) for name in ("n", "wrong"))
    if n_wrong:
        raise InputError(
            f"weights has {n_wrong} of {n_records} values that are no positive number: expected how many people each "
            "record stands for. Drop such records, or measure without weights."
        )


@dataclass(frozen=True, eq=False)
class _Weighted:
    """What survey weights say of all groups together: sums, which workers made of their groups.

    Attributes
    ----------
    total : float
        Of the weights.
    largest, found : float
        The largest risk, and how many records are expected to be found.
    above : ndarray of int64
        Records whose risk is above each threshold.
    expected : float
        How many records are expected to be alone in the population.
    n_alone : int
        Records that are alone in the table.
    """

    total: float
    largest: float
    found: float
    above: NDArray[np.int64]
    expected: float
    n_alone: int

    def risks(self, n_records: int, missing: str) -> dict[str, Risk]:
        """Return the risks of the journalist and the marketer."""
        one, average = np.ones(1, np.int64), np.array([self.found / n_records])
        journalist, marketer = (
            risk_of(attacker, average, one, basis="weights", missing=missing) for attacker in ("journalist", "marketer")
        )
        above = {threshold: float(n / n_records) for threshold, n in zip(THRESHOLDS, self.above, strict=True)}
        return {"journalist": replace(journalist, maximum=self.largest, above=above), "marketer": marketer}

    def added_to(self, uniqueness: Uniqueness, n_records: int, missing: str) -> Uniqueness:
        """Return what is known of uniqueness with the estimate from the weights."""
        own = estimate_from_expected(self.expected, n_records, self.n_alone, missing=missing, reason=None)
        return replace(uniqueness, estimates=(*uniqueness.estimates, own))


def _weighted(groups: Any) -> _Weighted:
    """Let workers work out the risks of their groups, and add them up."""
    from pyspark.sql import functions as sql

    names = ["total", "largest", "found", "expected", "alone", *(f"above {place}" for place in range(len(THRESHOLDS)))]

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            if not batch.num_rows:
                continue
            sizes, survey = (batch.column(name).to_numpy() for name in ("size", "survey"))
            risk = expected_inverse(sizes, survey)
            is_alone = sizes == 1
            numbers = [
                survey.sum(), risk.max(), (risk * sizes).sum(), np.minimum(1.0, 1.0 / survey[is_alone]).sum(),
                is_alone.sum(), *(sizes[risk > threshold].sum() for threshold in THRESHOLDS),
            ]  # fmt: skip
            yield pa.RecordBatch.from_arrays([pa.array([float(number)]) for number in numbers], names=names)

    schema = ", ".join(f"`{name}` double" for name in names)
    sums = [(sql.max if name == "largest" else sql.sum)(name).alias(name) for name in names]
    row = collected(groups.select("size", "survey").mapInArrow(work, schema).agg(*sums)).to_pylist()[0]
    above = np.array([row[f"above {place}"] for place in range(len(THRESHOLDS))]).astype(np.int64)
    return _Weighted(row["total"], row["largest"], row["found"], above, row["expected"], int(row["alone"]))
