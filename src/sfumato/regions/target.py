# SPDX-License-Identifier: Apache-2.0
"""How regions see a target: classes that are described one by one, or numbers whose means are kept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arguments import distinct_labels, sorted_labels
from sfumato.partition.guides import NumberScale
from sfumato.partition.region_counts import FAN, n_pools

MOST_CLASSES = 32
"""Of a target with more classes, regions do not tell them apart."""


@dataclass(frozen=True, eq=False)
class TargetCoding:
    """A target as classes or whole numbers.

    Attributes
    ----------
    labels : ndarray or None
        The target of each class, sorted; of several outputs a row. None for numbers, and for more than `MOST_CLASSES`
        classes, which are not told apart.
    scale : NumberScale or None
        For numbers: how they become whole ones, which are added up exactly.
    is_flat : bool
        Whether numbers have one output, which is not in a column of its own.
    """

    labels: NDArray[Any] | None = None
    scale: NumberScale | None = None
    is_flat: bool = True

    @property
    def n_classes(self) -> int:
        """Number of classes that are described one by one."""
        return 1 if self.labels is None else len(self.labels)

    @property
    def n_outputs(self) -> int:
        """Number of outputs of numbers."""
        return 0 if self.scale is None else len(self.scale.low)

    def classes(self, y: NDArray[Any]) -> NDArray[np.int32]:
        """Return the class of some records, which have the labels that are known."""
        if self.labels is None:
            return np.zeros(len(y), np.int32)
        if y.ndim == 1 and len(self.labels) == 2:  # many times as fast
            return np.asarray(y == self.labels[1], np.int32)
        if y.ndim == 1:
            return np.searchsorted(self.labels, y).astype(np.int32)
        own, known = np.zeros(len(y), np.int64), np.zeros(len(self.labels), np.int64)
        for output, listed in zip(y.T, self.labels.T, strict=True):
            different = sorted_labels(listed)
            own = own * len(different) + np.searchsorted(different, output)
            known = known * len(different) + np.searchsorted(different, listed)
        return np.searchsorted(known, own).astype(np.int32)

    def coded(self, y: NDArray[Any]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the classes and the numbers of some records."""
        return self.classes(y), self.numbers(y)

    def numbers(self, y: NDArray[Any]) -> NDArray[np.int64]:
        """Return the numbers of some records as whole ones, shape (records, outputs)."""
        if self.scale is None:
            return np.zeros((len(y), 0), np.int64)
        return self.scale.channels(np.asarray(y, np.float64).reshape(len(y), -1))


def code_target(y: NDArray[Any], *, is_number: bool) -> TargetCoding:
    """Return how a target is coded; the classes of several outputs are combinations that occur."""
    if is_number:
        values = np.asarray(y, np.float64).reshape(len(y), -1)
        return TargetCoding(scale=NumberScale.of(values.min(axis=0), values.max(axis=0)), is_flat=y.ndim == 1)
    if y.ndim == 1:
        labels = sorted_labels(y)
    else:
        places = [distinct_labels(output)[1] for output in y.T]
        labels = y[np.unique(np.stack(places, axis=1), axis=0, return_index=True)[1]]
    return TargetCoding(labels if len(labels) <= MOST_CLASSES else None)


@dataclass(frozen=True, eq=False)
class RegionTarget:
    """What regions know of the target.

    Attributes
    ----------
    labels : ndarray or None
        As of `TargetCoding`.
    n_in_class : ndarray of float64, shape (groups, classes)
        People of each class in each group; of large groups as many as are to be expected from `coarse`.
    means : ndarray of float64, shape (groups, outputs)
        Of numbers.
    is_flat : bool
        As of `TargetCoding`.
    coarse : ndarray of int64, shape (groups, classes), or None
        The people of each class in multiples of the floor, of classes that are told apart. None: counts with noise.
    """

    labels: NDArray[Any] | None
    n_in_class: NDArray[np.float64]
    means: NDArray[np.float64]
    is_flat: bool = True
    coarse: NDArray[np.int64] | None = None

    def is_small(self, sizes: NDArray[np.int64], floor: int) -> NDArray[np.bool_]:
        """Return which groups are too small to be described by themselves: they have less than twice the floor.

        Values are drawn for them from the cells of their neighbors, too: the shares of their classes, looked for in
        their own cell, would tell who was among them. Larger groups keep to their cell, and their classes are counted
        in multiples of the floor. Means of numbers are those of more people where groups are small.
        """
        return (sizes < 2 * floor) & (self.labels is not None)

    @property
    def is_known(self) -> bool:
        """Whether regions can say what the target of a drawn record is."""
        return self.labels is not None or self.means.shape[1] > 0

    def coarser(self, coarse: NDArray[np.int64], floor: int, *, but: NDArray[np.bool_] | None = None) -> RegionTarget:
        """Return the same target, the people of each class known in multiples of the floor; but for some groups.

        To be expected of a group are those, and as many people as the floor with the classes of its neighbors.
        """
        n_pools_of_groups = int(n_pools(len(coarse))[1])
        room = np.zeros((n_pools_of_groups * FAN, coarse.shape[1]), np.int64)
        room[: len(coarse)] = coarse
        pooled = room.reshape(n_pools_of_groups, FAN, -1).sum(axis=1) + 1.0
        share = pooled / pooled.sum(axis=1, keepdims=True)
        expected = coarse + floor * share[np.arange(len(coarse)) // FAN]
        if but is not None:
            expected[but] = self.n_in_class[but]
        return replace(self, n_in_class=expected, coarse=coarse)
