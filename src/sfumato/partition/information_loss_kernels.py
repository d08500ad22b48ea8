# SPDX-License-Identifier: Apache-2.0
"""The kernels of ``set_aside``: grow depth first, set rare records aside, and pool them.

The cut of a node is chosen by the widths of all columns, looking one cut ahead. The loss of a node is the sum of the
widths of its columns, measured by ``boxes``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.group_widths import (
    ALONE,
    Active,
    NodeScratch,
    best_cut_of_column,
    measure_node,
    number_children,
    total_width,
)
from sfumato.partition.taxonomy import has_hierarchy

POOLED_FROM = 2
"""A pool is cut from this many times k records on; smaller ones wait at the node above."""

DONE, FULL, ASK_SIDES, ASK_POOL = range(4)
"""Why growing stopped: for good, for want of room, or to have groups judged."""

N_NODES, N_GROUPS, DEPTH, RANK, N_RANKED = range(5)
"""What the numbers in the state of a growth are."""

_SCAN, _TRY, _JUDGE, _LEFT, _RIGHT, _POOL = range(6)

LOOKED_AHEAD = 3
"""Columns, those whose best cuts bring most, that are judged by what the next cuts bring as well."""

COMES_NEAR = 0.5
"""Share of what the best cut brings from which on another column is looked ahead at."""

ASIDE_SHARE = 0.9
"""Width that a record set aside is taken to end with, over the width of the node it was set aside below."""

RELATIVE_NOISE = 1e-9
"""Falls per record up to this are rounding."""


class Growth(NamedTuple):
    """Everything about a growing tree: one entry per node, then one per record."""

    start: NDArray[np.int64]  # a node's records are a run of `order`
    middle: NDArray[np.int64]
    stop: NDArray[np.int64]
    size: NDArray[np.int64]  # with the weights
    column: NDArray[np.int32]
    last_bin: NDArray[np.int32]
    missing_left: NDArray[np.bool_]
    mask: NDArray[np.uint64]
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    pool: NDArray[np.int32]  # the node that what was set aside below goes on in, -1 without
    goto: NDArray[np.int32]  # leaves of records set aside: the node they go on in
    group: NDArray[np.int32]  # leaves: their group, -1 elsewhere
    n_waiting: NDArray[np.int64]  # entries set aside below and not pooled yet; first in the node's run
    waiting_size: NDArray[np.int64]  # with the weights
    phase: NDArray[np.int64]
    width: NDArray[np.float64]  # per record, summed over the columns
    aside: NDArray[np.float64]  # what a record set aside here would cost
    is_scanned: NDArray[np.bool_]  # whether the best cuts are known already, from looking ahead
    fall: NDArray[np.float64]  # (nodes, columns) what the best cut of each column brings; 0: nothing
    kind: NDArray[np.int64]
    which: NDArray[np.int64]
    stack: NDArray[np.int64]
    order: NDArray[np.int64]  # (records,)
    spare: NDArray[np.int64]
    group_of_record: NDArray[np.int32]
    leaf_of_record: NDArray[np.int32]  # leaf of a record that is set aside
    state: NDArray[np.int64]


class Scratch(NamedTuple):
    """Working memory, so that the kernels allocate little per node."""

    node: NodeScratch
    is_left: NDArray[np.bool_]  # (widest column,)
    ranking: NDArray[np.int64]  # (columns,)
    place_of: NDArray[np.int64]  # (columns,) place among those looked ahead, -1 for others
    ahead_fall: NDArray[np.float64]  # (looked ahead, sides, columns)
    ahead_kind: NDArray[np.int64]
    ahead_which: NDArray[np.int64]
    ahead_width: NDArray[np.float64]  # (looked ahead, sides)


@njit(nogil=True, cache=True)
def advance(growth, ground, scratch, asks, verdict):  # type: ignore[no-untyped-def]
    """Grow on until all is done, until there is no room for nodes, or until a group has to be judged.

    Depth first: a node's left side, its right side, then what was set aside below it. `verdict` is the answer to the
    last question: of two sides, one bit each; of a pool, 0 or 1.
    """
    state, order, k = growth.state, growth.order, ground.min_records
    while state[DEPTH] > 0:
        node = growth.stack[state[DEPTH] - 1]
        start, stop = growth.start[node], growth.stop[node]
        phase = growth.phase[node]
        if phase == _SCAN:
            state[RANK], state[N_RANKED] = 0, rank_columns(growth, ground, scratch, node)
            growth.phase[node] = _TRY
        elif phase == _TRY:
            if state[N_NODES] + 3 > growth.start.shape[0]:
                return FULL
            if state[RANK] >= state[N_RANKED]:
                for i in range(start, stop):
                    growth.group_of_record[order[i]] = state[N_GROUPS]
                growth.column[node] = -1
                growth.group[node] = state[N_GROUPS]
                state[N_GROUPS] += 1
                state[DEPTH] -= 1
                continue
            growth.middle[node] = cut(growth, ground, scratch, node, scratch.ranking[state[RANK]])
            growth.phase[node] = _JUDGE
            if asks:
                return ASK_SIDES
            verdict = 3
        elif phase == _JUDGE:
            n_left = weigh(ground.weights, order, start, growth.middle[node])
            keeps_left = verdict & 1 == 1 and n_left >= k
            keeps_right = verdict & 2 == 2 and growth.size[node] - n_left >= k
            is_worth = keeps_left or keeps_right
            if is_worth and asks and not (keeps_left and keeps_right):
                is_worth = is_worth_with_one_side(growth, ground, scratch, node, keeps_left, n_left)
            if is_worth:
                _add_sides(growth, scratch, node, keeps_left, keeps_right, n_left)
            else:
                state[RANK] += 1
                growth.phase[node] = _TRY
        elif phase == _LEFT:
            growth.phase[node] = _RIGHT
            _push(growth, growth.right[node])
        elif phase == _RIGHT:
            if state[N_NODES] + 3 > growth.start.shape[0]:
                return FULL
            _gather(growth, node)
            growth.phase[node] = _POOL
            is_top = growth.aside[node] >= ground.layout.missing.shape[0]  # the root or a pool at it
            verdict = 0
            if growth.waiting_size[node] >= (k if is_top else POOLED_FROM * k):
                if asks:
                    return ASK_POOL
                verdict = 1
        elif growth.pool[node] < 0 and verdict == 1:  # in the phase _POOL
            _add_pool(growth, node)
        else:
            pool = growth.pool[node]
            if pool >= 0:
                growth.n_waiting[node], growth.waiting_size[node] = growth.n_waiting[pool], growth.waiting_size[pool]
            state[DEPTH] -= 1
            verdict = 0
    return DONE


@njit(nogil=True, cache=True)
def _push(growth, node):  # type: ignore[no-untyped-def]
    """Go on with a node, unless it is a leaf of records set aside."""
    if growth.n_waiting[node] == 0:
        growth.stack[growth.state[DEPTH]] = node
        growth.state[DEPTH] += 1


@njit(nogil=True, cache=True)
def _new_node(growth, start, stop, size, aside):  # type: ignore[no-untyped-def]
    node = growth.state[N_NODES]
    growth.state[N_NODES] += 1
    growth.start[node], growth.stop[node], growth.size[node], growth.aside[node] = start, stop, size, aside
    return node


@njit(nogil=True, cache=True)
def _add_sides(growth, scratch, node, keeps_left, keeps_right, n_left):  # type: ignore[no-untyped-def]
    """Make the two sides of a node, set aside the one that is not kept, and go on with the left."""
    start, middle, stop = growth.start[node], growth.middle[node], growth.stop[node]
    place = scratch.place_of[growth.column[node]]
    for at in range(2):
        first, last = (start, middle) if at == 0 else (middle, stop)
        size = n_left if at == 0 else growth.size[node] - n_left
        side = _new_node(growth, first, last, size, ASIDE_SHARE * growth.width[node])
        if at == 0:
            growth.left[node] = side
        else:
            growth.right[node] = side
        if not (keeps_left if at == 0 else keeps_right):
            growth.n_waiting[side], growth.waiting_size[side] = last - first, size
            for i in range(first, last):
                growth.leaf_of_record[growth.order[i]] = side
        elif place >= 0:
            growth.is_scanned[side] = True
            growth.width[side] = scratch.ahead_width[place, at]
            growth.fall[side] = scratch.ahead_fall[place, at]
            growth.kind[side] = scratch.ahead_kind[place, at]
            growth.which[side] = scratch.ahead_which[place, at]
    growth.phase[node] = _LEFT
    _push(growth, growth.left[node])


@njit(nogil=True, cache=True)
def _gather(growth, node):  # type: ignore[no-untyped-def]
    """Move what waits at the two sides of a node to the beginning of its run."""
    left, right = growth.left[node], growth.right[node]
    at = growth.start[left] + growth.n_waiting[left]
    for i in range(growth.start[right], growth.start[right] + growth.n_waiting[right]):
        growth.order[at] = growth.order[i]
        at += 1
    growth.n_waiting[node] = at - growth.start[left]
    growth.waiting_size[node] = growth.waiting_size[left] + growth.waiting_size[right]


@njit(nogil=True, cache=True)
def _add_pool(growth, node):  # type: ignore[no-untyped-def]
    """Make a node of what waits at this one, tell the leaves it was set aside at, and go on with it."""
    start, stop = growth.start[node], growth.start[node] + growth.n_waiting[node]
    pool = _new_node(growth, start, stop, growth.waiting_size[node], growth.aside[node])
    for i in range(start, stop):
        growth.goto[growth.leaf_of_record[growth.order[i]]] = pool
        growth.leaf_of_record[growth.order[i]] = -1
    growth.pool[node] = pool
    _push(growth, pool)


@njit(nogil=True, cache=True)
def weigh(weights, order, start, stop):  # type: ignore[no-untyped-def]
    """Return how many records a run of distinct ones stands for."""
    size = 0
    for i in range(start, stop):
        size += weights[order[i]]
    return size


@njit(nogil=True, cache=True)
def _scan_columns(ground, order, start, stop, size, aside, node_scratch, cuts):  # type: ignore[no-untyped-def]
    """Write the best cut of each column of a run of records, 0 where none brings anything; return the run's width."""
    fall, kind, which = cuts
    n_columns = ground.layout.missing.shape[0]
    if size <= ground.min_records:
        fall[:] = 0.0
        return 0.0  # no cut leaves enough on one side
    width = measure_node(ground, order, start, stop, node_scratch)
    columns, kept = np.empty(n_columns, np.int64), np.empty(n_columns)
    n_active, active_width = 0, 0.0
    for column in range(n_columns):
        fall[column] = 0.0
        if node_scratch.low[column] < node_scratch.high[column]:
            columns[n_active], kept[n_active] = column, node_scratch.widths[column]
            active_width += node_scratch.widths[column]
            n_active += 1
    # Widths of columns with one code are the same on all sides, so they are left out of both.
    aside_width = max(active_width, active_width + aside - width)
    active = Active(columns[:n_active], kept[:n_active], active_width)
    for at in range(n_active):
        column = columns[at]
        fall[column], kind[column], which[column] = best_cut_of_column(
            ground, order, start, stop, size, column, active, aside_width, node_scratch
        )
        if fall[column] <= RELATIVE_NOISE * size:
            fall[column] = 0.0
    return width


