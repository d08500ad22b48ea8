# SPDX-License-Identifier: Apache-2.0
"""Fit over a Spark DataFrame: workers count, grow branches and write the release.

The driver sees counts, bins and the values of groups, never a record.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.base import FROM_COUNTS, Asked, Growth, Guiding, Learned, Recipe, TableRegions, check_of
from sfumato.backends.group_describer import DescribedGroups, GroupDescriber
from sfumato.backends.spark.binning import CountedColumn, Counts, Wanted, count_columns
from sfumato.backends.spark.codes import Coding, GrownBranch, SparkCounting, grow_branches
from sfumato.backends.spark.recount import PERSON, recount
from sfumato.backends.spark.regions import count_regions
from sfumato.backends.spark.session import check_frame, collected, example_of, kept, map_in_arrow, map_pieces, pieces
from sfumato.coded_columns import CodedColumn
from sfumato.columns import Column
from sfumato.criteria import AlphaKAnonymity, Criterion, KAnonymity
from sfumato.criteria.criterion_counts import MOST_VALUES, Counter, make_counter
from sfumato.frames import Table, read_table
from sfumato.partition.records import Layout
from sfumato.partition.streaming import OuterGrower, attach_branch
from sfumato.partition.tree import Tree
from sfumato.regions import RegionPlan, Regions
from sfumato.representatives import CellColumn
from sfumato.schema import Frequencies, Judgement, Schema, check_naming, check_passing, judge_column


class SparkBackend:
    """A Spark DataFrame.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    """

    where = "a Spark DataFrame"
    cannot = FROM_COUNTS

    def __init__(self, frame: Any) -> None:
        check_frame(frame)
        self.frame = frame
        self._n_shares = 1

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.frame.columns)

    def example(self) -> Any:
        """Return one record without any value: records stay with the workers."""
        return example_of(self.frame)

    def map_blocks(self, work: Callable[[int, Any], Any], names: Sequence[str]) -> list[Any]:
        """Return the results of a function for every block of some columns, without an order."""
        return map_pieces(self.frame, lambda piece: work(0, piece), names)

    def learn(self, asked: Asked, check_feasible: Callable[[list[Counter], int], None]) -> Learned:
        """Count the values of all relevant columns."""
        columns, counters, counts = _counted(asked, self.frame, check_feasible)
        self._n_shares = counts.n_shares
        return Learned(columns, list(counters), counts.n_records)

    @contextmanager
    def coded(
        self, schema: Schema, learned: Learned, guiding: Guiding, regions: TableRegions | None, most_held: int
    ) -> Iterator[CodedFrame]:
        """Yield the codes and channels, cached on the workers."""
        asked = [counter for counter in learned.counters if counter.value_of_row is not None]
        checked = [(str(counter.criterion.column), getattr(counter, "column", None)) for counter in asked]
        coding = Coding(learned.columns, schema.limits, schema.categorical_features, guiding, checked, regions)
        with kept(coding.chunks(self.frame)) as chunks:
            checks = [check_of(counter) for counter in asked]
            counting = SparkCounting(chunks, checks, coding.empty, learned.n_records, self._n_shares)
            yield CodedFrame(counting, None if regions is None else regions.plan, most_held)

    @contextmanager
    def rewritten(self, recipe: Recipe, schema: Schema, learned: Learned) -> Iterator[WrittenFrame]:
        """Return the release; it is computed when it is recounted, and stays in Spark's cache from then on."""
        yield WrittenFrame(_rewritten(recipe, self.frame, schema), learned.n_records)


class WrittenFrame:
    """A release that was not returned yet.

    Attributes
    ----------
    frame : pyspark.sql.DataFrame
        What may be handed out once it was recounted.
    """

    def __init__(self, frame: Any, n_records: int) -> None:
        self.frame, self._n_records = frame, n_records

    def recount(self, names: Sequence[str], counters: Sequence[Counter]) -> int:
        """Count the groups with Spark's own ``groupBy``; return the size of the smallest."""
        self.frame, smallest = recount(self.frame, names, counters, self._n_records)
        return smallest


