# SPDX-License-Identifier: Apache-2.0
"""Judge whether columns of a Spark DataFrame name people: Spark counts their values, and workers look at their form.

The driver gets three counts per column and, for columns that name people, the reason in words. It sees no value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from sfumato.backends.spark.session import collected, map_in_arrow, plain_column, united
from sfumato.frames import Table, read_table
from sfumato.schema import Frequencies, Judgement, judge_column

_LOOKED_AT = 1000  # values whose form is looked at


def judge_naming(frame: Any, head: Table, names: Sequence[str]) -> list[Judgement]:
    """Judge whether columns name people; columns that surely do not are left out.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    head : Table
        A record without values, of the types that workers see.
    names : sequence of str
    """
    counted = _frequencies(frame, [name for name in names if head.kind(name) != "moment"])
    suspect = {name: counts for name, counts in counted.items() if counts.is_varied}
    reasons = _reasons(frame, suspect, head.categorical)
    return [Judgement(name, counts, reasons[name]) for name, counts in suspect.items()]


def _frequencies(frame: Any, names: Sequence[str]) -> dict[str, Frequencies]:
    """Return how often the values of columns occur."""
    from pyspark.sql import functions as sql

    if not names:
        return {}
    n = sql.count(sql.lit(1))
    is_single = (sql.col("n") == 1).cast("int")
    parts = [
        _values(frame, name).groupBy("value").agg(n.alias("n")).agg(
            sql.lit(place).alias("place"), sql.coalesce(sql.sum("n"), sql.lit(0)).alias("present"),
            n.alias("distinct"), sql.coalesce(sql.sum(is_single), sql.lit(0)).alias("single"),
        )
        for place, name in enumerate(names)
    ]  # fmt: skip
    rows = sorted(collected(united(parts)).to_pylist(), key=lambda row: row["place"])
    return {names[row["place"]]: Frequencies(row["present"], row["distinct"], row["single"]) for row in rows}


def _reasons(frame: Any, suspect: Mapping[str, Frequencies], categorical: Sequence[str]) -> dict[str, str | None]:
    """Let workers judge some values of each column, chosen by their hash; return why columns name people."""
    from pyspark.sql import functions as sql

    if not suspect:
        return {}
    parts = []
    for name, counts in suspect.items():
        some = _values(frame, name).distinct().orderBy(sql.xxhash64("value")).limit(_LOOKED_AT)
        judge = _judge(name, counts, [name] if name in categorical else [])
        parts.append(map_in_arrow(some, judge, "name string, why string"))
    return {row["name"]: row["why"] for row in collected(united(parts)).to_pylist()}


def _values(frame: Any, name: str) -> Any:
    """Return the values of a column that are not missing."""
    return frame.select(plain_column(frame, name).alias("value")).where("value is not null")


def _judge(name: str, counts: Frequencies, categorical: list[str]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """Return the work of a worker that has some values of a column."""

    def judge(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        values = pa.Table.from_batches(batches).rename_columns([name])
        column = read_table(values, categorical=categorical).column(name, for_counting=True)
        why = judge_column(column, counts).names_people
        yield pa.RecordBatch.from_arrays([pa.array([name]), pa.array([why], pa.string())], names=["name", "why"])

    return judge
