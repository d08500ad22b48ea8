# SPDX-License-Identifier: Apache-2.0
"""Choose the records that a release suppresses within its limit.

Groups that fail a criterion come first (:func:`suppress`). The rest of the limit is spent on the records that cost the
others most (:func:`drop_costly`): those at the edges of wide groups, without which the group's labels are narrower.
Records that agree in a column of a group are dropped together, so the choice never depends on the order of the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.criteria.criterion_counts import Counter, among_released, hold_together
from sfumato.partition.group_summaries import Summary
from sfumato.partition.records import Layout

Widths = Callable[[Summary], NDArray[np.float64]]
"""Returns the width of every group in every column, from what is known of its bins."""

_TIMES_THE_MEAN = 2.0  # minimum cost of a dropped record, since all of its information is lost


def suppress(leaf: NDArray[np.int32], n_leaves: int, counters: list[Counter], limit: float) -> NDArray[np.int32]:
    """Suppress the smallest failing groups within the limit, while the rest can still be released.

    Parameters
    ----------
    leaf : ndarray of int32
        The fitted group of every record.
    n_leaves : int
    counters : list of Counter
    limit : float
        Share of the records that may be suppressed.

    Returns
    -------
    leaf : ndarray of int32
        The same, -1 for suppressed records.
    """
    budget = int(limit * len(leaf))
    if budget == 0:
        return leaf
    sizes = np.bincount(leaf, minlength=n_leaves)
    failing = np.zeros(n_leaves, np.bool_)
    for counter in counters:
        failing |= ~counter.are_safe(leaf, n_leaves)
    candidates = np.flatnonzero(failing & (sizes > 0))
    candidates = candidates[np.argsort(sizes[candidates], kind="stable")]
    n_dropped = int((np.cumsum(sizes[candidates]) <= budget).sum())
    # If too little is left, the largest groups are restored first: few of them are enough.
    for n in range(n_dropped, 0, -1):
        left = np.where(np.isin(leaf, candidates[:n]), np.int32(-1), leaf)
        if hold_together(left, among_released(counters, left)):
            return left
        if n == n_dropped and not hold_together(leaf, among_released(counters, leaf)):
            break  # not even all records can be released
    return leaf


def drop_costly(
    group: NDArray[np.int32],
    codes: NDArray[Any],
    layout: Layout,
    in_tree_order: NDArray[np.bool_],
    widths: Widths,
    counters: Sequence[Counter],
    k: int,
    budget: int,
) -> NDArray[np.int32]:
    """Suppress the records whose absence lowers the information loss of the release most, within the budget.

    A step takes all records that share one bin of one column away from their group, or a whole group. It is taken only
    if it saves, per record, at least twice what the mean record loses before the first step. So the mean falls with
    every step, and no record is suppressed for next to nothing.

    Parameters
    ----------
    group : ndarray of int32
        The group of every record; -1 for records that are left out already. Every group meets the criteria.
    codes : ndarray of int, shape (records, columns)
    layout : Layout
    in_tree_order : ndarray of bool
        The columns whose categories are in the order of a hierarchy: only their ends can be taken off.
    widths : callable
    counters : sequence of Counter
        A group that would fail one of them keeps its records.
    k : int
        Fewest records that a group keeps.
    budget : int
        Maximum number of records to suppress.

    Returns
    -------
    group : ndarray of int32
        The same, -1 for all records left out.
    """
    start = group
    n_groups = int(group.max()) + 1
    frozen = np.zeros(n_groups, np.bool_)
    steps = _steps(group, codes, layout, in_tree_order, widths, k)
    sizes = np.bincount(group[group >= 0], minlength=n_groups)
    least = _TIMES_THE_MEAN * float(steps.width @ sizes) / sizes.sum()
    while budget > 0:
        chosen = _choose(steps, frozen, least, budget)
        if not len(chosen):
            break
        is_chosen = np.zeros(n_groups, np.bool_)
        is_chosen[chosen] = True
        left = np.where(_is_taken(group, codes, steps, is_chosen), np.int32(-1), group)
        unsafe = is_chosen & _fails(left, n_groups, counters)
        frozen |= unsafe
        group = np.where(_of(unsafe, group), group, left)
        budget -= int(steps.n_taken[chosen[~unsafe[chosen]]].sum())
        steps.update(
            _steps(np.where(_of(is_chosen, group), group, -1), codes, layout, in_tree_order, widths, k), chosen
        )
    return _restored(group, start, n_groups, counters)


class _Steps(NamedTuple):
    """The best step of every group: records with one code in one column, or (column -1) all of them."""

    gain: NDArray[np.float64]  # loss that is saved per record taken, summed over columns
    column: NDArray[np.int64]
    code: NDArray[np.int64]
    n_taken: NDArray[np.int64]
    width: NDArray[np.float64]  # of the group, summed over columns

    def update(self, other: _Steps, groups: NDArray[np.int64]) -> None:
        for own, new in zip(self, other, strict=True):
            n_known = len(new)
            own[groups] = 0
            present = groups[groups < n_known]
            own[present] = new[present]


def _choose(steps: _Steps, frozen: NDArray[np.bool_], least: float, budget: int) -> NDArray[np.int64]:
    """Return the groups whose step is taken now: the best, and those that save at least half as much."""
    gain = np.where(frozen | (steps.n_taken > budget) | (steps.n_taken == 0), -np.inf, steps.gain)
    best = gain.max(initial=-np.inf)
    able = np.flatnonzero((gain > 0) & (gain >= least) & (gain >= best / 2))
    ranked = able[np.argsort(-gain[able], kind="stable")]
    return ranked[np.cumsum(steps.n_taken[ranked]) <= budget]


def _is_taken(
    group: NDArray[np.int32], codes: NDArray[Any], steps: _Steps, is_chosen: NDArray[np.bool_]
) -> NDArray[np.bool_]:
    taken = np.zeros(len(group), np.bool_)
    rows = np.flatnonzero(_of(is_chosen, group))
    own = group[rows]
    column = steps.column[own]
    taken[rows] = (column < 0) | (codes[rows, np.maximum(column, 0)] == steps.code[own])
    return taken


def _of(is_group: NDArray[np.bool_], group: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return True for the records of some groups."""
    return np.append(is_group, False)[group]


