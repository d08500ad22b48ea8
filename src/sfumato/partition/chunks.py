# SPDX-License-Identifier: Apache-2.0
"""What is done to a chunk of records of a table that no memory holds: move on and count, whatever the guide.

``sources.code_file`` and ``spark`` call this for chunk after chunk; the outer grower says how records move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.candidates import Candidates
from sfumato.partition.dividing import goes_left
from sfumato.partition.histogram import Shape
from sfumato.partition.records import Layout, Records


@dataclass(frozen=True, eq=False)
class Routing:
    """How records move on from the nodes that were split; arrays over all nodes, -1 where a node stays.

    Attributes
    ----------
    left, right : ndarray of int64
        Children; -1 for nodes that were not split.
    column, last_bin : ndarray of int64
    missing_left : ndarray of bool
    mask : ndarray of uint64
    slot : ndarray of int64
        Where the histogram of a node goes; -1 for nodes that are not counted.
    n_slots : int
    """

    left: NDArray[np.int64]
    right: NDArray[np.int64]
    column: NDArray[np.int64]
    last_bin: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    mask: NDArray[np.uint64]
    slot: NDArray[np.int64]
    n_slots: int


def advance_chunk(
    records: Records, node_of_row: NDArray[np.uint32], routing: Routing, shape: Shape, out: NDArray[np.int64]
) -> None:
    """Move the records of a chunk on, and add those that arrive in a counted node to its histogram."""
    _advance(
        records.codes, records.dense, records.weights, node_of_row, routing.left, routing.right, routing.column,
        routing.last_bin, routing.missing_left, routing.mask, routing.slot, shape.layout.missing, shape.layout.offsets,
        shape.block_columns, shape.block_channels, out,
    )  # fmt: skip


@njit(nogil=True, cache=True)
def _advance(  # type: ignore[no-untyped-def]
    codes, dense, weights, node_of_row, left, right, column, last_bin, missing_left, mask, slot, missing, offsets,
    block_columns, block_channels, out,
):  # fmt: skip
    n_columns = offsets.shape[0] - 1
    n_dense = dense.shape[1]
    is_weighted = weights.shape[0] > 0
    weight_at = out.shape[2] - 1
    for i in range(codes.shape[0]):
        node = node_of_row[i]
        while left[node] >= 0:
            c = column[node]
            if goes_left(codes[i, c], last_bin[node], missing[c], missing_left[node], mask[node]):
                node = left[node]
            else:
                node = right[node]
        node_of_row[i] = node
        h = slot[node]
        if h < 0:
            continue
        weight = weights[i] if is_weighted else 1
        for j in range(n_columns):
            row = offsets[j] + codes[i, j]
            out[h, row, 0] += 1
            for d in range(n_dense):
                out[h, row, 1 + d] += weight * dense[i, d]
            for q in range(block_columns.shape[0]):
                out[h, row, block_channels[q] + codes[i, block_columns[q]]] += weight
            if is_weighted:
                out[h, row, weight_at] += weight


def count_sides_of_chunk(
    codes: NDArray[Any],
    node_of_row: NDArray[np.uint32],
    values: NDArray[np.int32],
    place: NDArray[np.int64],
    candidates: Candidates,
    rank: int,
    layout: Layout,
    out: NDArray[np.int64],
) -> None:
    """Count a column's values on both sides of one split per node: out[place of node, side, value]."""
    _count_sides(
        codes, node_of_row, values, place, candidates.column[:, rank], candidates.last_bin[:, rank],
        candidates.missing_left[:, rank], candidates.mask[:, rank], layout.missing, out,
    )  # fmt: skip


@njit(nogil=True, cache=True)
def _count_sides(codes, node_of_row, values, place, column, last_bin, missing_left, mask, missing, out):  # type: ignore[no-untyped-def]
    for i in range(codes.shape[0]):
        node = node_of_row[i]
        p = place[node] if node < place.shape[0] else -1
        if p >= 0:
            c = column[p]
            side = 0 if goes_left(codes[i, c], last_bin[p], missing[c], missing_left[p], mask[p]) else 1
            out[p, side, values[i]] += 1