@njit(nogil=True, cache=True)
def rank_columns(growth, ground, scratch, node):  # type: ignore[no-untyped-def]
    """Rank the columns by what cutting them brings, the first few by what the next cuts bring as well.

    Write them into the scratch, and return how many bring anything.
    """
    start, stop, size, fall = growth.start[node], growth.stop[node], growth.size[node], growth.fall[node]
    if not growth.is_scanned[node]:
        growth.width[node] = _scan_columns(
            ground, growth.order, start, stop, size, growth.aside[node], scratch.node,
            (fall, growth.kind[node], growth.which[node]),
        )  # fmt: skip
    ranking = np.argsort(-fall, kind="mergesort")
    n_ranked = 0
    while n_ranked < ranking.shape[0] and fall[ranking[n_ranked]] > 0:
        n_ranked += 1
    scratch.ranking[:] = ranking
    scratch.place_of[:] = -1
    n_ahead = 0
    while n_ahead < min(LOOKED_AHEAD, n_ranked) and fall[ranking[n_ahead]] >= COMES_NEAR * fall[ranking[0]]:
        n_ahead += 1
    if n_ahead < 2:
        return n_ranked
    score = np.zeros(n_ahead)
    for place in range(n_ahead):
        column = ranking[place]
        scratch.place_of[column] = place
        score[place] = fall[column]
        middle = cut(growth, ground, scratch, node, column)
        for at in range(2):
            first, last = (start, middle) if at == 0 else (middle, stop)
            n_side = weigh(ground.weights, growth.order, first, last)
            if n_side >= ground.min_records:
                scratch.ahead_width[place, at] = _scan_columns(
                    ground, growth.order, first, last, n_side, ASIDE_SHARE * growth.width[node], scratch.node,
                    (scratch.ahead_fall[place, at], scratch.ahead_kind[place, at], scratch.ahead_which[place, at]),
                )  # fmt: skip
                score[place] += scratch.ahead_fall[place, at].max()
    ahead = np.argsort(-score, kind="mergesort")
    for place in range(n_ahead):
        scratch.ranking[place] = ranking[ahead[place]]
    return n_ranked


