# SPDX-License-Identifier: Apache-2.0
"""The slow twin of every kernel: plain Python, whole numbers and exact fractions, nothing clever.

What the fast kernels ought to compute is written down here as directly as possible. The tests run both on the same
input and compare; nothing else calls this module. Gains are exact fractions (entropy excepted), so a fast gain may
differ from its twin by rounding, and two splits that tie here may be told apart by rounding there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.partition.binning import DEFAULT_MAX_BINS, Bins, code_type
from sfumato.partition.criterion_checks import Check
from sfumato.partition.guides import Guide
from sfumato.partition.histogram import Shape
from sfumato.partition.records import Layout, Records
from sfumato.partition.scoring import Scoring
from sfumato.partition.taxonomy import NO_TAXONOMY, Taxonomy
from sfumato.partition.tree import Tree
from twins.naive_splitting import Split, find_splits

# -- binning -------------------------------------------------------------------------------------------------


def bin_numbers(
    values: NDArray[Any], missing: NDArray[np.bool_] | None = None, *, max_bins: int = DEFAULT_MAX_BINS
) -> tuple[Bins, NDArray[Any]]:
    """Bin a column of numbers by counting each distinct value."""
    is_missing = [False] * len(values) if missing is None else missing.tolist()
    counts = Counter(value for value, is_gone in zip(values.tolist(), is_missing, strict=True) if not is_gone)
    distinct = sorted(counts)
    bin_of = dict(zip(distinct, cut_at_quantiles([counts[value] for value in distinct], max_bins), strict=True))
    inside = [[value for value in distinct if bin_of[value] == b] for b in sorted(set(bin_of.values()))]
    bins = Bins(
        True,
        np.array([min(own, key=lambda value: (-counts[value], value)) for own in inside], values.dtype),
        np.array([min(own) for own in inside], values.dtype),
        np.array([max(own) for own in inside], values.dtype),
        any(is_missing),
    )
    codes = [
        bins.missing_bin if is_gone else bin_of[value]
        for value, is_gone in zip(values.tolist(), is_missing, strict=True)
    ]
    return bins, np.array(codes, code_type(bins.n_bins))


def cut_at_quantiles(counts: Sequence[int], max_bins: int) -> list[int]:
    """Return the bin of each distinct value: where its first record stands among all, counts capped at one share."""
    if len(counts) <= max_bins:
        return list(range(len(counts)))
    share = Fraction(sum(counts), max_bins)
    capped = [min(Fraction(count), share) for count in counts]
    whole = sum(capped)
    raw, before = [], Fraction(0)
    for count in capped:
        raw.append(math.floor(before / whole * max_bins))
        before += count
    numbers = {number: place for place, number in enumerate(sorted(set(raw)))}
    return [numbers[number] for number in raw]


# -- counting ------------------------------------------------------------------------------------------------


def add_records(records: Records, start: int, stop: int, shape: Shape, out: NDArray[np.int64]) -> None:
    """Add records start to stop to the histogram `out`, one record after the other."""
    codes, dense, weights, _ = records
    layout, _, block_columns, block_channels = shape
    offsets = layout.offsets
    for i in range(start, stop):
        weight = int(weights[i]) if len(weights) else 1
        entries = [0] * out.shape[1]
        entries[0] = 1
        for channel, value in enumerate(dense[i].tolist()):
            entries[1 + channel] = weight * value
        for column, first in zip(block_columns, block_channels, strict=True):
            entries[first + int(codes[i, column])] = weight
        if len(weights):
            entries[-1] = weight
        for column in range(len(offsets) - 1):
            out[offsets[column] + int(codes[i, column])] += entries


def block_places(layout: Layout, guide: Guide, n_dense: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the code column of each coded block and the histogram entry of its first channel."""
    columns = [layout.n_columns + block for block in range(len(guide.cardinalities))]
    channels = [1 + n_dense + sum(guide.cardinalities[:block]) for block in range(len(guide.cardinalities))]
    return np.array(columns, np.int64), np.array(channels, np.int64)


def histogram(records: Records, layout: Layout, guide: Guide, rows: Sequence[int]) -> NDArray[np.int64]:
    """Return the histogram of some records."""
    places = block_places(layout, guide, records.dense.shape[1])
    out = np.zeros((layout.offsets[-1], 1 + len(guide.channel_weights) + bool(len(records.weights))), np.int64)
    for row in rows:
        add_records(records, row, row + 1, Shape(layout, out.shape[1], *places), out)
    return out


# -- dividing and applying -----------------------------------------------------------------------------------


