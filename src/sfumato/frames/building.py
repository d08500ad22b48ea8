# SPDX-License-Identifier: Apache-2.0
"""Build a frame of the user's kind whose values and types come from elsewhere, not from the user's records.

:meth:`Table.replaced` writes new values in the types of a table, and a type can tell something about its records: in
pandas, a column of integers is one of floats as soon as a value is missing. Where nothing of the records may show, only
the library, the names and the declared categoricals are taken from the table.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.columns import GroupedLabels, GroupedValues
from sfumato.frames.assembling import with_sorted_categories
from sfumato.frames.table import Table
from sfumato.frames.to_arrow import grouped_arrow


@dataclass(frozen=True)
class FrameKind:
    """What is taken over from a user's frame, and holds nothing of its records.

    Attributes
    ----------
    library : {"pandas", "polars", "pyarrow", "numpy"}
    labels : dict of str to hashable
        The label of each column, by its name.
    declared : frozenset of str
        Columns whose type declares categories.
    """

    library: str
    labels: dict[str, Hashable]
    declared: frozenset[str]


def kind_of_frame(frame: Any, table: Table) -> FrameKind:
    """Return the kind of a frame, given as it is and as it was read."""
    import narwhals as nw

    if table.library == "numpy":
        return FrameKind("numpy", {name: name for name in table.names}, frozenset())
    native = nw.from_native(frame, eager_only=True)
    kinds = zip(table.names, native.schema.values(), strict=True)
    declared = frozenset(name for name, kind in kinds if kind in (nw.Categorical, nw.Enum))
    labels = list(frame.columns) if table.library == "pandas" else table.names
    return FrameKind(table.library, dict(zip(table.names, labels, strict=True)), declared)


def build_frame(
    kind: FrameKind, columns: Sequence[tuple[str, str, GroupedValues | GroupedLabels]], n_records: int
) -> Any:
    """Return a frame of some kind with new columns and records.

    Parameters
    ----------
    kind : FrameKind
    columns : sequence of (str, str, GroupedValues or GroupedLabels)
        For each new column: the user's column in whose place it stands, its own name, and its values.
    n_records : int
        Records of the new frame, for which each column says the group.
    """
    import pyarrow as pa

    arrays = [_as_arrow(new, is_declared=source in kind.declared) for source, _, new in columns]
    if kind.library == "numpy":
        return _as_array(arrays, n_records)
    arrow = pa.table(arrays, names=[name for _, name, _ in columns])
    return _converted(kind, arrow, [source for source, _, _ in columns])


def frame_from_arrow(kind: FrameKind, table: Any) -> Any:
    """Return an Arrow table, with columns named as the user's, as a frame of some kind."""
    if kind.library == "numpy":
        return _as_array(table.columns, table.num_rows)
    for place, name in enumerate(table.column_names):
        if name in kind.declared:
            table = table.set_column(place, name, table.column(name).dictionary_encode())
    return with_sorted_categories(_converted(kind, table, table.column_names))


def _converted(kind: FrameKind, arrow: Any, sources: Sequence[str]) -> Any:
    if kind.library == "pyarrow":
        return arrow
    if kind.library == "polars":
        import polars as pl

        return pl.from_arrow(arrow)
    built = arrow.to_pandas()
    names = zip(sources, arrow.column_names, strict=True)
    built.columns = [kind.labels[source] if name == source else name for source, name in names]
    return built


def _as_arrow(new: GroupedValues | GroupedLabels, *, is_declared: bool) -> Any:
    import pyarrow as pa

    if isinstance(new, GroupedLabels):
        labels = np.asarray(new.labels) if isinstance(new.labels, np.ndarray) else list(new.labels)
        return pa.array(labels).take(pa.array(new.group))
    kind: Any = "category" if new.categories is not None else "number" if new.moment is None else "moment"
    # Without any value, too, a column of numbers is one of numbers.
    wanted = pa.from_numpy_dtype(np.asarray(new.values).dtype) if kind == "number" else pa.null()
    short, places = grouped_arrow(wanted, kind, new, None)
    if not (is_declared and new.categories is not None):
        return short.take(pa.array(places))
    # The last of the short values stands for missing, which a dictionary does not list.
    n_listed = len(short) - 1
    codes = pa.array(places.astype(np.int32), mask=places >= n_listed)
    return pa.DictionaryArray.from_arrays(codes, short.slice(0, n_listed))


def _as_array(arrays: Sequence[Any], n_records: int) -> npt.NDArray[Any]:
    """Return columns as one array: of numbers if all are, else of objects."""
    parts = [array.to_numpy(zero_copy_only=False) for array in arrays]
    if all(part.dtype.kind in "if" for part in parts):
        return np.column_stack(parts) if parts else np.empty((n_records, 0))
    result = np.empty((n_records, len(parts)), object)
    for place, part in enumerate(parts):
        result[:, place] = part
    return result