def _fails(group: NDArray[np.int32], n_groups: int, counters: Sequence[Counter]) -> NDArray[np.bool_]:
    safe = np.ones(n_groups, np.bool_)
    for counter in counters:
        if counter.value_of_row is not None:  # how many records are left is known beforehand
            safe &= counter.among(group >= 0).are_safe(group, n_groups)
    return ~safe


def _restored(
    group: NDArray[np.int32], start: NDArray[np.int32], n_groups: int, counters: Sequence[Counter]
) -> NDArray[np.int32]:
    """Give groups their records back that fail a criterion now that the table they are compared with is another."""
    while (group != start).any():
        left = [counter.among(group >= 0) for counter in counters]
        unsafe = _fails(group, n_groups, counters)
        if not unsafe.any() and hold_together(group, left):
            break
        changed = _of(unsafe, start) & (group != start)
        group = np.where(changed, start, group) if changed.any() else start
    return group


def _steps(
    group: NDArray[np.int32],
    codes: NDArray[Any],
    layout: Layout,
    in_tree_order: NDArray[np.bool_],
    widths: Widths,
    k: int,
) -> _Steps:
    """Find the best step of every group; groups without records get none."""
    rows = np.flatnonzero(group >= 0)
    own = group[rows].astype(np.int64)
    n_groups = int(own.max(initial=-1)) + 1
    sizes = np.bincount(own, minlength=n_groups)
    bins = [_bins_of(own, codes[rows, j], n_groups, layout, j, bool(in_tree_order[j])) for j in range(layout.n_columns)]
    now = widths(_summary([b.now for b in bins], sizes))
    width = now.sum(axis=1)
    gain = np.where(sizes > 0, width, -np.inf)  # taking the whole group
    column, code, n_taken = np.full(n_groups, -1), np.zeros(n_groups, np.int64), sizes.copy()
    for name in ("without_lowest", "without_highest", "without_other"):
        then = widths(_summary([getattr(b, name).ends for b in bins], sizes))
        taken = np.column_stack([getattr(b, name).n_taken for b in bins])
        codes_taken = np.column_stack([getattr(b, name).code for b in bins])
        left = sizes[:, None] - taken
        saved = sizes[:, None] * width[:, None] - left * (width[:, None] - now + then)
        able = (taken > 0) & (left >= k)
        each = np.where(able, saved / np.maximum(taken, 1), -np.inf)
        best = each.argmax(axis=1)
        every = np.arange(n_groups)
        better = each[every, best] > gain
        gain = np.where(better, each[every, best], gain)
        column = np.where(better, best, column)
        code = np.where(better, codes_taken[every, best], code)
        n_taken = np.where(better, taken[every, best], n_taken)
    return _Steps(gain, column, code, n_taken, width)


