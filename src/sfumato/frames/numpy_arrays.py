# SPDX-License-Identifier: Apache-2.0
"""numpy arrays of two dimensions; arrays of objects may hold a different type in each column."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sfumato.columns import Column, GroupedLabels
from sfumato.errors import InputError
from sfumato.frames.contract import Entry, Rows
from sfumato.frames.from_arrow import category_column, column_from_arrow, number_column
from sfumato.frames.objects import arrow_from_objects, objects_like
from sfumato.threads import map_in_threads


class NumpyBackend:
    """Arrays of two dimensions; arrays of objects may hold a different type in each column."""

    library = "numpy"

    def __init__(self, array: npt.NDArray[Any]) -> None:
        """Keep the array; columns are read later."""
        self._array = array
        self._object_types: dict[int, Any] = {}

    def labels(self) -> list[Hashable]:
        """Return the labels of the columns."""
        return [f"x{position}" for position in range(self._array.shape[1])]

    def n_records(self) -> int:
        """Return the number of records."""
        return int(self._array.shape[0])

    def read(self, position: int, name: str, *, as_category: bool, for_counting: bool, head: int | None) -> Column:
        """Convert a column, or its first records."""
        values = self._array[:head, position]
        if values.dtype.kind != "O":
            return column_from_numpy(name, values, as_category=as_category, for_counting=for_counting)
        array = arrow_from_objects(name, values)
        if head is None:
            self._object_types[position] = array.type
        return column_from_arrow(name, array, as_category=as_category, for_counting=for_counting)

    def build(self, entries: Sequence[Entry], keep_rows: Rows | None, n_threads: int = 1) -> Any:
        """Build an array of the same type, or of objects if text joins numbers."""

        def built(entry: Entry) -> npt.NDArray[Any]:
            column: npt.NDArray[Any] = self._array[:, entry.source]
            if entry.new is not None:
                kind = self._object_types.get(entry.source)
                return write_numpy(column, entry.taken(keep_rows), object_type=kind)
            return column if keep_rows is None else column[keep_rows]

        columns = map_in_threads(built, entries, n_threads)
        n_records = self.n_records() if keep_rows is None else len(keep_rows)
        order: Literal["C", "F"] = "F" if self._array.flags.f_contiguous and not self._array.flags.c_contiguous else "C"
        result = np.empty(
            (n_records, len(columns)),
            _common_type([column.dtype for column in columns], self._array.dtype),
            order,
        )
        for position, column in enumerate(columns):
            result[:, position] = column
        return result

    def compacted(self, frame: Any) -> Any:
        """Return the array: its types list no categories."""
        return frame


def column_from_numpy(
    name: str, values: npt.NDArray[Any], *, as_category: bool = False, for_counting: bool = False
) -> Column:
    """Convert a one-dimensional array of anything but objects."""
    import pyarrow as pa

    letter = values.dtype.kind
    if letter in "iuf":
        return number_column(name, values, as_category=as_category)
    if letter == "b":
        return category_column(name, values.astype(np.int32), pa.array([False, True]))
    if letter == "U":
        return column_from_arrow(name, pa.array(values, pa.string()), as_category=as_category)
    if letter in "mM" and np.datetime_data(values.dtype)[0] in ("s", "ms", "us", "ns", "D"):
        return column_from_arrow(
            name, pa.array(values, _arrow_of_moment(values.dtype)), as_category=as_category, for_counting=for_counting
        )
    raise InputError(
        f"column {name!r} has the numpy type {values.dtype}: expected numbers, booleans, text, dates or durations"
        f"{'. Complex data not supported' if letter == 'c' else ''}. Convert the column."
    )


def write_numpy(old: npt.NDArray[Any], entry: Entry, *, object_type: Any = None) -> npt.NDArray[Any]:
    """Return new values in the type of a one-dimensional array; for objects, in the Arrow type found when reading."""
    import pyarrow as pa

    if isinstance(entry.new, GroupedLabels):
        if isinstance(entry.new.labels, np.ndarray):
            return entry.new.labels.take(entry.new.group)
        labels = np.empty(len(entry.new.labels), dtype=object)
        labels[:] = list(entry.new.labels)
        return labels.take(entry.new.group)
    letter = old.dtype.kind
    if letter == "O":
        short, place = entry.arrow(
            arrow_from_objects(str(entry.label), old).type if object_type is None else object_type
        )
        return objects_like(old, short).take(place)
    if letter == "U":
        short, place = entry.arrow(pa.large_string())
        if (place == len(short) - 1).any():  # the missing value, which text of fixed width cannot hold
            return np.array(short.to_pylist(), dtype=object).take(place)
        texts = np.array(short.to_pylist()[:-1], dtype=str)
        return texts.astype(f"U{max(old.dtype.itemsize, texts.dtype.itemsize) // 4}").take(place)
    short, place = entry.arrow(_arrow_of_moment(old.dtype) if letter in "mM" else pa.from_numpy_dtype(old.dtype))
    if entry.kind == "category" and not (place == len(short) - 1).any():
        short = short.slice(0, len(short) - 1)  # no missing value needed, so none that would widen the type
    native = short.to_numpy(zero_copy_only=False)
    if letter == "f" or (letter in "mM" and native.dtype != old.dtype):
        try:
            native = native.astype(old.dtype)
        except (TypeError, ValueError):  # whose message would quote the value
            raise InputError(
                f"column {entry.label!r} holds {old.dtype} now, and its new values are of another kind: expected the "
                "kind it had when the groups were made. Convert the column."
            ) from None
    taken: npt.NDArray[Any] = native.take(place)
    return taken


def _arrow_of_moment(dtype: np.dtype[Any]) -> Any:
    import pyarrow as pa

    unit = np.datetime_data(dtype)[0]
    if dtype.kind == "m":
        return pa.duration("s" if unit == "D" else unit)
    return pa.date32() if unit == "D" else pa.timestamp(unit)


def _common_type(found: Sequence[np.dtype[Any]], original: np.dtype[Any]) -> np.dtype[Any]:
    if all(dtype == original for dtype in found):
        return original
    if any(dtype.kind == "O" for dtype in found) or len({dtype.kind in "OU" for dtype in found}) > 1:
        return np.dtype(object)
    return np.result_type(*found)
