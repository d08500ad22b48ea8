# SPDX-License-Identifier: Apache-2.0
"""Bin the columns of a Spark DataFrame without moving its values; bins equal those of the table in memory.

Workers count the values of their shares, Spark adds the counts up and sorts the values of each column, and cuts them
where ``partition.binning`` would. What reaches the driver is one row per bin and one per category.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.blocks.binning import add_run, as_counted, coded_categories
from sfumato.backends.memory import read_limited
from sfumato.backends.spark.session import collected, kept, map_in_arrow, pieces, selected
from sfumato.backends.spark.shared_values import as_keys, describe_bins, from_keys, share_bins
from sfumato.coded_columns import CodedColumn, units_of
from sfumato.columns import Column, Kind, Moment
from sfumato.errors import InputError
from sfumato.frames import Table, read_table
from sfumato.partition.binning import Bins, code_type, nothing_shared
from sfumato.partition.distinct_values import sorted_distinct
from sfumato.partition.round_numbers import smallest_step
from sfumato.partition.shared_values import SharedValues
from sfumato.schema.limits import checked_limit

_ROWS = "place int, number bigint, text binary, n bigint"


@dataclass(frozen=True)
class Wanted:
    """A column whose values are counted.

    Attributes
    ----------
    name : str
    most_bins : int
        Bins of numbers at most; 0: only how many values there are is asked, and how many of them occur once. A column
        that is not split on is not binned: where it has more values, only those numbers are returned, too.
    is_split : bool
        Whether the column is read as one that is rewritten or split on, with its limit, or only to be counted.
    floor : int
        Fewest records that share what is published of a bin; 0: nothing is to be published.
    finer : int
        A smaller floor beside it, for regions; 0: none.
    """

    name: str
    most_bins: int
    is_split: bool
    floor: int = 0
    finer: int = 0

    def read(self, table: Table, limits: Mapping[str, Any]) -> Column:
        """Read the column of a block."""
        return read_limited(table, self.name, limits) if self.is_split else table.column(self.name, for_counting=True)


@dataclass(frozen=True)
class _Seen:
    """The kind of the values of a share."""

    kind: Kind
    is_real: bool
    moment: Moment | None
    is_zoned: bool
    width: float | None
    has_missing: bool
    is_empty: bool
    step: int
    is_decimal: bool

    @property
    def units(self) -> Sequence[int]:
        """The units of values between two others."""
        return units_of(self.moment, self.width, is_decimal=self.is_decimal)


@dataclass(frozen=True, eq=False)
class CountedColumn:
    """A column of the whole table.

    Attributes
    ----------
    column : CodedColumn or None
        Its bins; None where only numbers were asked for.
    counts : ndarray of int64
        Records of each code, missing last where it occurs.
    n_distinct, n_single, n_present : int
        Different values, those that occur once, and records that have one.
    has_missing : bool
    """

    column: CodedColumn | None
    counts: NDArray[np.int64]
    n_distinct: int
    n_single: int
    n_present: int
    has_missing: bool

    @property
    def is_ordered(self) -> bool:
        """Whether the column has bins of numbers."""
        return self.column is not None and self.column.bins.is_ordered

    def with_shared(self, shared: SharedValues | None, finer: SharedValues | None) -> CountedColumn:
        """Return the column with the publishable values of its bins, for both floors."""
        assert self.column is not None
        return replace(self, column=replace(self.column, bins=replace(self.column.bins, shared=shared, finer=finer)))


@dataclass(frozen=True, eq=False)
class Counts:
    """The counts of a frame.

    Attributes
    ----------
    columns : list of CountedColumn
    n_records : int
    n_shares : int
        Spark's partitions: each is counted by one worker.
    """

    columns: list[CountedColumn]
    n_records: int
    n_shares: int


def count_columns(
    frame: Any, wanted: Sequence[Wanted], *, categorical: Sequence[str], limits: Mapping[str, Any]
) -> Counts:
    """Count the values of columns, the records, and the shares they lie in.

    Parameters
    ----------
    frame : Spark DataFrame
    wanted : sequence of Wanted
    categorical, limits
        As of `MemorySource`.
    """
    reals: frozenset[int] = frozenset()
    with kept(_added(frame, wanted, categorical, limits, reals)) as added:
        totals, seen = _totals(added, len(wanted))
        reals = frozenset(place for place, own in enumerate(seen) if _has_both(own))
        if not reals:
            return _whole(added, wanted, totals, seen)
    # Whole numbers in some shares and fractions in others are fractions, and counted as such.
    with kept(_added(frame, wanted, categorical, limits, reals)) as added:
        return _whole(added, wanted, *_totals(added, len(wanted)))


def _has_both(seen: set[_Seen]) -> bool:
    return len({own.is_real for own in seen if own.kind == "number" and not own.is_empty}) == 2


def _whole(
    added: Any, wanted: Sequence[Wanted], totals: dict[int, tuple[int, int, int]], seen: list[set[_Seen]]
) -> Counts:
    asked = []
    for place, own in enumerate(wanted):
        n_distinct = totals.get(place, (0, 0, 0))[1]
        is_too_much = not own.is_split and n_distinct > own.most_bins
        asked.append(replace(own, most_bins=0) if is_too_much else own)
    rows = _bins(added, asked, totals)
    n_records = totals[len(wanted)][0]
    counted = [
        _counted(own, seen[place], totals.get(place, (0, 0, 0)), rows.get(place, []), n_records)
        for place, own in enumerate(asked)
    ]
    ordered = [place for place in rows if counted[place].is_ordered]

    def shared_by(floors: Mapping[int, int]) -> dict[int, SharedValues]:
        bins = {place: describe_bins(n, seen[place], rows[place]) for place, n in floors.items() if n}
        return share_bins(added, bins)

    shared = shared_by({place: asked[place].floor for place in ordered})
    finer = shared_by({place: asked[place].finer for place in ordered})
    for place in ordered:
        counted[place] = counted[place].with_shared(shared.get(place), finer.get(place))
    return Counts(counted, n_records, totals[len(wanted) + 1][0])


# -- on the workers ----------------------------------------------------------------------------------------------


@dataclass(eq=False)
class _Tally:
    """Counts one column of a share."""

    wanted: Wanted
    as_real: bool
    seen: set[_Seen] = field(default_factory=set)
    runs: list[tuple[NDArray[Any], NDArray[np.int64]]] = field(default_factory=list)
    categories: dict[Any, int] = field(default_factory=dict)

    def add(self, table: Table, limits: Mapping[str, Any]) -> None:
        column = self.wanted.read(table, limits)
        missing = column.missing
        is_empty = missing is not None and bool(missing.all())
        limit = limits.get(self.wanted.name) if self.wanted.is_split and column.kind != "category" else None
        is_real = self.as_real or column.values.dtype.kind == "f"
        present = column.values if missing is None else column.values[~missing]
        width = None if limit is None or is_empty else checked_limit(column, limit)
        step = 0
        if self.wanted.floor and column.categories is None and len(present):
            units = units_of(column.moment, width, is_decimal=column.is_decimal)
            step = smallest_step(np.sort(present), units)
        self.seen.add(
            _Seen(
                column.kind, is_real, column.moment, column.is_zoned, width,
                missing is not None and bool(missing.any()), is_empty, step, column.is_decimal,
            )
        )  # fmt: skip
        if column.categories is not None:
            counts = np.bincount(present, minlength=len(column.categories)).tolist()
            for value, n in zip(column.categories.tolist(), counts, strict=True):
                if n:
                    self.categories[value] = self.categories.get(value, 0) + n
        elif len(present):
            add_run(self.runs, sorted_distinct(present.astype(np.float64 if is_real else np.int64)))

    def rows(self, place: int) -> Iterator[Any]:
        for values, counts in self.runs:
            yield _batch(place, number=as_keys(values), n=counts)
        if self.categories:
            texts = [pickle.dumps(value, 4) for value in self.categories]
            yield _batch(place, text=texts, n=list(self.categories.values()))
        yield _batch(-1 - place, text=[pickle.dumps(own, 4) for own in self.seen], n=[1] * len(self.seen))


def _batch(place: int, *, n: Any, number: Any = None, text: Any = None) -> Any:
    import pyarrow as pa

    size = len(n)
    return pa.RecordBatch.from_arrays(
        [
            pa.array(np.full(size, place, np.int32)),
            pa.nulls(size, pa.int64()) if number is None else pa.array(number, pa.int64()),
            pa.nulls(size, pa.binary()) if text is None else pa.array(text, pa.binary()),
            pa.array(n, pa.int64()),
        ],
        names=["place", "number", "text", "n"],
    )


# -- added up by Spark --------------------------------------------------------------------------------------------


def _added(
    frame: Any, wanted: Sequence[Wanted], categorical: Sequence[str], limits: Mapping[str, Any], reals: frozenset[int]
) -> Any:
    """Return the counts of each column's values, and the kinds that were seen."""
    from pyspark.sql import functions as sql

    names = list(dict.fromkeys(own.name for own in wanted))
    codes = [name for name in categorical if name in names]

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        tallies = [_Tally(own, place in reals) for place, own in enumerate(wanted)]
        n_records = 0
        for piece in pieces(batches):
            table = read_table(piece, categorical=codes)
            n_records += table.n_records
            for tally in tallies:
                tally.add(table, limits)
        yield _batch(len(wanted), number=[0], n=[n_records])
        yield _batch(len(wanted) + 1, number=[0], n=[1])
        for place, tally in enumerate(tallies):
            yield from tally.rows(place)

    rows = map_in_arrow(selected(frame, names), work, _ROWS)
    return rows.groupBy("place", "number", "text").agg(sql.sum("n").alias("n"))


