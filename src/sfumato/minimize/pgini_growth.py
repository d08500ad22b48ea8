# SPDX-License-Identifier: Apache-2.0
"""Growths of the privacy-aware tree: the guide whose gain is the fall of PGini, and the records they share.

The thorough search grows a tree for each of several sets of orders of categories, on one half of the records, and
keeps the set whose trees lower PGini most on the other half.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from sfumato.coded_columns import CodedColumn
from sfumato.minimize.category_orders import OrderName, SplitOrders, order_categories
from sfumato.minimize.iterative import quantile_buckets
from sfumato.minimize.sample import Sample
from sfumato.partition.binning import MAX_CODES, Bins, code_type
from sfumato.partition.grower import Grower
from sfumato.partition.guides import CHANNELS, Guide, integer_weights
from sfumato.partition.records import Records, make_layout, pack_records
from sfumato.partition.tree import Tree

ORDERS: tuple[tuple[OrderName, ...], ...] = (("class",), ("class", "halves", "quarters"))
"""Sets of orders: the first one is that of the greedy search."""

_MOST_CELLS = 1 << 25  # numbers in a histogram: bins of all attributes times values of the personal ones
_ONE_BIN = Bins(True, np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64), False)


class SharedGrowth:
    """The records with their channels, which growths over one sample share.

    Columns that can be split on are the attributes, or the first order of their categories, and behind them the other
    orders. An attribute that is left out has one bin, which cannot be split, so that positions stay the same.
    """

    def __init__(self, sample: Sample, floor: int, orders: Sequence[OrderName] = ORDERS[0]) -> None:
        self.sample = sample
        self.orders = SplitOrders(order_categories(sample, floor, orders))
        none = np.zeros(sample.n_records, np.uint8)
        hidden = dict.fromkeys(sample.left_out, (_ONE_BIN, none))
        first = {order.position: (order.bins, order.codes) for order in self.orders.first}
        own = [(column.bins, column.codes) for column in sample.columns]
        columns = [hidden.get(place, first.get(place, plain)) for place, plain in enumerate(own)]
        columns += [(order.bins, order.codes) for order in self.orders.others]
        self.layout = make_layout([bins for bins, _ in columns])
        self.codes = [codes for _, codes in columns]
        self._shared: dict[tuple[int, ...], Records] = {}
        self._lock = Lock()

    def records_for(self, guide: Guide) -> Records:
        """Return the records with the channels of a guide."""
        key = tuple(id(block) for block in guide.code_blocks)  # columns of the sample, which outlives this
        with self._lock:
            if key not in self._shared:
                weight = self.sample.weight
                weights = None if weight is None else integer_weights(weight, guide.value_bits)
                self._shared[key] = pack_records(self.codes, guide.code_blocks, guide.dense, weights)
            return self._shared[key]


def held_out_fall(growth: SharedGrowth, guide: Guide, max_leaves: int, min_records: int) -> float:
    """Return by how much trees lower PGini on records that they were not grown on: each half on the other's tree."""
    records = growth.records_for(guide)
    half = np.arange(len(records.codes)) % 2 == 0
    first = _record_order(records)
    rows = [first[half], first[~half]]
    total = 0.0
    for learned, judged in (rows, rows[::-1]):
        own = records.taken(learned)._replace(rows=np.arange(len(learned), dtype=np.uint32))
        tree, _ = Grower(own, growth.layout, guide, min_records=min_records, fall_back=False).grow(max_leaves)
        total += _brier_fall(tree, records, guide, learned, judged)
    return total


def _record_order(records: Records) -> NDArray[np.intp]:
    """Return the records in an order that depends on their values alone."""
    return np.lexsort(records.codes.T[::-1])


