# SPDX-License-Identifier: Apache-2.0
"""Put the many categories of an attribute in orders, so that a tree can cut them as it cuts numbers.

The order is that of the class: a category stands where the mean class of its records is. Means of rare categories are
mostly chance, so each is shrunken towards that of its parent in the hierarchy, or towards the mean of all records, by
as much as the scatter of the means says (empirical Bayes). And no record takes part in the order in which it is cut:
records are dealt to folds, and the mean that places a record comes from the other folds. Otherwise a category of three
records would seem to separate the classes perfectly. Where categories end up is decided by all records.

`halves` and `quarters` order categories by class among those that tell alike of the personal attributes: a prefix then
separates the classes and takes as many categories from every part. ``privacy_aware_tree`` uses all this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.minimize.sample import Sample
from sfumato.partition.binning import Bins
from sfumato.partition.category_splits import MAX_ENUMERATED
from sfumato.partition.guides import integer_weights

OrderName = Literal["class", "halves", "quarters"]
_PARTS: dict[OrderName, int] = {"class": 1, "halves": 2, "quarters": 4}
_N_FOLDS = 5
_MAX_RANKS = 255  # with 8-bit codes, as fine as numbers
_FEW = 10  # categories with fewer records stand for those that none has
_FACTOR = np.uint64(0xBF58476D1CE4E5B9)


@dataclass(frozen=True, eq=False)
class CategoryOrder:
    """The categories of an attribute in one order.

    Attributes
    ----------
    position : int
        Place of the attribute in the sample.
    codes : ndarray of uint8
        Rank of the category of every record, found without its fold.
    ranks : ndarray of int64
        Rank of every category, missing included, and in the end of one that no record has; found with all records.
    """

    position: int
    codes: NDArray[np.uint8]
    ranks: NDArray[np.int64]

    @property
    def bins(self) -> Bins:
        """The ranks as bins of an ordered column."""
        ranks = np.arange(max(int(self.codes.max()), int(self.ranks.max())) + 1)
        return Bins(True, ranks, ranks, ranks, False)


@dataclass(frozen=True, eq=False)
class SplitOrders:
    """Orders as columns that a tree splits on.

    The first order of an attribute takes the attribute's own place; the others are behind all attributes.
    """

    every: Sequence[CategoryOrder] = ()

    @cached_property
    def first(self) -> list[CategoryOrder]:
        """The first order of each attribute that has one."""
        return list({order.position: order for order in reversed(self.every)}.values())[::-1]

    @cached_property
    def others(self) -> list[CategoryOrder]:
        """All other orders."""
        first = {id(order) for order in self.first}
        return [order for order in self.every if id(order) not in first]

    @cached_property
    def _positions(self) -> set[int]:
        return {order.position for order in self.every}

    def columns_of(self, position: int, n_attributes: int) -> list[tuple[int, CategoryOrder]]:
        """Return the columns that are orders of an attribute; none if it is split on as it is."""
        if position not in self._positions:
            return []
        own = [(position, order) for order in self.first if order.position == position]
        behind = enumerate(self.others, n_attributes)
        return [*own, *((column, order) for column, order in behind if order.position == position)]


def order_categories(sample: Sample, floor: int, orders: Sequence[OrderName] = ("class",)) -> list[CategoryOrder]:
    """Return the orders of all attributes with more categories than subsets can be tried of, or with a hierarchy.

    Parameters
    ----------
    sample : Sample
    floor : int
        A category of fewer records is placed without them: where its parent is, or with all rare ones.
    orders : sequence of {"class", "halves", "quarters"}
    """
    chosen = [place for place in range(len(sample.columns)) if _needs_order(sample, place)]
    if not chosen or sample.n_classes < 2:
        return []
    # Sums of whole numbers do not depend on the order of the records.
    weight = None if sample.weight is None else integer_weights(sample.weight, 0)
    folds = _folds(sample)
    made = []
    for position in chosen:
        counted = _Counted.of(sample, position, weight, folds, with_personal=any(_PARTS[name] > 1 for name in orders))
        family = _Family.of(sample.columns[position].counts, floor, sample.parents.get(position))
        # Without other personal attributes, parts would be the whole.
        made += [_ordered(counted, family, name) for name in orders if _PARTS[name] == 1 or counted.personal]
    return made


def _needs_order(sample: Sample, position: int) -> bool:
    column = sample.columns[position]
    if column.bins.is_ordered or position in sample.left_out:
        return False
    return position in sample.parents or bool(np.count_nonzero(column.counts) > MAX_ENUMERATED)


def _folds(sample: Sample) -> NDArray[np.uint8]:
    """Return the fold of every record: by its values; equal ones are dealt in turn. Their order does not matter."""
    mixed = sample.y.astype(np.uint64)
    if sample.weight is not None:
        weight = integer_weights(sample.weight, 0)
        mixed += (weight.max() - weight).astype(np.uint64) << np.uint64(32)
    for column in sample.columns:
        _mix_in(mixed, column.codes, _FACTOR)
    mixed ^= mixed >> np.uint64(29)
    mixed *= _FACTOR
    order = np.argsort(mixed)
    folds = np.empty(sample.n_records, np.uint8)
    folds[order] = np.arange(sample.n_records) % _N_FOLDS
    return folds


@njit(nogil=True, cache=True)
def _mix_in(mixed, codes, factor):  # type: ignore[no-untyped-def]
    for row in range(len(mixed)):
        mixed[row] = mixed[row] * factor + np.uint64(codes[row])


@dataclass(frozen=True, eq=False)
class _Counted:
    """What the records of every category have, fold by fold.

    Attributes
    ----------
    position : int
    codes, folds : ndarray
        Category and fold of every record.
    records : ndarray of int64, shape (folds, codes)
        Number of the records.
    n : ndarray of float64, shape (folds, codes)
        Their weight.
    classes : ndarray of float64, shape (folds, codes, channels)
        Of those of each class; one channel says it all where there are two classes.
    personal : list of ndarray of float64, shape (folds, codes, values)
        Of those with each value of every other personal attribute.
    """

    position: int
    codes: NDArray[np.integer[Any]]
    folds: NDArray[np.uint8]
    records: NDArray[np.int64]
    n: NDArray[np.float64]
    classes: NDArray[np.float64]
    personal: list[NDArray[np.float64]]

    @classmethod
    def of(
        cls,
        sample: Sample,
        position: int,
        weight: NDArray[np.int64] | None,
        folds: NDArray[np.uint8],
        *,
        with_personal: bool,
    ) -> _Counted:
        column = sample.columns[position]
        n_codes = column.bins.n_bins
        cell = folds.astype(np.int64)
        cell *= n_codes
        cell += column.codes
        # A record counts as one in the mean.
        scale = 1.0 if weight is None else np.count_nonzero(weight) / max(1, int(weight.sum()))

        def count(values: NDArray[np.integer[Any]], n_values: int) -> NDArray[np.float64]:
            sums = np.bincount(cell * n_values + values, weight, _N_FOLDS * n_codes * n_values)
            return np.asarray(scale * sums.reshape(_N_FOLDS, n_codes, n_values), np.float64)

        classes = count(sample.y, sample.n_classes)
        others = [sample.columns[place] for place in sample.personal if place != position and with_personal]
        return cls(
            position,
            column.codes,
            folds,
            np.bincount(cell, minlength=_N_FOLDS * n_codes).reshape(_N_FOLDS, n_codes),
            classes.sum(axis=2),
            classes[:, :, 1:] if sample.n_classes == 2 else classes,
            [count(other.codes, other.bins.n_bins) for other in others],
        )


@dataclass(frozen=True, eq=False)
class _Family:
    """Which categories are estimated together.

    Attributes
    ----------
    own : ndarray of int64
        What every category is estimated as: itself, all rare ones together, or -1 for a rare one with a parent.
    parents : ndarray of int64, shape (codes, levels)
        Labels above the categories; the last level is one label for all.
    is_few : ndarray of bool
        Categories that stand for those without any record.
    """

    own: NDArray[np.int64]
    parents: NDArray[np.int64]
    is_few: NDArray[np.bool_]

    @classmethod
    def of(cls, counts: NDArray[np.int64], floor: int, parents: NDArray[np.integer[Any]] | None) -> _Family:
        n_codes = len(counts)
        own = np.arange(n_codes)
        is_rare = counts < floor
        if parents is None:
            if is_rare.any():
                own[is_rare] = n_codes  # one for all of them
            return cls(own, np.zeros((n_codes, 1), np.int64), counts < max(floor, _FEW))
        own[is_rare | (counts == 0)] = -1
        known = parents.astype(np.int64).copy()
        for level in range(known.shape[1] - 1):  # a label with too few records is placed by the one above, too
            sizes = np.bincount(known[:, level], counts)
            known[sizes[known[:, level]] < floor, level] = -1
        return cls(own, known, np.zeros(n_codes, np.bool_))


def _ordered(counted: _Counted, family: _Family, name: OrderName) -> CategoryOrder:
    """Compute the keys of all categories, with all records and without each fold, and rank them together."""
    whole = _keys(counted, family, name, np.ones(_N_FOLDS, np.bool_), None)
    others = [np.arange(_N_FOLDS) != fold for fold in range(_N_FOLDS)]
    without = np.stack([_keys(counted, family, name, used, whole.axis).keys[:-1] for used in others])
    edges = _edges(whole.keys[:-1], counted.records.sum(axis=0))
    ranks = np.searchsorted(edges, without).astype(np.uint8)
    return CategoryOrder(
        counted.position, ranks[counted.folds, counted.codes], np.searchsorted(edges, whole.keys).astype(np.int64)
    )


def _edges(keys: NDArray[np.float64], records: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return where ranks end: between all neighbors, or between as many as there are ranks, at quantiles."""
    distinct, which = np.unique(keys[records > 0], return_inverse=True)
    between = (distinct[:-1] + distinct[1:]) / 2
    if len(distinct) <= _MAX_RANKS:
        return between
    counts = np.bincount(which, records[records > 0])
    ranks = np.cumsum(counts) * (_MAX_RANKS - 1) // counts.sum()
    return np.asarray(between[np.diff(ranks) > 0])


