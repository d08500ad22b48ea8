# SPDX-License-Identifier: Apache-2.0
"""Group counts and unique records of a Spark DataFrame.

The driver gets the number of groups of each size, the values of sensitive columns with their counts, and one number per
set of columns. Workers evaluate criteria and weights on the groups.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.base import Need
from sfumato.backends.group_rows import LARGEST_WORK, CountRows, check_positive
from sfumato.backends.measurable_table import (
    GroupCounts,
    GroupRequest,
    SensitiveCounts,
    WorkOnWeights,
)
from sfumato.backends.spark.matching import matches, sum_of_equal, sum_of_matches
from sfumato.backends.spark.session import (
    check_finite,
    check_frame,
    collected,
    example_of,
    joined,
    kept,
    plain_column,
    quoted,
)
from sfumato.criteria.criterion_counts import MOST_VALUES
from sfumato.errors import InputError, named
from sfumato.frames import read_table
from sfumato.grouping import CODED_BY_SUBTRACTION


class MeasurableFrame:
    """A Spark DataFrame that can be measured.

    Parameters
    ----------
    frame : Spark DataFrame
    categorical : sequence of str or int
        Columns of numbers that are codes.
    """

    cannot: Mapping[Need, str] = {Need.WEIGHTS_BY_POSITION: "A DataFrame has no order of records."}

    def __init__(self, frame: Any, *, categorical: Sequence[str | int] = ()) -> None:
        check_frame(frame)
        self.frame = frame
        self.example = read_table(example_of(frame), categorical=categorical)

    def population(self, given: Any, keys: Sequence[str]) -> MeasurableFrame:
        """Return the DataFrame of a population."""
        if not hasattr(given, "mapInArrow"):
            raise InputError(
                f"{named('population')} is a {type(given).__name__}: expected a Spark DataFrame, or the number of "
                "people. Make a DataFrame of it, with the same session."
            )
        return MeasurableFrame(given)

    @contextmanager
    def counting(self, request: GroupRequest) -> Iterator[SparkCounting]:
        """Yield the counter of this DataFrame; workers cache its columns and groups meanwhile."""
        for name in request.columns:
            self.example.column(name, for_counting=True)  # says what is wrong with its type
        n_records = check_finite(self.frame, request.columns)
        if request.population is not None:
            check_finite(request.population.frame, request.keys)
        with ExitStack() as stack:
            yield SparkCounting(self, request, n_records, stack)


class SparkCounting:
    """Counts the groups of a DataFrame, and the records that columns make unique.

    Columns are called by their places, so that no name can be in the way.
    """

    def __init__(self, measurable: MeasurableFrame, request: GroupRequest, n_records: int, stack: ExitStack) -> None:
        self.n_records = n_records
        self._request, self._stack, self._categorical = request, stack, measurable.example.categorical
        self._columns = {name: f"c{place}" for place, name in enumerate(request.columns)}
        self._keys = [self._columns[name] for name in request.keys]
        frame = measurable.frame
        columns = [plain_column(frame, name).alias(own) for name, own in self._columns.items()]
        if request.weights is not None:
            columns.append(_as_weight(frame, request.weights).alias("survey"))
        self._plain = stack.enter_context(kept(frame.select(*columns)))

    def unique_sets(self) -> SparkUniqueSets:
        """Return all columns, ready to be counted."""
        from pyspark.sql import functions as sql

        return SparkUniqueSets(self._plain.withColumn("weight", sql.lit(1)), self._columns, self._stack)

    def group_counts(self) -> GroupCounts:
        """Count the groups."""
        from pyspark.sql import functions as sql

        request = self._request
        if request.weights is not None:
            self._check_weights()
        grouped = self._grouped()
        n_with_missing = self._n_with_missing(grouped, "size")
        is_matching = request.missing == "wildcard" and n_with_missing > 0
        of_weights = [] if request.weights is None else _worked_on_weights(grouped, request.work_on_weights)
        groups, kinds, n_people = grouped, ["size"], None
        if is_matching:
            sizes = groups.select(*self._keys, sql.col("size").alias("matched"))
            groups = sum_of_matches(groups, sizes, self._keys, "matched")
            kinds.append("matched")
        if request.population is not None:
            theirs = self._grouped_population(request.population.frame)
            n_people = int(collected(theirs.agg(sql.sum("in population").alias("n")))["n"][0].as_py() or 0)
            is_wild = request.missing == "wildcard" and (
                is_matching or self._n_with_missing(theirs, "in population") > 0
            )
            groups = (sum_of_matches if is_wild else sum_of_equal)(groups, theirs, self._keys, "in population")
            kinds.append("in population")
        fewest = [] if request.unit is None else [sql.min("persons").alias("persons")]
        found = collected(groups.groupBy(*kinds).agg(sql.count(sql.lit(1)).alias("groups"), *fewest))
        counted = {name: np.asarray(found[name].to_numpy(), np.int64) for name in found.column_names}
        return GroupCounts(
            sizes=counted["size"],
            matched=counted["matched" if is_matching else "size"],
            n_groups=counted["groups"],
            in_population=counted.get("in population"),
            is_matching=is_matching,
            n_with_missing=n_with_missing,
            n_people=n_people,
            fewest_persons=None if request.unit is None else int(counted["persons"].min()),
            of_weights=of_weights,
            sensitive=self._sensitive(int(counted["groups"].sum()), is_matching),
        )

    # -- groups --------------------------------------------------------------------------------------------------

    def _grouped(self) -> Any:
        from pyspark.sql import functions as sql

        counted = [sql.count(sql.lit(1)).alias("size")]
        if self._request.weights is not None:
            counted.append(sql.sum("survey").alias("survey"))
        if self._request.unit is not None:
            person = sql.col(self._columns[self._request.unit])
            # What is missing is one person, too, and countDistinct passes over it.
            counted.append((sql.countDistinct(person) + sql.max(person.isNull().cast("int"))).alias("persons"))
        return self._stack.enter_context(kept(self._plain.groupBy(*self._keys).agg(*counted)))

    def _grouped_population(self, people: Any) -> Any:
        from pyspark.sql import functions as sql

        named = zip(self._request.keys, self._keys, strict=True)
        columns = [plain_column(people, name).alias(own) for name, own in named]
        groups = people.select(*columns).groupBy(*self._keys).agg(sql.count(sql.lit(1)).alias("in population"))
        return self._stack.enter_context(kept(groups))

    def _n_with_missing(self, groups: Any, counted: str) -> int:
        from pyspark.sql import functions as sql

        is_missing = sql.lit(False)
        for name in self._keys:
            is_missing |= sql.col(name).isNull()
        found = collected(groups.where(is_missing).agg(sql.coalesce(sql.sum(counted), sql.lit(0)).alias("n")))
        return int(found["n"][0].as_py())

    def _check_weights(self) -> None:
        from pyspark.sql import functions as sql

        # NaN is above everything for Spark.
        is_fine = sql.coalesce((sql.col("survey") > 0) & (sql.col("survey") < float("inf")), sql.lit(False))
        found = collected(self._plain.agg(sql.sum((~is_fine).cast("int")).alias("wrong")))
        check_positive(int(found["wrong"][0].as_py()), self.n_records)

    # -- sensitive columns ---------------------------------------------------------------------------------------

    def _sensitive(self, n_groups: int, is_matching: bool) -> Iterator[SensitiveCounts]:
        """Yield the values of each sensitive column; workers cache its counts until the next one."""
        from pyspark.sql import Window
        from pyspark.sql import functions as sql

        for name in self._request.sensitive:
            own = self._columns[name]
            counted = self._plain.groupBy(own).agg(sql.count(sql.lit(1)).alias("n"))
            in_order = Window.orderBy(sql.col(own).asc_nulls_last())
            with kept(counted.withColumn("code", (sql.row_number().over(in_order) - 1).cast("bigint"))) as coded:
                n_values = int(coded.count())
                if n_values > MOST_VALUES:
                    yield SensitiveCounts(name, False, range(n_values), np.zeros(0, np.int64), None)
                    continue
                is_text, values, reference = self._described(name, collected(coded))
                if is_matching and n_groups * n_values > LARGEST_WORK // 4:
                    yield SensitiveCounts(name, is_text, values, reference, None)
                    continue
                with kept(self._rows(own, coded, is_matching)) as rows:
                    counts = SparkRows(rows, int(rows.count()), n_values)
                    yield SensitiveCounts(name, is_text, values, reference, counts)

    def _described(self, name: str, listed: Any) -> tuple[bool, list[Any], NDArray[np.int64]]:
        """Read the values as those of a table in memory; Spark's order of them is the same."""
        import pyarrow as pa

        listed = listed.sort_by("code")
        is_category = name in self._categorical
        read = read_table(pa.table({name: listed.column(0)}), categorical=[name] if is_category else [])
        column = read.column(name, for_counting=True)
        values = (column.values if column.categories is None else column.categories[column.values]).tolist()
        if column.missing is not None:
            values[-1] = None
        return column.is_text, values, listed["n"].to_numpy().astype(np.int64)

    def _rows(self, own: str, coded: Any, is_matching: bool) -> Any:
        """Return the distinct rows of counts."""
        from pyspark.sql import functions as sql

        codes = coded.select(sql.col(own).alias("same"), "code")
        pairs = self._plain.groupBy(*self._keys, own).agg(sql.count(sql.lit(1)).alias("n"))
        pairs = joined(pairs, codes, sql.col(own).eqNullSafe(sql.col("same"))).select(*self._keys, "code", "n")
        if is_matching:
            groups = pairs.select(*self._keys).distinct()
            pairs = matches(groups, pairs, self._keys).groupBy(*self._keys, "code").agg(sql.sum("n").alias("n"))
        counts = sql.array_sort(sql.collect_list(sql.struct("code", "n"))).alias("counts")
        return pairs.groupBy(*self._keys).agg(counts).select("counts").distinct()