def goes_left(code: int, last_bin: int, missing_code: int, missing_left: bool, mask: NDArray[np.uint64]) -> bool:
    """Say on which side of a split a code belongs."""
    if last_bin < 0:
        bits = sum(int(word) << (64 * place) for place, word in enumerate(mask))
        return bool(bits >> int(code) & 1)
    return bool(missing_left) if code == missing_code else int(code) <= int(last_bin)


def count_by_side(
    codes: NDArray[Any],
    rows: Sequence[int],
    starts: Sequence[int],
    stops: Sequence[int],
    splits: Sequence[tuple[int, int, bool, NDArray[np.uint64]]],
    missing_codes: Sequence[int],
    value_of_row: Sequence[int],
    n_values: int,
) -> list[list[list[int]]]:
    """Count a column's values on both sides of one (column, last bin, missing left, mask) per node."""
    out = []
    for start, stop, (column, last_bin, missing_left, mask) in zip(starts, stops, splits, strict=True):
        sides = [[0] * n_values, [0] * n_values]
        for i in range(start, stop):
            left = goes_left(codes[i, column], last_bin, missing_codes[column], missing_left, mask)
            sides[0 if left else 1][value_of_row[rows[i]]] += 1
        out.append(sides)
    return out


def apply(tree: Tree, codes: NDArray[Any]) -> list[int]:
    """Run records through a flat tree one by one and return their groups."""
    groups = []
    for record in codes.tolist():
        node = 0
        while tree.group[node] < 0:
            column = int(tree.column[node])
            if column < 0:
                assert tree.goto is not None
                node = int(tree.goto[node])
                continue
            split = (tree.threshold[node], tree.missing_codes[column], tree.missing_left[node], tree.mask[node])
            node = int(tree.left[node] if goes_left(record[column], *split) else tree.right[node])
        groups.append(int(tree.group[node]))
    return groups


# -- growing -------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Node:
    """A node of a naively grown tree: the records it holds and, once split, how."""

    rows: list[int]
    split: Split | None = None
    left: Node | None = None
    right: Node | None = None

    def leaves(self) -> Iterator[Node]:
        """Yield the leaves from left to right."""
        if self.left is None or self.right is None:
            yield self
        else:
            yield from self.left.leaves()
            yield from self.right.leaves()


def grow(
    records: Records,
    layout: Layout,
    guide: Guide,
    min_records: int,
    checks: Sequence[Check] = (),
    *,
    fall_back: bool = True,
    max_leaves: int | None = None,
    taxonomy: Taxonomy = NO_TAXONOMY,
) -> Node:
    """Split node after node: all that can be, or, under a leaf limit, always the best of those waiting."""
    scoring = Scoring(guide.rule, guide.channel_weights, len(records.weights) > 0, fall_back, min_records, taxonomy)

    def best(node: Node) -> tuple[int, Split] | None:
        for phase, split in find_splits(histogram(records, layout, guide, node.rows), layout, scoring):
            sides = divide(records.codes, node.rows, split)
            if all(is_safe(check, side) for check in checks for side in sides):
                return phase, split
        return None

    root = Node(list(range(records.n_records)))
    waiting = [(root, best(root))]  # in order of creation, which breaks ties
    n_leaves = 1
    while max_leaves is None or n_leaves < max_leaves:
        open_ = [(phase_and_split, node) for node, phase_and_split in waiting if phase_and_split is not None]
        if not open_:
            break
        (_, split), node = min(open_, key=lambda item: (item[0][0], -item[0][1].gain))
        waiting = [item for item in waiting if item[0] is not node]
        node.split = split
        node.left, node.right = (Node(side) for side in divide(records.codes, node.rows, split))
        waiting += [(node.left, best(node.left)), (node.right, best(node.right))]
        n_leaves += 1
    return root


def divide(codes: NDArray[Any], rows: Sequence[int], split: Split) -> tuple[list[int], list[int]]:
    """Return the records of the left and of the right side, each in the order they came in."""
    left = [row for row in rows if int(codes[row, split.column]) in split.left_codes]
    right = [row for row in rows if int(codes[row, split.column]) not in split.left_codes]
    return left, right


def is_safe(check: Check, rows: Sequence[int]) -> bool:
    """Count the values of some records and ask the check."""
    counts = Counter(int(check.value_of_row[row]) for row in rows)
    seen = [len(counts)] if check.distinct else [counts[value] for value in range(check.n_values)]
    return bool(check.passes(np.array([seen], np.int64))[0])