@dataclass(frozen=True, eq=False)
class _Keys:
    keys: NDArray[np.float64]  # of every category, and in the end of one that no record has
    axis: NDArray[np.float64]  # along which the classes are laid


def _keys(
    counted: _Counted,
    family: _Family,
    name: OrderName,
    used: NDArray[np.bool_],
    axis: NDArray[np.float64] | None,
) -> _Keys:
    n = counted.n[used].sum(axis=0)
    means = _shrunken(counted.classes[used].sum(axis=0), n, family)
    axis = _first_component(means[:-1], n) if axis is None else axis
    keys = means @ axis
    if _PARTS[name] > 1:
        told = [_shrunken(own[used].sum(axis=0), n, family) for own in counted.personal]
        # Every attribute counts the same, as in PGini.
        told = [own * np.sqrt(own.shape[1] / max(1, own.shape[1] - 1)) for own in told]
        together = np.concatenate(told, axis=1)
        personal = together @ _first_component(together[:-1], n)
        keys = _interleaved(keys, personal, np.append(n, 0.0), _PARTS[name])
    return _Keys(keys, axis)


def _shrunken(sums: NDArray[np.float64], n: NDArray[np.float64], family: _Family) -> NDArray[np.float64]:
    """Return the mean channels of every category, and in the end of one without records, shrunken level by level.

    At each level, from the top down, the mean of a label moves towards that of the label above it.
    """
    n_codes = len(n)
    total = max(n.sum(), 1e-300)
    top = sums.sum(axis=0) / total
    within = float((top * (1 - top)).sum())
    above = np.tile(top, (n_codes + 1, 1))  # the estimate of the next known level, of every category and of a new one
    for level in range(family.parents.shape[1] - 2, -1, -1):
        above[:-1] = _towards(above[:-1], family.parents[:, level], sums, n, within)
    own = np.append(_towards(above[:-1], family.own, sums, n, within), above[-1:], axis=0)
    if family.is_few.any():
        few = np.where(family.is_few, 0, -1)
        pooled = _towards(above[:-1], np.where(family.is_few, 0, 1 + np.arange(n_codes)), sums, n, within)
        own[-1] = pooled[np.argmax(few == 0)]
    return own


