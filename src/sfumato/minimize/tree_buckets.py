# SPDX-License-Identifier: Apache-2.0
"""From the splits of a tree to buckets: values that no split tells apart share one. Used by PAT and by Apt."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.minimize.base import Buckets
from sfumato.partition.tree import Tree
from sfumato.sources import CodedColumn


def buckets_of_tree(tree: Tree, columns: Sequence[CodedColumn]) -> Buckets:
    """Return the bucket of every fine code: two codes share one exactly when every split sends both to one side.

    For ordered columns that is the union of the thresholds; missing shares the bucket of an interval that goes its
    way in every split, and has its own where none does.
    """
    return [_buckets_of(_sides(tree, position, column)) for position, column in enumerate(columns)]


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
    """Say of every fine code and every split on a column whether the code goes left."""
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


def without_small_buckets(tree: Tree, columns: Sequence[CodedColumn], min_records: int) -> Tree:
    """Return the tree without the splits that leave a bucket with fewer records of the sample.

    A small bucket is joined with others by undoing the latest split that tells it from anything, together with all
    splits below it; the tree stays a tree, so T(x) = T(g(x)) goes on holding.
    """
    if min_records <= 1:
        return tree  # every code of the sample has a record
    counts = [np.bincount(column.codes, minlength=column.bins.n_bins) for column in columns]
    while True:
        position = _column_with_small_bucket(tree, columns, counts, min_records)
        if position is None:
            return tree
        splits = np.flatnonzero(tree.column == position)
        latest = splits[np.argmax(tree.split_rank[splits])]
        tree = tree.without_splits(np.array([latest]))


def _column_with_small_bucket(
    tree: Tree, columns: Sequence[CodedColumn], counts: Sequence[NDArray[Any]], min_records: int
) -> int | None:
    for position, bucket in enumerate(buckets_of_tree(tree, columns)):
        records = np.bincount(bucket, weights=counts[position])
        if bucket.any() and records.min() < min_records:
            return position
    return None
