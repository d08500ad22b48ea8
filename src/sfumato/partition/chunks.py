# SPDX-License-Identifier: Apache-2.0
"""What is done to a chunk of records of a table that no memory holds: move on, count, and gather the records of nodes.

``sources.code_file`` and ``spark`` call this for chunk after chunk; the outer grower says how records move. Any guide
is counted record by record; one channel is counted quickly where codes lie column by column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.candidates import Candidates
from sfumato.partition.dividing import goes_left
from sfumato.partition.histogram import PACKED_COUNT_BIT, PACKED_RECORDS, Shape
from sfumato.partition.records import Layout, Records

_COUNTED_AT_ONCE = 1024  # records: what is known of them stays in the first cache while column after column is counted
_BLOCK = 2048  # records gathered column by column at a time: few enough for what is written to stay in the cache


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


@dataclass(frozen=True, eq=False)
class ColumnChunk:
    """Some records, column by column.

    Attributes
    ----------
    n_records : int
        Each array has room for more.
    dense : ndarray of int32, shape (channels, room)
    wide : ndarray of uint16, shape (columns of two bytes, room)
    narrow : ndarray of uint8, shape (columns of one byte, room)
    at : ndarray of int64
        For each code column its row in `wide`, or -1 - its row in `narrow`.
    """

    n_records: int
    dense: NDArray[np.int32]
    wide: NDArray[np.uint16]
    narrow: NDArray[np.uint8]
    at: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Scratch:
    """Working memory of a thread that counts.

    Attributes
    ----------
    packed : ndarray of int64
        One per histogram and bin, zero between chunks.
    row, first : ndarray of int32
        Records that are counted, and where the histogram of each begins.
    value : ndarray of int64
        What each adds.
    """

    packed: NDArray[np.int64]
    row: NDArray[np.int32]
    first: NDArray[np.int32]
    value: NDArray[np.int64]

    @classmethod
    def make(cls, n_bins: int) -> Scratch:
        """Return working memory for so many bins, over all histograms."""
        row, first = np.empty(_COUNTED_AT_ONCE, np.int32), np.empty(_COUNTED_AT_ONCE, np.int32)
        return cls(np.zeros(n_bins, np.int64), row, first, np.empty(_COUNTED_AT_ONCE, np.int64))


class Steps(NamedTuple):
    """Where records go from the nodes that were split: one look into a table per record, and no decision.

    Attributes
    ----------
    column : ndarray of int64
        Column that a node is split on, -1 for nodes that stay.
    first : ndarray of int64
        Where the table of a node begins.
    child : ndarray of uint32
        The child that a code goes to, node after node.
    """

    column: NDArray[np.int64]
    first: NDArray[np.int64]
    child: NDArray[np.uint32]


def steps_of(routing: Routing, layout: Layout) -> Steps:
    """Write a routing as tables."""
    is_split = routing.left >= 0
    n_codes = np.where(is_split, np.diff(layout.offsets)[routing.column], 0)
    first = np.cumsum(n_codes) - n_codes
    child = np.zeros(int(n_codes.sum()), np.uint32)
    _fill_steps(
        first, n_codes, routing.left, routing.right, routing.column, routing.last_bin, routing.missing_left,
        routing.mask, layout.missing, child,
    )  # fmt: skip
    return Steps(np.where(is_split, routing.column, -1), first, child)


@njit(nogil=True, cache=True)
def _fill_steps(first, n_codes, left, right, column, last_bin, missing_left, mask, missing, child):  # type: ignore[no-untyped-def]
    for node in range(first.shape[0]):
        for code in range(n_codes[node]):
            c = column[node]
            is_left = goes_left(code, last_bin[node], missing[c], missing_left[node], mask[node])
            child[first[node] + code] = left[node] if is_left else right[node]


def advance_columns(
    chunk: ColumnChunk,
    node_of_row: NDArray[np.uint32],
    steps: Steps,
    slot: NDArray[np.int64],
    layout: Layout,
    scratch: Scratch,
    out: NDArray[np.int64],
) -> None:
    """Do what `advance_chunk` does for at most 65,536 records with one channel of at most 24 bits.

    Which records are counted is found first; then each column is counted with its own bins in the cache, the number of
    records and the sum of the channel in one addition.
    """
    assert chunk.n_records <= PACKED_RECORDS
    _advance_columns(
        chunk.n_records, chunk.dense, chunk.wide, chunk.narrow, chunk.at, node_of_row, steps, slot, layout.offsets,
        scratch.packed, scratch.row, scratch.first, scratch.value, out,
    )  # fmt: skip


@njit(nogil=True, cache=True)
def _advance_columns(  # type: ignore[no-untyped-def]
    n, dense, wide, narrow, at, node_of_row, steps, slot, offsets, packed, row, first, value, out
):
    n_bins = offsets[-1]
    one = np.int64(1) << PACKED_COUNT_BIT
    for start in range(0, n, _COUNTED_AT_ONCE):
        m = 0
        for i in range(start, min(n, start + _COUNTED_AT_ONCE)):
            node = node_of_row[i]
            c = steps.column[node]
            while c >= 0:
                code = np.int64(wide[at[c], i]) if at[c] >= 0 else np.int64(narrow[-1 - at[c], i])
                node = steps.child[steps.first[node] + code]
                c = steps.column[node]
            node_of_row[i] = node
            # Written for every record, and written over by the next where it is not counted: no branch to guess.
            row[m] = i
            first[m] = slot[node] * n_bins
            value[m] = one + dense[0, i]
            m += slot[node] >= 0
        for j in range(offsets.shape[0] - 1):
            if at[j] >= 0:
                codes = wide[at[j]]
                for s in range(m):
                    packed[first[s] + offsets[j] + codes[row[s]]] += value[s]
            else:
                narrow_codes = narrow[-1 - at[j]]
                for s in range(m):
                    packed[first[s] + offsets[j] + narrow_codes[row[s]]] += value[s]
    for h in range(out.shape[0]):
        for b in range(n_bins):
            total = packed[h * n_bins + b]
            if total != 0:
                out[h, b, 0] += total >> PACKED_COUNT_BIT
                out[h, b, 1] += total & (one - 1)
                packed[h * n_bins + b] = 0


def count_places(node_of_row: NDArray[np.uint32], place: NDArray[np.int64], counts: NDArray[np.int64]) -> None:
    """Count the records of a chunk whose nodes have a place."""
    _count_places(node_of_row, place, counts)


@njit(nogil=True, cache=True)
def _count_places(node_of_row, place, counts):  # type: ignore[no-untyped-def]
    for i in range(node_of_row.shape[0]):
        p = place[node_of_row[i]]
        if p >= 0:
            counts[p] += 1


def gather_columns(
    chunk: ColumnChunk,
    first_row: int,
    node_of_row: NDArray[np.uint32],
    place: NDArray[np.int64],
    position: NDArray[np.int64],
    out: Records,
) -> None:
    """Copy the records of a chunk whose nodes have a place to where those of that place go on; `position` moves on."""
    _gather(
        chunk.n_records, chunk.dense, chunk.wide, chunk.narrow, chunk.at, first_row, node_of_row, place, position,
        np.empty(_BLOCK, np.int64), np.empty(_BLOCK, np.int64), out.codes, out.dense, out.rows,
    )  # fmt: skip


@njit(nogil=True, cache=True)
def _gather(  # type: ignore[no-untyped-def]
    n, dense, wide, narrow, at, first_row, node_of_row, place, position, row, to, out_codes, out_dense, out_rows
):
    for start in range(0, n, _BLOCK):
        m = 0
        for i in range(start, min(n, start + _BLOCK)):
            p = place[node_of_row[i]]
            if p >= 0:
                row[m], to[m] = i, position[p]
                position[p] += 1
                m += 1
        for s in range(m):
            out_rows[to[s]] = first_row + row[s]
            for c in range(dense.shape[0]):
                out_dense[to[s], c] = dense[c, row[s]]
            for j in range(at.shape[0], out_codes.shape[1]):
                out_codes[to[s], j] = 0  # padding
        for j in range(at.shape[0]):
            if at[j] >= 0:
                for s in range(m):
                    out_codes[to[s], j] = wide[at[j], row[s]]
            else:
                for s in range(m):
                    out_codes[to[s], j] = narrow[-1 - at[j], row[s]]
