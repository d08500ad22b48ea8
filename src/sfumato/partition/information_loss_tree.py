# SPDX-License-Identifier: Apache-2.0
"""Grow groups of little information loss: cut what is common finely, and set aside what is rare.

A tree that may only cut where both sides keep k records must leave a few odd records with many others, and all of them
pay for it. Here a side with too few records is *set aside*: the other side gets its finer label at once, and the
records set aside below a node are pooled there. As soon as a pool is large enough it is cut like any other node; what
is set aside then waits at the next node above. The few records left at the root join the groups where they cost least.

The result is a tree all the same: a leaf of records set aside says where they go on, so that every combination of
values has one group, whatever the order of the records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.grouping import merge_rows
from sfumato.partition.group_widths import Ground, make_boxes, make_node_scratch
from sfumato.partition.information_loss_kernels import (
    ASK_SIDES,
    DEPTH,
    DONE,
    FULL,
    LOOKED_AHEAD,
    N_GROUPS,
    N_NODES,
    Growth,
    Scratch,
    advance,
    loss_rises,
)
from sfumato.partition.records import Layout
from sfumato.partition.taxonomy import NO_TAXONOMY, Taxonomy
from sfumato.partition.tree import Tree

SafeRows = Callable[[NDArray[np.int64]], bool]
"""Takes the rows of a group and says whether it is safe."""

_PER_NODE = Growth._fields[: Growth._fields.index("order")]


def grow(
    codes: NDArray[Any],
    layout: Layout,
    min_records: int,
    *,
    taxonomy: Taxonomy = NO_TAXONOMY,
    is_safe: SafeRows | None = None,
) -> tuple[Tree, NDArray[np.int32]]:
    """Grow the tree and return it with the group of every record.

    Parameters
    ----------
    codes : ndarray of shape (n, at least the columns)
    layout : Layout
    min_records : int
        Fewest records of a group.
    taxonomy : Taxonomy, optional
        The hierarchies of the columns that have one.
    is_safe : callable, optional
        A further condition on every group; all records together must meet it.
    """
    first, inverse = _join_alike(codes, layout.n_columns)
    weights = np.bincount(inverse, minlength=len(first)).astype(np.int64)
    own = np.ascontiguousarray(codes[first, : layout.n_columns])
    boxes = make_boxes(layout, taxonomy)
    ground = Ground(own, weights, layout, taxonomy, boxes, min_records)
    growth = _make_growth(ground)
    scratch = _make_scratch(ground)
    judge = None if is_safe is None else _on_records(is_safe, inverse, weights)
    verdict = 0
    while (status := advance(growth, ground, scratch, judge is not None, verdict)) != DONE:
        if status == FULL:
            growth = _doubled(growth)
            continue
        assert judge is not None
        node = growth.stack[growth.state[DEPTH] - 1]
        start, middle, stop = growth.start[node], growth.middle[node], growth.stop[node]
        if status == ASK_SIDES:
            sides = (growth.order[start:middle], growth.order[middle:stop])
            verdict = sum(int(weights[s].sum() >= min_records and judge(s)) << at for at, s in enumerate(sides))
        else:
            verdict = int(judge(growth.order[start : start + growth.n_waiting[node]]))
    _join_rest(growth, ground, judge)
    tree, group_of_record = _to_tree(growth, layout)
    return tree, group_of_record[inverse]


def _join_alike(codes: NDArray[Any], n_columns: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return one record of each kind, in the order of their codes, and which kind each record is."""
    columns = [codes[:, column] for column in range(n_columns)]
    return merge_rows(columns, [int(column.max()) + 1 for column in columns], len(codes))


def _on_records(is_safe: SafeRows, inverse: NDArray[np.int64], weights: NDArray[np.int64]) -> SafeRows:
    """Return the test of groups of joined records, given that of groups of rows."""
    rows = np.argsort(inverse, kind="stable")
    stops = np.cumsum(weights)

    def judge(records: NDArray[np.int64]) -> bool:
        sizes = weights[records]
        ends = np.cumsum(sizes)
        places = np.arange(int(ends[-1])) + np.repeat(stops[records] - ends, sizes)
        return is_safe(rows[places])

    return judge


def _make_growth(ground: Ground) -> Growth:
    m, n_records, d = 64, len(ground.codes), ground.layout.n_columns

    def whole(fill: int = 0) -> NDArray[np.int64]:
        return np.full(m, fill, np.int64)

    def node() -> NDArray[np.int32]:
        return np.full(m, -1, np.int32)

    growth = Growth(
        start=whole(), middle=whole(), stop=whole(), size=whole(), column=node(), last_bin=node(),
        missing_left=np.zeros(m, np.bool_), mask=np.zeros((m, ground.layout.n_mask_words), np.uint64),
        left=node(), right=node(), pool=node(), goto=node(), group=node(), n_waiting=whole(), waiting_size=whole(),
        phase=whole(), width=np.zeros(m), aside=np.zeros(m), is_scanned=np.zeros(m, np.bool_),
        fall=np.zeros((m, d)), kind=np.zeros((m, d), np.int64), which=np.zeros((m, d), np.int64), stack=whole(),
        order=np.arange(n_records), spare=np.zeros(n_records, np.int64),
        group_of_record=np.full(n_records, -1, np.int32), leaf_of_record=np.full(n_records, -1, np.int32),
        state=np.zeros(5, np.int64),
    )  # fmt: skip
    growth.stop[0], growth.size[0] = n_records, ground.weights.sum()
    growth.aside[0] = d  # more than any width: what is set aside at the root has nowhere else to go
    growth.state[N_NODES] = growth.state[DEPTH] = 1
    return growth


