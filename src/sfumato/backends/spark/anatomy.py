# SPDX-License-Identifier: Apache-2.0
"""Divide a Spark DataFrame: groups by the rules for tables in memory, with records left on the workers.

Records are numbered value after value, in an order that a keyed hash of the whole record gives, and dealt to blocks as
cards are. No value has more than 1/l of a block, so every block is divided by one worker, as a table of its own. The
hash makes the groups a function of records and seed: how Spark spreads the records, and which workers die, changes
nothing. With several sensitive tables, records are dealt once for each, by the hash of their number in the deal before.
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
    kept_apart,
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
    """A Spark DataFrame that can be divided.

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
        """Return the tables; they are computed when they are recounted, and stay in Spark's cache from then on."""
        n_records = check_finite(self.frame, division.columns)
        division.rule.check_enough(n_records)
        with ExitStack() as stack:
            yield _Dealer(self.frame, division, self.most_held).deal(n_records, stack)


class AnatomyInFrames:
    """DataFrames that are returned after they were recounted; groups are their last columns."""

    group_sizes = None

    def __init__(self, division: Division, frames: Sequence[Any], n_records: int, n_suppressed: int) -> None:
        self.division = division
        self.identifying, *self.sensitive = frames
        self.n_records, self.n_suppressed = n_records, n_suppressed

    def recount(self) -> int:
        """Count the groups of all tables with Spark's own ``groupBy``, and return their number."""
        frames = [self.identifying, *self.sensitive]
        for own in frames:
            own.persist()
        try:
            return sum(
                check_groups(self.identifying, frame, own.group, self.division.ls_of(own), self.n_records)
                for frame, own in zip(self.sensitive, self.division.sensitive, strict=True)
            )
        except BaseException:
            for own in frames:
                own.unpersist()
            raise