def _towards(
    above: NDArray[np.float64],
    group: NDArray[np.int64],
    sums: NDArray[np.float64],
    n: NDArray[np.float64],
    within: float,
) -> NDArray[np.float64]:
    """Return the means of groups of categories, shrunken towards what is above them; group -1 takes that as it is.

    How far is a matter of scatter: means of groups that differ by no more than chance explains are moved all the way
    (method of moments).
    """
    known = group >= 0
    n_groups = int(group.max(initial=-1)) + 1
    if not known.any():
        return above
    size = np.bincount(group[known], n[known], n_groups)
    total = np.stack([np.bincount(group[known], own[known], n_groups) for own in sums.T], axis=1)
    first = np.zeros(n_groups, np.int64)
    first[group[known][::-1]] = np.flatnonzero(known)[::-1]
    prior = above[first]
    filled = size > 0
    apart = total[filled] / size[filled, None] - prior[filled]
    spread = float((size[filled] * (apart**2).sum(axis=1)).sum())
    room = size.sum() - (size**2).sum() / max(size.sum(), 1e-300)
    between = (spread - (filled.sum() - 1) * within) / room if room > 0 else 0.0
    result = above.copy()
    if between > 0:  # else the groups differ by no more than chance explains
        strength = within / between
        means = (total + strength * prior) / np.maximum(size + strength, 1e-300)[:, None]
        result[known] = means[group[known]]
    return result


def _first_component(means: NDArray[np.float64], n: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the direction in which means differ most; its largest entry is positive."""
    if means.shape[1] == 1:
        return np.ones(1)
    apart = means - n @ means / max(n.sum(), 1e-300)
    axis: NDArray[np.float64] = np.linalg.eigh((apart * n[:, None]).T @ apart)[1][:, -1]
    return np.asarray(axis * np.sign(axis[np.abs(axis).argmax()]))


def _interleaved(
    keys: NDArray[np.float64], personal: NDArray[np.float64], n: NDArray[np.float64], n_parts: int
) -> NDArray[np.float64]:
    """Return the place of every category by class inside its part of the personal order, from 0 to 1.

    Parts have about equally many records.
    """
    part = np.minimum((_places(personal, n) * n_parts).astype(np.int64), n_parts - 1)
    result = np.zeros(len(keys))
    for own in range(n_parts):
        inside = np.flatnonzero(part == own)
        result[inside] = _places(keys[inside], n[inside])
    return result


def _places(keys: NDArray[np.float64], n: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the share of the records before the middle of each category; equal keys share a place."""
    distinct, which = np.unique(keys, return_inverse=True)
    size = np.bincount(which, n, len(distinct))
    middle = (np.cumsum(size) - size / 2) / max(size.sum(), 1e-300)
    places: NDArray[np.float64] = middle[which]
    return places
