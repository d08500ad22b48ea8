# SPDX-License-Identifier: Apache-2.0
"""How often each sensitive value occurs in each group of a Spark DataFrame, judged by the workers.

The values of a column and how often each occurs reach the driver, and of the groups only what the worst of them
reaches. Called by ``measuring``.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.spark.session import collected, joined, kept
from sfumato.criteria.criterion_counts import MOST_VALUES
from sfumato.frames import read_table
from sfumato.measurement.count_rows import CountRows
from sfumato.measurement.criterion_values import LARGEST_WORK, Sensitive, evaluate
from sfumato.measurement.measurement import CriterionValue
from sfumato.spark.matching import matches


@dataclass(frozen=True, eq=False)
class SparkRows:
    """Different rows of counts that stay with the workers.

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
        """Return what the worst row reaches in each criterion; the least is the worst where True stands beside it."""
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


def measure_column(
    plain: Any,
    keys: Sequence[str],
    name: str,
    own: str,
    *,
    n_groups: int,
    is_category: bool,
    is_matching: bool,
    hierarchy: Any,
    missing: str,
) -> list[CriterionValue]:
    """Return the value of every criterion on one sensitive column.

    Parameters
    ----------
    plain : Spark DataFrame
    keys : sequence of str
        The quasi-identifiers in it.
    name, own : str
        The sensitive column, as it is called in the table and in `plain`.
    n_groups : int
    is_category : bool
        Whether numbers are codes.
    is_matching : bool
        Whether missing quasi-identifiers match anything, and there are some.
    """
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    counted = plain.groupBy(own).agg(sql.count(sql.lit(1)).alias("n"))
    in_order = Window.orderBy(sql.col(own).asc_nulls_last())
    with kept(counted.withColumn("code", (sql.row_number().over(in_order) - 1).cast("bigint"))) as coded:
        n_values = int(coded.count())
        if n_values > MOST_VALUES:
            return evaluate(Sensitive(name, False, range(n_values), np.zeros(0, np.int64), hierarchy), None, missing)
        about = _described(name, collected(coded), is_category, hierarchy)
        if is_matching and n_groups * n_values > LARGEST_WORK // 4:
            return evaluate(about, None, missing)
        with _rows(plain, keys, own, coded, is_matching) as rows:
            return evaluate(about, SparkRows(rows, int(rows.count()), n_values), missing)


def _described(name: str, listed: Any, is_category: bool, hierarchy: Any) -> Sensitive:
    """Read the values as those of a table in memory; Spark's order of them is the same."""
    import pyarrow as pa

    listed = listed.sort_by("code")
    read = read_table(pa.table({name: listed.column(0)}), categorical=[name] if is_category else [])
    column = read.column(name, for_counting=True)
    values = (column.values if column.categories is None else column.categories[column.values]).tolist()
    if column.missing is not None:
        values[-1] = None
    return Sensitive(name, column.is_text, values, listed["n"].to_numpy().astype(np.int64), hierarchy)


@contextmanager
def _rows(plain: Any, keys: Sequence[str], own: str, coded: Any, is_matching: bool) -> Iterator[Any]:
    """Lend the different rows of counts."""
    from pyspark.sql import functions as sql

    codes = coded.select(sql.col(own).alias("same"), "code")
    pairs = plain.groupBy(*keys, own).agg(sql.count(sql.lit(1)).alias("n"))
    pairs = joined(pairs, codes, sql.col(own).eqNullSafe(sql.col("same"))).select(*keys, "code", "n")
    if is_matching:
        groups = pairs.select(*keys).distinct()
        pairs = matches(groups, pairs, keys).groupBy(*keys, "code").agg(sql.sum("n").alias("n"))
    counts = sql.array_sort(sql.collect_list(sql.struct("code", "n"))).alias("counts")
    with kept(pairs.groupBy(*keys).agg(counts).select("counts").distinct()) as rows:
        yield rows