@njit(nogil=True, cache=True)
def is_worth_with_one_side(growth, ground, scratch, node, keeps_left, n_left):  # type: ignore[no-untyped-def]
    """Return True if cutting a node lowers the widths although one side, not safe, has to be set aside."""
    start, middle, stop, size = growth.start[node], growth.middle[node], growth.stop[node], growth.size[node]
    first, last = (start, middle) if keeps_left else (middle, stop)
    kept_width = measure_node(ground, growth.order, first, last, scratch.node)
    width = growth.width[node]
    n_kept = n_left if keeps_left else size - n_left
    fall = n_kept * (width - kept_width) + (size - n_kept) * (width - max(width, growth.aside[node]))
    return fall > RELATIVE_NOISE * size


@njit(nogil=True, cache=True)
def cut(growth, ground, scratch, node, column):  # type: ignore[no-untyped-def]
    """Write the best cut of a column into a node and move the records that go left to the beginning of its run."""
    _write_split(growth, ground, scratch, node, column)
    start, stop, order, spare = growth.start[node], growth.stop[node], growth.order, growth.spare
    at, n_right = start, 0
    for i in range(start, stop):
        row = order[i]
        if scratch.is_left[ground.codes[row, column]]:
            order[at] = row
            at += 1
        else:
            spare[n_right] = row
            n_right += 1
    for i in range(n_right):
        order[at + i] = spare[i]
    return at


