# SPDX-License-Identifier: Apache-2.0
"""pyarrow tables, and writing of Arrow arrays for the other kinds of frames."""

from __future__ import annotations

import json
from collections.abc import Collection, Hashable, Sequence
from typing import Any

import numpy as np

from sfumato.columns import Column, GroupedLabels, GroupedValues
from sfumato.frames.contract import Entry, Rows
from sfumato.frames.from_arrow import column_from_arrow, is_text, one_chunk
from sfumato.frames.to_arrow import merge_categories
from sfumato.threads import map_in_threads


class ArrowBackend:
    """pyarrow tables."""

    library = "pyarrow"

    def __init__(self, table: Any) -> None:
        """Keep the table; columns are read later."""
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

    def build(self, entries: Sequence[Entry], keep_rows: Rows | None, n_threads: int = 1) -> Any:
        """Build a table; only the metadata that pandas needs is kept, if it still describes the table."""
        import pyarrow as pa

        def built(entry: Entry) -> Any:
            column = self._table.column(entry.source)
            if entry.new is not None:
                return write_arrow(column, entry.taken(keep_rows))
            return column if keep_rows is None else _taken(column, keep_rows)

        arrays = map_in_threads(built, entries, n_threads)
        fields = []
        for entry, column in zip(entries, arrays, strict=True):
            nullable = self._table.schema.field(entry.source).nullable or column.null_count > 0
            fields.append(pa.field(entry.label, column.type, nullable))
        metadata = _needed_metadata(self._table.schema)
        same = [field.name for field in fields] == self._table.column_names and keep_rows is None
        if not same or [field.type for field in fields] != self._table.schema.types:
            metadata = None
        return pa.table(arrays, schema=pa.schema(fields, metadata=metadata))

    def compacted(self, frame: Any) -> Any:
        """Return the table with compact dictionaries."""
        return compact_dictionaries(frame)


def _taken(column: Any, rows: Rows) -> Any:
    """Return some records of a column; string views are copied, since they would keep all text in memory."""
    import pyarrow as pa

    if pa.types.is_string_view(column.type):
        return column.cast(pa.large_string()).take(pa.array(rows)).cast(column.type)
    return column.take(pa.array(rows))


def compact_dictionaries(table: Any) -> Any:
    """Drop unused values from dictionary columns.

    A rewritten column would otherwise list every original category, also one that a single person has. An unchanged
    column would list categories of people who were removed from the table.
    """
    import pyarrow as pa

    return pa.table([compact_dictionary(column) for column in table.columns], schema=table.schema)


def compact_dictionary(column: Any, keep: Collection[Any] = ()) -> Any:
    """Return a column without unused entries of its dictionary, except those in `keep`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if not pa.types.is_dictionary(kind):
        return column
    array = one_chunk(column)
    used = pc.unique(array.indices.drop_null())
    if keep:
        listed = [place for place, value in enumerate(array.dictionary.to_pylist()) if value in keep]
        used = pc.unique(pa.concat_arrays([used, pa.array(listed, kind.index_type)]))
    used = used.take(pc.sort_indices(used))  # in the order of the dictionary, which may mean something
    codes = pc.index_in(array.indices, value_set=used, skip_nulls=True).cast(kind.index_type)
    return pa.DictionaryArray.from_arrays(codes, array.dictionary.take(used), ordered=kind.ordered)


def text_as_dictionary(column: Any, most_distinct: float) -> Any:
    """Dictionary-encode a text column with narrow codes, unless most of its values are distinct."""
    import pyarrow as pa

    if not is_text(column.type):
        return column
    array = one_chunk(column.dictionary_encode())
    n_values = len(array.dictionary)
    if n_values > most_distinct * len(array):
        return column
    return pa.DictionaryArray.from_arrays(array.indices.cast(narrow_integer(n_values)), array.dictionary)


def narrow_integer(n_values: int) -> Any:
    """Return the narrowest integer type for so many dictionary codes."""
    import pyarrow as pa

    return next(kind for kind in (pa.int8(), pa.int16(), pa.int32()) if n_values <= 2 ** (kind.bit_width - 1))


def without_metadata(table: Any) -> Any:
    """Return a table with only the metadata that pandas needs: the rest may describe the people in it."""
    import pyarrow as pa

    fields = [field.remove_metadata() for field in table.schema]
    return pa.table(table.columns, schema=pa.schema(fields, metadata=_needed_metadata(table.schema)))


#: Metadata that pandas needs to read a table back; "attributes" are free notes of the user.
_NEEDED_BY_PANDAS = ("index_columns", "column_indexes", "columns", "creator", "pandas_version")


def _needed_metadata(schema: Any) -> dict[bytes, bytes] | None:
    try:
        notes = json.loads((schema.metadata or {}).get(b"pandas", b"null"))
    except ValueError:  # not written by pandas
        return None
    if not isinstance(notes, dict):
        return None
    needed = {key: notes[key] for key in _NEEDED_BY_PANDAS if key in notes}
    return {b"pandas": json.dumps(needed).encode()}


def write_arrow(old: Any, entry: Entry) -> Any:
    """Return new values in the type of an Arrow array."""
    import pyarrow as pa

    if isinstance(entry.new, GroupedLabels):
        labels = entry.new.labels
        short = pa.array(labels) if isinstance(labels, np.ndarray) else pa.array(list(labels), pa.string())
        return short.take(pa.array(entry.new.group))
    kind = old.type
    if pa.types.is_dictionary(kind):
        return _write_dictionary(old, entry)
    short, place = entry.arrow(kind, missing_as_nan=pa.types.is_floating(kind) and has_nan_only(old))
    taken = short.take(pa.array(place))
    return taken.cast(kind) if pa.types.is_string_view(kind) else taken


def _write_dictionary(old: Any, entry: Entry) -> Any:
    """Return new values as a dictionary; codes get their final type per group, before there is one per record."""
    import pyarrow as pa

    assert isinstance(entry.new, GroupedValues) and entry.categories is not None
    entry.require_categories()
    kind, listed = old.type, one_chunk(old).dictionary
    merged, translate = merge_categories(
        entry.label, listed.to_pylist(), entry.categories, replace=entry.replaces_categories
    )
    is_missing = np.zeros(len(entry.new.values), np.bool_) if entry.new.missing is None else entry.new.missing
    codes = np.append(translate, 0)[np.where(is_missing, len(translate), entry.new.values)]
    index_type = kind.index_type if len(merged) <= np.iinfo(kind.index_type.to_pandas_dtype()).max else pa.int32()
    indices = pa.array(codes, mask=is_missing).cast(index_type).take(pa.array(entry.new.group))
    ordered = kind.ordered and merged == listed.to_pylist()
    return pa.DictionaryArray.from_arrays(indices, pa.array(merged, listed.type), ordered=ordered)


def has_nan_only(array: Any) -> bool:
    """Return True if an array marks missing values by NaN and never by null."""
    import pyarrow.compute as pc

    return array.null_count == 0 and bool(pc.any(pc.is_nan(array)).as_py())


def value_type(kind: Any) -> Any:
    """Return the type of a column's values, or of its categories if it is a dictionary."""
    import pyarrow as pa

    return kind.value_type if pa.types.is_dictionary(kind) else kind
