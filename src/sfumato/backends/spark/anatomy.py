# SPDX-License-Identifier: Apache-2.0
"""Divide a Spark DataFrame in two: groups by the rules for tables in memory, with records left on the workers.

Records are numbered value after value, in an order that a keyed hash of the whole record gives, and dealt to blocks as
cards are. No value has more than 1/l of a block, so every block is divided by one worker, as a table of its own. The
hash makes the groups a function of records and seed: how Spark spreads the records, and which workers die, changes
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.base import Division
from sfumato.backends.spark.session import (
    check_finite,
    check_frame,
    collected,
    example_of,
    joined,
    kept,
    map_in_arrow,
    plain_column,
    quoted,
    united,
)
from sfumato.errors import GuaranteeError
from sfumato.frames import Table, read_table
from sfumato.grouping import number_values
from sfumato.schema import Frequencies, Judgement, judge_column


class SparkAnatomies:
    """A Spark DataFrame that can be divided in two.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    most_held : int
        Records that one worker divides at once.
    """

    def __init__(self, frame: Any, most_held: int) -> None:
        check_frame(frame)
        self.frame, self.most_held = frame, most_held

    def example(self) -> Any:
        """Return one record without any value: records stay with the workers."""
        return example_of(self.frame)

    def judge_naming(self, head: Table, names: Sequence[str]) -> list[Judgement]:
        """Judge whether columns name people, by counts and by the form that workers see."""
        return judge_naming(self.frame, head, names)

    @contextmanager
    def divided(self, division: Division) -> Iterator[AnatomyInFrames]:
        """Return both tables; they are computed when they are recounted, and stay in Spark's cache from then on."""
        n_records = check_finite(self.frame, division.sensitive)
        division.rule.check_enough(n_records)
        with ExitStack() as stack:
            yield _Dealer(self.frame, division, self.most_held).deal(n_records, stack)


class AnatomyInFrames:
    """Two DataFrames that are returned after they were recounted; `group` is the last column of both."""

    group_sizes = None

    def __init__(self, frames: Sequence[Any], group: str, n_records: int, n_suppressed: int) -> None:
        self.identifying, self.sensitive = frames
        self.group, self.n_records, self.n_suppressed = group, n_records, n_suppressed

    def recount(self, l: int) -> int:  # noqa: E741
        """Count the groups of both tables with Spark's own ``groupBy``, and return their number."""
        frames = self.identifying, self.sensitive
        for own in frames:
            own.persist()
        try:
            return check_groups(*frames, self.group, l, self.n_records)
        except BaseException:
            for own in frames:
                own.unpersist()
            raise


