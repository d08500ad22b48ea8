# SPDX-License-Identifier: Apache-2.0
"""The groups of the nodes of a lattice: records whose labels agree at one level per column.

``lattice`` asks for them, node after node. Groups of a finer node that are at hand are joined instead of records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.grouping import merge_rows

_KEPT_GROUPS = 4_000_000  # of nodes that were counted, for coarser nodes to start from


@dataclass(frozen=True, eq=False)
class Levels:
    """The labels and losses of the values of one column at each level.

    Attributes
    ----------
    labels : ndarray of int32, shape (values, levels)
        Label of each value; values that share a label share all coarser ones.
    losses : ndarray of float64, shape (values, levels)
        What a value's label gives up, from 0 to 1; never falling from one level to the next.
    """

    labels: NDArray[np.int32]
    losses: NDArray[np.float64]

    @property
    def n_levels(self) -> int:
        """How many levels there are."""
        return int(self.labels.shape[1])


class Merged(NamedTuple):
    """Members joined into groups."""

    group: NDArray[np.int32]  # of each member
    first: NDArray[np.int32]  # one member of each group, as a row of the codes
    sizes: NDArray[np.int64]  # records of each group


class NodeGroups:
    """Counts the groups of nodes, and keeps some of them.

    Parameters
    ----------
    codes : ndarray of int32, shape (distinct records, columns)
    weights : ndarray of int64
        How many records are alike.
    columns : sequence of Levels
    """

    def __init__(self, codes: NDArray[np.int32], weights: NDArray[np.int64], columns: Sequence[Levels]) -> None:
        self._codes, self._columns = codes, columns
        self._offsets = np.concatenate(([0], np.cumsum([len(c.labels) for c in columns]))).astype(np.int64)
        every = np.arange(len(weights), dtype=np.int32)
        self._kept: list[tuple[NDArray[np.int32], NDArray[np.int64]]] = [(every, weights)]
        self._kept_at = np.zeros((1, len(columns)), np.int64)
        self._n_kept_groups = np.array([len(weights)])

    def of_records(self, levels: NDArray[np.int64]) -> Merged:
        """Join all distinct records that have the same labels at a node."""
        return self._merged(levels, *self._kept[0])

    def counted(self, levels: NDArray[np.int64]) -> Merged:
        """Join what is nearest at hand, and keep the groups where they are few: members may be groups themselves."""
        members, weights = self._kept[self._nearest(levels)]
        merged = self._merged(levels, members, weights)
        has_room = int(self._n_kept_groups[1:].sum()) + len(merged.first) <= _KEPT_GROUPS
        if len(merged.first) < len(members) // 2 and has_room:
            self._kept.append((merged.first, merged.sizes))
            self._kept_at = np.vstack([self._kept_at, levels])
            self._n_kept_groups = np.append(self._n_kept_groups, len(merged.first))
        return merged

    def _nearest(self, levels: NDArray[np.int64]) -> int:
        """Return which of the groups at hand, of this node's finer ones, are fewest."""
        finer = np.flatnonzero((self._kept_at <= levels).all(axis=1))
        return int(finer[np.argmin(self._n_kept_groups[finer])])

    def _merged(self, levels: NDArray[np.int64], members: NDArray[np.int32], weights: NDArray[np.int64]) -> Merged:
        labels = np.empty(int(self._offsets[-1]), np.uint64)
        stride = 1
        for j, column in enumerate(self._columns):
            own = column.labels[:, levels[j]].astype(np.uint64)
            if stride * (int(own.max()) + 1) > 1 << 63:
                # Too many combinations for one number: columns are compared one after the other.
                return self._merged_by_parts(levels, members, weights)
            labels[self._offsets[j] : self._offsets[j + 1]] = own * np.uint64(stride)
            stride *= int(own.max()) + 1
        return _merge_alike(self._codes, members, weights, labels, self._offsets)

    def _merged_by_parts(
        self, levels: NDArray[np.int64], members: NDArray[np.int32], weights: NDArray[np.int64]
    ) -> Merged:
        labels = [
            column.labels[self._codes[members, j], levels[j]].astype(np.int64) for j, column in enumerate(self._columns)
        ]
        first, group = merge_rows(labels, [int(own.max()) + 1 for own in labels], len(members))
        sizes = np.bincount(group, weights=weights, minlength=len(first)).astype(np.int64)
        return Merged(group.astype(np.int32), members[first], sizes)


def _merge_alike(
    codes: NDArray[np.int32],
    members: NDArray[np.int32],
    weights: NDArray[np.int64],
    labels: NDArray[np.uint64],
    offsets: NDArray[np.int64],
) -> Merged:
    """Group members whose labels add up to the same number; groups are numbered in the order of their first members.

    Parameters
    ----------
    codes : ndarray of int32, shape (distinct records, columns)
    members : ndarray of int32
        Rows of `codes`, each standing for some records.
    weights : ndarray of int64
        Records each member stands for.
    labels : ndarray of uint64
        Digit of every value of every column in a number of mixed radix, so that equal sums mean equal labels.
    offsets : ndarray of int64
        Where each column's digits start in `labels`.
    """
    n_slots = 1 << max(4, int(2 * len(members)).bit_length())
    slots = np.full(n_slots, -1, np.int32)
    keys = np.empty(len(members), np.uint64)
    group = np.empty(len(members), np.int32)
    first = np.empty(len(members), np.int32)
    sizes = np.empty(len(members), np.int64)
    shift = np.uint64(32 - (n_slots.bit_length() - 1))
    n_groups = _merge_kernel(codes, members, weights, labels, offsets, shift, slots, keys, Merged(group, first, sizes))
    return Merged(group, first[:n_groups].copy(), sizes[:n_groups].copy())


@njit(nogil=True, cache=True)
def _merge_kernel(codes, members, weights, labels, offsets, shift, slots, keys, merged):  # type: ignore[no-untyped-def]
    """Fill the groups; `slots` is an open hash table of groups, `keys` the number of each group."""
    group, first, sizes = merged
    n_groups = 0
    last = np.uint64(slots.shape[0] - 1)
    # Both halves of a number are spread by the golden ratio, so that digits of any radix land far apart; multipliers
    # of 31 bits, since their products cannot pass 64.
    spread_low, spread_high = np.uint64(0x4F1BBCDD), np.uint64(0x61C88647)
    half, low_bits = np.uint64(32), np.uint64(0xFFFFFFFF)
    one = np.uint64(1)
    for i in range(members.shape[0]):
        row = members[i]
        key = np.uint64(0)
        for j in range(offsets.shape[0] - 1):
            key += labels[offsets[j] + codes[row, j]]
        slot = (((key & low_bits) * spread_low + (key >> half) * spread_high) & low_bits) >> shift
        while slots[slot] >= 0 and keys[slots[slot]] != key:
            slot = (slot + one) & last
        own = slots[slot]
        if own < 0:
            own = n_groups
            slots[slot] = own
            keys[own] = key
            first[own] = row
            sizes[own] = 0
            n_groups += 1
        sizes[own] += weights[i]
        group[i] = own
    return n_groups
