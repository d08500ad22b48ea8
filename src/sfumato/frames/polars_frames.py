# SPDX-License-Identifier: Apache-2.0
"""polars: eager frames."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from sfumato.columns import Column, GroupedLabels
from sfumato.errors import InputError
from sfumato.frames.contract import Entry, Rows
from sfumato.frames.from_arrow import column_from_arrow
from sfumato.frames.to_arrow import merge_categories, short_decimals
from sfumato.threads import map_in_threads


class PolarsBackend:
    """polars: eager frames."""

    library = "polars"

    def __init__(self, frame: Any) -> None:
        """Keep the frame; columns are read later."""
        self._frame = frame

    def labels(self) -> list[Hashable]:
        """Return the labels of the columns."""
        return list(self._frame.columns)

    def n_records(self) -> int:
        """Return the number of records."""
        return int(self._frame.height)

    def read(self, position: int, name: str, *, as_category: bool, for_counting: bool, head: int | None) -> Column:
        """Convert a column, or its first records."""
        import polars as pl

        series = self._frame.to_series(position)
        if head is not None:
            series = series.head(head)
        dtype = series.dtype
        if dtype.is_nested() or dtype in (pl.Object, pl.Binary):
            raise InputError(
                f"column {name!r} has the polars type {dtype}: expected numbers, text, booleans, categories, dates, "
                "times or durations. Convert it, split it into such columns, or drop it."
            )
        return column_from_arrow(name, self._arrow(name, series), as_category=as_category, for_counting=for_counting)

    def _arrow(self, name: str, series: Any) -> Any:
        import polars as pl

        if series.dtype.is_integer() and series.dtype.to_python() is int and "128" in str(series.dtype):
            try:
                series = series.cast(pl.Int64)
            except pl.exceptions.PolarsError:
                raise InputError(
                    f"column {name!r} has integers beyond 64 bits: expected integers that fit 64 bits with a sign. "
                    "Convert it to float, or to text if the numbers are codes."
                ) from None
        array = series.to_arrow()
        if series.dtype == pl.Enum and not array.type.ordered:  # polars 1 does not say that its values have an order
            import pyarrow as pa

            array = pa.DictionaryArray.from_arrays(array.indices, array.dictionary, ordered=True)
        return array

    def build(self, entries: Sequence[Entry], keep_rows: Rows | None, n_threads: int = 1) -> Any:
        """Build a frame."""
        import polars as pl

        def built(entry: Entry) -> Any:
            series = self._frame.to_series(entry.source)
            if entry.new is not None:
                written = self._write(series, entry.taken(keep_rows))
            else:
                written = series if keep_rows is None else _gathered(series, keep_rows)
            return written.alias(entry.label)

        return pl.DataFrame(map_in_threads(built, entries, n_threads))

    def compacted(self, frame: Any) -> Any:
        """Return the frame without unused categories of enums; other categoricals share a list of the process."""
        import polars as pl

        compact = []
        for series in frame.get_columns():
            if series.dtype == pl.Enum:
                text = series.cast(pl.String)
                occurring = set(text.unique().to_list())
                series = text.cast(pl.Enum([value for value in series.dtype.categories if value in occurring]))
            compact.append(series)
        return pl.DataFrame(compact)

    def _write(self, series: Any, entry: Entry) -> Any:
        import polars as pl

        if isinstance(entry.new, GroupedLabels):
            labels = entry.new.labels
            short = pl.Series(labels) if isinstance(labels, np.ndarray) else pl.Series(list(labels), dtype=pl.String)
            return short.gather(np.asarray(entry.new.group))
        dtype = series.dtype
        source = self._arrow("", series.clear()).type
        has_nan_only = dtype.is_float() and series.null_count() == 0 and series.is_nan().any()
        short, place = entry.arrow(source, missing_as_nan=has_nan_only)
        if dtype == pl.Enum:
            assert entry.categories is not None
            listed = dtype.categories.to_list()
            merged, _ = merge_categories(entry.label, listed, entry.categories, replace=entry.replaces_categories)
            dtype = dtype if merged == listed else pl.Enum(merged)
        native = pl.Series(pl.from_arrow(short_decimals(short)))
        if native.dtype != dtype:
            with suppress(pl.exceptions.PolarsError):  # a value that does not fit keeps the type it came in
                native = native.cast(dtype)
        return native.gather(place)


def _gathered(series: Any, rows: Rows) -> Any:
    """Return some records of a column, and nothing of the others.

    Gathering text only points into the text of the whole column: a recipient of the frame as bytes would get the
    text of dropped records, and the order of all records.
    """
    import polars as pl
    import pyarrow as pa

    taken = series.gather(rows)
    if taken.dtype != pl.String:
        return taken
    return pl.Series(series.name, taken.to_arrow().cast(pa.large_string()), dtype=pl.String)
