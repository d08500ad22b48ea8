# SPDX-License-Identifier: Apache-2.0
"""Pack records into the leaves of an R+-tree: top-down, by the bounding boxes on both sides of a cut.

Leaves hold k to 2k - 1 records where values allow it, and their regions do not overlap. A leaf that overflows when
records are added later is packed again by the same rules, with one more: every earlier publication sees none or at
least k of its records on either side of a cut. ``anonymize.rplus_tree`` calls `pack`; slow twins stand in
``tests/twins``.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.records import Layout
from sfumato.partition.tree import NodeTable, Tree
from sfumato.threads import map_in_threads

Check = Callable[[NDArray[np.int64], int], NDArray[np.bool_]]
"""Takes the side of every record (-1: none) and the number of sides, and says which sides are safe."""

_SHARED_FROM = 20_000  # records; below it threads cost more than they bring


def pack(
    codes: NDArray[Any],
    layout: Layout,
    k: int,
    *,
    roots: NDArray[np.integer[Any]] | None = None,
    batch: NDArray[np.integer[Any]] | None = None,
    check: Check | None = None,
    n_threads: int = 1,
) -> tuple[Tree, NDArray[np.int32]]:
    """Cut groups of records in two until none has 2k records or no cut is admissible.

    Of every column the cut is considered that leaves the smallest bounding boxes, weighted with their records, among
    those with at least a quarter of the records on either side; where there is none, the most even one. The column
    with the least total is cut. Categories stand in the order of their codes, and missing after all values.

    Parameters
    ----------
    codes : ndarray of shape (n, at least columns)
    layout : Layout
    k : int
        Fewest records of a side.
    roots : ndarray of int, optional
        The tree each record starts in, numbered from 0 without gaps; one tree of all unless given.
    batch : ndarray of int, optional
        When each record was published first, from 0. Of the records published up to any batch before the last, a
        side has none or at least k.
    check : callable, optional
        Further conditions on both sides of a cut.
    n_threads : int

    Returns
    -------
    tree : Tree
        The roots are its first nodes.
    group : ndarray of int32
        Leaf of each record, numbered from left to right, tree after tree.
    """
    n = len(codes)
    roots = np.zeros(n, np.int64) if roots is None else roots
    rows = np.argsort(roots, kind="stable")
    held = np.ascontiguousarray(codes[rows])
    dates = np.zeros(0, np.int64) if batch is None or not np.any(batch) else np.ascontiguousarray(batch[rows], np.int64)
    nodes = NodeTable(layout.n_mask_words)
    nodes.add_roots(np.bincount(roots))
    frontier = np.arange(nodes.n_nodes)
    while True:
        frontier = frontier[nodes.stop[frontier] - nodes.start[frontier] >= 2 * k]
        if not len(frontier):
            break
        start, stop = nodes.start[frontier], nodes.stop[frontier]
        cost, last_code = _propose_cuts(held, dates, start, stop, layout, k, n_threads)
        axis = _choose(held, rows, start, stop, cost, last_code, check)
        cut = np.flatnonzero(axis >= 0)
        if not len(cut):
            break
        column = axis[cut]
        last = last_code[cut, column]
        n_left = np.empty(len(cut), np.int64)
        _divide(held, rows, dates, start[cut], stop[cut], column, last, n_left)
        is_category = layout.is_category[column]
        frontier = nodes.add_children(
            frontier[cut],
            column,
            np.where(is_category, -1, np.minimum(last, layout.n_values[column] - 1)),
            np.zeros(len(cut), np.bool_),
            _masks(np.where(is_category, last, -1), layout.n_mask_words),
            n_left,
        )
    tree = nodes.to_tree(layout)
    leaves = np.flatnonzero(tree.left < 0)
    leaves = leaves[np.argsort(nodes.start[leaves], kind="stable")]
    group = np.empty(n, np.int32)
    group[rows] = np.repeat(np.arange(len(leaves)), nodes.stop[leaves] - nodes.start[leaves])
    return tree, group


def _propose_cuts(
    codes: NDArray[Any],
    dates: NDArray[np.int64],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    layout: Layout,
    k: int,
    n_threads: int,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return, per node and column, the cost of the best cut (infinite: none) and the last code on its left."""
    cost = np.full((len(start), layout.n_columns), np.inf)
    last_code = np.full((len(start), layout.n_columns), -1, np.int64)
    columns = np.arange(layout.n_columns)

    def task(nodes: slice, own: NDArray[np.int64]) -> None:
        _propose(codes, dates, start[nodes], stop[nodes], own, layout, k, cost[nodes], last_code[nodes])

    # Each task writes its own nodes and columns, so what comes out does not depend on the tasks.
    everything = slice(0, len(start))
    if n_threads < 2 or int((stop - start).sum()) < _SHARED_FROM:
        task(everything, columns)
        return cost, last_code
    if len(start) < 4 * n_threads:
        tasks = [(everything, part) for part in np.array_split(columns, min(n_threads, len(columns)))]
    else:
        edges = np.unique(np.linspace(0, len(start), 4 * n_threads + 1).astype(int))
        tasks = [(slice(int(a), int(b)), columns) for a, b in pairwise(edges)]
    map_in_threads(lambda both: task(*both), tasks, n_threads)
    return cost, last_code


