# SPDX-License-Identifier: Apache-2.0
"""Columns of files as few values and a place per record: what is done to a value is done once, not for every record.

Files hold categories, and often numbers, as places in a short list, and whole numbers of a small range are places
themselves. ``coding`` counts and codes columns this way where it can.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from sfumato.backends.memory import read_limited
from sfumato.columns import Column
from sfumato.frames import read_table
from sfumato.frames.from_arrow import one_chunk

_WIDEST_RANGE = 1 << 17
"""Whole numbers that span less than this are taken for places."""


@dataclass(frozen=True, eq=False)
class Shortened:
    """A column as few values and the place among them of every record.

    Attributes
    ----------
    values : pyarrow.Array
        The few values; some may not occur.
    places : ndarray of int
        Place of each record's value, counted from `first`; anything where the value is missing.
    first : int
    present : ndarray of uint8
        One bit per record that has a value, from `first_bit` on; empty where all have one.
    first_bit : int
    n_missing : int
    """

    values: Any
    places: NDArray[Any]
    first: int
    present: NDArray[np.uint8]
    first_bit: int
    n_missing: int

    def counts(self) -> NDArray[np.int64]:
        """Return how many records have each of the values."""
        found = np.zeros(len(self.values), np.int64)
        _count_places(self.places, self.first, self.present, self.first_bit, found)
        return found

    def read(self, name: str, *, as_category: bool, limits: Mapping[str, Any], chosen: Any = None) -> Column:
        """Return the values, or those at the chosen places, as a column that is as coarse as its limit."""
        values = self.values if chosen is None else self.values.take(chosen)
        return read_piece(name, values, as_category=as_category, limits=limits)

    def translate(self, codes: NDArray[Any], missing_code: int, out: NDArray[Any]) -> None:
        """Write the code of each record's value."""
        _translate(self.places, self.first, self.present, self.first_bit, codes, missing_code, out)


def read_piece(name: str, array: Any, *, as_category: bool, limits: Mapping[str, Any]) -> Column:
    """Read one Arrow array as a column that is as coarse as its limit."""
    import pyarrow as pa

    return read_limited(read_table(pa.table({name: array}), categorical=[name] if as_category else []), name, limits)


def shortened(array: Any) -> Shortened | None:
    """Return an Arrow array as few values and places; None where it has no such form."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array = one_chunk(array)
    kind = array.type
    if array.null_count == len(array):
        return None
    if pa.types.is_dictionary(kind):
        listed = pa.array(np.arange(len(array.dictionary), dtype=np.int32))
        values = pa.DictionaryArray.from_arrays(listed, array.dictionary, ordered=kind.ordered)
        return replace(_of_places(array.indices), values=values)
    if not pa.types.is_integer(kind):
        return None
    ends = pc.min_max(array)
    low, high = ends["min"].as_py(), ends["max"].as_py()
    if high - low >= _WIDEST_RANGE or high >= 1 << 63:
        return None
    every = np.int64(low) + np.arange(high - low + 1)  # never beyond the highest, which may be the largest there is
    return replace(_of_places(array), values=pa.array(every, kind), first=low)


def _of_places(array: Any) -> Shortened:
    validity, places = array.buffers()
    dtype = np.dtype(array.type.to_pandas_dtype())
    own = np.frombuffer(places, dtype)[array.offset : array.offset + len(array)]
    is_whole = validity is None or array.null_count == 0
    present = np.zeros(0, np.uint8) if is_whole else np.frombuffer(validity, np.uint8)
    return Shortened(None, own, 0, present, array.offset, array.null_count)


@njit(nogil=True, cache=True)
def _count_places(places, first, present, first_bit, out):  # type: ignore[no-untyped-def]
    is_whole = present.shape[0] == 0
    for i in range(places.shape[0]):
        bit = first_bit + i
        if is_whole or (present[bit >> 3] >> np.uint8(bit & 7)) & 1:
            out[np.int64(places[i]) - first] += 1


@njit(nogil=True, cache=True)
def _translate(places, first, present, first_bit, codes, missing_code, out):  # type: ignore[no-untyped-def]
    is_whole = present.shape[0] == 0
    for i in range(places.shape[0]):
        bit = first_bit + i
        if is_whole or (present[bit >> 3] >> np.uint8(bit & 7)) & 1:
            out[i] = codes[np.int64(places[i]) - first]
        else:
            out[i] = missing_code
