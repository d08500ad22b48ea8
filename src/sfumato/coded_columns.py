# SPDX-License-Identifier: Apache-2.0
"""Columns as codes, which all backends hand out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.columns import MICROSECONDS_PER_DAY, Kind, Moment
from sfumato.partition.binning import Bins
from sfumato.partition.round_numbers import NUMBER_UNITS, OnGrid

_TIME_UNITS = (MICROSECONDS_PER_DAY, 3_600_000_000, 60_000_000, 1_000_000, 1_000, 1)
_FEW_RECORDS = 20_000  # NumPy counts them before a kernel is loaded


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A column after binning: what its codes stand for, without its values.

    Attributes
    ----------
    name : str
    kind : {"number", "moment", "category"}
    bins : Bins
    codes : ndarray of uint8 or uint16
        Code of each record.
    categories : ndarray of object or None
        The sorted categories that occur.
    moment : {"date", "datetime", "duration", "time"} or None
    width : int, float or None
        Width of the intervals whose middles the values are, where a limit made them coarser: in the unit of the
        values. None for categories and without a limit.
    is_zoned : bool
        Whether the values are datetimes with a time zone.
    places : ndarray of int or None
        Place of each category in the order that its type declares, where it does.
    """

    name: str
    kind: Kind
    bins: Bins
    codes: NDArray[Any]
    categories: NDArray[np.object_] | None
    moment: Moment | None
    width: float | None = None
    is_zoned: bool = False
    places: NDArray[np.int64] | None = None

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Number of records with each code, missing included."""
        if len(self.codes) < _FEW_RECORDS or self.codes.dtype not in (np.uint8, np.uint16):
            return np.bincount(self.codes, minlength=self.bins.n_bins)
        # NumPy makes integers of 64 bits of them first, which takes most of its time.
        n_places = max(np.iinfo(self.codes.dtype).max + 1, self.bins.n_bins)
        fourths = np.zeros((4, n_places), np.int64)
        _add_codes(self.codes, fourths)
        counts: NDArray[np.int64] = fourths.sum(axis=0)[: self.bins.n_bins].copy()
        return counts

    @property
    def finer(self) -> CodedColumn:
        """The same column with values that fewer records share; see `Bins`."""
        return replace(self, bins=replace(self.bins, shared=self.bins.finer, finer=None))

    @property
    def is_text(self) -> bool:
        """True if the values are text; such a column can have missing values without changing its type."""
        return self.categories is not None and all(isinstance(value, str) for value in self.categories)


@njit(nogil=True, cache=True)
def _add_codes(codes, fourths):  # type: ignore[no-untyped-def]
    """Count the codes of every fourth record in a row of its own: equal codes in turn do not wait for each other."""
    n_fours = len(codes) // 4 * 4
    for row in range(0, n_fours, 4):
        fourths[0, codes[row]] += 1
        fourths[1, codes[row + 1]] += 1
        fourths[2, codes[row + 2]] += 1
        fourths[3, codes[row + 3]] += 1
    for row in range(n_fours, len(codes)):
        fourths[0, codes[row]] += 1


def named_anyway(bins: Bins, categories: NDArray[np.object_]) -> Bins:
    """Return the bins of categories; true and false may be named however few records have them, for all know them."""
    if bins.shared is None or not all(isinstance(value, bool | np.bool_) for value in categories):
        return bins
    is_common = np.ones(bins.n_values, np.bool_)
    finer = None if bins.finer is None else replace(bins.finer, is_common=is_common)
    return replace(bins, shared=replace(bins.shared, is_common=is_common), finer=finer)


def units_of(moment: Moment | None, width: float | None = None, *, is_decimal: bool = False) -> Sequence[int]:
    """Return the units in which a value between two others is rounded.

    With a limit, whose width is given, values are middles of intervals, and so is what lies between them; of numbers
    with fractions only those that occur. So it is with decimals: written with few digits, a value between two others
    may become one of them, and that may be one person's.
    """
    if is_decimal:
        return ()
    if width is not None:
        return OnGrid((width,)) if isinstance(width, int) else ()
    if moment is None:
        return NUMBER_UNITS
    return _TIME_UNITS[:1] if moment == "date" else _TIME_UNITS