def _totals(added: Any, n_columns: int) -> tuple[dict[int, tuple[int, int, int]], list[set[_Seen]]]:
    """Return the numbers of records, distinct values and single values of each column, and the kinds seen."""
    from pyspark.sql import functions as sql

    counted = added.where("place >= 0").groupBy("place")
    once = (sql.col("n") == 1).cast("int")
    numbers = counted.agg(
        sql.sum("n").alias("total"), sql.count(sql.lit(1)).alias("different"), sql.sum(once).alias("single")
    )
    nothing = sql.lit(None).cast("bigint")
    marks = added.where("place < 0").select(
        "place", nothing.alias("total"), nothing.alias("different"), nothing.alias("single"), "text"
    )
    rows = collected(numbers.withColumn("text", sql.lit(None).cast("binary")).unionByName(marks)).to_pylist()
    totals = {row["place"]: (row["total"], row["different"], row["single"]) for row in rows if row["place"] >= 0}
    seen: list[set[_Seen]] = [set() for _ in range(n_columns)]
    for row in rows:
        if row["place"] < 0:
            seen[-1 - row["place"]].add(pickle.loads(row["text"]))
    if totals.get(n_columns, (0, 0, 0))[0] == 0:
        raise InputError("the table has 0 records: expected some.")
    return totals, seen