# -- counting ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WholeCounter(Counter):
    """A counter of the whole table, without its records.

    Attributes
    ----------
    totals : ndarray of int64
        Of each value; of records or persons, their number.
    column : CodedColumn or None
        The codes of the counted values; None where records or persons are counted.
    """

    totals: NDArray[np.int64] | None = None
    column: CodedColumn | None = None

    @property
    def reference(self) -> NDArray[np.int64]:
        """The counts of all records."""
        assert self.totals is not None
        return self.seen(self.totals)

    def count(self, group: Any, n_groups: int, group_of_fitted: Any = None) -> NDArray[np.int64]:
        """Return the counts of all records as one group."""
        assert self.totals is not None
        assert n_groups == 1
        return self.totals[None, :]


def _counted(
    asked: Asked, frame: Any, check_feasible: Callable[[list[Counter], int], None]
) -> tuple[list[CodedColumn], list[WholeCounter], Counts]:
    """Count the values of all relevant columns; raise GuaranteeError for criteria that the whole table fails."""
    schema, criteria = asked.schema, asked.criteria
    floor = _publishing_floor(frame, criteria)
    split = [Wanted(name, asked.max_bins, True, floor, asked.finer) for name in asked.split]
    named = [c for c in criteria if c.column is not None]
    counted = [Wanted(str(c.column), 0 if c.counting == "distinct" else MOST_VALUES, False) for c in named]
    passing = [name for name in schema.with_role("other") if name not in schema.keep]
    watched = [Wanted(name, 0, False) for name in passing]
    counts = count_columns(
        frame, [*split, *counted, *watched], categorical=schema.categorical_features, limits=schema.limits
    )
    found, n_records = counts.columns, counts.n_records
    of_criteria = iter(found[len(split) : len(split) + len(counted)])
    counters = [_counter(c, None if c.column is None else next(of_criteria), n_records) for c in criteria]
    check_feasible(list(counters), n_records)
    for name, own in zip(passing, found[len(split) + len(counted) :], strict=True):
        check_passing(_judged(asked.head, name, own), n_records)
    for wanted, own in zip(split, found, strict=False):
        if wanted.name in schema.quasi_identifiers and wanted.name not in schema.limits:
            check_naming(_judged(asked.head, wanted.name, own), is_chosen=asked.is_chosen)
    return [own.column for own in found[: len(split)] if own.column is not None], counters, counts


def _publishing_floor(frame: Any, criteria: Sequence[Criterion]) -> int:
    """Return the number of records a value needs to be published, so that k persons have it."""
    from pyspark.sql import functions as sql

    k = max(c.k for c in criteria if isinstance(c, KAnonymity | AlphaKAnonymity))
    floors = [k]
    for unit in {c.column for c in criteria if c.counting == "distinct"}:
        sizes = frame.groupBy(frame[unit].alias("person")).agg(sql.count(sql.lit(1)).alias("n"))
        largest = collected(sizes.orderBy(sql.desc("n")).limit(k - 1).select("n"))
        floors.append(1 + sum(largest["n"].to_pylist()))
    return max(floors)


def _counter(criterion: Criterion, found: CountedColumn | None, n_records: int) -> WholeCounter:
    if found is None:
        return WholeCounter(criterion, None, 1, totals=np.array([n_records]))
    if criterion.counting == "distinct":
        n_persons = found.n_distinct + int(found.has_missing)
        return WholeCounter(criterion, np.zeros(0, np.int64), n_persons, totals=np.array([n_persons]))
    # Each value once is enough to know what a criterion makes of the values.
    n_values = found.n_distinct
    coded = found.column
    values = np.arange(n_values + int(found.has_missing))
    missing = values == n_values if found.has_missing else None
    if coded is None or coded.categories is not None:
        categories = values[:n_values].astype(object) if coded is None else coded.categories
        every = Column(str(criterion.column), "category", values.astype(np.int32), missing, categories)
    else:
        ordered = np.append(coded.bins.values, coded.bins.values[:1]) if found.has_missing else coded.bins.values
        every = Column(str(criterion.column), coded.kind, ordered, missing, None, coded.moment)
    made = make_counter(criterion, every)
    return WholeCounter(
        made.criterion, np.zeros(0, np.int64), made.n_values,
        leaves_out_last=made.leaves_out_last, totals=found.counts, column=coded,
    )  # fmt: skip


def _judged(head: Table, name: str, found: CountedColumn) -> Judgement:
    """Judge a column by its counts, and by the form of its values where they were counted."""
    form, coded = head.head(name, for_counting=True), found.column
    if coded is not None:
        values = coded.bins.values if coded.categories is None else np.arange(len(coded.categories))
        form = Column(name, coded.kind, values, None, coded.categories, coded.moment)
    return judge_column(form, Frequencies(found.n_present, found.n_distinct, found.n_single))


