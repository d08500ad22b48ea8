# SPDX-License-Identifier: Apache-2.0
"""Anonymize a Spark DataFrame: the groups and values of the same table in memory, with records left on the workers."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.base import TreeAnonymizer, check_of
from sfumato.anonymize.counting import MOST_VALUES, Counter, fewest_records, make_counter
from sfumato.anonymize.partition import Partition, partition_from_tree
from sfumato.backends import CodedColumn
from sfumato.backends.spark.session import check_frame, collected, example_of, kept, pieces
from sfumato.backends.spark.values import CountedColumn, Counts, Wanted, count_columns
from sfumato.columns import Column
from sfumato.criteria import AlphaKAnonymity, Criterion, KAnonymity
from sfumato.errors import ParameterError
from sfumato.frames import Table, read_table
from sfumato.parquet.fitting import as_list, check_supported, guide_shape, hand_over, with_hidden_guides
from sfumato.parquet.groups import Describing, joined_sizes
from sfumato.partition.records import make_layout
from sfumato.partition.streaming import OuterGrower, attach_branch
from sfumato.schema import Frequencies, Judgement, Schema, check_naming, check_passing, judge_column
from sfumato.spark.codes import Coding, GrownBranch, SparkCounting, grow_branches
from sfumato.spark.guiding import learn_guide
from sfumato.spark.recounting import PERSON, recount

MOST_HELD = 1_000_000
"""Records whose branch one worker grows in memory: about 200 bytes each."""


def fit_transform(
    anonymizer: TreeAnonymizer,
    frame: Any,
    *,
    guide_column: str | Sequence[str] | None = None,
    most_held: int = MOST_HELD,
) -> Any:
    """Anonymize a Spark DataFrame, and fit the anonymizer.

    Parameters
    ----------
    anonymizer : ModelGuidedAnonymizer, MondrianAnonymizer (strict median) or WorkloadAwareAnonymizer
        Unfitted; fitted afterwards, as if it had seen the table in memory.
    frame : pyspark.sql.DataFrame
        Must have the same records whenever it is read, as a table in files has. Read five times at most; cache it
        where that is cheaper than computing it.
    guide_column : str or list of str, optional
        The column of predictions or labels, or one column of probabilities per class. It does not leave, unless it is
        named in the anonymizer's `keep`.
    most_held : int
        Records that one worker holds in memory at once.

    Returns
    -------
    pyspark.sql.DataFrame
        The release, recounted by Spark's own ``groupBy``. It stays in Spark's cache, so that what was counted is what
        is written; ``spark.catalog.clearCache()`` frees it.

    Raises
    ------
    GuaranteeError
        When a criterion does not hold on the result. Nothing is handed out then, and the anonymizer is not fitted.

    Notes
    -----
    *Guarantee.* As of the anonymizer's own ``fit_transform``, counted again on the result. Temporary data of Spark
    (shuffles, caches) hold codes and records on the disks of the workers: they are as secret as the table itself.
    """
    check_frame(frame)
    check_supported(anonymizer, "a Spark DataFrame")
    guides = as_list(guide_column)
    for name in guides:
        if name not in frame.columns:
            raise ParameterError(f"guide_column names {name!r}, which is no column of the table. Correct the name.")
    own = with_hidden_guides(anonymizer, guides)
    own._check_parameters()
    criteria = own._all_criteria()
    for criterion in criteria:
        if criterion.column is not None and criterion.column not in frame.columns:
            raise ParameterError(
                f"{type(criterion).__name__} is on {criterion.column!r}, which is no column of the table: expected one "
                "of its columns, the target included. Correct the name, or add the column."
            )
    example = example_of(frame)
    head, schema = own._read(example, criteria, is_whole=False)
    columns, counters, counts = _counted(own, frame, schema, criteria, head)
    guiding = learn_guide(own, frame, guides, schema)
    checked = [(c.criterion.column, c.column) for c in counters if c.value_of_row is not None and c.criterion.column]
    coding = Coding(columns, schema.limits, schema.categorical_features, guiding, checked)
    with kept(coding.chunks(frame)) as chunks:
        own.partition_, parts = _grown(own, chunks, coding, counters, schema, criteria, counts, most_held)
    release = recount(_rewritten(own.partition_, frame, schema), schema, own.partition_, counters, counts.n_records)
    hand_over(anonymizer, own, example, schema, parts)
    return release


# -- counting ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WholeCounter(Counter):
    """A counter that knows the counts of the whole table, and none of its records.

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
    anonymizer: TreeAnonymizer, frame: Any, schema: Schema, criteria: Sequence[Criterion], head: Table
) -> tuple[list[CodedColumn], list[WholeCounter], Counts]:
    """Count the values of all columns that matter; refuse what the whole table already fails."""
    floor = _publishing_floor(frame, criteria)
    split = [Wanted(name, anonymizer.max_bins, True, floor) for name in anonymizer._split_columns(schema)]
    named = [c for c in criteria if c.column is not None]
    asked = [Wanted(str(c.column), 0 if c.counting == "distinct" else MOST_VALUES, False) for c in named]
    passing = [name for name in schema.with_role("other") if name not in schema.keep]
    watched = [Wanted(name, 0, False) for name in passing]
    counts = count_columns(
        frame, [*split, *asked, *watched], categorical=schema.categorical_features, limits=schema.limits
    )
    found, n_records = counts.columns, counts.n_records
    of_criteria = iter(found[len(split) : len(split) + len(asked)])
    counters = [_counter(c, None if c.column is None else next(of_criteria), n_records) for c in criteria]
    anonymizer._check_feasible(list(counters), n_records)
    for name, own in zip(passing, found[len(split) + len(asked) :], strict=True):
        check_passing(_judged(head, name, own), n_records)
    decided = {*schema.limits, *(anonymizer.hierarchies or ())}
    for wanted, own in zip(split, found, strict=False):
        if wanted.name in schema.quasi_identifiers and wanted.name not in decided:
            check_naming(_judged(head, wanted.name, own), is_chosen=anonymizer.quasi_identifiers is not None)
    return [own.column for own in found[: len(split)] if own.column is not None], counters, counts