def _choose(
    codes: NDArray[Any],
    rows: NDArray[np.int64],
    start: NDArray[np.int64],
    stop: NDArray[np.int64],
    cost: NDArray[np.float64],
    last_code: NDArray[np.int64],
    check: Check | None,
) -> NDArray[np.int64]:
    """Return the column each node is cut on, -1 where no cut is safe: by rising cost, ties to the first column."""
    axis = np.full(len(start), -1, np.int64)
    waiting = np.arange(len(start))
    while len(waiting):
        best = cost[waiting].argmin(axis=1)
        is_open = np.isfinite(cost[waiting, best])
        waiting, best = waiting[is_open], best[is_open]
        if check is None:
            axis[waiting] = best
            break
        side = np.full(len(codes), -1, np.int64)
        _mark_sides(codes, rows, start[waiting], stop[waiting], best, last_code[waiting, best], side)
        is_safe = check(side, 2 * len(waiting)).reshape(-1, 2).all(axis=1)
        axis[waiting[is_safe]] = best[is_safe]
        cost[waiting, best] = np.inf
        waiting = waiting[~is_safe]
    return axis


def _masks(last: NDArray[np.int64], n_words: int) -> NDArray[np.uint64]:
    """Return one mask per entry with the bits 0 to last set; none for -1."""
    n_bits = np.clip(last[:, None] + 1 - 64 * np.arange(n_words), 0, 64)
    some = (np.uint64(1) << np.minimum(n_bits, 63).astype(np.uint64)) - np.uint64(1)
    return np.where(n_bits == 64, np.uint64(0xFFFFFFFFFFFFFFFF), some)


@njit(nogil=True, cache=True)
def _box_width(lowest, highest, layout):  # type: ignore[no-untyped-def]
    """Return the sum of the sides of a bounding box, each as a share of the whole column."""
    offsets, missing, is_category = layout.offsets, layout.missing, layout.is_category
    total = 0.0
    for j in range(missing.shape[0]):
        first, last = np.int64(lowest[j]), np.int64(highest[j])
        if first == last and (is_category[j] or first == missing[j]):
            continue
        if is_category[j]:
            total += (last - first) / (offsets[j + 1] - offsets[j] - 1)
        elif last == missing[j]:
            total += 1.0
        else:
            total += layout.high[offsets[j] + last] - layout.low[offsets[j] + first]
    return total