def _doubled(growth: Growth) -> Growth:
    wider = {}
    for name in _PER_NODE:
        part = getattr(growth, name)
        fill = -1 if part.dtype == np.int32 else 0
        wider[name] = np.concatenate([part, np.full_like(part, fill)])
    return growth._replace(**wider)


def _make_scratch(ground: Ground) -> Scratch:
    widest, d = int(np.diff(ground.layout.offsets).max()), ground.layout.n_columns
    ahead = (LOOKED_AHEAD, 2, d)
    return Scratch(
        node=make_node_scratch(ground), is_left=np.zeros(widest, np.bool_), ranking=np.zeros(d, np.int64),
        place_of=np.zeros(d, np.int64), ahead_fall=np.zeros(ahead), ahead_kind=np.zeros(ahead, np.int64),
        ahead_which=np.zeros(ahead, np.int64), ahead_width=np.zeros(ahead[:2]),
    )  # fmt: skip


def _join_rest(growth: Growth, ground: Ground, judge: SafeRows | None) -> None:
    """Let each leaf of records still waiting at the root join the group whose loss rises least.

    Where no group stays safe with them, all records become one group, which is safe.
    """
    rest = growth.order[: growth.n_waiting[0]]
    if not len(rest):
        return
    group_of_record = growth.group_of_record
    leaf_of_group = np.full(int(growth.state[N_GROUPS]), -1, np.int64)
    leaves = np.flatnonzero(growth.group >= 0)
    leaf_of_group[growth.group[leaves]] = leaves
    for leaf in np.unique(growth.leaf_of_record[rest]).tolist():
        joining = rest[growth.leaf_of_record[rest] == leaf]
        rises = np.zeros(len(leaf_of_group))
        loss_rises(ground, group_of_record, joining, rises)
        for g in np.argsort(rises, kind="stable").tolist():
            if judge is None or judge(np.append(np.flatnonzero(group_of_record == g), joining)):
                group_of_record[joining] = g
                growth.goto[leaf] = leaf_of_group[g]
                break
        else:
            growth.pool[0] = growth.left[0] = growth.right[0] = -1
            growth.group[0] = growth.group_of_record[:] = 0
            growth.state[N_GROUPS] = 1
            return


def _to_tree(growth: Growth, layout: Layout) -> tuple[Tree, NDArray[np.int32]]:
    """Number the nodes from the root on, left before right, and the groups from left to right.

    A node with a pool lies below one more node, a fork, that sends everything left and has the pool on its right.
    """
    old, is_fork = _walk(growth.left.tolist(), growth.right.tolist(), growth.pool.tolist())
    n = len(growth.left)
    place = np.full(n + 1, -1, np.int32)  # the last place is read for -1, no node
    place[old[~is_fork]] = np.flatnonzero(~is_fork)
    entered = place.copy()
    entered[old[is_fork]] = np.flatnonzero(is_fork)
    left, right = entered[growth.left[old]], entered[growth.right[old]]
    left[is_fork], right[is_fork] = place[old[is_fork]], entered[growth.pool[old[is_fork]]]
    is_inner = left >= 0
    is_leaf = ~is_inner & (growth.group[old] >= 0)
    column = np.where(is_inner, np.maximum(growth.column[old], 0), -1)
    is_category = layout.is_category[np.maximum(column, 0)]
    threshold = np.where(is_inner, growth.last_bin[old], -1)
    all_left = is_fork & ~is_category
    threshold[all_left] = layout.n_values[column[all_left]] - 1
    threshold[is_fork & is_category] = -1
    mask = np.where(is_inner[:, None], growth.mask[old], np.uint64(0))
    mask[is_fork] = ~np.uint64(0)
    larger_left = is_fork.copy()
    split = is_inner & ~is_fork
    larger_left[split] = growth.size[growth.left[old[split]]] > growth.size[growth.right[old[split]]]
    number = np.full(int(growth.state[N_GROUPS]), -1, np.int32)
    number[growth.group[old[is_leaf]]] = np.arange(is_leaf.sum())
    group = np.full(len(old), -1, np.int32)
    group[is_leaf] = np.arange(is_leaf.sum())
    split_rank = np.where(is_inner, np.cumsum(is_inner) - 1, -1)
    tree = Tree(
        column=column.astype(np.int32),
        left=left,
        right=right,
        threshold=threshold.astype(np.int32),
        missing_left=(growth.missing_left[old] & is_inner) | is_fork,
        mask=mask,
        group=group,
        split_rank=split_rank.astype(np.int32),
        larger_left=larger_left,
        missing_codes=layout.missing.copy(),
        goto=np.where(is_inner | is_leaf, np.int32(-1), entered[growth.goto[old]]),
    )
    return tree, number[growth.group_of_record]


def _walk(left: list[int], right: list[int], pool: list[int]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """List every node, and a fork before each that has a pool, from the root on, left before right."""
    nodes: list[int] = []
    forks: list[bool] = []
    waiting = [(0, True)]
    while waiting:
        node, may_fork = waiting.pop()
        is_fork = may_fork and pool[node] >= 0
        nodes.append(node)
        forks.append(is_fork)
        if is_fork:
            waiting += [(pool[node], True), (node, False)]
        elif left[node] >= 0:
            waiting += [(right[node], True), (left[node], True)]
    return np.array(nodes), np.array(forks)
