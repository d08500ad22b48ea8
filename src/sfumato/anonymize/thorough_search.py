# SPDX-License-Identifier: Apache-2.0
"""Grow several trees and keep the one whose groups say most about the guide.

A greedy tree takes the best cut now, and which cut that is depends on the scale of the guide: with probabilities, the
difference between 0.02 and 0.10 hardly counts; with their logarithm, it counts most. No scale is best for every table.
So the guide is stretched in several ways, a tree is grown for each, and all trees are judged on the guide as it was
given, by its squared error from the mean of the other records of the group (leave-one-out cross-validation).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sfumato.anonymize.partitioners import Task, TreePartitioner
from sfumato.partition.grower import Grown, in_group_order
from sfumato.partition.guides import NUMBER_SCALE, PROBABILITY_SCALE, Guide, Spread
from sfumato.partition.records import Records
from sfumato.partition.taxonomy import Taxonomy

_SOFTENINGS = (0.005, 0.02, 0.1)
"""Added to a share before the logarithm of its odds is taken."""

_N_RANDOM = 20
_N_PIECES = 6
_LEAST_GAIN = 1e-9  # of the error, as a share: sums of the same numbers in another order differ by less


class ThoroughPartitioner(TreePartitioner):
    """Grows a tree for each of several scales of the guide, and keeps the best."""

    def grow(self, records: Records, task: Task, taxonomy: Taxonomy) -> Grown:
        """Grow the trees; a guide of classes has no scale, and one tree is all there is."""
        dense = task.guide.dense
        if dense is None or dense.max() <= 1:
            return super().grow(records, task, taxonomy)
        least, best = np.inf, None
        for guide in _stretched(task.guide, dense):
            assert guide.dense is not None
            own = records._replace(dense=guide.dense)
            tree, group = self._grower(own, replace(task, guide=guide), taxonomy).grow()
            error = _left_out_error(dense, task.guide.channel_weights, group, tree.n_groups, task.weight)
            if error < least * (1 - _LEAST_GAIN):
                least, best = error, (tree, group)
        assert best is not None
        return in_group_order(*best, records)


def _stretched(guide: Guide, dense: NDArray[np.int64]) -> Iterator[Guide]:
    """Yield the guide as it is, then on other scales; the same ones in every run."""
    yield guide
    scale = PROBABILITY_SCALE if dense.max() <= PROBABILITY_SCALE else NUMBER_SCALE
    share = dense / scale
    for softening in _SOFTENINGS:
        yield _replaced(guide, dense, _softened_odds(share, softening))
    generator = np.random.default_rng(0)
    places = np.linspace(0.0, 1.0, _N_PIECES + 1)
    for _ in range(_N_RANDOM):
        softening = np.exp(generator.uniform(np.log(0.003), np.log(0.5)))
        steps = generator.gamma(2.0, size=_N_PIECES)
        heights = np.concatenate([[0.0], np.cumsum(steps) / steps.sum()])
        yield _replaced(guide, dense, np.interp(_softened_odds(share, softening), places, heights))


def _softened_odds(share: NDArray[np.float64], softening: float) -> NDArray[np.float64]:
    """Return the logarithm of the odds of a share, moved to 0 to 1."""
    most = np.log((1 + softening) / softening)
    odds = np.log((share + softening) / (1 + softening - share))
    moved: NDArray[np.float64] = (odds / most + 1) / 2
    return moved


def _replaced(guide: Guide, dense: NDArray[np.int64], stretched: NDArray[np.float64]) -> Guide:
    """Return the guide with stretched channels, each of which counts as much as before."""
    whole = np.rint(stretched * NUMBER_SCALE).astype(np.int64)
    weights = [
        weight * Spread.of(dense[:, c]).variance / max(Spread.of(whole[:, c]).variance, 1.0)
        for c, weight in enumerate(guide.channel_weights)
    ]
    return replace(guide, dense=whole, channel_weights=np.array(weights))


def _left_out_error(
    dense: NDArray[np.int64],
    channel_weights: NDArray[np.float64],
    group: NDArray[np.int32],
    n_groups: int,
    weight: NDArray[np.float64] | None,
) -> float:
    """Return the squared error of the guide from the mean of the other records of its group."""
    sizes = np.bincount(group, weight, n_groups)
    records = np.bincount(group, minlength=n_groups)
    left_out = (records / np.maximum(records - 1, 1)) ** 2
    error = 0.0
    for c, of_channel in enumerate(channel_weights):
        values = dense[:, c].astype(np.float64)
        weighted = values if weight is None else values * weight
        mean = np.bincount(group, weighted, n_groups) / np.where(sizes > 0, sizes, 1.0)
        apart = (values - mean[group]) ** 2
        inside = np.bincount(group, apart if weight is None else apart * weight, n_groups)
        error += float(of_channel * (inside * left_out).sum())
    return error
