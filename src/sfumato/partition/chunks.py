# SPDX-License-Identifier: Apache-2.0
"""What is done to a chunk of records of a table that no memory holds: move on, count, gather.

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
from sfumato.partition.histogram import PACKED_COUNT_BIT, PACKED_RECORDS
from sfumato.partition.records import Layout, Records, as_words


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


@dataclass(frozen=True)
class Shape:
    """What a histogram is made of: everything that counting needs to know of layout and guide."""

    layout: Layout
    n_entries: int
    block_columns: NDArray[np.int64]
    block_channels: NDArray[np.int64]


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


def advance_one_channel(
    records: Records,
    node_of_row: NDArray[np.uint32],
    routing: Routing,
    shape: Shape,
    packed: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Do what `advance_chunk` does for at most 65,536 records with one small channel: one addition instead of two.

    `packed` is working memory of one zero per histogram and bin, and is zero again afterwards.
    """
    assert records.n_records <= PACKED_RECORDS
    _advance_one_channel(
        records.codes, records.dense, node_of_row, routing.left, routing.right, routing.column, routing.last_bin,
        routing.missing_left, routing.mask, routing.slot, shape.layout.missing, shape.layout.offsets, packed, out,
    )  # fmt: skip


@njit(nogil=True, cache=True)
def _advance_one_channel(  # type: ignore[no-untyped-def]
    codes, dense, node_of_row, left, right, column, last_bin, missing_left, mask, slot, missing, offsets, packed, out,
):  # fmt: skip
    n_columns = offsets.shape[0] - 1
    one = np.int64(1) << PACKED_COUNT_BIT
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
        if h >= 0:
            value = one + dense[i, 0]
            for j in range(n_columns):
                packed[h, offsets[j] + codes[i, j]] += value
    for h in range(packed.shape[0]):
        for row in range(packed.shape[1]):
            if packed[h, row] != 0:
                out[h, row, 0] += packed[h, row] >> PACKED_COUNT_BIT
                out[h, row, 1] += packed[h, row] & (one - 1)
                packed[h, row] = 0


def count_places(node_of_row: NDArray[np.uint32], place: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
    """Count the records of a chunk whose nodes have a place."""
    _count_places(node_of_row, place, counts)


@njit(nogil=True, cache=True)
def _count_places(node_of_row, place, counts):  # type: ignore[no-untyped-def]
    for i in range(node_of_row.shape[0]):
        p = place[node_of_row[i]]
        if p >= 0:
            counts[p] += 1


def gather_chunk(
    records: Records,
    first_row: int,
    node_of_row: NDArray[np.uint32],
    place: NDArray[np.int64],
    at: NDArray[np.int64],
    out: Records,
) -> None:
    """Copy the records of a chunk whose nodes have a place to where those of that place go on; `at` moves along."""
    _gather(
        as_words(records.codes), records.dense, first_row, node_of_row, place, at, as_words(out.codes), out.dense,
        out.rows,
    )  # fmt: skip


@njit(nogil=True, cache=True)
def _gather(words, dense, first_row, node_of_row, place, at, to_words, to_dense, to_rows):  # type: ignore[no-untyped-def]
    for i in range(words.shape[0]):
        p = place[node_of_row[i]]
        if p < 0:
            continue
        to = at[p]
        at[p] = to + 1
        for w in range(words.shape[1]):
            to_words[to, w] = words[i, w]
        for c in range(dense.shape[1]):
            to_dense[to, c] = dense[i, c]
        to_rows[to] = first_row + i


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
