# SPDX-License-Identifier: Apache-2.0
"""Fronts of two costs, both better when lower: who is on them, where the knee is, how much area they cover."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def is_on_front(costs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Say which points no other point beats: at most as costly in both, and less in one. Equal points are all on it.

    Examples
    --------
    >>> is_on_front(np.array([[0.0, 3.0], [1.0, 1.0], [2.0, 2.0], [3.0, 0.0]])).tolist()
    [True, True, False, True]
    """
    order = np.lexsort((costs[:, 1], costs[:, 0]))
    result = np.zeros(len(costs), np.bool_)
    lowest, at = np.inf, np.nan
    for i in order:
        first, second = costs[i]
        if second < lowest or (second == lowest and first == at):
            result[i] = True
            lowest, at = second, first
    return result


def knee_of(costs: NDArray[np.float64], start: NDArray[np.float64], end: NDArray[np.float64]) -> int:
    """Return the point furthest below the line from one limit point to the other, both costs scaled to 0 to 1.

    The first of them where several are equally far.
    """
    span = np.abs(end - start)
    scaled = (costs - np.minimum(start, end)) / np.where(span > 0, span, 1.0)
    return int(np.argmin(scaled.sum(axis=1)))


def hypervolume(costs: NDArray[np.float64], ideal: NDArray[np.float64], worst: NDArray[np.float64]) -> float:
    """Return the share of the rectangle from `ideal` to `worst` that some point beats.

    Examples
    --------
    >>> hypervolume(np.array([[0.0, 0.5], [0.5, 0.0]]), np.zeros(2), np.ones(2))
    0.75
    """
    span = worst - ideal
    if (span <= 0).any():
        return 0.0
    scaled = np.clip((costs - ideal) / span, 0.0, 1.0)
    area, height = 0.0, 1.0
    for first, second in scaled[np.lexsort((scaled[:, 1], scaled[:, 0]))]:
        if second < height:
            area += (1.0 - first) * (height - second)
            height = second
    return float(area)
