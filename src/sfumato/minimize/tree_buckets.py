# SPDX-License-Identifier: Apache-2.0
"""Turn the splits of a tree into buckets: values that no split separates share one. Used by PAT and by Apt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sfumato.coded_columns import CodedColumn
from sfumato.minimize.category_orders import CategoryOrder, SplitOrders
from sfumato.minimize.sample import Buckets
from sfumato.partition.tree import Tree

_NONE = SplitOrders()


def buckets_of_tree(tree: Tree, columns: Sequence[CodedColumn], orders: SplitOrders = _NONE) -> Buckets:
    """Return the bucket of every fine code: two codes share one exactly when every split sends both to one side.

    For ordered columns that is the union of the thresholds; missing shares the bucket of an interval that goes its
    way in every split, and has its own where none does.

    Parameters
    ----------
    tree : Tree
    columns : sequence of CodedColumn
    orders : SplitOrders
        Orders of categories that the tree splits on. The buckets of these attributes have one more entry, for
        categories that no record has.
    """
    split = set(tree.column.tolist())
    made = []
    for position, column in enumerate(columns):
        own = orders.columns_of(position, len(columns))
        if own:
            made.append(_buckets_of(_sides_in_orders(tree, own)))
        elif position in split:
            made.append(_buckets_of(_sides(tree, position, column)))
        else:  # most attributes of a wide table
            made.append(np.zeros(column.bins.n_bins, np.int64))
    return made


def _sides_in_orders(tree: Tree, own: Sequence[tuple[int, CategoryOrder]]) -> NDArray[np.bool_]:
    """Return, for every category and every split on one of its orders, whether the category goes left."""
    sides = [
        order.ranks[:, None] <= tree.threshold[np.flatnonzero(tree.column == column)][None, :] for column, order in own
    ]
    return _like_a_neighbor(np.concatenate(sides, axis=1), own[0][1].ranks)


def _like_a_neighbor(sides: NDArray[np.bool_], ranks: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Let categories without records go the way of the nearest one that there is, where no other goes their way."""
    if not (sides[:-1] == sides[-1]).all(axis=1).any():
        sides[-1] = sides[np.argmin(np.abs(ranks[:-1] - ranks[-1]))]
    return sides