@njit(nogil=True, cache=True)
def _write_split(growth, ground, scratch, node, column):  # type: ignore[no-untyped-def]
    """Write the best cut of a column into a node, and into the scratch which codes go left.

    Codes absent from the node: those below a label go with it; others of a hierarchy and of ordered columns by their
    place; categories and missing values with the larger side.
    """
    layout, taxonomy = ground.layout, ground.taxonomy
    start, stop = growth.start[node], growth.stop[node]
    kind, which = growth.kind[node, column], growth.which[node, column]
    first = layout.offsets[column]
    n_codes = layout.offsets[column + 1] - first
    missing = layout.missing[column]
    child, is_left = scratch.node.child, scratch.is_left
    _, lowest, highest, level, _ = number_children(ground, growth.order, start, stop, column, scratch.node)
    has_missing = missing >= 0 and lowest <= missing <= highest and child[missing] >= 0
    from_code, to_code = n_codes, -1  # of the codes that go left
    for code in range(lowest, highest + 1):
        is_left[code] = child[code] >= 0 and (child[code] == which if kind == ALONE else child[code] <= which)
        if is_left[code]:
            to_code = code
            from_code = min(from_code, code)
    n_left = 0
    for i in range(start, stop):
        if is_left[ground.codes[growth.order[i], column]]:
            n_left += ground.weights[growth.order[i]]
    larger = 2 * n_left > growth.size[node]
    if has_hierarchy(taxonomy, column):
        label = taxonomy.label
        while to_code + 1 < n_codes and label[first + to_code + 1, level] == label[first + to_code, level]:
            to_code += 1
        while from_code > 0 and label[first + from_code - 1, level] == label[first + from_code, level]:
            from_code -= 1
        if kind != ALONE:
            from_code = 0
        for code in range(n_codes):
            is_left[code] = from_code <= code <= to_code
    elif layout.is_category[column]:
        for code in range(n_codes):
            if code < lowest or code > highest or child[code] < 0:
                is_left[code] = larger
    else:
        for code in range(n_codes):
            is_left[code] = code <= to_code  # missing, the last of all codes, is never among the first children
    if missing >= 0 and not has_missing:
        is_left[missing] = larger
    growth.column[node] = column
    growth.missing_left[node] = is_left[missing] if has_missing else larger
    growth.last_bin[node] = -1 if layout.is_category[column] else to_code
    growth.mask[node] = 0
    if layout.is_category[column]:
        for code in range(n_codes):
            if is_left[code]:
                growth.mask[node, code >> 6] |= np.uint64(1) << np.uint64(code & 63)


