# SPDX-License-Identifier: Apache-2.0
"""Guides: the gain of a split, from channels of integers with signed weights or by a rule of its own.

A guide gives every record a vector of integer channels. The gain of a split is
``sum_c w_c * (S_Lc^2/n_L + S_Rc^2/n_R - S_c^2/n)`` with ``S`` the channel sums: Gini for one-hot channels,
variance reduction for numbers, and a penalty where a weight is negative. Channels come in blocks: *dense*
(integer columns) or *coded* (one column of class codes that stands for its one-hot channels and costs one
addition per record, however many classes there are).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.partition.binning import code_type
from sfumato.partition.records import Records

CHANNELS, ENTROPY, INFORMATION_LOSS, MEDIAN = range(4)
"""The scores a scan can use; kernels take them as integers."""

PROBABILITY_SCALE = 1 << 16
"""Probabilities are kept as whole multiples of 1/65,536."""

NUMBER_SCALE = (1 << 24) - 1
"""Numbers are mapped to whole numbers from 0 to this, by their smallest and largest value."""


@dataclass(frozen=True, eq=False)
class Guide:
    """Channels of all records and the score a split gets for them.

    Attributes
    ----------
    rule : int
        CHANNELS, ENTROPY, INFORMATION_LOSS or MEDIAN.
    dense : ndarray of int64, shape (n, channels), or None
    code_blocks : list of ndarray
        One column of class codes per coded block.
    cardinalities : list of int
        Number of classes of each coded block.
    channel_weights : ndarray of float64
        Signed weight of each channel: dense ones first, then those of the coded blocks.
    classes : ndarray or None
        Predicted class of each record, for representatives that look for a majority.
    """

    rule: int
    dense: NDArray[np.int64] | None = None
    code_blocks: list[NDArray[Any]] = field(default_factory=list)
    cardinalities: list[int] = field(default_factory=list)
    channel_weights: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    classes: NDArray[Any] | None = None

    @property
    def value_bits(self) -> int:
        """Bits of the largest channel value; what is left of 63 bounds the record weights."""
        return 0 if self.dense is None else 24

    def lined_up(self, records: Records, n_columns: int, *, with_classes: bool = True) -> Guide:
        """Return the guide of the same records in the order of `records`, whose first columns are no blocks.

        Classes are left out where they are not needed: they have to be gathered one by one.
        """
        return replace(
            self,
            dense=None if self.dense is None else records.dense,
            code_blocks=[records.codes[:, n_columns + block] for block in range(len(self.code_blocks))],
            classes=self.classes[records.rows] if self.classes is not None and with_classes else None,
        )


def from_labels(codes: NDArray[Any], n_classes: int, *, rule: int = CHANNELS) -> Guide:
    """Guide by one class per record: Gini on predictions or labels, or entropy with ``rule=ENTROPY``.

    For two classes under Gini the second channel mirrors the first, so one channel of weight 2 says the same.
    """
    codes = codes.astype(code_type(n_classes))
    if n_classes == 2 and rule == CHANNELS:
        return Guide(rule, codes.astype(np.int64)[:, None], channel_weights=np.full(1, 2.0), classes=codes)
    return Guide(rule, None, [codes], [n_classes], np.ones(n_classes), classes=codes)


def from_probabilities(probabilities: NDArray[np.floating[Any]]) -> Guide:
    """Guide by class probabilities, one column per class.

    For two classes the second channel mirrors the first, so one channel of weight 2 says the same.
    """
    n_classes = probabilities.shape[1]
    # Along two columns a comparison says the same as argmax, several times as fast.
    most = probabilities[:, 1] > probabilities[:, 0] if n_classes == 2 else np.argmax(probabilities, axis=1)
    classes = most.astype(code_type(n_classes))
    used = probabilities[:, 1:] if n_classes == 2 else probabilities
    channels = np.rint(used * PROBABILITY_SCALE).astype(np.int64)
    weight = (2.0 if n_classes == 2 else 1.0) / PROBABILITY_SCALE**2
    return Guide(CHANNELS, channels, channel_weights=np.full(used.shape[1], weight), classes=classes)


def from_numbers(numbers: NDArray[np.floating[Any]]) -> Guide:
    """Guide by one or several numbers per record, each scaled to unit variance."""
    scale = NumberScale.of(numbers.min(axis=0), numbers.max(axis=0))
    channels = scale.channels(numbers)
    variances = [Spread.of(channels[:, c]).variance for c in range(channels.shape[1])]
    return Guide(CHANNELS, channels, channel_weights=unit_weights(variances))


def unit_weights(variances: Sequence[float]) -> NDArray[np.float64]:
    """Return the weights that give channels of these variances the variance 1; those of constant ones are 0."""
    return np.array([1.0 / v if v > 0 else 0.0 for v in variances])


@dataclass(frozen=True, eq=False)
class NumberScale:
    """How numbers become whole ones: by the smallest and largest of the table, so that pieces of it may be mapped."""

    factor: NDArray[np.float64]
    low: NDArray[np.float64]
    span: NDArray[np.float64]

    @classmethod
    def of(cls, low: NDArray[np.floating[Any]], high: NDArray[np.floating[Any]]) -> NumberScale:
        """Return the scale of columns whose smallest and largest numbers are known."""
        # A power of two, so nothing is lost but the overflow of differences.
        factor = np.where(np.maximum(np.abs(low), np.abs(high)) > 2.0**1000, 0.25, 1.0)
        first, last = low.astype(np.float64) * factor, high.astype(np.float64) * factor
        return cls(factor, first, np.where(last > first, last - first, 1.0))

    def channels(self, numbers: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
        """Return numbers, one column per channel, as whole ones."""
        whole = np.empty(numbers.shape, np.int64)
        _scale(numbers, self.factor, self.low, self.span, whole)
        return whole

    def numbers(self, channels: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Return the numbers that whole ones, or means of them, stand for."""
        return np.asarray((self.low + channels / NUMBER_SCALE * self.span) / self.factor)


