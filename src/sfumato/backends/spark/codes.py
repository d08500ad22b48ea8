# SPDX-License-Identifier: Apache-2.0
"""The records of a Spark DataFrame as codes, cached on the workers, which the outer grower counts.

One row of the frame of codes is a chunk of many records, so that Spark moves few large rows. Nothing in it changes:
every pass sends records down the tree as far as it has grown, from the root, so a chunk that is lost with its worker is
computed again and means the same.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.base import Growth, Guiding, TableRegions
from sfumato.backends.blocks.binning import encode
from sfumato.backends.group_describer import DescribedGroups
from sfumato.backends.memory import read_limited
from sfumato.backends.spark.session import collected, map_in_arrow, pieces, selected
from sfumato.coded_columns import CodedColumn
from sfumato.columns import Column
from sfumato.frames import read_table
from sfumato.partition.candidates import Candidates
from sfumato.partition.criterion_checks import Check
from sfumato.partition.grower import Grower
from sfumato.partition.histogram import Shape
from sfumato.partition.phantom_search import count_hashes
from sfumato.partition.records import Layout, Records, pack_records
from sfumato.partition.streaming import Routing, advance_chunk, count_sides_of_chunk
from sfumato.partition.tree import NodeTable

_MOST_ADDED = 64  # shares whose histograms one worker adds up; more are added in two rounds


@dataclass(frozen=True, eq=False)
class Chunk:
    """Some records.

    Attributes
    ----------
    records : Records
    classes : ndarray or None
        Their predicted classes.
    values : tuple of ndarray
        For each check what it counts: codes, or names of persons as bytes.
    target : tuple of ndarray
        Their target as classes and as numbers, if regions are counted; or else nothing.
    """

    records: Records
    classes: NDArray[Any] | None
    values: tuple[NDArray[Any], ...]
    target: tuple[NDArray[Any], ...] = ()

    def taken(self, rows: NDArray[Any]) -> Chunk:
        """Return some of the records."""
        own = self.records
        return Chunk(
            Records(own.codes[rows], own.dense[rows], own.weights, np.arange(len(rows), dtype=np.uint32)),
            None if self.classes is None else self.classes[rows],
            tuple(part[rows] for part in self.values),
            tuple(part[rows] for part in self.target),
        )


@dataclass(frozen=True, eq=False)
class Coding:
    """How records become chunks.

    Attributes
    ----------
    columns : sequence of CodedColumn
        What the tree splits on, the quasi-identifiers first.
    limits : mapping
    categorical : sequence of str
    guiding : Guiding
    checked : sequence of (str, CodedColumn or None)
        What each check counts: the codes of a column, or with None the persons that it names.
    regions : TableRegions or None
        Whose target the chunks have.
    """

    columns: Sequence[CodedColumn]
    limits: Mapping[str, Any]
    categorical: Sequence[str]
    guiding: Guiding
    checked: Sequence[tuple[str, CodedColumn | None]]
    regions: TableRegions | None = None

    @property
    def names(self) -> list[str]:
        """The columns that are read."""
        read = [column.name for column in self.columns]
        target = [] if self.regions is None else [self.regions.name]
        return list(dict.fromkeys([*read, *self.guiding.names, *(name for name, _ in self.checked), *target]))

    @property
    def empty(self) -> Records:
        """No records, of the right types."""
        guide = self.guiding.of(None)
        return pack_records([column.codes[:0] for column in self.columns], guide.code_blocks, guide.dense)

    def chunk(self, piece: Any) -> Chunk:
        """Code the records of a block."""
        table = read_table(piece, categorical=[name for name in self.categorical if name in piece.column_names])
        guide = self.guiding.of(piece)
        codes = [encode(column, read_limited(table, column.name, self.limits)) for column in self.columns]
        values = []
        for name, column in self.checked:
            read = table.column(name, for_counting=True)
            values.append(persons(read) if column is None else encode(column, read).astype(np.int32))
        target = () if self.regions is None else self.regions.coded(piece)
        return Chunk(pack_records(codes, guide.code_blocks, guide.dense), guide.classes, tuple(values), target)

    def chunks(self, frame: Any) -> Any:
        """Return the frame of codes."""

        def work(batches: Iterator[Any]) -> Iterator[Any]:
            for piece in pieces(batches):
                yield _packed(chunk=[self.chunk(piece)])

        return map_in_arrow(selected(frame, self.names), work, "chunk binary")


def persons(column: Column) -> NDArray[np.object_]:
    """Return the person of each record as bytes, equal for equal values; missing values are one person."""
    if column.categories is not None:
        names = [f"t{value}".encode() for value in column.categories.tolist()]
        at = column.values
    else:
        distinct, at = np.unique(column.values, return_inverse=True)
        # A whole number is the same person whether its share of the table has fractions or not.
        numbers = [int(v) if isinstance(v, float) and v.is_integer() else v for v in distinct.tolist()]
        names = [f"n{number!r}".encode() for number in numbers]
    every: NDArray[np.object_] = np.empty(len(names) + 1, object)
    every[:] = [*names, b"m"]
    return np.asarray(every[at if column.missing is None else np.where(column.missing, len(names), at)])


class SparkCounting:
    """Counts the records of a frame of codes for the outer grower.

    Parameters
    ----------
    chunks : Spark DataFrame
    checks : sequence of Check
    empty : Records
    n_records : int
    n_shares : int
        Spark's partitions of the frame.
    """

    def __init__(self, chunks: Any, checks: Sequence[Check], empty: Records, n_records: int, n_shares: int) -> None:
        self.chunks, self.checks, self.empty = chunks, checks, empty
        self.n_records, self.n_shares = n_records, n_shares
        self._routing: Routing | None = None

    def advance(self, routing: Routing, shape: Shape) -> NDArray[np.int64]:
        """Send every record down the tree, and return the requested histograms."""
        self._routing = routing._replace(slot=np.full_like(routing.slot, -1), n_slots=0)
        size = (routing.n_slots, int(shape.layout.offsets[-1]), shape.n_entries)
        if not routing.n_slots:
            return np.zeros(size, np.int64)

        def count(chunk: Chunk, out: NDArray[np.int64]) -> None:
            node_of_row = np.zeros(chunk.records.n_records, np.uint32)
            advance_chunk(chunk.records, node_of_row, routing, shape, out)

        return self._summed(count, size)

    def count_sides(
        self, nodes: NDArray[np.int64], candidates: Candidates, rank: int, check: int, layout: Layout
    ) -> NDArray[np.int64]:
        """Return the counts of a check on both sides of one split per node."""
        own, reached = self.checks[check], self.reached(layout)
        place = np.full(int(nodes.max()) + 1, -1, np.int64)
        place[nodes] = np.arange(len(nodes))

        def count(chunk: Chunk, values: NDArray[np.int32], out: NDArray[np.int64]) -> None:
            count_sides_of_chunk(chunk.records.codes, reached(chunk), values, place, candidates, rank, layout, out)

        if own.distinct:
            return self._persons_of_sides(count, check, len(nodes))
        return self._summed(lambda chunk, out: count(chunk, chunk.values[check], out), (len(nodes), 2, own.n_values))

    def count_hashes(self, layout: Layout, words: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> NDArray[np.int64]:
        """Return the number of records with each of some combinations of codes; see `partition.phantoms`."""

        def count(chunk: Chunk, out: NDArray[np.int64]) -> None:
            out[0, :, 0] += count_hashes(chunk.records.codes, layout, words, wanted)

        return self._summed(count, (1, len(wanted), 1))[0, :, 0]

    def reached(self, layout: Layout) -> Callable[[Chunk], NDArray[np.uint32]]:
        """Return what tells the node that each record of a chunk has reached."""
        routing = self._routing
        assert routing is not None
        shape = _no_shape(layout)

        def reached(chunk: Chunk) -> NDArray[np.uint32]:
            node_of_row = np.zeros(chunk.records.n_records, np.uint32)
            advance_chunk(chunk.records, node_of_row, routing, shape, np.zeros((0, 1, 1), np.int64))
            return node_of_row

        return reached

    def by_leaf(self, layout: Layout) -> Any:
        """Return the chunks cut at the leaves of the top, as a frame that is grouped by ``leaf``."""
        reached = self.reached(layout)

        def sort(batches: Iterator[Any]) -> Iterator[Any]:
            for chunk in unpacked(batches):
                node_of_row = reached(chunk)
                leaves = np.unique(node_of_row)
                parts = [chunk.taken(np.flatnonzero(node_of_row == leaf)) for leaf in leaves]
                yield _packed(leaf=leaves.astype(np.int32), chunk=parts)

        return self.chunks.mapInArrow(sort, "leaf int, chunk binary").groupBy("leaf")

    def _summed(
        self, count: Callable[[Chunk, NDArray[np.int64]], None], size: tuple[int, int, int]
    ) -> NDArray[np.int64]:
        """Count chunks on workers and add the counts up in Spark; one row per slot reaches the driver."""
        from pyspark.sql import functions as sql

        def work(batches: Iterator[Any]) -> Iterator[Any]:
            out = np.zeros(size, np.int64)
            is_used = False
            for chunk in unpacked(batches):
                count(chunk, out)
                is_used = True
            for slot in range(size[0] if is_used else 0):
                yield _slot_batch(slot, out[slot])

        def add(table: Any) -> Any:
            blobs = table["counts"].to_pylist()
            total = np.frombuffer(blobs[0], np.int64).copy()
            for blob in blobs[1:]:
                total += np.frombuffer(blob, np.int64)
            return _slot_batch(table["slot"][0].as_py(), total, as_table=True)

        added = self.chunks.mapInArrow(work, "slot int, counts binary")
        if self.n_shares > _MOST_ADDED:
            share = (sql.spark_partition_id() % _MOST_ADDED).alias("share")
            added = added.groupBy("slot", share).applyInArrow(add, "slot int, counts binary")
        found = collected(added.groupBy("slot").applyInArrow(add, "slot int, counts binary")).to_pylist()
        out = np.zeros(size, np.int64)
        for row in found:
            out[row["slot"]] = np.frombuffer(row["counts"], np.int64).reshape(size[1:])
        return out

    def _persons_of_sides(self, count: Any, check: int, n_nodes: int) -> NDArray[np.int64]:
        """Count the distinct persons on each side; a person may be on several workers."""
        from pyspark.sql import functions as sql

        def work(batches: Iterator[Any]) -> Iterator[Any]:
            import pyarrow as pa

            for chunk in unpacked(batches):
                names, numbers = np.unique(chunk.values[check], return_inverse=True)
                marks = np.zeros((n_nodes, 2, len(names)), np.int64)
                count(chunk, numbers.astype(np.int32), marks)
                side, person = np.nonzero(marks.reshape(2 * n_nodes, -1))
                yield pa.RecordBatch.from_arrays(
                    [pa.array(side, pa.int32()), pa.array(names[person], pa.binary())], names=["side", "person"]
                )

        marked = self.chunks.mapInArrow(work, "side int, person binary")
        found = collected(marked.groupBy("side").agg(sql.countDistinct("person").alias("n"))).to_pylist()
        out = np.zeros(2 * n_nodes, np.int64)
        for row in found:
            out[row["side"]] = row["n"]
        return out.reshape(n_nodes, 2, 1)


@dataclass(frozen=True, eq=False)
class GrownBranch:
    """The result of one worker for one leaf of the top: a small tree, and the values of its groups."""

    nodes: NodeTable
    groups: DescribedGroups


def grow_branches(
    counting: SparkCounting,
    routing: Routing,
    growth: Growth,
    generators: Mapping[int, np.random.Generator] | None = None,
) -> dict[int, GrownBranch]:
    """Send the records of every leaf of the top to one worker each, which grows the branch.

    Parameters
    ----------
    counting : SparkCounting
    routing : Routing
        Of the finished top, with nothing to count.
    growth : Growth
    generators : mapping, optional
        By leaf, for a representative that is drawn.

    Returns
    -------
    branches : dict
        By leaf.
    """
    layout, guide, describer = growth.layout, growth.guide, growth.describer
    min_records, fall_back = growth.min_records, growth.fall_back
    counting.advance(routing, _no_shape(layout))
    checks, empty = counting.checks, counting.empty

    def grow(table: Any) -> Any:
        import pyarrow as pa

        whole = joined_chunks(table["chunk"], empty)
        own = [_own_check(check, values) for check, values in zip(checks, whole.values, strict=True)]
        grower = Grower(whole.records, layout, guide, min_records, checks=own, fall_back=fall_back)
        tree, group = grower.grow()
        leaf = table["leaf"][0].as_py()
        random = None if generators is None else generators[leaf]
        classed = replace(guide, classes=whole.classes)
        groups = describer.describe(whole.records, group, tree, classed, random)
        branch = zlib.compress(pickle.dumps(GrownBranch(grower.nodes.trimmed(), groups), 5))
        return pa.table({"leaf": pa.array([leaf], pa.int32()), "branch": pa.array([branch], pa.binary())})

    found = collected(counting.by_leaf(layout).applyInArrow(grow, "leaf int, branch binary"))
    return {row["leaf"]: pickle.loads(zlib.decompress(row["branch"])) for row in found.to_pylist()}


def _no_shape(layout: Layout) -> Shape:
    return Shape(layout, 1, np.zeros(0, np.int64), np.zeros(0, np.int64))


def _own_check(check: Check, values: NDArray[Any]) -> Check:
    """Return a check on the records of one branch; persons get numbers."""
    if not check.distinct:
        return replace(check, value_of_row=values)
    names, numbers = np.unique(values, return_inverse=True)
    return replace(check, value_of_row=numbers.astype(np.int32), n_values=len(names))


def joined_chunks(blobs: Any, empty: Records) -> Chunk:
    """Return the records of all chunks of an Arrow column."""
    chunks: list[Chunk] = [pickle.loads(blob) for blob in blobs.to_pylist()]
    codes, dense = (np.concatenate([getattr(chunk.records, name) for chunk in chunks]) for name in ("codes", "dense"))
    classes = [chunk.classes for chunk in chunks if chunk.classes is not None]
    return Chunk(
        Records(codes, dense, empty.weights, np.arange(len(codes), dtype=np.uint32)),
        np.concatenate(classes) if classes else None,
        *(
            tuple(np.concatenate(parts) for parts in zip(*(getattr(chunk, name) for chunk in chunks), strict=True))
            for name in ("values", "target")
        ),
    )


def _packed(*, chunk: Iterable[Chunk], leaf: Any = None) -> Any:
    import pyarrow as pa

    chunks = pa.array([pickle.dumps(own, 5) for own in chunk], pa.binary())
    if leaf is None:
        return pa.RecordBatch.from_arrays([chunks], names=["chunk"])
    return pa.RecordBatch.from_arrays([pa.array(leaf), chunks], names=["leaf", "chunk"])


def unpacked(batches: Iterable[Any]) -> Iterator[Chunk]:
    """Yield the chunks of Arrow batches."""
    for batch in batches:
        for blob in batch.column(0):
            yield pickle.loads(blob.as_py())


def _slot_batch(slot: int, counts: NDArray[np.int64], *, as_table: bool = False) -> Any:
    import pyarrow as pa

    arrays = [pa.array([slot], pa.int32()), pa.array([counts.tobytes()], pa.binary())]
    batch = pa.RecordBatch.from_arrays(arrays, names=["slot", "counts"])
    return pa.Table.from_batches([batch]) if as_table else batch
