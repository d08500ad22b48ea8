# SPDX-License-Identifier: Apache-2.0
"""Middles: a median, a mean or a midrange per column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.coded_columns import CodedColumn
from sfumato.columns import MICROSECONDS_PER_DAY
from sfumato.partition.group_summaries import Groups, Summary
from sfumato.representatives.representative import (
    GroupValues,
    NamedRepresentative,
    RepresentativeFacts,
    Scene,
    values_of_bins,
    values_of_codes,
)

_LARGEST_SUMMED = 2.0**940  # a sum of 2^80 such numbers is still finite


def _medians(scene: Scene) -> dict[str, list[GroupValues]]:
    return values_of_codes(scene.columns, scene.middle)


def _means(scene: Scene) -> dict[str, list[GroupValues]]:
    columns, codes, middle = scene.columns, scene.codes, scene.middle
    return {c.name: [_mean(c, codes[:, j], scene.groups, middle[:, j])] for j, c in enumerate(columns)}


def _midranges(scene: Scene) -> dict[str, list[GroupValues]]:
    middle = scene.middle
    return {c.name: [_midrange(c, scene.summary, j, middle[:, j])] for j, c in enumerate(scene.columns)}


def _mean(column: CodedColumn, codes: NDArray[Any], groups: Groups, middle: NDArray[np.int32]) -> GroupValues:
    """Mean of the published values of the group's bins; categories have none and take their mode."""
    bins = column.bins
    assert bins.shared is not None
    fallback = values_of_bins(column.name, bins, middle)
    if not bins.is_ordered or not bins.n_values:
        return fallback
    kept = (groups.group >= 0) & (codes != bins.missing_bin)
    own = groups.group[kept]
    counts = np.bincount(own, minlength=groups.n_groups)
    # Sum counts per (group, bin) in bin order: the same numbers in the same order for any order of the records.
    cells, in_cell = np.unique(own.astype(np.int64) * bins.n_values + codes[kept], return_counts=True)
    origin, scale = min(bins.low[0], bins.shared.values.min()), 1.0
    if bins.values.dtype.kind == "f" and max(abs(origin), abs(bins.high[-1])) > _LARGEST_SUMMED:
        origin, scale = np.float64(0), 2.0**-80  # a power of two, so nothing is lost but the overflow
    shifted = _above(bins.shared.values, origin) * scale
    sums = np.bincount(
        cells // bins.n_values, weights=in_cell * shifted[cells % bins.n_values], minlength=groups.n_groups
    )
    means = sums / np.maximum(1, counts) / scale
    is_missing = fallback.missing if fallback.missing is not None else np.zeros(len(middle), np.bool_)
    values = _added(column, np.broadcast_to(origin, means.shape), means)
    return GroupValues(column.name, np.where(is_missing, bins.values.dtype.type(0), values), is_missing)


def _midrange(column: CodedColumn, summary: Summary, j: int, middle: NDArray[np.int32]) -> GroupValues:
    """Middle between the published values of the lowest and the highest bin; categories take their mode."""
    bins = column.bins
    fallback = values_of_bins(column.name, bins, middle)
    if not bins.is_ordered or not bins.n_values:
        return fallback
    assert bins.shared is not None
    low = bins.shared.values[np.maximum(0, summary.lowest[:, j])]
    high = bins.shared.values[np.maximum(0, summary.highest[:, j])]
    half = high / 2 - low / 2 if low.dtype.kind == "f" else _above(high, low) / 2
    values = _added(column, low, half)
    is_missing = fallback.missing if fallback.missing is not None else np.zeros(len(low), np.bool_)
    return GroupValues(column.name, np.where(is_missing, bins.values.dtype.type(0), values), is_missing)


def _above(values: NDArray[Any], origin: Any) -> NDArray[np.float64]:
    """Return how far values lie above an origin; differences of integers may pass 63 bits, so they are unsigned."""
    if values.dtype.kind == "f":
        return np.asarray(values - origin, np.float64)
    return (values.view(np.uint64) - np.asarray(origin).view(np.uint64)).astype(np.float64)


def _added(column: CodedColumn, origin: NDArray[Any], offsets: NDArray[np.float64]) -> NDArray[Any]:
    """Add offsets to values of the column; integers stay integers and dates stay whole days."""
    if column.bins.values.dtype.kind == "f":
        return np.asarray(origin + offsets)
    step = MICROSECONDS_PER_DAY if column.moment == "date" else 1
    whole = np.minimum(np.rint(offsets / step) * step, np.nextafter(2.0**64, 0)).astype(np.uint64)
    total = (np.ascontiguousarray(origin).view(np.uint64) + whole).view(np.int64)
    return np.asarray(np.minimum(total, column.bins.high[-1]))


MEDIAN = NamedRepresentative(
    RepresentativeFacts("median", "the median of each number, the most frequent of each category"), _medians
)
MEAN = NamedRepresentative(
    RepresentativeFacts("mean", "the mean of each number, the most frequent of each category", computes_numbers=True),
    _means,
)
MIDRANGE = NamedRepresentative(
    RepresentativeFacts(
        "midrange",
        "the middle between the lowest and the highest, the most frequent of each category",
        computes_numbers=True,
    ),
    _midranges,
)