# -- growing -----------------------------------------------------------------------------------------------------


class CodedFrame:
    """Codes on the workers, from which a tree is grown.

    Parameters
    ----------
    counting : SparkCounting
    plan : RegionPlan or None
        What is counted for regions.
    most_held : int
        Records whose branch one worker grows in memory.
    """

    def __init__(self, counting: SparkCounting, plan: RegionPlan | None, most_held: int) -> None:
        self._counting, self._plan, self._most_held = counting, plan, most_held
        self._grown: tuple[Tree, Layout] | None = None

    def grow(self, growth: Growth) -> tuple[Tree, list[DescribedGroups]]:
        """Grow the top from counts and the branches on workers, and assemble the tree."""
        counting = self._counting
        top = OuterGrower(
            counting, most_held=self._most_held, records=counting.empty, layout=growth.layout, guide=growth.guide,
            min_records=growth.min_records, checks=counting.checks, fall_back=growth.fall_back,
            n_threads=growth.n_threads,
        )  # fmt: skip
        nodes = top.grow_top()
        leaves = nodes.leaves
        leaves = leaves[np.argsort(nodes.start[leaves], kind="stable")]
        routing = top.routing(np.zeros(0, np.int64))

        def grown(
            describer: GroupDescriber, generators: Mapping[int, np.random.Generator] | None = None
        ) -> list[GrownBranch]:
            branches = grow_branches(counting, routing, replace(growth, describer=describer), generators)
            return [branches[int(leaf)] for leaf in leaves]

        if growth.generator is None:
            branches = grown(growth.describer)
        else:
            # Which draw is a group's is known only when the groups to its left are counted.
            first = grown(replace(growth.describer, representative="median"))
            n_groups = [len(branch.groups.sizes) for branch in first]
            branches = grown(growth.describer, _generators(growth.generator, leaves, n_groups))
        for leaf, branch in zip(leaves.tolist(), branches, strict=True):
            attach_branch(nodes, leaf, branch.nodes)
        nodes.sort_by_level()
        tree = nodes.to_tree(growth.layout)
        self._grown = tree, growth.layout
        return tree, [branch.groups for branch in branches]

    def count_hashes(self, layout: Layout, words: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the number of records with each of some combinations of codes."""
        return self._counting.count_hashes(layout, words, wanted)

    def regions(self, cells: Sequence[CellColumn] | None) -> Regions:
        """Count the groups of the tree on the workers, and find the weights of the columns there."""
        assert self._plan is not None
        assert self._grown is not None
        return count_regions(self._counting, *self._grown, self._plan, cells)


def _generators(
    first: np.random.Generator, leaves: NDArray[np.int64], n_groups: Sequence[int]
) -> dict[int, np.random.Generator]:
    """Return for each leaf a generator that stands where the draws of the groups to its left end."""
    found = {}
    for leaf, n in zip(leaves.tolist(), n_groups, strict=True):
        found[leaf] = copy.deepcopy(first)
        first.random(n)
    return found


# -- writing -----------------------------------------------------------------------------------------------------


def _rewritten(partition: Recipe, frame: Any, schema: Schema) -> Any:
    """Return the frame with new quasi-identifiers, and the person of each record beside it if there is a unit."""
    from pyspark.sql.types import StringType, StructField, StructType

    fields = []
    for own in frame.schema.fields:
        if own.name in partition.values:
            fields += [
                StructField(part.name, own.dataType if part.labels is None else StringType(), True)
                for part in partition.values[own.name]
            ]
        elif own.name not in partition.dropped:
            fields.append(own)
    unit = schema.unit
    if unit is not None:
        fields.append(StructField(PERSON, frame.schema[unit].dataType, True))
    rewritten = set(schema.quasi_identifiers)

    def work(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for piece in pieces(batches):
            group = partition.apply(piece)
            # Only the type of what is rewritten counts. Without its values none can slip through, and a missing one is
            # written alike in all pieces.
            arrays = [
                pa.nulls(piece.num_rows, field.type) if field.name in rewritten else piece.column(field.name)
                for field in piece.schema
            ]
            bare = pa.table(arrays, names=piece.column_names)
            made = partition.rewrite(read_table(bare, categorical=partition.categorical), group)
            if unit is not None:
                made = made.append_column(PERSON, piece.column(unit))
            yield from made.combine_chunks().to_batches()

    return map_in_arrow(frame, work, StructType(fields))
