# SPDX-License-Identifier: Apache-2.0
"""The kernels of ``set_aside``: grow depth first, set aside what is rare, and pool it; ``set_aside_choosing`` cuts."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.boxes import Boxes, Sides
from sfumato.partition.records import Layout
from sfumato.partition.set_aside_choosing import ASIDE_SHARE, cut, is_worth_with_one_side, rank_columns, weigh
from sfumato.partition.taxonomy import Taxonomy

POOLED_FROM = 2
"""A pool is cut from this many times k records on; smaller ones wait at the node above."""

DONE, FULL, ASK_SIDES, ASK_POOL = range(4)
"""Why growing stopped: for good, for want of room, or to have groups judged."""

N_NODES, N_GROUPS, DEPTH, RANK, N_RANKED = range(5)
"""What the numbers in the state of a growth are."""

_SCAN, _TRY, _JUDGE, _LEFT, _RIGHT, _POOL = range(6)


class Ground(NamedTuple):
    """What a tree grows on: records that are alike are one, with a weight."""

    codes: NDArray[Any]  # (records, columns)
    weights: NDArray[np.int64]
    layout: Layout
    taxonomy: Taxonomy
    boxes: Boxes
    min_records: int


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

    counts: NDArray[np.int64]  # (widest column,)
    child: NDArray[np.int64]
    is_left: NDArray[np.bool_]
    low: NDArray[np.int64]  # (columns,)
    high: NDArray[np.int64]
    widths: NDArray[np.float64]
    ends: NDArray[np.int32]  # (2, columns)
    ranking: NDArray[np.int64]
    place_of: NDArray[np.int64]  # (columns,) place among those looked ahead, -1 for others
    ahead_fall: NDArray[np.float64]  # (looked ahead, sides, columns)
    ahead_kind: NDArray[np.int64]
    ahead_which: NDArray[np.int64]
    ahead_width: NDArray[np.float64]  # (looked ahead, sides)
    sides: Sides


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
