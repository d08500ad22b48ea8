# SPDX-License-Identifier: Apache-2.0
"""Assemble frames from frames: a new column, sorted categories, concatenated rows.

``anatomize``, ``shuffling`` and ``auditing`` call this, and ``verification`` for the rows of a piece.

Works on what :meth:`Table.replaced` returns, and on arrays, whose columns are known by their place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.frames.from_arrow import one_chunk
from sfumato.frames.objects import arrow_from_objects


def with_column(frame: Any, name: str, values: npt.NDArray[Any]) -> Any:
    """Return the frame with one more column, the last one, and a plain new index; of an array, without the name."""
    import narwhals as nw

    if isinstance(frame, np.ndarray):
        is_number = frame.dtype.kind != "O" and values.dtype.kind in "biuf"
        return np.column_stack([frame if is_number else frame.astype(object), _as_kind(values, is_number)])
    native = nw.from_native(with_plain_index(frame), eager_only=True)
    listed = values.tolist() if values.dtype.kind == "O" else values
    series = nw.new_series(name, listed, backend=native.implementation)
    return native.with_columns(series.alias(name)).to_native()


def _as_kind(values: npt.NDArray[Any], is_number: bool) -> npt.NDArray[Any]:
    return values.astype(np.float64 if is_number else object)


def with_plain_index(frame: Any) -> Any:
    """Return a pandas frame with an index of row numbers and otherwise unchanged."""
    import narwhals as nw

    if isinstance(frame, np.ndarray):
        return frame
    return nw.maybe_reset_index(nw.from_native(frame, eager_only=True)).to_native()


def with_sorted_categories(frame: Any) -> Any:
    """Return the frame with sorted categories in its categorical types, unless their order is declared.

    Such a list is often in the order in which the categories came up among the records, and two tables of the same
    records would both tell that order. polars shares the list of Categorical with the whole process, so that such
    columns become Enum. Types that declare an order (ordered categoricals, Enum) keep it.
    """
    if isinstance(frame, np.ndarray):
        return frame
    if type(frame).__module__.startswith("polars"):
        return _sorted_in_polars(frame)
    if type(frame).__module__.startswith("pandas"):
        return _sorted_in_pandas(frame)
    import pyarrow as pa

    return pa.table([_sorted_dictionary(column) for column in frame.columns], schema=frame.schema)


def _sorted_in_polars(frame: Any) -> Any:
    import polars as pl

    def sorted_enum(series: Any) -> Any:
        text = series.cast(pl.String)
        return text.cast(pl.Enum(text.drop_nulls().unique().sort()))

    return pl.DataFrame([sorted_enum(s) if s.dtype == pl.Categorical else s for s in frame.get_columns()])


def _sorted_in_pandas(frame: Any) -> Any:
    import pandas as pd
    import pyarrow as pa

    frame = frame.copy(deep=False)
    for place in range(frame.shape[1]):
        series = frame.iloc[:, place]
        if isinstance(series.dtype, pd.CategoricalDtype) and not series.dtype.ordered:
            frame.isetitem(place, series.cat.reorder_categories(series.dtype.categories.sort_values()))
        elif isinstance(series.dtype, pd.ArrowDtype) and pa.types.is_dictionary(series.dtype.pyarrow_dtype):
            frame.isetitem(place, series.dtype.__from_arrow__(_sorted_dictionary(pa.array(series))))
    return frame


def _sorted_dictionary(column: Any) -> Any:
    """Return an Arrow column with a sorted dictionary; other columns and ordered ones are unchanged."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if not pa.types.is_dictionary(kind) or kind.ordered:
        return column
    array = one_chunk(column)
    order = pc.sort_indices(array.dictionary)
    codes = pc.sort_indices(order).take(array.indices).cast(kind.index_type)
    return pa.DictionaryArray.from_arrays(codes, array.dictionary.take(order))


def side_by_side(left: Any, left_rows: npt.NDArray[np.int64], right: Any, right_rows: npt.NDArray[np.int64]) -> Any:
    """Return the rows of two frames of the same kind as one frame, with a new index."""
    import narwhals as nw

    if isinstance(left, np.ndarray):
        if left.dtype != right.dtype:
            left, right = left.astype(object), right.astype(object)
        return np.column_stack([left[left_rows], right[right_rows]])
    parts = [
        nw.maybe_reset_index(nw.from_native(frame, eager_only=True)[rows])
        for frame, rows in ((left, left_rows), (right, right_rows))
    ]
    return nw.concat(parts, how="horizontal").to_native()


def rows_of(frame: Any, start: int, stop: int) -> Any:
    """Return some rows of a frame or array that follow each other; nothing is copied."""
    import narwhals as nw

    if isinstance(frame, np.ndarray):
        return frame[start:stop]
    return nw.from_native(frame, eager_only=True)[start:stop].to_native()


def select(frame: Any, positions: list[int]) -> Any:
    """Return some columns of a frame or an array, by their positions."""
    import narwhals as nw

    if isinstance(frame, np.ndarray):
        return frame[:, positions]
    return nw.from_native(frame, eager_only=True)[:, positions].to_native()  # labels of pandas need not be text


def as_arrow(frame: Any) -> Any:
    """Return a frame or a dict of lists as an Arrow table; of an array, the columns are called x0, x1, ..."""
    import narwhals as nw
    import pyarrow as pa

    if isinstance(frame, Mapping):
        return pa.table(dict(frame))
    if isinstance(frame, np.ndarray):
        columns = {f"x{place}": frame[:, place] for place in range(frame.shape[1])}
        if frame.dtype.kind == "O":
            return pa.table({name: arrow_from_objects(name, values) for name, values in columns.items()})
        return pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})
    return nw.from_native(frame, eager_only=True).to_arrow()