def _brier_fall(
    tree: Tree, records: Records, guide: Guide, learned: NDArray[np.intp], judged: NDArray[np.intp]
) -> float:
    """Return the fall of the squared error of shares, from the root to the leaves, weighted as PGini is."""
    n_columns = len(tree.missing_codes)
    weight = np.ones(len(records.codes)) if not len(records.weights) else records.weights / records.weights.mean()
    leaf = tree.apply(records.codes[:, :n_columns])
    fall, channel = 0.0, 0
    for block, n_values in enumerate(guide.cardinalities):
        values = records.codes[:, n_columns + block].astype(np.int64)
        errors = []
        for group, n_groups in ((np.zeros_like(leaf), 1), (leaf, tree.n_groups)):
            cells = group[learned].astype(np.int64) * n_values + values[learned]
            counts = np.bincount(cells, weight[learned], n_groups * n_values).reshape(n_groups, n_values)
            shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1e-300)
            own = shares[group[judged], values[judged]]
            errors.append(weight[judged] @ (1 - 2 * own + (shares**2).sum(axis=1)[group[judged]]))
        fall += guide.channel_weights[channel] * (errors[0] - errors[1])
        channel += n_values
    return float(fall)


def pgini_guide(sample: Sample, alpha: float, shares: NDArray[np.float64]) -> Guide:
    """Return the channels whose gain is the fall of PGini times the number of records.

    Gini of an attribute is 1 minus the sum of its squared shares, so the fall of n times Gini is the engine's gain.
    Utility: all c classes with weight ``c/(c-1) * (1-alpha)``, which is the paper's 2 for two classes. Privacy: the
    values of each personal attribute p with weight ``-alpha * sigma_p * share_p``; `shares` are 1/|P| unless
    attributes are weighted. Blocks that weigh nothing are left out; where all do, no split has a gain. Numbers count
    through their bins, or through quantiles where histograms of all bins would not fit in memory.
    """
    most_groups = _groups_of_numbers(sample)
    blocks: list[NDArray[Any]] = []
    cardinalities: list[int] = []
    weights: list[NDArray[np.float64]] = []

    def add(codes: NDArray[Any], n_values: int, weight: float) -> None:
        if n_values > 1 and weight != 0:
            blocks.append(codes)
            cardinalities.append(n_values)
            weights.append(np.full(n_values, weight * n_values / (n_values - 1)))

    add(sample.y, sample.n_classes, 1 - alpha)
    for position, share in zip(sample.personal, shares, strict=True):
        column = sample.columns[position]
        if column.bins.is_ordered and column.bins.n_bins > most_groups:
            add(*_grouped(column, most_groups), -alpha * share)
        else:
            add(column.codes, column.bins.n_bins, -alpha * share)
    if not blocks:
        return Guide(CHANNELS, None, [sample.y], [sample.n_classes], np.zeros(sample.n_classes))
    return Guide(CHANNELS, None, blocks, cardinalities, np.concatenate(weights))


def _groups_of_numbers(sample: Sample) -> int:
    """Return how many groups of a personal number fit: all bins but where there are hundreds of such attributes."""
    personal = [sample.columns[position].bins for position in sample.personal]
    n_numbers = sum(bins.is_ordered for bins in personal)
    n_categories = sum(bins.n_bins for bins in personal if not bins.is_ordered)
    room = _MOST_CELLS // sum(sample.n_codes) - sample.n_classes - n_categories
    return max(2, min(MAX_CODES, room // max(1, n_numbers)))


_GROUPED: WeakKeyDictionary[CodedColumn, dict[int, tuple[NDArray[Any], int]]] = WeakKeyDictionary()
"""Codes of personal numbers in groups: growths share records if they share blocks."""


def _grouped(column: CodedColumn, n_groups: int) -> tuple[NDArray[Any], int]:
    """Return the quantile group of every record, and the number of groups."""
    known = _GROUPED.setdefault(column, {})
    if n_groups not in known:
        groups = quantile_buckets(column, n_groups)
        known[n_groups] = groups[column.codes].astype(code_type(n_groups + 1)), int(groups.max()) + 1
    return known[n_groups]