def _publishing_floor(frame: Any, criteria: Sequence[Criterion]) -> int:
    """Return how many records must have a value before it may be published: so many that k persons have it."""
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


def _grown(
    anonymizer: TreeAnonymizer,
    chunks: Any,
    coding: Coding,
    counters: list[WholeCounter],
    schema: Schema,
    criteria: Sequence[Criterion],
    counts: Counts,
    most_held: int,
) -> tuple[Partition, list[Any]]:
    """Grow the top from counts, let workers grow the branches, and put the tree together."""
    columns, empty = list(coding.columns), coding.empty
    layout = make_layout([column.bins for column in columns])
    guide = guide_shape(coding.guiding.of(None), empty.dense.shape[1])
    checks = [check_of(counter) for counter in counters if counter.value_of_row is not None]
    counting = SparkCounting(chunks, checks, empty, counts.n_records, counts.n_shares)
    fewest, fall_back = fewest_records(list(counters)), anonymizer._falls_back()
    top = OuterGrower(
        counting, most_held=most_held, records=empty, layout=layout, guide=guide, min_records=fewest,
        checks=checks, fall_back=fall_back, n_threads=anonymizer._n_threads(),
    )  # fmt: skip
    nodes = top.grow_top()
    leaves = np.flatnonzero(nodes.left[: nodes.n_nodes] < 0)
    leaves = leaves[np.argsort(nodes.start[leaves], kind="stable")]
    routing = top.routing(np.zeros(0, np.int64))

    describing = Describing(columns[: len(schema.quasi_identifiers)], len(columns), anonymizer.representative)

    def grown(describing: Describing, generators: Mapping[int, np.random.Generator] | None = None) -> list[GrownBranch]:
        branches = grow_branches(
            counting, routing, layout, guide, describing,
            min_records=fewest, fall_back=fall_back, generators=generators,
        )  # fmt: skip
        return [branches[int(leaf)] for leaf in leaves]

    generator = anonymizer._generator()
    if generator is None:
        branches = grown(describing)
    else:
        # Which draw is a group's is known only when the groups to its left are counted.
        first = grown(replace(describing, representative="median"))
        n_groups = [len(branch.groups.sizes) for branch in first]
        branches = grown(describing, _generators(generator, leaves, n_groups))
    for leaf, branch in zip(leaves.tolist(), branches, strict=True):
        attach_branch(nodes, leaf, branch.nodes)
    nodes.sort_by_level()
    parts = [branch.groups for branch in branches]
    hashing = describing.words()
    values = describing.values_of(parts, lambda wanted: counting.count_hashes(*hashing, wanted))
    partition = partition_from_tree(
        nodes.to_tree(layout), columns, values, joined_sizes(parts),
        dropped=schema.dropped, limits=schema.to_dict()["limits"], categorical=schema.categorical_features,
        representative=anonymizer.representative, guarantees=tuple(c.describe() for c in criteria),
    )  # fmt: skip
    return partition, parts


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


def _rewritten(partition: Partition, frame: Any, schema: Schema) -> Any:
    """Return the frame with every record's quasi-identifiers replaced, and its person beside it where one is named."""
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

    return frame.mapInArrow(work, StructType(fields))