def _as_weight(frame: Any, name: str) -> Any:
    from pyspark.sql import functions as sql

    is_number = frame.schema[name].dataType.typeName() in (
        "byte", "short", "integer", "long", "float", "double", "decimal",
    )  # fmt: skip
    return sql.col(quoted(name)).cast("double") if is_number else sql.lit(None).cast("double")


def _worked_on_weights(groups: Any, work: WorkOnWeights) -> list[NDArray[np.float64]]:
    """Call a function with the groups of every worker; return the rows of numbers."""

    def each(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            if batch.num_rows:
                found = work(*(batch.column(name).to_numpy() for name in ("size", "survey")))
                yield pa.RecordBatch.from_arrays([pa.array([found.tolist()])], names=["found"])

    rows = collected(groups.select("size", "survey").mapInArrow(each, "found array<double>"))
    return [np.array(row) for row in rows["found"].to_pylist()]


@dataclass(frozen=True, eq=False)
class SparkRows:
    """Distinct rows of counts that stay on the workers.

    Attributes
    ----------
    rows : Spark DataFrame
        In ``counts``, a list of codes and how often each occurs.
    n_rows, n_values : int
    """

    rows: Any
    n_rows: int
    n_values: int

    def worst(self, criteria: Sequence[tuple[Any, bool]], reference: NDArray[np.int64]) -> list[float]:
        """Return the worst row's value of each criterion: the least if True stands beside it, or else the greatest."""
        n_values = self.n_values

        def work(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow as pa

            for batch in batches:
                if not batch.num_rows:
                    continue
                lists = batch.column(0)
                pairs = lists.flatten()
                starts = np.append(0, np.cumsum(lists.value_lengths().to_numpy()))
                codes, counts = (pairs.field(name).to_numpy().astype(np.int64) for name in ("code", "n"))
                found = CountRows(starts, codes, counts, n_values).worst(criteria, reference)
                yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(found)], pa.binary())], names=["worst"])

        found = [
            pickle.loads(row) for row in collected(self.rows.mapInArrow(work, "worst binary"))["worst"].to_pylist()
        ]
        return [
            min(values) if is_least else max(values)
            for (_, is_least), values in zip(criteria, zip(*found, strict=True), strict=True)
        ]


