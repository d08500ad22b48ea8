# SPDX-License-Identifier: Apache-2.0
"""Put frames together from frames: a new column, rows side by side, an Arrow table; ``anatomize`` calls this.

Works on what :meth:`Table.replaced` returns, and on arrays, whose columns are known by their place.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.frames.objects import arrow_from_objects


def with_integers(frame: Any, name: str, values: npt.NDArray[np.int64]) -> Any:
    """Return the frame with one more column of whole numbers, the last one, and a plain new index."""
    import narwhals as nw

    if isinstance(frame, np.ndarray):
        return np.column_stack([frame, values.astype(object if frame.dtype.kind == "O" else np.float64)])
    native = nw.maybe_reset_index(nw.from_native(frame, eager_only=True))
    series = nw.new_series(name, values, backend=native.implementation)
    return native.with_columns(series.alias(name)).to_native()


def side_by_side(left: Any, left_rows: npt.NDArray[np.int64], right: Any, right_rows: npt.NDArray[np.int64]) -> Any:
    """Return rows of two frames of the same kind next to each other, under a plain new index."""
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


def select(frame: Any, names: list[str], positions: list[int]) -> Any:
    """Return some columns of a frame, by name; of an array, by position."""
    import narwhals as nw

    if isinstance(frame, np.ndarray):
        return frame[:, positions]
    return nw.from_native(frame, eager_only=True).select(names).to_native()


def as_arrow(frame: Any) -> Any:
    """Return a frame as an Arrow table; of an array, the columns are called x0, x1, ..."""
    import narwhals as nw
    import pyarrow as pa

    if isinstance(frame, np.ndarray):
        columns = {f"x{place}": frame[:, place] for place in range(frame.shape[1])}
        if frame.dtype.kind == "O":
            return pa.table({name: arrow_from_objects(name, values) for name, values in columns.items()})
        return pa.table({name: pa.array(values, from_pandas=True) for name, values in columns.items()})
    return nw.from_native(frame, eager_only=True).to_arrow()
