# SPDX-License-Identifier: Apache-2.0
"""The best splits found so far for each node of a frontier: a short ranked list per node.

Candidates are totally ordered by (gain falling, column, position), so ties never depend on the records' order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.records import Layout


class Candidates(NamedTuple):
    """The best splits of m nodes, up to r each, best first. Integer, float, bool and uint64 arrays."""

    n_found: NDArray[Any]  # (m,)
    phase: NDArray[Any]  # (m,) 0: ranked by the guide, 1: by information loss
    gain: NDArray[Any]  # (m, r)
    position: NDArray[Any]  # (m, r) place in the order of enumeration, breaks ties
    column: NDArray[Any]  # (m, r)
    last_bin: NDArray[Any]  # (m, r) ordered columns: codes up to this go left
    missing_left: NDArray[Any]  # (m, r) ordered columns: side of missing values
    mask: NDArray[Any]  # (m, r, words) category columns: bit set = code goes left
    n_left: NDArray[Any]  # (m, r)


class Splits(NamedTuple):
    """One split for each of m nodes, as arrays over the nodes; what their fields mean is said at `Candidates`."""

    column: NDArray[Any]
    last_bin: NDArray[Any]
    missing_left: NDArray[Any]
    mask: NDArray[Any]
    n_left: NDArray[Any]


def splits_of(candidates: Candidates, which: Any = slice(None), rank: int = 0) -> Splits:
    """Return the candidates of one rank, of all nodes or some."""
    return Splits(*(getattr(candidates, name)[which, rank] for name in Splits._fields))


def empty_candidates(n_nodes: int, n_ranks: int, layout: Layout) -> Candidates:
    """Room for the candidates of `n_nodes` nodes."""
    shape = (n_nodes, n_ranks)
    return Candidates(
        np.zeros(n_nodes, np.int64),
        np.zeros(n_nodes, np.int64),
        np.zeros(shape),
        np.zeros(shape, np.int64),
        np.zeros(shape, np.int64),
        np.zeros(shape, np.int64),
        np.zeros(shape, np.bool_),
        np.zeros((*shape, layout.n_mask_words), np.uint64),
        np.zeros(shape, np.int64),
    )


@njit(nogil=True, cache=True)
def offer(out, node, gain, position, after_gain, after_position):  # type: ignore[no-untyped-def]
    """Return the rank a candidate takes in the node's list, shifting the rest; -1 when it has no place."""
    if gain > after_gain or (gain == after_gain and position <= after_position):
        return -1  # judged in an earlier round
    n_found = out.n_found[node]
    n_ranks = out.gain.shape[1]
    rank = n_found
    while rank > 0 and (
        gain > out.gain[node, rank - 1]
        or (gain == out.gain[node, rank - 1] and position < out.position[node, rank - 1])
    ):
        rank -= 1
    if rank >= n_ranks:
        return -1
    last = min(n_found, n_ranks - 1)
    for r in range(last, rank, -1):
        out.gain[node, r] = out.gain[node, r - 1]
        out.position[node, r] = out.position[node, r - 1]
        out.column[node, r] = out.column[node, r - 1]
        out.last_bin[node, r] = out.last_bin[node, r - 1]
        out.missing_left[node, r] = out.missing_left[node, r - 1]
        out.n_left[node, r] = out.n_left[node, r - 1]
        for w in range(out.mask.shape[2]):
            out.mask[node, r, w] = out.mask[node, r - 1, w]
    out.n_found[node] = min(n_found + 1, n_ranks)
    out.gain[node, rank] = gain
    out.position[node, rank] = position
    for w in range(out.mask.shape[2]):
        out.mask[node, rank, w] = 0
    return rank


@njit(nogil=True, cache=True)
def write_ordered(out, node, rank, column, last_bin, missing_left, n_left):  # type: ignore[no-untyped-def]
    """Store a split of an ordered column."""
    out.column[node, rank] = column
    out.last_bin[node, rank] = last_bin
    out.missing_left[node, rank] = missing_left
    out.n_left[node, rank] = n_left


@njit(nogil=True, cache=True)
def write_subset(out, node, rank, column, hist, first, n_codes, is_left, n_left, n_records):  # type: ignore[no-untyped-def]
    """Store the codes that go left; those absent from the node follow the larger side."""
    absent_left = 2 * n_left > n_records
    for code in range(n_codes):
        if hist[first + code, 0] == 0:
            is_left[code] = absent_left
    write_codes(out, node, rank, column, n_codes, is_left, n_left, n_records)


@njit(nogil=True, cache=True)
def write_codes(out, node, rank, column, n_codes, is_left, n_left, n_records):  # type: ignore[no-untyped-def]
    """Store the codes that go left, of a category column; it was decided for all codes."""
    for code in range(n_codes):
        if is_left[code]:
            out.mask[node, rank, code >> 6] |= np.uint64(1) << np.uint64(code & 63)
    out.column[node, rank] = column
    out.last_bin[node, rank] = -1
    out.missing_left[node, rank] = 2 * n_left > n_records
    out.n_left[node, rank] = n_left
