# SPDX-License-Identifier: Apache-2.0
"""pandas: numpy, masked, Arrow-backed, categorical and object columns under any index.

A release contains the index although it is not a column, so anonymizers warn if it may identify people.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from sfumato.columns import Column, GroupedLabels, GroupedValues
from sfumato.errors import InputError, KeptIndexWarning
from sfumato.frames.arrow_tables import compact_dictionary, write_arrow
from sfumato.frames.contract import Entry, Rows
from sfumato.frames.from_arrow import category_column, column_from_arrow, occurring_codes, one_chunk
from sfumato.frames.numpy_arrays import column_from_numpy, write_numpy
from sfumato.frames.objects import arrow_from_objects
from sfumato.frames.to_arrow import merge_categories
from sfumato.threads import map_in_threads

_FEWEST_RECORDS = 10  # below, every index is near unique
_LARGEST_ROW_NUMBER = 100_000_000  # a table of more rows is not held in memory


class PandasBackend:
    """pandas: numpy, masked, Arrow-backed, categorical and object columns under any index."""

    library = "pandas"

    def __init__(self, frame: Any) -> None:
        """Keep the frame; columns are read later."""
        self._frame = frame
        self._series: tuple[Any, ...] = ()
        self._object_types: dict[int, Any] = {}

    def labels(self) -> list[Hashable]:
        """Return the labels of the columns."""
        return list(self._frame.columns)

    def n_records(self) -> int:
        """Return the number of records."""
        return len(self._frame)

    def read(self, position: int, name: str, *, as_category: bool, for_counting: bool, head: int | None) -> Column:
        """Convert a column, or its first records."""
        import pandas as pd
        import pyarrow as pa

        series = self._column(position) if head is None else self._column(position).iloc[:head]
        dtype = series.dtype
        if isinstance(dtype, np.dtype) and dtype.kind == "O":
            array = arrow_from_objects(name, series.to_numpy())
            if head is None:
                self._object_types[position] = array.type
            return column_from_arrow(name, array, as_category=as_category, for_counting=for_counting)
        if isinstance(dtype, np.dtype):
            return column_from_numpy(name, series.to_numpy(), as_category=as_category, for_counting=for_counting)
        if isinstance(dtype, pd.CategoricalDtype):
            if not isinstance(dtype.categories.dtype, pd.IntervalDtype | pd.PeriodDtype):
                dictionary = _arrow_from_index(name, dtype.categories)
                codes = series.array.codes
                return category_column(
                    name, codes, dictionary, for_counting=for_counting, is_ordered=bool(dtype.ordered)
                )
        elif not isinstance(dtype, pd.SparseDtype | pd.IntervalDtype | pd.PeriodDtype):
            return column_from_arrow(name, pa.array(series), as_category=as_category, for_counting=for_counting)
        raise InputError(
            f"column {name!r} has the pandas type {dtype.name}: expected numbers, text, booleans, categories that are "
            "text or numbers, dates or durations. Convert it, for example with .astype(str), or with "
            ".sparse.to_dense() for a sparse column."
        )

    def _column(self, position: int) -> Any:
        if not self._series:  # all at once: asking pandas for one by its position takes longer than small columns do
            self._series = tuple(series for _, series in self._frame.items())
        return self._series[position]

    def build(self, entries: Sequence[Entry], keep_rows: Rows | None, n_threads: int = 1) -> Any:
        """Build a frame with the original index, without attrs: they may describe the people in it."""
        import pandas as pd

        frame = self._frame
        index = frame.index if keep_rows is None else frame.index.take(keep_rows)

        def built(entry: Entry) -> Any:
            series = self._column(entry.source)
            if entry.new is not None:
                array = self._write(series, entry.taken(keep_rows))
            else:
                array = series.array.copy() if keep_rows is None else series.array.take(keep_rows)
            # With its type said, or pandas would take objects that are all text for its type of text.
            return pd.Series(array, index=index, dtype=array.dtype, copy=False)

        columns = dict(enumerate(map_in_threads(built, entries, n_threads)))
        result = pd.DataFrame(columns, index=index, copy=False)
        labels = [entry.label for entry in entries]
        kept = frame.columns.take([entry.source for entry in entries])
        result.columns = kept if list(kept) == labels else pd.Index(labels, name=frame.columns.name)
        return result

    def compacted(self, frame: Any) -> Any:
        """Return the frame without unused categories, also in its index."""
        import pandas as pd
        import pyarrow as pa

        columns: dict[int, Any] = {}
        for place in range(frame.shape[1]):
            series = frame.iloc[:, place]
            if isinstance(series.dtype, pd.CategoricalDtype):
                # pandas sorts the codes for it; counting first says quickly that there is nothing to remove.
                n_listed = len(series.dtype.categories)
                if len(occurring_codes(series.array.codes, n_listed)) < n_listed:
                    series = series.cat.remove_unused_categories()
            elif isinstance(series.dtype, pd.ArrowDtype):
                short = compact_dictionary(pa.array(series))
                series = pd.Series(series.dtype.__from_arrow__(short), index=series.index, copy=False)
            columns[place] = series
        result = pd.DataFrame(columns, index=frame.index, copy=False)
        result.columns = frame.columns
        result.index = _compact_index(frame.index)
        return result

    def _write(self, series: Any, entry: Entry) -> Any:
        import pandas as pd
        import pyarrow as pa

        dtype = series.dtype
        if isinstance(entry.new, GroupedLabels):
            if isinstance(entry.new.labels, np.ndarray):
                return pd.array(entry.new.labels.take(entry.new.group), dtype=entry.new.labels.dtype)
            text = pd.Series([""]).dtype  # "str" from pandas 3 on, object before
            return pd.array(list(entry.new.labels), dtype=text).take(np.asarray(entry.new.group))
        if isinstance(dtype, pd.CategoricalDtype):
            return self._write_categorical(dtype, entry)
        if isinstance(dtype, np.dtype):
            return write_numpy(series.to_numpy(), entry, object_type=self._object_types.get(entry.source))
        if isinstance(dtype, pd.ArrowDtype):
            written = write_arrow(pa.array(series), entry)
            return pd.ArrowDtype(written.type).__from_arrow__(written)
        source = pa.array(series.iloc[:0]).type
        short, place = entry.arrow(source)
        if short.type != source and pa.types.is_integer(short.type):
            dtype = pd.Int64Dtype()
        elif short.type != source and pa.types.is_floating(short.type):
            dtype = pd.Float64Dtype()
        return dtype.__from_arrow__(pa.chunked_array([short])).take(place)

    def _write_categorical(self, dtype: Any, entry: Entry) -> Any:
        import pandas as pd

        assert isinstance(entry.new, GroupedValues) and entry.categories is not None
        entry.require_categories()
        listed = list(dtype.categories)
        merged, translate = merge_categories(entry.label, listed, entry.categories, replace=entry.replaces_categories)
        codes = np.append(translate, -1)[entry.new.values]
        if entry.new.missing is not None:
            codes = np.where(entry.new.missing, -1, codes)
        codes = codes.astype(np.min_scalar_type(-1 - len(merged)))  # narrow before there is one for every record
        if merged != listed:
            # No longer the declared list, so no longer its declared order either.
            dtype = pd.CategoricalDtype(pd.Index(merged, dtype=_index_type(dtype, merged)), ordered=False)
        return pd.Categorical.from_codes(codes.take(entry.new.group), dtype=dtype)


def _compact_index(index: Any) -> Any:
    """Return an index without unused levels and categories."""
    import pandas as pd

    if isinstance(index, pd.CategoricalIndex):
        return index.remove_unused_categories()
    if isinstance(index, pd.MultiIndex):
        index = index.remove_unused_levels()
        return index.set_levels([_compact_index(level) for level in index.levels])
    return index


def _index_type(dtype: Any, values: list[Any]) -> Any:
    """Return the type of the categories if it can hold the values, or None to let pandas choose."""
    import pandas as pd

    try:
        fits = list(pd.Index(values, dtype=dtype.categories.dtype)) == values
    except (TypeError, ValueError, OverflowError):
        return None
    return dtype.categories.dtype if fits else None


def _arrow_from_index(name: str, categories: Any) -> Any:
    """Return the categories of a pandas categorical as an Arrow array."""
    import pyarrow as pa

    if categories.dtype == object:
        return arrow_from_objects(name, categories.to_numpy())
    return one_chunk(pa.array(categories))


def warn_of_telling_index(frame: Any) -> None:
    """Warn if the index of a pandas frame may identify people.

    It is near unique, and more than row numbers: text, dates, or whole numbers that have a name or many digits.
    """
    if not type(frame).__module__.startswith("pandas") or len(frame) < _FEWEST_RECORDS:
        return
    index = frame.index
    levels = [index.get_level_values(level) for level in range(index.nlevels)]
    numbered = [place for place, level in enumerate(levels) if _are_row_numbers(level)]
    if len(numbered) == index.nlevels:
        return
    telling = index.droplevel(numbered).dropna() if numbered else index.dropna()
    n_single = int((~telling.duplicated(keep=False)).sum())
    if 2 * n_single > len(telling):
        warnings.warn(
            f"the index of the frame is kept and {n_single / len(telling):.0%} of its entries are unique: an attacker "
            "who knows a person's entry finds the record. Use .reset_index(drop=True) before, or on the result.",
            KeptIndexWarning,
            stacklevel=3,
        )


def _are_row_numbers(level: Any) -> bool:
    """Return True if labels are row numbers, or some of them in any order."""
    return level.inferred_type == "integer" and level.name is None and bool(level.max() < _LARGEST_ROW_NUMBER)