def _buckets_of(sides: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Number the distinct rows of (codes, splits) by first appearance, so that numbers follow the order of bins."""
    if sides.shape[1] == 0:
        return np.zeros(len(sides), np.int64)
    packed = np.packbits(sides, axis=1)
    _, first, inverse = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    place = np.empty(len(first), np.int64)
    place[np.argsort(first)] = np.arange(len(first))
    return place[inverse.reshape(-1)]


def _sides(tree: Tree, position: int, column: CodedColumn) -> NDArray[np.bool_]:
    """Return, for every fine code and every split on a column, whether the code goes left."""
    splits = np.flatnonzero(tree.column == position)
    codes = np.arange(column.bins.n_bins)
    if column.bins.is_ordered:
        sides: NDArray[np.bool_] = codes[:, None] <= tree.threshold[splits][None, :]
        if column.bins.has_missing:
            sides[-1] = tree.missing_left[splits]
        return sides
    words = tree.mask[splits][:, codes >> 6].T
    bits: NDArray[np.bool_] = (words >> (codes & 63).astype(np.uint64)[:, None]) & np.uint64(1) == 1
    return bits


class Presence:
    """Which categories have records in which node of a grown tree.

    Parameters
    ----------
    tree : Tree
    groups : ndarray of int32
        Leaf of every record of the sample.
    columns : sequence of CodedColumn
    orders : SplitOrders
        Attributes with an order are split on as numbers are: all of their categories have a side.
    """

    def __init__(
        self, tree: Tree, groups: NDArray[np.int32], columns: Sequence[CodedColumn], orders: SplitOrders
    ) -> None:
        self.tree = tree
        self.columns = columns
        ordered = {order.position for order in orders.first}
        self._in_node = {
            position: self._of_column(groups, column)
            for position, column in enumerate(columns)
            if not column.bins.is_ordered and position not in ordered and (tree.column == position).any()
        }

    def _of_column(self, groups: NDArray[np.int32], column: CodedColumn) -> NDArray[np.bool_]:
        tree, n_codes = self.tree, column.bins.n_bins
        in_leaf = np.zeros((tree.n_groups, n_codes), np.bool_)
        in_leaf[groups, column.codes] = True
        in_node = np.zeros((tree.n_nodes, n_codes), np.bool_)
        for node in range(tree.n_nodes - 1, -1, -1):  # children come after their parent
            if tree.left[node] < 0:
                in_node[node] = in_leaf[tree.group[node]]
            else:
                in_node[node] = in_node[tree.left[node]] | in_node[tree.right[node]]
        return in_node

    def joined(self, pruned: Tree) -> Tree:
        """Return a pruned tree whose splits send absent categories where that leaves the fewest buckets.

        A category without records in a node may go either way there: no record of the sample is sent elsewhere, and
        fewer categories are told apart. From the most frequent category down, each joins the first bucket that it does
        not contradict.
        """
        nodes = self._same_nodes(pruned)
        mask = pruned.mask.copy()
        for position, in_node in self._in_node.items():
            splits = np.flatnonzero(pruned.column == position)
            if len(splits):
                sides = _sides(pruned, position, self.columns[position])
                joined = _join_compatible(sides, in_node[nodes[splits]].T, self.columns[position].counts)
                # If no category of a bucket has records, all of them go with the larger side, as before.
                known = joined.is_known[joined.bucket]
                side = np.where(known, joined.side[joined.bucket], pruned.missing_left[splits])
                mask[splits] = _as_mask(side, mask.shape[1])
        return replace(pruned, mask=mask)

    def _same_nodes(self, pruned: Tree) -> NDArray[np.int64]:
        """Return the node of the whole tree that each node of a pruned one was."""
        same = np.zeros(pruned.n_nodes, np.int64)
        for node in range(pruned.n_nodes):
            if pruned.left[node] >= 0:
                same[pruned.left[node]] = self.tree.left[same[node]]
                same[pruned.right[node]] = self.tree.right[same[node]]
        return same


@dataclass(frozen=True, eq=False)
class _Joined:
    bucket: NDArray[np.int64]  # (codes,)
    side: NDArray[np.bool_]  # (buckets, splits)
    is_known: NDArray[np.bool_]  # (buckets, splits)


def _join_compatible(sides: NDArray[np.bool_], is_present: NDArray[np.bool_], counts: NDArray[np.int64]) -> _Joined:
    """Group codes that no split separates where both are present; sides and presence are (codes, splits)."""
    bucket = np.zeros(len(sides), np.int64)
    side = np.zeros_like(sides)
    is_known = np.zeros_like(is_present)
    n_buckets = 0
    for code in np.argsort(-counts, kind="stable"):
        contradicts = is_known[:n_buckets] & is_present[code] & (side[:n_buckets] != sides[code])
        free = np.flatnonzero(~contradicts.any(axis=1))
        own = int(free[0]) if len(free) else n_buckets
        n_buckets = max(n_buckets, own + 1)
        bucket[code] = own
        side[own] |= is_present[code] & sides[code]
        is_known[own] |= is_present[code]
    return _Joined(bucket, side, is_known)


def _as_mask(sides: NDArray[np.bool_], n_words: int) -> NDArray[np.uint64]:
    """Return sides of codes, (codes, splits), as one row of 64-bit words per split."""
    bits = np.zeros((sides.shape[1], 64 * n_words), np.bool_)
    bits[:, : len(sides)] = sides.T
    return np.packbits(bits, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def without_small_buckets(
    tree: Tree, columns: Sequence[CodedColumn], min_records: int, orders: SplitOrders = _NONE
) -> Tree:
    """Return the tree without the splits that leave a bucket with fewer records of the sample.

    A small bucket is joined with others by undoing the latest split that tells it from anything, together with all
    splits below it; the tree stays a tree, so T(x) = T(g(x)) goes on holding.
    """
    if min_records <= 1:
        return tree  # every code of the sample has a record
    while True:
        position = _column_with_small_bucket(tree, columns, min_records, orders)
        if position is None:
            return tree
        own = [column for column, _ in orders.columns_of(position, len(columns))]
        splits = np.flatnonzero(np.isin(tree.column, own or [position]))
        latest = splits[np.argmax(tree.split_rank[splits])]
        tree = tree.without_splits(np.array([latest]))


def _column_with_small_bucket(
    tree: Tree, columns: Sequence[CodedColumn], min_records: int, orders: SplitOrders
) -> int | None:
    for position, bucket in enumerate(buckets_of_tree(tree, columns, orders)):
        if not bucket.any():
            continue
        counts = columns[position].counts
        if np.bincount(bucket[: len(counts)], weights=counts).min() < min_records:
            return position
    return None
