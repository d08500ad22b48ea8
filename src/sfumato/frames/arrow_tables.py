# SPDX-License-Identifier: Apache-2.0
"""pyarrow tables; the other backends borrow the writing of Arrow arrays from here."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from sfumato.columns import (
    Column,
    GroupedLabels,
    column_from_arrow,
    one_chunk,
)
from sfumato.frames.contract import Entry, Rows
from sfumato.frames.writing import merge_categories


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

    def read(self, position: int, name: str, *, as_category: bool, for_counting: bool, head: int | None) -> Column:
        """Convert a column, or its first records."""
        column = self._table.column(position)
        return column_from_arrow(
            name, column if head is None else column.slice(0, head), as_category=as_category, for_counting=for_counting
        )

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


def write_arrow(old: Any, entry: Entry) -> Any:
    """Write new values in the type of an Arrow array, chunked or not."""
    import pyarrow as pa

    if isinstance(entry.new, GroupedLabels):
        return pa.array(list(entry.new.labels), pa.string()).take(pa.array(entry.new.group))
    kind = old.type
    short, place = entry.arrow(kind, missing_as_nan=pa.types.is_floating(kind) and has_nan_only(old))
    if not pa.types.is_dictionary(kind):
        taken = short.take(pa.array(place))
        return taken.cast(kind) if pa.types.is_string_view(kind) else taken
    assert entry.categories is not None
    listed = one_chunk(old).dictionary
    merged, translate = merge_categories(
        entry.label, listed.to_pylist(), entry.categories, replace=entry.replaces_categories
    )
    codes = np.append(translate, len(merged)).take(place)
    index_type = kind.index_type if len(merged) <= np.iinfo(kind.index_type.to_pandas_dtype()).max else pa.int32()
    indices = pa.array(codes, mask=codes == len(merged)).cast(index_type)
    ordered = kind.ordered and merged == listed.to_pylist()
    return pa.DictionaryArray.from_arrays(indices, pa.array(merged, listed.type), ordered=ordered)


def has_nan_only(array: Any) -> bool:
    """Whether the array marks what is missing by NaN and never by null."""
    import pyarrow.compute as pc

    return array.null_count == 0 and bool(pc.any(pc.is_nan(array)).as_py())