@njit(nogil=True, cache=True)
def _scale(numbers, factor, low, span, out):  # type: ignore[no-untyped-def]
    for i in range(numbers.shape[0]):
        for c in range(numbers.shape[1]):
            out[i, c] = np.int64(np.rint((numbers[i, c] * factor[c] - low[c]) / span[c] * NUMBER_SCALE))


@dataclass(frozen=True)
class Spread:
    """Exact sums of whole numbers below 2^24, which add up over pieces in any order."""

    n: int = 0
    total: int = 0
    squares: int = 0

    @classmethod
    def of(cls, values: NDArray[np.int64]) -> Spread:
        """Return the sums of some values."""
        total, coarse, mixed, fine = _sums(values)
        return cls(len(values), int(total), (int(coarse) << 24) + (int(mixed) << 13) + int(fine))

    def __add__(self, other: Spread) -> Spread:
        """Return the sums of both."""
        return Spread(self.n + other.n, self.total + other.total, self.squares + other.squares)

    @property
    def variance(self) -> float:
        """The variance, which does not depend on the order of the values."""
        return (self.squares * self.n - self.total * self.total) / (self.n * self.n)


@njit(nogil=True, cache=True)
def _sums(values):  # type: ignore[no-untyped-def]
    """Return the sum, and the parts of the sum of squares: of the upper 12 bits, of both halves, of the lower ones."""
    total = coarse = mixed = fine = np.int64(0)
    for i in range(values.shape[0]):
        upper, lower = values[i] >> 12, values[i] & 4095
        total += values[i]
        coarse += upper * upper
        mixed += upper * lower
        fine += lower * lower
    return total, coarse, mixed, fine


def join(parts: Sequence[Guide]) -> Guide:
    """Guide by several guides of channels at once; their gains add up."""
    dense = [part.dense for part in parts if part.dense is not None]
    n_dense = [0 if part.dense is None else part.dense.shape[1] for part in parts]
    return Guide(
        CHANNELS,
        np.concatenate(dense, axis=1) if dense else None,
        [block for part in parts for block in part.code_blocks],
        [n_classes for part in parts for n_classes in part.cardinalities],
        np.concatenate(
            [part.channel_weights[:n] for part, n in zip(parts, n_dense, strict=True)]
            + [part.channel_weights[n:] for part, n in zip(parts, n_dense, strict=True)]
        ),
    )


def by_information_loss() -> Guide:
    """Guide by the largest fall of the normalized certainty penalty; needs no predictions."""
    return Guide(INFORMATION_LOSS)


def by_median() -> Guide:
    """Mondrian's rule: the column with the widest normalized range, cut at its median."""
    return Guide(MEDIAN)


def integer_weights(weights: NDArray[np.floating[Any]], value_bits: int) -> NDArray[np.int64]:
    """Return record weights as whole numbers, as fine as sums in 63 bits allow, at most 20 bits."""
    bits = min(20, 62 - value_bits - max(1, len(weights).bit_length()))
    whole: NDArray[np.int64] = np.rint(weights / weights.max() * (1 << bits)).astype(np.int64)
    return whole