_SETS_AT_ONCE = 30  # every record is handled once per set


class SparkUniqueSets:
    """Counts the records that sets of columns make unique.

    Parameters
    ----------
    rows : Spark DataFrame
        With a column ``weight``: 1 for a row that is one record, 2 for one that is more and so never unique.
    columns : mapping of str to str
        For each column of the table its name in `rows`.
    stack : ExitStack
        Ends when nothing is counted any more.
    """

    def __init__(self, rows: Any, columns: Mapping[str, str], stack: ExitStack) -> None:
        self._rows, self._columns, self._stack = rows, columns, stack

    def condensed(self, names: Sequence[str]) -> SparkUniqueSets:
        """Return the columns with records that are equal in all of them as one row."""
        from pyspark.sql import functions as sql

        if not names:
            return self
        columns = {name: self._columns[name] for name in names}
        weight = sql.least(sql.sum("weight"), sql.lit(2)).alias("weight")
        rows = self._stack.enter_context(kept(self._rows.groupBy(*columns.values()).agg(weight)))
        return SparkUniqueSets(rows, columns, self._stack)

    def unique_counts(self, sets: Sequence[Sequence[str]]) -> list[int]:
        """Return the number of records that each set of columns makes unique."""
        from pyspark.sql import functions as sql

        rows, wanted = self._rows, [[self._columns[name] for name in own] for own in sets]
        bases = {tuple(own[:-1]) for own in wanted}
        if len(bases) == 1 and len(base := bases.pop()) > 1:
            rows = rows.withColumn("key", sql.struct(*base))
            wanted = [["key", own[-1]] for own in wanted]
        found: list[int] = []
        for start in range(0, len(wanted), _SETS_AT_ONCE):
            found += _counted_together(rows, wanted[start : start + _SETS_AT_ONCE])
        return found

    def n_codes(self, names: Sequence[str]) -> dict[str, int]:
        """Return the number of codes of columns, as ``grouping`` counts them."""
        from pyspark.sql import functions as sql

        types = dict(self._rows.dtypes)
        asked = []
        for place, own in enumerate(self._columns[name] for name in names):
            asked.append(sql.countDistinct(sql.col(own)).alias(f"n {place}"))
            if types[own] in ("tinyint", "smallint", "int", "bigint"):
                number = sql.coalesce(sql.col(own), sql.lit(0))  # as a missing number is read
                asked += [sql.min(number).alias(f"low {place}"), sql.max(number).alias(f"high {place}")]
        found = collected(self._rows.agg(*asked)).to_pylist()[0]
        n_codes = {}
        for place, name in enumerate(names):
            n_codes[name] = int(found[f"n {place}"]) + 1
            if f"low {place}" in found:
                span = int(found[f"high {place}"] - found[f"low {place}"])
                n_codes[name] = span + 2 if span < CODED_BY_SUBTRACTION else n_codes[name]
        return n_codes


def _counted_together(rows: Any, sets: Sequence[Sequence[str]]) -> list[int]:
    """Return the number of records that each of a few sets of columns makes unique."""
    from pyspark.sql import functions as sql

    names = list(dict.fromkeys(name for own in sets for name in own))
    # Spark says by a bit for every column, the first column the highest, which ones a row was not grouped by.
    bit = {name: 1 << (len(names) - 1 - place) for place, name in enumerate(names)}
    left_out = [sum(bit[name] for name in names if name not in own) for own in sets]
    grouped = rows.groupingSets([[sql.col(name) for name in own] for own in sets], *names)
    sizes = grouped.agg(sql.sum("weight").alias("size"), sql.grouping_id().alias("set"))
    counted = collected(sizes.where("size = 1").groupBy("set").agg(sql.count(sql.lit(1)).alias("n"))).to_pylist()
    n_of = {row["set"]: int(row["n"]) for row in counted}
    return [n_of.get(bits, 0) for bits in left_out]
