# SPDX-License-Identifier: Apache-2.0
"""How many records of a Spark DataFrame sets of columns make unique.

Spark groups by many sets of columns at once, and one number per set reaches the driver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from sfumato.backends.spark.session import collected, kept
from sfumato.grouping import CODED_BY_SUBTRACTION

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
        """Return for each set of columns how many records share their values in it with no other."""
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
        """Return how fine columns are, by the measure of ``grouping``."""
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
    """Return for each of a few sets of columns how many records share their values in it with no other."""
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
