# SPDX-License-Identifier: Apache-2.0
"""Count the regions of a tree over a frame of codes.

Each branch of the tree is counted by one worker. The values that few people of a group have stay with the workers: one
of them gets those of a single column, and counts them in pools of neighboring groups. The weights of the columns are
found by one worker, too, which gets the records of some groups. What reaches the driver is what a region says: counts
of at least the floor, the targets of whole groups, and the weights.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sfumato.backends.spark.codes import SparkCounting, joined_chunks, unpacked
from sfumato.backends.spark.session import collected, kept
from sfumato.partition.group_summaries import collect
from sfumato.partition.records import Layout
from sfumato.partition.tree import Tree
from sfumato.regions import (
    RegionPlan,
    Regions,
    Weights,
    joined_targets,
    judged_every,
    learn_weights,
    sample_of,
)
from sfumato.representatives import CellColumn

_PARTS = "column int, first int, part binary"
_TARGET = -1  # as the number of a column


def count_regions(
    counting: SparkCounting, tree: Tree, layout: Layout, plan: RegionPlan, cells: Sequence[CellColumn] | None
) -> Regions:
    """Return the regions of all groups of a tree.

    Parameters
    ----------
    counting : SparkCounting
        Has sent its records down the top of the tree.
    tree : Tree
    layout : Layout
    plan : RegionPlan
    cells : sequence of CellColumn or None
        What the tree leaves to each group; None: groups that are not boxes.
    """
    with kept(_counted_branches(counting, tree, layout, plan)) as parts:
        targets = joined_targets(_in_order(collected(parts.where(f"column = {_TARGET}"))))
        means = plan.means(targets)

        def pool(table: Any) -> Any:
            j = table["column"][0].as_py()
            return _rows([(j, 0, plan.pooled(j, _in_order(table), means))])

        pooled = parts.where(f"column <> {_TARGET}").groupBy("column").applyInArrow(pool, _PARTS)
        found = {row["column"]: _unpacked(row["part"]) for row in collected(pooled).to_pylist()}
    made = plan.unweighted([found[j] for j in range(len(found))], targets, means, cells)
    return plan.finished(made, _learned_weights(counting, tree, plan, made), targets)


def _counted_branches(counting: SparkCounting, tree: Tree, layout: Layout, plan: RegionPlan) -> Any:
    """Return what the groups of each branch count, a row for each column and one for the target."""
    empty = counting.empty

    def count(table: Any) -> Any:
        whole = joined_chunks(table["chunk"], empty)
        codes = whole.records.codes
        group = tree.apply(codes)
        first = int(group.min())  # the groups of a branch follow each other
        groups = collect(group - np.int32(first), int(group.max()) - first + 1)
        counted = plan.count(lambda j: np.ascontiguousarray(codes[:, j]), groups, *whole.target)
        return _rows([(_TARGET, first, counted.targets), *((j, first, own) for j, own in enumerate(counted.columns))])

    return counting.by_leaf(layout).applyInArrow(count, _PARTS)


def _learned_weights(counting: SparkCounting, tree: Tree, plan: RegionPlan, regions: Regions) -> Weights:
    """Find the weights of the columns with the records of some groups, on one worker."""
    from pyspark.sql import functions as sql

    every = judged_every(counting.n_records)

    def choose(batches: Iterator[Any]) -> Iterator[Any]:
        for chunk in unpacked(batches):
            group = tree.apply(chunk.records.codes)
            rows = np.flatnonzero(group % every == 0)
            codes = chunk.records.codes[rows]
            units = np.stack([own[codes[:, j]] for j, own in enumerate(plan.unit_of_code)], axis=1)
            sample = group[rows].astype(np.int64), units, *(own[rows] for own in chunk.target)
            yield from _rows([(0, 0, sample)]).to_batches()

    def learn(table: Any) -> Any:
        samples = [_unpacked(blob) for blob in table["part"].to_pylist()]
        sample = sample_of(*(np.concatenate(own) for own in zip(*samples, strict=True)))
        return _rows([(0, 0, learn_weights(regions, sample))])

    chosen = counting.chunks.mapInArrow(choose, _PARTS)
    found = collected(chosen.groupBy(sql.col("column")).applyInArrow(learn, _PARTS))
    weights: Weights = _unpacked(found["part"][0].as_py())
    return weights


def _rows(parts: Sequence[tuple[int, int, Any]]) -> Any:
    import pyarrow as pa

    columns, first, blobs = zip(*((j, n, zlib.compress(pickle.dumps(part, 5))) for j, n, part in parts), strict=True)
    return pa.table(
        {
            "column": pa.array(columns, pa.int32()),
            "first": pa.array(first, pa.int32()),
            "part": pa.array(blobs, pa.binary()),
        }
    )


def _unpacked(blob: bytes) -> Any:
    return pickle.loads(zlib.decompress(blob))


def _in_order(table: Any) -> list[Any]:
    """Return the parts of branches from the first group to the last."""
    return [_unpacked(blob) for blob in table.sort_by("first")["part"].to_pylist()]
