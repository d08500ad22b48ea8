# SPDX-License-Identifier: Apache-2.0
"""Splits of nodes: ranked lists of candidates, the chosen split of each node, and the side a code goes to."""

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


class Rule(NamedTuple):
    """The split of one node, as kernels take it."""

    column: int
    last_bin: int  # -1 for category splits, which use the mask
    missing_code: int  # -1 without missing values
    missing_left: bool
    mask: NDArray[np.uint64]


@njit(nogil=True, cache=True)
def goes_left(code, last_bin, missing_code, missing_left, mask):  # type: ignore[no-untyped-def]
    """Return True if a code belongs to the left side; `last_bin` is -1 for category splits, which use the mask."""
    if last_bin < 0:
        return (mask[code >> 6] >> np.uint64(code & 63)) & np.uint64(1) == np.uint64(1)
    if code == missing_code:
        return missing_left
    return code <= last_bin
