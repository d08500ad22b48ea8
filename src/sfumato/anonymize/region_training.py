# SPDX-License-Identifier: Apache-2.0
"""Train a model on records that are drawn from the regions of a fitted anonymizer; called by ``estimators``.

Drawn records exist inside this module only: they are handed to the `fit` of the model and to nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.guide_from_target import fit_weighted, takes_weights
from sfumato.arguments import distinct_labels
from sfumato.frames import Table, read_table
from sfumato.regions import Regions

_MOST_CLASSES = 32
"""Of a target with more classes, regions do not tell them apart, and a drawn record keeps the class of its own."""

_MOST_RANGES = 4
"""Ranges with about as many records each that stand for the classes of a target of numbers."""

_FLOORS_OF_A_RANGE = 5
"""A range is worth having if a group has so many times the floor of people in it."""

_LEAST_SHARE = 0.02
"""Classes that are less likely than this for a drawn record are left out of it."""


class Strata(NamedTuple):
    """The target in classes that regions describe separately.

    Attributes
    ----------
    of_record : ndarray of int32
    n : int
    targets : ndarray or None
        The target of each class; None for ranges of numbers.
    are_told_apart : bool
        Whether a drawn record can get shares of the classes.
    """

    of_record: NDArray[np.int32]
    n: int
    targets: NDArray[Any] | None
    are_told_apart: bool = True


def strata_of(y: NDArray[Any], *, is_number: bool, k: int, floor: int) -> Strata:
    """Return the classes of a target, of several outputs their combinations; ranges of numbers by quantiles."""
    if is_number:
        values = _along_first_component(np.asarray(y, np.float64).reshape(len(y), -1))
        n_ranges = min(max(k // (_FLOORS_OF_A_RANGE * floor), 1), _MOST_RANGES)
        edges = np.unique(np.quantile(values, np.arange(1, n_ranges) / n_ranges))
        return Strata(np.searchsorted(edges, values, side="right").astype(np.int32), len(edges) + 1, None)
    of_record = np.zeros(len(y), np.int64)
    for output in np.reshape(y, (len(y), -1)).T:
        labels, codes = distinct_labels(output)
        of_record = distinct_labels(of_record * len(labels) + codes)[1]  # combinations that occur
    n_classes = int(of_record.max()) + 1
    if n_classes > _MOST_CLASSES:
        return Strata(np.zeros(len(y), np.int32), 1, None, are_told_apart=False)
    first = np.full(n_classes, len(y))
    np.minimum.at(first, of_record, np.arange(len(y)))
    return Strata(of_record.astype(np.int32), n_classes, y[first])


def _along_first_component(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return one number per record: of several outputs, where it lies along their main direction."""
    if values.shape[1] == 1:
        return values[:, 0]
    spread = values.std(axis=0)
    scaled = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    direction = np.linalg.eigh(np.cov(scaled, rowvar=False))[1][:, -1]
    projected: NDArray[np.float64] = scaled @ direction
    return projected


def train_on_regions(
    estimator: Any,
    regions: Regions,
    table: Table,
    dropped: Sequence[str],
    group: NDArray[np.int32],
    y: NDArray[Any],
    strata: Strata,
    weight: NDArray[np.float64] | None,
    random_state: np.random.Generator,
    *,
    is_alone: bool,
    n_threads: int = 1,
) -> Any:
    """Fit an estimator on records drawn from regions, one for every fitted record.

    Parameters
    ----------
    is_alone : bool
        Whether the table has no other columns than the quasi-identifiers. Otherwise a drawn record keeps the other
        columns of the record that it stands for, and with them its target.
    """
    asks_classes = is_alone and strata.are_told_apart
    drawn = regions.draw(group, strata.of_record, random_state, with_classes=asks_classes, n_threads=n_threads)
    records = table.replaced(drawn.columns, drop=dropped)
    if not asks_classes:
        return fit_weighted(estimator, records, y, weight)
    # A class weighs what the people of the group weigh who have it.
    share = drawn.classes * _mean_weights(group, strata, regions.n_groups, weight)[group]
    if strata.targets is None:
        total = share.sum(axis=1)
        expected = _mean_targets(share / _positive(total)[:, np.newaxis], y, group, strata, regions)
        return fit_weighted(estimator, records, expected, None if weight is None else total)
    if not takes_weights(estimator):
        chosen = _drawn_classes(share, random_state)
        return fit_weighted(estimator, records, strata.targets[chosen], weight)
    total = share.sum(axis=1, keepdims=True)
    is_likely = share >= _LEAST_SHARE * total
    is_likely[share.argmax(axis=0), np.arange(strata.n)] = True  # no class is forgotten
    share = np.where(is_likely, share, 0.0)
    share *= total / _positive(share.sum(axis=1, keepdims=True))
    row, chosen = np.nonzero(is_likely)
    return fit_weighted(estimator, _rows(records, row), strata.targets[chosen], share[row, chosen])


def _mean_weights(
    group: NDArray[np.int32], strata: Strata, n_groups: int, weight: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Return the mean weight of each group's records of each class; of all groups where it has none."""
    if weight is None:
        return np.ones((n_groups, strata.n))
    cells = group.astype(np.int64) * strata.n + strata.of_record
    n_records = np.bincount(cells, minlength=n_groups * strata.n).reshape(n_groups, strata.n)
    summed = np.bincount(cells, weights=weight, minlength=n_groups * strata.n).reshape(n_groups, strata.n)
    whole = summed.sum(axis=0) / np.maximum(n_records.sum(axis=0), 1)
    means: NDArray[np.float64] = np.where(n_records > 0, summed / np.maximum(n_records, 1), whole)
    return means


def _drawn_classes(share: NDArray[np.float64], random_state: np.random.Generator) -> NDArray[np.intp]:
    """Return a class for each record, drawn by its shares; a class that nobody got goes to the likeliest record."""
    summed = np.cumsum(share, axis=1)
    picks = random_state.random(len(share)) * summed[:, -1]
    chosen: NDArray[np.intp] = np.minimum((summed <= picks[:, np.newaxis]).sum(axis=1), share.shape[1] - 1)
    for absent in np.setdiff1d(np.arange(share.shape[1]), chosen):
        chosen[share[:, absent].argmax()] = absent
    return chosen


def _positive(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return numbers with 1 in the place of 0, to divide by."""
    return np.where(numbers > 0, numbers, 1.0)


def _rows(records: Any, rows: NDArray[np.intp]) -> Any:
    return read_table(records).replaced({}, keep_rows=rows)


def _mean_targets(
    share: NDArray[np.float64], y: NDArray[Any], group: NDArray[np.int32], strata: Strata, regions: Regions
) -> NDArray[np.float64]:
    """Return the target that is expected of each drawn record: means over at least `floor` people each."""
    values = np.asarray(y, np.float64).reshape(len(y), -1)
    cells = group.astype(np.int64) * strata.n + strata.of_record
    counts = np.bincount(cells, minlength=regions.n_groups * strata.n)
    n_of_class = np.maximum(np.bincount(strata.of_record, minlength=strata.n), 1)
    expected = np.zeros((len(y), values.shape[1]))
    for output in range(values.shape[1]):
        own = values[:, output]
        whole = np.bincount(strata.of_record, weights=own, minlength=strata.n) / n_of_class
        means = np.bincount(cells, weights=own, minlength=len(counts)) / np.maximum(counts, 1)
        means = np.where(counts >= regions.floor, means, np.tile(whole, regions.n_groups))
        expected[:, output] = (share * means.reshape(-1, strata.n)[group]).sum(axis=1)
    return expected.reshape(np.shape(y))