class _Ends(NamedTuple):
    """The bins of one column in every group."""

    lowest: NDArray[np.int64]
    highest: NDArray[np.int64]
    n_present: NDArray[np.int64]
    n_missing: NDArray[np.int64]


class _Step(NamedTuple):
    ends: _Ends
    code: NDArray[np.int64]
    n_taken: NDArray[np.int64]


class _Bins(NamedTuple):
    """One column's bins in every group, and what they are without some of the records."""

    now: _Ends
    without_lowest: _Step
    without_highest: _Step
    without_other: _Step  # the missing values; of categories in no order, the rarest one


def _bins_of(
    own: NDArray[np.int64], codes: NDArray[Any], n_groups: int, layout: Layout, column: int, is_tree: bool
) -> _Bins:
    """Count the bins of a column by group, and look what they would be without the ends."""
    n_codes = int(layout.offsets[column + 1] - layout.offsets[column])
    pairs, counts = np.unique(own * n_codes + codes.astype(np.int64), return_counts=True)
    of_group, code = pairs // n_codes, pairs % n_codes
    is_value = code != layout.missing[column]
    n_missing, n_present = np.zeros(n_groups, np.int64), np.bincount(of_group, minlength=n_groups)
    n_missing[of_group[~is_value]] = counts[~is_value]
    values = np.flatnonzero(is_value)
    first = np.searchsorted(of_group[values], np.arange(n_groups + 1))
    n_values = np.diff(first)

    def at(place: NDArray[np.int64], wanted: NDArray[np.bool_], of: NDArray[np.int64], otherwise: int) -> Any:
        result = np.full(n_groups, otherwise)
        result[wanted] = of[values[place[wanted]]]
        return result

    has, has_two = n_values > 0, n_values > 1
    lowest, highest = at(first[:-1], has, code, -1), at(first[1:] - 1, has, code, -1)
    now = _Ends(lowest, highest, n_present, n_missing)
    low_step = _Step(
        _Ends(at(first[:-1] + 1, has_two, code, -1), np.where(has_two, highest, -1), n_present - has, n_missing),
        lowest,
        at(first[:-1], has, counts, 0),
    )
    high_step = _Step(
        _Ends(np.where(has_two, lowest, -1), at(first[1:] - 2, has_two, code, -1), n_present - has, n_missing),
        highest,
        at(first[1:] - 1, has, counts, 0),
    )
    if layout.is_category[column] and not is_tree:
        ranked = np.lexsort((code, counts, of_group))
        rarest = ranked[np.searchsorted(of_group, np.arange(n_groups)).clip(max=len(ranked) - 1)]
        is_present = n_present > 0
        other = _Step(
            _Ends(lowest, highest, n_present - 1, n_missing),
            np.where(is_present, code[rarest], 0),
            np.where(is_present, counts[rarest], 0),
        )
    else:
        other = _Step(
            _Ends(lowest, highest, n_present - (n_missing > 0), np.zeros_like(n_missing)),
            np.full(n_groups, layout.missing[column]),
            n_missing,
        )
    return _Bins(now, low_step, high_step, other)


def _summary(ends: Sequence[_Ends], sizes: NDArray[np.int64]) -> Summary:
    lowest, highest, n_present, n_missing = (np.column_stack(part) for part in zip(*ends, strict=True))
    n_present = np.maximum(n_present, 1)  # an empty group has no width, and no step
    return Summary(lowest, lowest, highest, n_present, n_missing)
