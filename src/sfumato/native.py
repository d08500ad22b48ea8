# SPDX-License-Identifier: Apache-2.0
"""One class per kind of frame: how its columns are read, and how a frame of that kind is built again.

``frames`` picks the class and does everything that is the same for all of them. Each class reads a column
into a :class:`~sfumato.columns.Column` and writes new values in the column's own type. A new column is always
made the same way: a short array of the few distinct values in the native type, and one ``take`` with a position
per record.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from sfumato.columns import (
    Column,
    GroupedLabels,
    GroupedValues,
    Kind,
    category_column,
    column_from_arrow,
    grouped_arrow,
    merge_categories,
    number_column,
    one_chunk,
)
from sfumato.errors import InputError
from sfumato.objects import arrow_from_objects, objects_like

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Entry:
    """One column of the result: its label, the column it comes from, and its new values (None: untouched)."""

    label: Hashable
    source: int
    new: GroupedValues | GroupedLabels | None
    kind: Kind | None = None
    categories: npt.NDArray[np.object_] | None = None

    def taken(self, rows: Rows | None) -> Entry:
        """Return the entry for the records kept."""
        if rows is None or self.new is None:
            return self
        new = self.new
        group = np.asarray(new.group)[rows]
        kept: GroupedValues | GroupedLabels
        if isinstance(new, GroupedLabels):
            kept = GroupedLabels(new.labels, group)
        else:
            kept = GroupedValues(new.values, new.missing, group, new.categories, new.replaces_categories)
        return Entry(self.label, self.source, kept, self.kind, self.categories)

    def arrow(self, column_type: Any, *, missing_as_nan: bool = False) -> tuple[Any, npt.NDArray[Any]]:
        """Return a short Arrow array of new values and the place in it per record."""
        assert isinstance(self.new, GroupedValues) and self.kind is not None
        return grouped_arrow(column_type, self.kind, self.new, self.categories, missing_as_nan=missing_as_nan)

    @property
    def replaces_categories(self) -> bool:
        """Whether a categorical type must list the new categories and nothing else."""
        return isinstance(self.new, GroupedValues) and self.new.replaces_categories


class Backend(Protocol):
    """What a kind of frame must be able to do; columns are numbered from 0."""

    library: str

    def labels(self) -> list[Hashable]:
        """Return the labels of the columns."""

    def n_records(self) -> int:
        """Return the number of records."""

    def read(self, position: int, name: str, *, as_category: bool, head: int | None) -> Column:
        """Convert a column, or its first records."""

    def build(self, entries: Sequence[Entry], keep_rows: Rows | None) -> Any:
        """Build a frame."""


class PandasBackend:
    """pandas: numpy, masked, Arrow-backed, categorical and object columns under any index."""

    library = "pandas"

    def __init__(self, frame: Any) -> None:
        """Hold the frame; nothing is read yet."""
        self._frame = frame

    def labels(self) -> list[Hashable]:
        """Return the labels of the columns."""
        return list(self._frame.columns)

    def n_records(self) -> int:
        """Return the number of records."""
        return len(self._frame)

    def read(self, position: int, name: str, *, as_category: bool, head: int | None) -> Column:
        """Convert a column, or its first records."""
        import pandas as pd
        import pyarrow as pa

        series = self._frame.iloc[:, position] if head is None else self._frame.iloc[:head, position]
        dtype = series.dtype
        if isinstance(dtype, np.dtype):
            return column_from_numpy(name, series.to_numpy(), as_category=as_category)
        if isinstance(dtype, pd.CategoricalDtype):
            if not isinstance(dtype.categories.dtype, pd.IntervalDtype | pd.PeriodDtype):
                dictionary = _arrow_from_index(name, dtype.categories)
                return category_column(name, series.cat.codes.to_numpy().astype(np.int32), dictionary)
        elif not isinstance(dtype, pd.SparseDtype | pd.IntervalDtype | pd.PeriodDtype):
            return column_from_arrow(name, pa.array(series), as_category=as_category)
        raise InputError(
            f"column {name!r} has the pandas type {dtype.name}: expected numbers, text, booleans, categories "
            "that are "
            "text or numbers, dates or durations. Convert it, for example with .astype(str), or with "
            ".sparse.to_dense() for a sparse column."
        )

    def build(self, entries: Sequence[Entry], keep_rows: Rows | None) -> Any:
        """Build a frame with the original index, without attrs: they may describe the people in it."""
        import pandas as pd

        frame = self._frame
        arrays: dict[int, Any] = {}
        for place, entry in enumerate(entries):
            series = frame.iloc[:, entry.source]
            if entry.new is None:
                arrays[place] = series.array.copy() if keep_rows is None else series.array.take(keep_rows)
            else:
                arrays[place] = self._write(series, entry.taken(keep_rows))
        index = frame.index if keep_rows is None else frame.index.take(keep_rows)
        result = pd.DataFrame(arrays, index=index, copy=False)
        labels = [entry.label for entry in entries]
        kept = frame.columns.take([entry.source for entry in entries])
        result.columns = kept if list(kept) == labels else pd.Index(labels, name=frame.columns.name)
        return result

    def _write(self, series: Any, entry: Entry) -> Any:
        import pandas as pd
        import pyarrow as pa

        dtype = series.dtype
        if isinstance(entry.new, GroupedLabels):
            text = pd.Series([""]).dtype  # "str" from pandas 3 on, object before
            return pd.array(list(entry.new.labels), dtype=text).take(np.asarray(entry.new.group))
        if isinstance(dtype, pd.CategoricalDtype):
            return self._write_categorical(dtype, entry)
        if isinstance(dtype, np.dtype):
            return write_numpy(series.to_numpy(), entry)
        if isinstance(dtype, pd.ArrowDtype):
            written = write_arrow(pa.array(series), entry)
            return pd.ArrowDtype(written.type).__from_arrow__(written)
        source = pa.array(series.iloc[:0]).type
        short, place = entry.arrow(source)
        if short.type != source and pa.types.is_integer(short.type):
            dtype = pd.Int64Dtype()
        return dtype.__from_arrow__(pa.chunked_array([short])).take(place)

    def _write_categorical(self, dtype: Any, entry: Entry) -> Any:
        import pandas as pd

        assert isinstance(entry.new, GroupedValues) and entry.categories is not None
        listed = list(dtype.categories)
        merged, translate = merge_categories(listed, entry.categories, replace=entry.replaces_categories)
        codes = np.where(
            np.zeros(len(entry.new.values), bool) if entry.new.missing is None else entry.new.missing,
            -1,
            np.append(translate, -1)[entry.new.values],
        ).astype(np.int32)
        if merged != listed:
            dtype = pd.CategoricalDtype(pd.Index(merged, dtype=dtype.categories.dtype), dtype.ordered)
        return pd.Categorical.from_codes(codes.take(entry.new.group), dtype=dtype)


class PolarsBackend:
    """polars: eager frames."""

    library = "polars"

    def __init__(self, frame: Any) -> None:
        """Hold the frame; nothing is read yet."""
        self._frame = frame

    def labels(self) -> list[Hashable]:
        """Return the labels of the columns."""
        return list(self._frame.columns)

    def n_records(self) -> int:
        """Return the number of records."""
        return int(self._frame.height)

    def read(self, position: int, name: str, *, as_category: bool, head: int | None) -> Column:
        """Convert a column, or its first records."""
        import polars as pl

        series = self._frame.to_series(position)
        if head is not None:
            series = series.head(head)
        dtype = series.dtype
        if dtype.is_nested() or dtype in (pl.Object, pl.Binary):
            raise InputError(
                f"column {name!r} has the polars type {dtype}: expected numbers, text, booleans, categories, "
                "dates, "
                "times or durations. Convert it, split it into such columns, or drop it."
            )
        return column_from_arrow(name, self._arrow(name, series), as_category=as_category)

    def _arrow(self, name: str, series: Any) -> Any:
        import polars as pl

        if series.dtype.is_integer() and series.dtype.to_python() is int and "128" in str(series.dtype):
            try:
                series = series.cast(pl.Int64)
            except pl.exceptions.PolarsError:
                raise InputError(
                    f"column {name!r} has integers beyond 64 bits: expected integers that fit 64 bits with a "
                    "sign. "
                    "Convert it to float, or to text if the numbers are codes."
                ) from None
        return series.to_arrow()

    def build(self, entries: Sequence[Entry], keep_rows: Rows | None) -> Any:
        """Build a frame."""
        import polars as pl

        columns = []
        for entry in entries:
            series = self._frame.to_series(entry.source)
            if entry.new is not None:
                written = self._write(series, entry.taken(keep_rows))
            else:
                written = series if keep_rows is None else series.gather(keep_rows)
            columns.append(written.alias(entry.label))
        return pl.DataFrame(columns)

    def _write(self, series: Any, entry: Entry) -> Any:
        import polars as pl

        if isinstance(entry.new, GroupedLabels):
            return pl.Series(list(entry.new.labels), dtype=pl.String).gather(np.asarray(entry.new.group))
        dtype = series.dtype
        source = self._arrow("", series.clear()).type
        has_nan_only = dtype.is_float() and series.null_count() == 0 and series.is_nan().any()
        short, place = entry.arrow(source, missing_as_nan=has_nan_only)
        if dtype == pl.Enum:
            assert entry.categories is not None
            listed = dtype.categories.to_list()
            merged, _ = merge_categories(listed, entry.categories, replace=entry.replaces_categories)
            dtype = dtype if merged == listed else pl.Enum(merged)
        native = pl.Series(pl.from_arrow(short))
        if native.dtype != dtype:
            with suppress(pl.exceptions.PolarsError):  # a value that does not fit keeps the type it came in
                native = native.cast(dtype)
        return native.gather(place)


class ArrowBackend:
    """pyarrow tables."""

    library = "pyarrow"

    def __init__(self, table: Any) -> None:
        """Hold the table; nothing is read yet."""
        self._table = table

    def labels(self) -> list[Hashable]:
        """Return the labels of the columns."""
        return list(self._table.column_names)

    def n_records(self) -> int:
        """Return the number of records."""
        return int(self._table.num_rows)

    def read(self, position: int, name: str, *, as_category: bool, head: int | None) -> Column:
        """Convert a column, or its first records."""
        column = self._table.column(position)
        return column_from_arrow(name, column if head is None else column.slice(0, head), as_category=as_category)

    def build(self, entries: Sequence[Entry], keep_rows: Rows | None) -> Any:
        """Build a table; metadata written by pandas stays only while it still describes the table."""
        import pyarrow as pa

        arrays, fields = [], []
        for entry in entries:
            column, field = self._table.column(entry.source), self._table.schema.field(entry.source)
            if entry.new is not None:
                column = write_arrow(column, entry.taken(keep_rows))
            elif keep_rows is not None:
                column = column.take(pa.array(keep_rows))
            arrays.append(column)
            nullable = field.nullable or column.null_count > 0
            fields.append(pa.field(entry.label, column.type, nullable, field.metadata))
        metadata = dict(self._table.schema.metadata or {})
        same = [field.name for field in fields] == self._table.column_names and keep_rows is None
        if not same or [field.type for field in fields] != self._table.schema.types:
            metadata.pop(b"pandas", None)
        return pa.table(arrays, schema=pa.schema(fields, metadata=metadata or None))


class NumpyBackend:
    """Arrays of two dimensions; arrays of objects may hold a different type in each column."""

    library = "numpy"

    def __init__(self, array: npt.NDArray[Any]) -> None:
        """Hold the array; nothing is read yet."""
        self._array = array

    def labels(self) -> list[Hashable]:
        """Return the labels of the columns."""
        return [f"x{position}" for position in range(self._array.shape[1])]

    def n_records(self) -> int:
        """Return the number of records."""
        return int(self._array.shape[0])

    def read(self, position: int, name: str, *, as_category: bool, head: int | None) -> Column:
        """Convert a column, or its first records."""
        return column_from_numpy(name, self._array[:head, position], as_category=as_category)

    def build(self, entries: Sequence[Entry], keep_rows: Rows | None) -> Any:
        """Build an array of the same type, or of objects where text joins numbers."""
        columns = []
        for entry in entries:
            column = self._array[:, entry.source]
            if entry.new is not None:
                columns.append(write_numpy(column, entry.taken(keep_rows)))
            else:
                columns.append(column if keep_rows is None else column[keep_rows])
        n_records = self.n_records() if keep_rows is None else len(keep_rows)
        order = "F" if self._array.flags.f_contiguous and not self._array.flags.c_contiguous else "C"
        result = np.empty(
            (n_records, len(columns)),
            _common_type([column.dtype for column in columns], self._array.dtype),
            order,
        )
        for position, column in enumerate(columns):
            result[:, position] = column
        return result


def write_arrow(old: Any, entry: Entry) -> Any:
    """Write new values in the type of an Arrow array, chunked or not."""
    import pyarrow as pa

    if isinstance(entry.new, GroupedLabels):
        return pa.array(list(entry.new.labels), pa.string()).take(pa.array(entry.new.group))
    kind = old.type
    short, place = entry.arrow(kind, missing_as_nan=pa.types.is_floating(kind) and _has_nan_only(old))
    if not pa.types.is_dictionary(kind):
        taken = short.take(pa.array(place))
        return taken.cast(kind) if pa.types.is_string_view(kind) else taken
    assert entry.categories is not None
    listed = one_chunk(old).dictionary
    merged, translate = merge_categories(listed.to_pylist(), entry.categories, replace=entry.replaces_categories)
    codes = np.append(translate, len(merged)).take(place)
    indices = pa.array(codes, mask=codes == len(merged)).cast(kind.index_type)
    return pa.DictionaryArray.from_arrays(indices, pa.array(merged, listed.type), ordered=kind.ordered)


def column_from_numpy(name: str, values: npt.NDArray[Any], *, as_category: bool = False) -> Column:
    """Convert a one-dimensional array."""
    import pyarrow as pa

    letter = values.dtype.kind
    if letter in "iuf":
        return number_column(name, values, as_category=as_category)
    if letter == "b":
        return category_column(name, values.astype(np.int32), pa.array([False, True]))
    if letter == "O":
        return column_from_arrow(name, arrow_from_objects(name, values), as_category=as_category)
    if letter == "U":
        return column_from_arrow(name, pa.array(values, pa.large_string()), as_category=as_category)
    if letter in "mM" and np.datetime_data(values.dtype)[0] in ("s", "ms", "us", "ns", "D"):
        return column_from_arrow(name, pa.array(values, _arrow_of_moment(values.dtype)), as_category=as_category)
    raise InputError(
        f"column {name!r} has the numpy type {values.dtype}: expected numbers, booleans, text, dates or "
        "durations"
        f"{'. Complex data not supported' if letter == 'c' else ''}. Convert the column."
    )


def write_numpy(old: npt.NDArray[Any], entry: Entry) -> npt.NDArray[Any]:
    """Write new values in the type of a one-dimensional array."""
    import pyarrow as pa

    if isinstance(entry.new, GroupedLabels):
        labels = np.empty(len(entry.new.labels), dtype=object)
        labels[:] = list(entry.new.labels)
        return labels.take(entry.new.group)
    letter = old.dtype.kind
    if letter == "O":
        short, place = entry.arrow(arrow_from_objects("", old).type)
        return objects_like(old, short).take(place)
    if letter == "U":
        short, place = entry.arrow(pa.large_string())
        texts = np.array(["" if text is None else text for text in short.to_pylist()], dtype=str)
        if short.take(pa.array(place[:0])).null_count or (place == len(short) - 1).any():
            return np.array(short.to_pylist(), dtype=object).take(place)
        return texts.astype(f"U{max(old.dtype.itemsize // 4, texts.dtype.itemsize // 4)}").take(place)
    short, place = entry.arrow(_arrow_of_moment(old.dtype) if letter in "mM" else pa.from_numpy_dtype(old.dtype))
    if entry.kind == "category" and not (place == len(short) - 1).any():
        short = short.slice(0, len(short) - 1)  # no missing value needed, so none that would widen the type
    native = short.to_numpy(zero_copy_only=False)
    if letter == "f" or (letter in "mM" and native.dtype != old.dtype):
        native = native.astype(old.dtype)
    taken: npt.NDArray[Any] = native.take(place)
    return taken


def _arrow_of_moment(dtype: np.dtype[Any]) -> Any:
    import pyarrow as pa

    unit = np.datetime_data(dtype)[0]
    if dtype.kind == "m":
        return pa.duration("s" if unit == "D" else unit)
    return pa.date32() if unit == "D" else pa.timestamp(unit)


def _arrow_from_index(name: str, categories: Any) -> Any:
    """Return the categories of a pandas categorical as an Arrow array."""
    import pyarrow as pa

    if categories.dtype == object:
        return arrow_from_objects(name, categories.to_numpy())
    return one_chunk(pa.array(categories))


def _has_nan_only(array: Any) -> bool:
    """Whether the array marks what is missing by NaN and never by null."""
    import pyarrow.compute as pc

    return array.null_count == 0 and bool(pc.any(pc.is_nan(array)).as_py())


def _common_type(found: Sequence[np.dtype[Any]], original: np.dtype[Any]) -> np.dtype[Any]:
    if all(dtype == original for dtype in found):
        return original
    if any(dtype.kind == "O" for dtype in found) or len({dtype.kind in "OU" for dtype in found}) > 1:
        return np.dtype(object)
    return np.result_type(*found)