class _Dealer:
    """Deals records to groups. Columns get temporary names by position, so that names cannot collide."""

    def __init__(self, frame: Any, division: Division, most_held: int) -> None:
        self.frame, self.division, self.most_held = frame, division, most_held
        self.names, self.rule = division.sensitive, division.rule
        self.l = division.rule.l
        leaving = {name for names in division.tables.values() for name in names}
        self.leaving = [name for name in frame.columns if name in leaving]
        self.values = [f"value {place}" for place in range(len(self.names))]
        self.columns = [f"column {place}" for place in range(len(self.leaving))]

    def deal(self, n_records: int, stack: ExitStack) -> AnatomyInFrames:
        """Return both tables; their inputs stay cached while the stack is open."""
        keyed = stack.enter_context(kept(self._keyed()))
        left, n_left, peaks = self._suppressed(keyed, n_records)
        placed = self._placed(left, n_left, int(np.argmax(peaks)))
        if len(self.values) > 1:  # then it is looked at several times
            stack.enter_context(kept(placed))
        n_blocks = self._n_blocks(placed, n_left)
        grouped = stack.enter_context(kept(self._grouped(placed, n_left, n_blocks)))
        frames = [self._shuffled(grouped, names, purpose) for purpose, names in self.division.tables.items()]
        return AnatomyInFrames(frames, self.division.group, n_left, n_records - n_left)

    # -- before ----------------------------------------------------------------------------------------------------

    def _keyed(self) -> Any:
        """Return the released columns, the sensitive values with missing as null, and a key that orders records."""
        from pyspark.sql import functions as sql

        texts = [sql.col(quoted(name)).cast("string") for name in self.frame.columns]
        return self.frame.select(
            *[sql.col(quoted(name)).alias(own) for name, own in zip(self.leaving, self.columns, strict=True)],
            *[plain_column(self.frame, name).alias(own) for name, own in zip(self.names, self.values, strict=True)],
            # Equal keys mean equal records, and it is all the same which of those comes first.
            sql.sha2(sql.to_json(sql.array(sql.lit(self._salt("key")), *texts)), 256).alias("key"),
        )

    def _salt(self, purpose: str) -> str:
        return f"{purpose} {' '.join(map(str, self.division.seed))}"

    def _suppressed(self, keyed: Any, n_records: int) -> tuple[Any, int, list[int]]:
        """Suppress records so that no value is above 1/l; return the rest, its size and highest counts."""
        from pyspark.sql import Window
        from pyspark.sql import functions as sql

        counts = self._counts_of_values(keyed)
        best = n_records // max(int(own[0].max()) for own in counts)
        left, n_left = keyed, n_records
        while n_left and (over := [place for place, own in enumerate(counts) if own[0].max() > n_left // self.l]):
            limit = highest_count(*counts[over[0]], self.l)
            order = Window.partitionBy(self.values[over[0]]).orderBy("key")
            left = left.withColumn("rank", sql.row_number().over(order)).where(sql.col("rank") <= limit).drop("rank")
            counts = self._counts_of_values(left)
            n_left = int((counts[0][0] * counts[0][1]).sum())
        self.rule.check_suppressed(n_records - n_left, n_records, best)
        return left, n_left, [int(own[0].max()) for own in counts]

    def _counts_of_values(self, frame: Any) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Return for each sensitive column the counts of its values, and the number of values with each count."""
        from pyspark.sql import functions as sql

        n = sql.count(sql.lit(1))
        parts = [
            frame.groupBy(name).agg(n.alias("n")).groupBy("n").agg(n.alias("values"), sql.lit(place).alias("place"))
            for place, name in enumerate(self.values)
        ]
        found = collected(united(parts))
        of, counts, values = (found[name].to_numpy().astype(np.int64) for name in ("place", "n", "values"))
        return [(counts[of == place], values[of == place]) for place in range(len(self.values))]

    # -- dealing ---------------------------------------------------------------------------------------------------

    def _placed(self, frame: Any, n_records: int, first: int) -> Any:
        """Number the records from 0, value after value, and by their keys among those with the same value.

        A frequent value is numbered in parts, so that no worker has to sort all its records.
        """
        from pyspark.sql import Window
        from pyspark.sql import functions as sql

        value = self.values[first]
        n_parts = -(-n_records // self.most_held)
        start_of_key = sql.conv(sql.substring("key", 1, 8), 16, 10).cast("bigint")
        parted = frame.withColumn("part", start_of_key % n_parts)
        sizes = parted.groupBy(value, "part").agg(sql.count(sql.lit(1)).alias("n"))
        before = sql.sum("n").over(Window.orderBy(value, "part")) - sql.col("n")
        starts = sizes.select(sql.col(value).alias("same"), sql.col("part").alias("same part"), before.alias("start"))
        is_same = parted[value].eqNullSafe(starts["same"]) & (parted["part"] == starts["same part"])
        own = joined(parted, starts, is_same)
        rank = sql.row_number().over(Window.partitionBy(value, "part").orderBy("key"))
        place = (sql.col("start") + rank - 1).alias("place")
        return own.select(*self.columns, *self.values, place)

    def _n_blocks(self, placed: Any, n_records: int) -> int:
        """Return the number of blocks: enough for one to fit on a worker, if that is safe.

        A group may take one of every so many records, and they have different values of the first sensitive column; a
        block is a number of such groups. Of a further column a block may have too much by chance.
        """
        from pyspark.sql import functions as sql

        n_groups = n_records // self.l
        n_blocks = min(n_groups, -(-n_records // self.most_held))
        while n_blocks > 1 and len(self.values) > 1:
            blocks = placed.withColumn("block", self._block(n_groups, n_blocks))
            n = sql.count(sql.lit(1))
            unsafe = [
                blocks.groupBy("block", name).agg(n.alias("n")).groupBy("block")
                .agg(sql.sum("n").alias("size"), sql.max("n").alias("most"))
                .where(sql.col("most") > sql.floor(sql.col("size") / self.l)).agg(n.alias("unsafe"))
                for name in self.values
            ]  # fmt: skip
            if not any(collected(united(unsafe))["unsafe"].to_pylist()):
                break
            n_blocks //= 2
        return n_blocks

    @staticmethod
    def _block(n_groups: int, n_blocks: int) -> Any:
        from pyspark.sql import functions as sql

        return sql.col("place") % n_groups % n_blocks

    def _grouped(self, placed: Any, n_records: int, n_blocks: int) -> Any:
        """Divide the blocks on workers; return the released columns with groups and places."""
        from pyspark.sql.types import LongType, StructField, StructType

        own_types = [placed.schema[name].dataType for name in self.columns]
        fields = [StructField(name, kind, True) for name, kind in zip(self.columns, own_types, strict=True)]
        schema = StructType([*fields, StructField("group", LongType()), StructField("place", LongType())])
        blocks = placed.drop(*self.values).withColumn("block", self._block(n_records // self.l, n_blocks))
        return blocks.groupBy("block").applyInArrow(self._divide(n_blocks), schema)

    def _divide(self, n_blocks: int) -> Callable[[Any], Any]:
        seed, rule, columns = self.division.seed, self.rule, self.columns
        secret = [own for name, own in zip(self.leaving, columns, strict=True) if name in self.names]
        named_codes = [name for name in self.division.head.categorical if name in self.names]
        categorical = [own for name, own in zip(self.leaving, columns, strict=True) if name in named_codes]

        def divide(table: Any) -> Any:
            import pyarrow as pa

            table = table.sort_by("place")
            block = table["block"][0].as_py()
            read = read_table(table.select(secret), categorical=categorical)
            codes = np.column_stack([number_values(read.column(name, for_counting=True)) for name in secret])
            random = np.random.default_rng(seed if n_blocks == 1 else [*seed, block])
            group = rule.assign(codes, random)
            numbers = pa.array(group.astype(np.int64) * n_blocks + block)
            return table.append_column("group", numbers).select([*columns, "group", "place"])

        return divide

    # -- after -----------------------------------------------------------------------------------------------------

    def _shuffled(self, grouped: Any, names: Sequence[str], purpose: str) -> Any:
        """Return some columns and the group, in an independent random order."""
        from pyspark.sql import functions as sql

        order = sql.sha2(sql.concat(sql.lit(self._salt(purpose)), sql.col("place").cast("string")), 256)
        mixed = grouped.withColumn("order", order).repartition("order").sortWithinPartitions("order")
        own = dict(zip(self.leaving, self.columns, strict=True))
        leaving = [sql.col(own[name]).alias(name, metadata={}) for name in names]
        return mixed.select(*leaving, sql.col("group").alias(self.division.group))


def highest_count(counts: NDArray[np.int64], n_values: NDArray[np.int64], l: int) -> int:  # noqa: E741
    """Return the count that values may keep so that none is above 1/l of what is left.

    >>> highest_count(np.array([60, 20]), np.array([1, 2]), 2)
    40
    """
    n_left = int((counts * n_values).sum())
    while True:
        limit = n_left // l
        n_then = int((np.minimum(counts, limit) * n_values).sum())
        if n_then == n_left:
            return limit
        n_left = n_then


def check_groups(identifying: Any, sensitive: Any, group: str, l: int, n_records: int) -> int:  # noqa: E741
    """Raise GuaranteeError unless both tables have the same groups and no value is above 1/l; return their number."""
    from pyspark.sql import functions as sql

    n = sql.count(sql.lit(1))
    first, second = (
        own.groupBy(sql.col(quoted(group)).alias("group")).agg(n.alias(f"n {place}"))
        for place, own in enumerate((identifying, sensitive))
    )
    differs = (~sql.col("n 0").eqNullSafe(sql.col("n 1"))).cast("int")
    parts = [
        joined(first, second, "group", "full_outer").agg(
            n.alias("groups"), sql.sum("n 0").alias("records"), sql.sum(differs).alias("wrong"),
        )
    ]  # fmt: skip
    names = [name for name in sensitive.columns if name != group]
    for name in names:
        counted = sensitive.groupBy(sql.col(quoted(group)).alias("group"), plain_column(sensitive, name).alias("value"))
        of_group = counted.agg(n.alias("n")).groupBy("group").agg(sql.max("n").alias("most"), sql.sum("n").alias("n"))
        is_unsafe = (sql.col("most") * l > sql.col("n")).cast("int")
        parts.append(of_group.agg(n.alias("groups"), sql.sum("n").alias("records"), sql.sum(is_unsafe).alias("wrong")))
    labelled = [part.withColumn("place", sql.lit(place)) for place, part in enumerate(parts)]
    found = sorted(collected(united(labelled)).to_pylist(), key=lambda row: row["place"])
    if found[0]["wrong"] or any((row["records"], row["groups"]) != (n_records, found[0]["groups"]) for row in found):
        raise GuaranteeError(
            "the identifying and the sensitive table do not have the same numbers of records in the same groups. "
            "Nothing is returned. Write the table to files first, if it is computed again at each reading."
        )
    for name, row in zip(names, found[1:], strict=True):
        if row["wrong"]:
            raise GuaranteeError(
                f"l = {l} does not hold: {row['wrong']} groups have a value of {name!r} in more than 1/{l} of their "
                "records. Nothing is returned; please report this."
            )
    return int(found[0]["groups"])


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
    """Return the frequencies of the values of columns."""
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
    """Judge some values of each column on workers, chosen by hash; return why columns name people."""
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
    """Return the function that judges some values of a column on a worker."""

    def judge(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        values = pa.Table.from_batches(batches).rename_columns([name])
        column = read_table(values, categorical=categorical).column(name, for_counting=True)
        why = judge_column(column, counts).names_people
        yield pa.RecordBatch.from_arrays([pa.array([name]), pa.array([why], pa.string())], names=["name", "why"])

    return judge