def _bins(
    added: Any, wanted: Sequence[Wanted], totals: Mapping[int, tuple[int, int, int]]
) -> dict[int, list[dict[str, Any]]]:
    """Split each column at its quantiles, as ``partition.binning`` does, and return its bins in order."""
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    asked = {place: own for place, own in enumerate(wanted) if own.most_bins and place in totals}
    if not asked:
        return {}
    most, total, different = (
        sql.create_map(*[sql.lit(part) for pair in found.items() for part in pair])[sql.col("place")]
        for found in (
            {place: own.most_bins for place, own in asked.items()},
            {place: totals[place][0] for place in asked},
            {place: totals[place][1] for place in asked},
        )
    )
    chosen = added.where(sql.col("place").isin(list(asked)))
    in_order = Window.partitionBy("place").orderBy("number")
    sized = (
        chosen.where("text is null")
        .withColumn("most", most)
        .withColumn("capped", sql.least(sql.col("n") * sql.col("most"), total))
        .withColumn("before", sql.sum("capped").over(in_order) - sql.col("capped"))
        .withColumn("capped_total", sql.sum("capped").over(Window.partitionBy("place")))
        .withColumn(
            "bin",
            sql.when(different <= sql.col("most"), sql.row_number().over(in_order).cast("bigint")).otherwise(
                sql.expr("before * most div capped_total")
            ),
        )
    )
    # The most frequent value stands for a bin, the lowest on ties.
    numbers = sized.groupBy("place", "bin").agg(
        sql.min("number").alias("low"), sql.max("number").alias("high"),
        sql.min_by("number", sql.struct(-sql.col("n"), sql.col("number"))).alias("mode"), sql.sum("n").alias("n"),
        sql.max("n").alias("n_mode"), sql.count(sql.lit(1)).alias("n_values"),
        sql.min_by("n", "number").alias("n_low"), sql.max_by("n", "number").alias("n_high"),
    )  # fmt: skip
    nothing = sql.lit(None).cast("bigint")
    texts = chosen.where("text is not null").select(
        "place", *[nothing.alias(name) for name in ("bin", "low", "high", "mode")], "n",
        *[nothing.alias(name) for name in ("n_mode", "n_values", "n_low", "n_high")], "text",
    )  # fmt: skip
    found: dict[int, list[dict[str, Any]]] = {}
    for row in collected(numbers.withColumn("text", sql.lit(None).cast("binary")).unionByName(texts)).to_pylist():
        found.setdefault(row["place"], []).append(row)
    return found