class _Dealer:
    """Deals records to groups. Columns get temporary names by position, so that names cannot collide."""

    def __init__(self, frame: Any, division: Division, most_held: int) -> None:
        self.frame, self.division, self.most_held = frame, division, most_held
        self.rule, self.names = division.rule, division.columns
        leaving = {*division.identifying, *self.names}
        self.leaving = [name for name in frame.columns if name in leaving]
        self.values = [f"value {place}" for place in range(len(self.names))]
        self.columns = [f"column {place}" for place in range(len(self.leaving))]
        self.groups = [f"group {place}" for place in range(len(division.sensitive))]

    def deal(self, n_records: int, stack: ExitStack) -> AnatomyInFrames:
        """Return all tables; their inputs stay cached while the stack is open."""
        keyed = stack.enter_context(kept(self._keyed()))
        dealt, n_left, peaks = self._suppressed(keyed, n_records, stack)
        self.rule.warn_of_dependence(self._dependence(dealt, n_left))
        for number in range(len(self.groups)):
            deal = _Deal(self, number, peaks, n_left)
            placed = deal.placed(dealt)
            if len(deal.values) > 1:  # then it is looked at several times
                stack.enter_context(kept(placed))
            dealt = stack.enter_context(kept_apart(deal.grouped(placed, deal.n_blocks(placed))))
        names = [self.division.identifying, *(own.columns for own in self.division.sensitive)]
        groups = [self.groups, *([own] for own in self.groups)]
        frames = [
            self._shuffled(dealt, *given) for given in zip(names, groups, self.division.labels, strict=True)
        ]  # fmt: skip
        return AnatomyInFrames(self.division, frames, n_left, n_records - n_left)

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

    def _dependence(self, frame: Any, n_records: int) -> dict[tuple[int, int], float]:
        """Return how far columns of different tables tell each other."""
        from pyspark.sql import functions as sql

        pairs = self.rule.apart
        if not pairs:
            return {}
        parts = []
        for place, (one, two) in enumerate(pairs):
            counted = frame.groupBy(self.values[one], self.values[two]).agg(sql.count(sql.lit(1)).alias("n"))
            most = counted.groupBy(self.values[one]).agg(sql.max("n").alias("n"))
            parts.append(most.agg(sql.lit(place).alias("place"), sql.sum(sql.col("n") - 1).alias("told")))
        found = {row["place"]: row["told"] for row in collected(united(parts)).to_pylist()}
        return {pair: found[place] / n_records for place, pair in enumerate(pairs)}

    def _salt(self, purpose: str) -> str:
        return f"{purpose} {' '.join(map(str, self.division.seed))}"

    def keyed_by_place(self, frame: Any, number: int) -> Any:
        """Return records with another key: the places of a deal are unique, and equal records may change theirs."""
        from pyspark.sql import functions as sql

        salt = sql.lit(self._salt(f"key {number}"))
        return frame.withColumn("key", sql.sha2(sql.concat(salt, sql.col("place").cast("string")), 256)).drop("place")

    def parted(self, frame: Any, n_records: int) -> Any:
        """Return records with a part by their key, so that no worker gets all records of a frequent value."""
        from pyspark.sql import functions as sql

        start_of_key = sql.conv(sql.substring("key", 1, 8), 16, 10).cast("bigint")
        return frame.withColumn("part", start_of_key % self.n_parts(n_records))

    def n_parts(self, n_records: int) -> int:
        """Return the number of parts."""
        return -(-n_records // self.most_held)

    def _suppressed(self, keyed: Any, n_records: int, stack: ExitStack) -> tuple[Any, int, list[int]]:
        """Suppress records so that no value is above 1/l; return the rest, its size and highest counts."""
        counts = self._counts_of_values(keyed)
        ranked: list[Any] = []

        def count_kinds(n_frequent: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
            from pyspark.sql import functions as sql

            least = [int(own[n - 1]) if n else None for own, n in zip(counts, n_frequent, strict=True)]
            ranked[:] = [stack.enter_context(kept(self._ranked(keyed, least, n_records)))]
            found = collected(ranked[0].groupBy(*self._ranks).agg(sql.count(sql.lit(1)).alias("n")))
            kinds = np.stack([found[name].to_numpy().astype(np.int64) for name in self._ranks], axis=1)
            order = np.lexsort(kinds.T[::-1])
            return kinds[order], found["n"].to_numpy().astype(np.int64)[order]

        plan = self.rule.suppress(n_records, counts, count_kinds)
        if plan is None:
            return keyed, n_records, [int(own[0]) for own in counts]
        left = stack.enter_context(kept_apart(self._kept(ranked[0], plan, n_records).drop("part", *self._ranks)))
        return left, int(plan.n_kept.sum()), [int(own[0]) for own in self._counts_of_values(left)]

    @property
    def _ranks(self) -> list[str]:
        return [f"rank {place}" for place in range(len(self.values))]

    def _ranked(self, keyed: Any, least: Sequence[int | None], n_records: int) -> Any:
        """Return records with the rank of their values in each column, 0 for values that fewer records have."""
        from pyspark.sql import Window
        from pyspark.sql import functions as sql

        frame = self.parted(keyed, n_records)
        parts = self.frame.sparkSession.range(self.n_parts(n_records)).withColumnRenamed("id", "same part")
        for value, rank, n_least in zip(self.values, self._ranks, least, strict=True):
            if n_least is None:
                frame = frame.withColumn(rank, sql.lit(0))
                continue
            frequent = keyed.groupBy(value).agg(sql.count(sql.lit(1)).alias("n")).where(sql.col("n") >= n_least)
            order = Window.orderBy(sql.col("n").desc(), sql.col(value).asc_nulls_last())
            ranks = frequent.select(sql.col(value).alias("same"), sql.row_number().over(order).alias(rank))
            ranks = ranks.crossJoin(parts)
            is_same = frame[value].eqNullSafe(ranks["same"]) & (frame["part"] == ranks["same part"])
            frame = joined(frame, ranks, is_same, "left").drop("same", "same part").fillna(0, [rank])
        return frame

    def _kept(self, ranked: Any, plan: Any, n_records: int) -> Any:
        """Return the records that stay: of each kind those with the lowest keys."""
        from pyspark.sql import Window
        from pyspark.sql import functions as sql

        session = self.frame.sparkSession
        names = [f"same {rank}" for rank in self._ranks]
        rows = [(*kind, int(n)) for kind, n in zip(plan.kinds.tolist(), plan.n_kept.tolist(), strict=True)]
        schema = ", ".join(f"`{name}` int" for name in names) + ", `most` bigint"
        parts = session.range(self.n_parts(n_records)).withColumnRenamed("id", "same part")
        most = session.createDataFrame(rows, schema).crossJoin(parts)
        is_same = ranked["part"] == most["same part"]
        for rank, name in zip(self._ranks, names, strict=True):
            is_same = is_same & (ranked[rank] == most[name])
        found = joined(ranked, most, is_same).drop("same part", *names)
        place = sql.row_number().over(Window.partitionBy(*self._ranks).orderBy("key"))
        return found.withColumn("rank", place).where(sql.col("rank") <= sql.col("most")).drop("rank", "most")

    def _counts_of_values(self, frame: Any) -> list[NDArray[np.int64]]:
        """Return for each sensitive column the counts of its values, falling; of those with one record, only one."""
        from pyspark.sql import functions as sql

        n = sql.count(sql.lit(1))
        parts = [
            frame.groupBy(name).agg(n.alias("n")).groupBy("n").agg(n.alias("values"), sql.lit(place).alias("place"))
            for place, name in enumerate(self.values)
        ]
        found = collected(united(parts))
        of, counts, values = (found[name].to_numpy().astype(np.int64) for name in ("place", "n", "values"))
        values = np.where(counts == 1, 1, values)  # so many may differ, and one record alone is never too frequent
        every = [np.repeat(counts[of == place], values[of == place]) for place in range(len(self.values))]
        return [np.sort(own)[::-1] for own in every]

    # -- after -----------------------------------------------------------------------------------------------------

    def _shuffled(self, dealt: Any, names: Sequence[str], groups: Sequence[str], purpose: str) -> Any:
        """Return some columns and groups, in an independent random order."""
        from pyspark.sql import functions as sql

        order = sql.sha2(sql.concat(sql.lit(self._salt(purpose)), sql.col("place").cast("string")), 256)
        mixed = dealt.withColumn("order", order).repartition("order").sortWithinPartitions("order")
        own = dict(zip(self.leaving, self.columns, strict=True))
        leaving = [sql.col(own[name]).alias(name, metadata={}) for name in names]
        called = dict(zip(self.groups, self.division.groups, strict=True))
        return mixed.select(*leaving, *(sql.col(group).alias(called[group]) for group in groups))


class _Deal:
    """One deal: the groups of one sensitive table."""

    def __init__(self, dealer: _Dealer, number: int, peaks: Sequence[int], n_records: int) -> None:
        self.dealer, self.number, self.n_records = dealer, number, n_records
        division = dealer.division
        self.names = division.sensitive[number].columns
        places = [dealer.names.index(name) for name in self.names]
        self.values = [dealer.values[place] for place in places]
        ls = [dealer.rule.ls[place] for place in places]
        self.l = max(ls)
        of_largest = [peaks[place] if l == self.l else 0 for place, l in zip(places, ls, strict=True)]  # noqa: E741
        self.first = self.values[int(np.argmax(of_largest))]
        self.ls = dict(zip(self.values, ls, strict=True))

    @property
    def carried(self) -> list[str]:
        """Columns that pass through: those that leave, the groups of earlier deals and the values for later ones."""
        later = [name for own in self.dealer.division.sensitive[self.number + 1 :] for name in own.columns]
        values = [self.dealer.values[self.dealer.names.index(name)] for name in later]
        return [*self.dealer.columns, *self.dealer.groups[: self.number], *values]

    def placed(self, frame: Any) -> Any:
        """Number the records from 0, value after value, and by their keys among those with the same value.

        A frequent value is numbered in parts, so that no worker has to sort all its records.
        """
        from pyspark.sql import Window
        from pyspark.sql import functions as sql

        value = self.first
        if self.number:
            frame = self.dealer.keyed_by_place(frame, self.number)
        parted = self.dealer.parted(frame, self.n_records)
        sizes = parted.groupBy(value, "part").agg(sql.count(sql.lit(1)).alias("n"))
        before = sql.sum("n").over(Window.orderBy(value, "part")) - sql.col("n")
        starts = sizes.select(sql.col(value).alias("same"), sql.col("part").alias("same part"), before.alias("start"))
        is_same = parted[value].eqNullSafe(starts["same"]) & (parted["part"] == starts["same part"])
        own = joined(parted, starts, is_same)
        rank = sql.row_number().over(Window.partitionBy(value, "part").orderBy("key"))
        place = (sql.col("start") + rank - 1).alias("place")
        return own.select(*self.carried, *self.values, place)

    def n_blocks(self, placed: Any) -> int:
        """Return the number of blocks: enough for one to fit on a worker, if that is safe.

        A group may take one of every so many records, and they have different values of the first sensitive column; a
        block is a number of such groups. Of a further column a block may have too much by chance.
        """
        from pyspark.sql import functions as sql

        n_blocks = min(self.n_records // self.l, self.dealer.n_parts(self.n_records))
        while n_blocks > 1 and len(self.values) > 1:
            blocks = placed.withColumn("block", self._block(n_blocks))
            n = sql.count(sql.lit(1))
            unsafe = [
                blocks.groupBy("block", name).agg(n.alias("n")).groupBy("block")
                .agg(sql.sum("n").alias("size"), sql.max("n").alias("most"))
                .where(sql.col("most") > sql.floor(sql.col("size") / l)).agg(n.alias("unsafe"))
                for name, l in self.ls.items()  # noqa: E741
            ]  # fmt: skip
            if not any(collected(united(unsafe))["unsafe"].to_pylist()):
                break
            n_blocks //= 2
        return n_blocks

    def _block(self, n_blocks: int) -> Any:
        from pyspark.sql import functions as sql

        return sql.col("place") % (self.n_records // self.l) % n_blocks

    def grouped(self, placed: Any, n_blocks: int) -> Any:
        """Divide the blocks on workers; return the records with one group more and their places."""
        from pyspark.sql.types import LongType, StructField, StructType

        fields = [StructField(name, placed.schema[name].dataType, True) for name in self.carried]
        group = self.dealer.groups[self.number]
        schema = StructType([*fields, StructField(group, LongType()), StructField("place", LongType())])
        blocks = placed.drop(*self.values).withColumn("block", self._block(n_blocks))
        return blocks.groupBy("block").applyInArrow(self._divide(n_blocks, self.carried, group), schema)

    def _divide(self, n_blocks: int, names: list[str], group: str) -> Callable[[Any], Any]:
        division, number, rule = self.dealer.division, self.number, self.dealer.rule
        own = dict(zip(self.dealer.leaving, self.dealer.columns, strict=True))
        secret = [own[name] for name in self.names]
        categorical = [own[name] for name in division.head.categorical if name in self.names]
        seed, draw = division.seed, division.draws().groups[number]

        def divide(table: Any) -> Any:
            import pyarrow as pa

            table = table.sort_by("place")
            block = table["block"][0].as_py()
            read = read_table(table.select(secret), categorical=categorical)
            codes = np.column_stack([number_values(read.column(name, for_counting=True)) for name in secret])
            random = draw if n_blocks == 1 else np.random.default_rng([*seed, *([number] if number else []), block])
            numbers = pa.array(rule.assign(codes, random, number).astype(np.int64) * n_blocks + block)
            return table.append_column(group, numbers).select([*names, group, "place"])

        return divide


def check_groups(identifying: Any, sensitive: Any, group: str, ls: Mapping[str, int], n_records: int) -> int:
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
    for name, l in ls.items():  # noqa: E741
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
    for (name, l), row in zip(ls.items(), found[1:], strict=True):  # noqa: E741
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