@njit(nogil=True, cache=True)
def _propose(codes, dates, starts, stops, axes, layout, k, cost, last_code):  # type: ignore[no-untyped-def]
    offsets, missing = layout.offsets, layout.missing
    width = codes.shape[1]
    most = 1
    for j in range(missing.shape[0]):
        most = max(most, offsets[j + 1] - offsets[j])
    n_dates = 1
    for i in range(dates.shape[0]):
        n_dates = max(n_dates, dates[i] + 1)
    n_early = n_dates - 1  # publications before the last; the last is all records
    counts = np.zeros(most, np.int64)
    early = np.zeros((most, n_early), np.int64)  # records of a code published up to each date
    early_left, early_all = np.zeros(n_early, np.int64), np.zeros(n_early, np.int64)
    lowest, highest = np.zeros((most, width), codes.dtype), np.zeros((most, width), codes.dtype)
    box_low, box_high = np.zeros(width, codes.dtype), np.zeros(width, codes.dtype)
    present = np.zeros(most, np.int64)
    right_width = np.zeros(most)
    for node in range(starts.shape[0]):
        start, stop = starts[node], stops[node]
        n = stop - start
        for axis in axes:
            n_present = 0
            for i in range(start, stop):
                code = np.int64(codes[i, axis])
                if counts[code] == 0:
                    present[n_present] = code
                    n_present += 1
                    for j in range(width):
                        lowest[code, j] = codes[i, j]
                        highest[code, j] = codes[i, j]
                else:
                    for j in range(width):
                        lowest[code, j] = min(lowest[code, j], codes[i, j])
                        highest[code, j] = max(highest[code, j], codes[i, j])
                counts[code] += 1
                if n_early:
                    for date in range(dates[i], n_early):
                        early[code, date] += 1
            rising = np.sort(present[:n_present])
            for j in range(width):
                box_low[j] = lowest[rising[n_present - 1], j]
                box_high[j] = highest[rising[n_present - 1], j]
            for place in range(n_present - 1, 0, -1):  # from the right: the box of everything from here on
                code = rising[place]
                for j in range(width):
                    box_low[j] = min(box_low[j], lowest[code, j])
                    box_high[j] = max(box_high[j], highest[code, j])
                right_width[place] = _box_width(box_low, box_high, layout)
            for date in range(n_early):
                early_left[date], early_all[date] = 0, 0
                for place in range(n_present):
                    early_all[date] += early[rising[place], date]
            n_left = 0
            best_cost, best_evenness, best_code = np.inf, -1, -1
            for j in range(width):
                box_low[j] = lowest[rising[0], j]
                box_high[j] = highest[rising[0], j]
            for place in range(n_present - 1):
                code = rising[place]
                n_left += counts[code]
                for j in range(width):
                    box_low[j] = min(box_low[j], lowest[code, j])
                    box_high[j] = max(box_high[j], highest[code, j])
                is_admissible = n_left >= k and n - n_left >= k
                for date in range(n_early):
                    early_left[date] += early[code, date]
                    early_right = early_all[date] - early_left[date]
                    is_admissible &= early_left[date] == 0 or early_left[date] >= k
                    is_admissible &= early_right == 0 or early_right >= k
                if not is_admissible:
                    continue
                # All cuts with a quarter on either side count as equally even.
                evenness = min(min(n_left, n - n_left), n // 4)
                if evenness < best_evenness:
                    continue
                left_width = _box_width(box_low, box_high, layout)
                total = n_left * left_width + (n - n_left) * right_width[place + 1]
                if evenness > best_evenness or total < best_cost:
                    best_cost, best_evenness, best_code = total, evenness, code
            for place in range(n_present):
                counts[rising[place]] = 0
                for date in range(n_early):
                    early[rising[place], date] = 0
            if best_code >= 0:
                # Uneven cuts come after all even ones, whatever they cost: a total is at most n per column.
                uneven = 0.0 if best_evenness >= n // 4 else float(n * missing.shape[0] + 1)
                cost[node, axis] = best_cost + uneven
                last_code[node, axis] = best_code


@njit(nogil=True, cache=True)
def _mark_sides(codes, rows, starts, stops, column, last_code, side):  # type: ignore[no-untyped-def]
    for node in range(starts.shape[0]):
        for i in range(starts[node], stops[node]):
            side[rows[i]] = 2 * node + (np.int64(codes[i, column[node]]) > last_code[node])


@njit(nogil=True, cache=True)
def _divide(codes, rows, dates, starts, stops, column, last_code, n_left):  # type: ignore[no-untyped-def]
    """Move each node's records to their side of its cut, keeping their order within a side."""
    longest = 0
    for node in range(starts.shape[0]):
        longest = max(longest, stops[node] - starts[node])
    width = codes.shape[1]
    right_codes = np.empty((longest, width), codes.dtype)
    right_rows = np.empty(longest, rows.dtype)
    right_dates = np.empty(longest if dates.shape[0] else 0, np.int64)
    for node in range(starts.shape[0]):
        at, n_right = starts[node], 0
        for i in range(starts[node], stops[node]):
            if np.int64(codes[i, column[node]]) <= last_code[node]:
                for j in range(width):
                    codes[at, j] = codes[i, j]
                rows[at] = rows[i]
                if dates.shape[0]:
                    dates[at] = dates[i]
                at += 1
            else:
                for j in range(width):
                    right_codes[n_right, j] = codes[i, j]
                right_rows[n_right] = rows[i]
                if dates.shape[0]:
                    right_dates[n_right] = dates[i]
                n_right += 1
        n_left[node] = at - starts[node]
        for i in range(n_right):
            for j in range(width):
                codes[at + i, j] = right_codes[i, j]
            rows[at + i] = right_rows[i]
            if dates.shape[0]:
                dates[at + i] = right_dates[i]