def _counted(
    wanted: Wanted, seen: set[_Seen], totals: tuple[int, int, int], rows: list[dict[str, Any]], n_records: int
) -> CountedColumn:
    n_present, n_distinct, n_single = totals
    has_missing = any(own.has_missing for own in seen)
    last = [n_records - n_present] if has_missing else []
    if not wanted.most_bins:
        return CountedColumn(None, np.zeros(0, np.int64), n_distinct, n_single, n_present, has_missing)
    known = {own for own in seen if not own.is_empty} or seen
    if len({(own.kind, own.moment) for own in known}) > 1:
        raise InputError(
            f"the column {wanted.name!r} holds values of different kinds in different parts of the table: expected one "
            "kind. Convert the column."
        )
    own = next(iter(known))
    if own.kind == "category":
        categories, n_each, of_bins = as_counted({pickle.loads(row["text"]): row["n"] for row in rows})
        counts = of_bins.tolist()
        column = coded_categories(wanted.name, categories, has_missing, n_each, wanted.floor, wanted.finer)
    else:
        rows = sorted(rows, key=lambda row: int(row["low"]))
        is_real = any(found.is_real for found in known)
        low, high, mode = (
            from_keys(np.array([row[end] for row in rows], np.int64), is_real) for end in ("low", "high", "mode")
        )
        shared = [nothing_shared(mode, n) if n and not rows else None for n in (wanted.floor, wanted.finer)]
        bins = Bins(True, mode, low, high, has_missing, *shared)
        nothing = np.zeros(0, code_type(bins.n_bins))
        column = CodedColumn(wanted.name, own.kind, bins, nothing, None, own.moment, own.width, own.is_zoned)
        counts = [row["n"] for row in rows]
    return CountedColumn(column, np.array(counts + last, np.int64), n_distinct, n_single, n_present, has_missing)
