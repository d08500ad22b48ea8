# SPDX-License-Identifier: Apache-2.0
"""Which columns, and which columns together, make records of a Spark DataFrame unique, as ``measurement.ranking``.

Spark groups by many sets of columns at once, and one number per set reaches the driver. Called by ``measuring``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from sfumato.backends.spark.session import collected, kept
from sfumato.grouping import CODED_BY_SUBTRACTION
from sfumato.measurement.ranking import MOST_IN_PAIRS, Ranking, make_ranking, tried_in_sets

_SETS_AT_ONCE = 30  # every record is handled once per set


def rank(plain: Any, columns: Mapping[str, str], quasi_identifiers: Sequence[str], n_records: int) -> Ranking:
    """Count the unique records of columns, pairs, a growing set, and of the quasi-identifiers with one column more.

    Parameters
    ----------
    plain : Spark DataFrame
    columns : mapping of str to str
        For each column of the table what it is called in `plain`.
    quasi_identifiers : sequence of str
    n_records : int
    """
    from pyspark.sql import functions as sql

    records = plain.withColumn("weight", sql.lit(1))
    alone = dict(zip(columns, count_alone(records, [[own] for own in columns.values()]), strict=True))
    few = [name for name in columns if 2 * alone[name] <= n_records]
    finest = _n_codes(plain, columns) if len(few) > MOST_IN_PAIRS else dict.fromkeys(columns, 0)
    tried = tried_in_sets(alone, finest, n_records)
    own = [columns[name] for name in tried]
    # Records that are equal in all columns that are tried are one row: alone or not.
    rows = plain.groupBy(*own).agg(sql.least(sql.count(sql.lit(1)), sql.lit(2)).alias("weight")) if own else records
    with kept(rows):
        pairs = list(combinations(range(len(tried)), 2))
        found = sorted(
            zip(pairs, count_alone(rows, [[own[a], own[b]] for a, b in pairs]), strict=True), key=lambda pair: -pair[1]
        )
        grown = _grow(rows, own, found)
    key = records.withColumn("key", sql.struct(*[columns[name] for name in quasi_identifiers]))
    others = [name for name in columns if name not in quasi_identifiers]
    added = count_alone(key, [["key", columns[name]] for name in others])
    return make_ranking(
        alone,
        tried,
        pairs=[([tried[j] for j in pair], n_unique) for pair, n_unique in found],
        grown=[([tried[j] for j in members], n_unique) for members, n_unique in grown],
        added=list(zip(others, added, strict=True)),
        n_records=n_records,
    )


def count_alone(rows: Any, sets: Sequence[Sequence[str]]) -> list[int]:
    """Return for each set of columns how many records are alone with their values in it.

    Parameters
    ----------
    rows : Spark DataFrame
        With a column ``weight``: 1 for a row that is one record, 2 for one that is more and so never unique.
    sets : sequence of sequence of str
    """
    from pyspark.sql import functions as sql

    found: list[int] = []
    for start in range(0, len(sets), _SETS_AT_ONCE):
        some = sets[start : start + _SETS_AT_ONCE]
        names = list(dict.fromkeys(name for own in some for name in own))
        # Spark says by a bit for every column, the first column the highest, which ones a row was not grouped by.
        bit = {name: 1 << (len(names) - 1 - place) for place, name in enumerate(names)}
        left_out = [sum(bit[name] for name in names if name not in own) for own in some]
        grouped = rows.groupingSets([[sql.col(name) for name in own] for own in some], *names)
        sizes = grouped.agg(sql.sum("weight").alias("size"), sql.grouping_id().alias("set"))
        counted = collected(sizes.where("size = 1").groupBy("set").agg(sql.count(sql.lit(1)).alias("n"))).to_pylist()
        n_of = {row["set"]: int(row["n"]) for row in counted}
        found += [n_of.get(bits, 0) for bits in left_out]
    return found


def _grow(
    rows: Any, columns: Sequence[str], pairs: Sequence[tuple[tuple[int, int], int]]
) -> list[tuple[list[int], int]]:
    """Start with the best pair and add the column that makes most records unique while one adds any."""
    from pyspark.sql import functions as sql

    if not pairs:
        return []
    members, n_unique = list(pairs[0][0]), pairs[0][1]
    grown = [(list(members), n_unique)]
    while left := [place for place in range(len(columns)) if place not in members]:
        keyed = rows.withColumn("key", sql.struct(*[columns[place] for place in members]))
        found = count_alone(keyed, [["key", columns[place]] for place in left])
        if max(found) <= n_unique:
            break
        n_unique = max(found)
        members = [*members, left[found.index(n_unique)]]
        grown.append((list(members), n_unique))
    return grown


def _n_codes(plain: Any, columns: Mapping[str, str]) -> dict[str, int]:
    """Return how fine each column is, by the measure of ``grouping``: which of many columns are tried."""
    from pyspark.sql import functions as sql

    types = dict(plain.dtypes)
    asked = []
    for place, own in enumerate(columns.values()):
        asked.append(sql.countDistinct(sql.col(own)).alias(f"n {place}"))
        if types[own] in ("tinyint", "smallint", "int", "bigint"):
            number = sql.coalesce(sql.col(own), sql.lit(0))  # as a missing number is read
            asked += [sql.min(number).alias(f"low {place}"), sql.max(number).alias(f"high {place}")]
    found = collected(plain.agg(*asked)).to_pylist()[0]
    n_codes = {}
    for place, name in enumerate(columns):
        n_codes[name] = int(found[f"n {place}"]) + 1
        if f"low {place}" in found and (span := found[f"high {place}"] - found[f"low {place}"]) < CODED_BY_SUBTRACTION:
            n_codes[name] = int(span) + 2
    return n_codes