@njit(nogil=True, cache=True)
def loss_rises(ground, group_of_record, joining, out):  # type: ignore[no-untyped-def]
    """Write what taking in some records would cost all records of each group together."""
    codes, boxes = ground.codes, ground.boxes
    n_groups, n_columns = out.shape[0], ground.layout.missing.shape[0]
    # One box per group, and the last for the records that are to join.
    low = np.full((n_groups + 1, n_columns), 65_536, np.int32)
    high = np.full((n_groups + 1, n_columns), -1, np.int32)
    sets = np.zeros((n_groups + 1, boxes.n_words), np.uint64)
    sizes = np.zeros(n_groups + 1, np.int64)
    n_records = group_of_record.shape[0]
    for i in range(n_records + joining.shape[0]):
        row = i if i < n_records else joining[i - n_records]
        g = group_of_record[row] if i < n_records else n_groups
        if g < 0:
            continue
        sizes[g] += ground.weights[row]
        for column in range(n_columns):
            code = np.int32(codes[row, column])
            low[g, column] = min(low[g, column], code)
            high[g, column] = max(high[g, column], code)
            word = boxes.word_of[column]
            if word >= 0:
                sets[g, word + (code >> 6)] |= np.uint64(1) << np.uint64(code & 63)
    every = Active(np.arange(n_columns), np.zeros(n_columns), 0.0)
    nothing = np.zeros(boxes.n_words, np.uint64)
    for g in range(n_groups):
        alone = total_width(ground, every, low[g], high[g], sets[g], nothing, np.int64(-1), np.int64(0))
        for column in range(n_columns):
            low[g, column] = min(low[g, column], low[n_groups, column])
            high[g, column] = max(high[g, column], high[n_groups, column])
        together = total_width(ground, every, low[g], high[g], sets[g], sets[n_groups], np.int64(-1), np.int64(0))
        out[g] = (sizes[g] + sizes[n_groups]) * together - sizes[g] * alone
