# SPDX-License-Identifier: Apache-2.0
"""Count the records that each combination of values matches: equal ones, or missing values as wildcards.

Two combinations match when each value is equal in both or missing in at least one. Those that miss the same columns
are matched together: what is missing in either is left out of both, and the rest is joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sfumato.backends.spark.session import collected, joined


def sum_of_equal(own: Any, others: Any, keys: Sequence[str], counted: str) -> Any:
    """Return `own` with the sum of a column over the rows of others with the same keys, or 0.

    Parameters
    ----------
    own : Spark DataFrame
        Different keys.
    others : Spark DataFrame
        Keys by the same names, and the column.
    keys : sequence of str
    counted : str
        Its sum has the same name.
    """
    from pyspark.sql import functions as sql

    theirs = others.groupBy(*keys).agg(sql.sum(counted).alias(counted))
    return _beside(own, theirs, keys, counted)


def sum_of_matches(own: Any, others: Any, keys: Sequence[str], counted: str) -> Any:
    """Return `own` with the sum of a column over the rows of others that match it, or 0."""
    from pyspark.sql import functions as sql

    sums = matches(own, others, keys).groupBy(*keys).agg(sql.sum(counted).alias(counted))
    return _beside(own, sums, keys, counted)


def matches(own: Any, others: Any, keys: Sequence[str]) -> Any:
    """Return the keys of `own`, each with the other columns of all rows of `others` that match it."""
    from pyspark.sql import functions as sql

    ours, theirs = (frame.withColumn("pattern", _pattern(keys)) for frame in (own.select(*keys), others))
    our_patterns, their_patterns = (_listed(frame.select("pattern").distinct()) for frame in (ours, theirs))
    extra = [name for name in others.columns if name not in keys]
    left = ours.withColumn("other pattern", sql.explode(their_patterns))
    left = left.select("pattern", "other pattern", *keys, *_masked(keys, "our"))
    right = theirs.withColumn("other pattern", sql.explode(our_patterns))
    right = right.select(
        sql.col("other pattern").alias("of pattern"), sql.col("pattern").alias("own pattern"), *extra,
        *_masked(keys, "their"),
    )  # fmt: skip
    is_match = (sql.col("pattern") == sql.col("of pattern")) & (sql.col("other pattern") == sql.col("own pattern"))
    for place in range(len(keys)):
        is_match &= sql.col(f"our {place}").eqNullSafe(sql.col(f"their {place}"))
    return joined(left, right, is_match).select(*keys, *extra)


def _listed(patterns: Any) -> Any:
    from pyspark.sql import functions as sql

    return sql.array(*[sql.lit(bits).cast("bigint") for bits in collected(patterns)["pattern"].to_pylist()])


def _pattern(keys: Sequence[str]) -> Any:
    """Return the missing columns as bits."""
    from pyspark.sql import functions as sql

    bits = [sql.when(sql.col(name).isNull(), sql.lit(1 << place)).otherwise(0) for place, name in enumerate(keys)]
    total = sql.lit(0).cast("bigint")
    for bit in bits:
        total = total + bit
    return total


def _masked(keys: Sequence[str], who: str) -> list[Any]:
    """Return the values that neither side misses."""
    from pyspark.sql import functions as sql

    either = sql.col("pattern").bitwiseOR(sql.col("other pattern"))
    return [
        sql.when(either.bitwiseAND(sql.lit(1 << place)) == 0, sql.col(name)).alias(f"{who} {place}")
        for place, name in enumerate(keys)
    ]


def _beside(own: Any, sums: Any, keys: Sequence[str], counted: str) -> Any:
    from pyspark.sql import functions as sql

    renamed = sums.select(*[sql.col(name).alias(f"same {place}") for place, name in enumerate(keys)], counted)
    is_same = sql.lit(True)
    for place, name in enumerate(keys):
        is_same &= sql.col(name).eqNullSafe(sql.col(f"same {place}"))
    return joined(own, renamed, is_same, "left").select(*own.columns, sql.coalesce(counted, sql.lit(0)).alias(counted))
