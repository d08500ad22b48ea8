# SPDX-License-Identifier: Apache-2.0
"""From one pyarrow table to what a loader returns: a pandas, polars or pyarrow frame, or numpy arrays.

Every loader and the census generator build a pyarrow table and end in :func:`as_bunch`, so pandas and
polars are imported here only, on first use.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any, Literal

from sfumato.errors import InputError, MissingExtraError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import pyarrow as pa

AsFrame = bool | Literal["auto", "pandas", "polars", "pyarrow"]
Kind = Literal["pandas", "polars", "pyarrow", "numpy"]

# Text with more distinct values than this is free text or an identifier; it stays text.
MAX_CATEGORIES = 1000


def resolve_kind(as_frame: AsFrame) -> Kind:
    """Return the kind of container for `as_frame`, or raise before any work is done.

    ``True`` and ``"auto"`` mean pandas where it is installed and pyarrow otherwise; ``False`` means numpy.
    """
    if as_frame is False:
        return "numpy"
    if as_frame is True or as_frame == "auto":
        return "pandas" if importlib.util.find_spec("pandas") else "pyarrow"
    if as_frame not in ("pandas", "polars", "pyarrow"):
        raise ParameterError(
            f"as_frame={as_frame!r}: expected True, False, 'auto', 'pandas', 'polars' or 'pyarrow'. "
            "True takes pandas where it is installed and pyarrow otherwise; False gives numpy arrays."
        )
    if importlib.util.find_spec(as_frame) is None:
        raise MissingExtraError(
            f"as_frame={as_frame!r}: expected {as_frame} to be installed, and it is not. "
            f"Install it with 'pip install {as_frame}', or use as_frame='pyarrow', which needs nothing more."
        )
    return as_frame


def with_categories(table: pa.Table) -> pa.Table:
    """Return `table` with text as sorted categories, free text as plain text and empty columns as numbers."""
    import pyarrow as pa

    table = table.replace_schema_metadata(None)  # pandas metadata would restore a foreign index
    for position, field in enumerate(table.schema):
        column = table.column(position)
        if pa.types.is_null(field.type):
            column = column.cast(pa.float64())
        elif pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            column = _sorted_categories(column)
        else:
            continue
        table = table.set_column(position, field.name, column)
    return table


def _sorted_categories(column: pa.ChunkedArray) -> pa.Array:
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    encoded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):  # what combine_chunks returns depends on the version of pyarrow
        encoded = encoded.combine_chunks()
    if len(encoded.dictionary) > MAX_CATEGORIES:
        return encoded.cast(pa.string())
    order = pc.sort_indices(encoded.dictionary)  # bytes of UTF-8 sort as code points do
    rank = np.empty(len(order), dtype=np.int8 if len(order) <= 128 else np.int16)
    rank[order.to_numpy()] = np.arange(len(order))
    is_missing = encoded.is_null().to_numpy(zero_copy_only=False)
    codes = rank[encoded.indices.fill_null(0).to_numpy()] if len(order) else np.zeros(len(encoded), np.int8)
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=is_missing), encoded.dictionary.take(order))


def as_bunch(
    table: pa.Table,
    *,
    target: str | None,
    kind: Kind,
    return_X_y: bool,
    description: str,
    aside: Sequence[str] = (),
    extras: Mapping[str, Any] | None = None,
) -> Any:
    """Cut `table` into features, target and columns set aside, and convert them to `kind`.

    Parameters
    ----------
    table : pyarrow.Table
        All columns. It is used up: its memory may be released while it is converted.
    target : str or None
        Column to predict; it becomes the last column of ``frame``. None: there is no target.
    kind : {"pandas", "polars", "pyarrow", "numpy"}
        As returned by :func:`resolve_kind`.
    return_X_y : bool
        Return ``(data, target)`` instead of the whole.
    description : str
        Text of ``DESCR``.
    aside : sequence of str, optional
        Columns that are neither feature nor target, such as a survey weight; they come back as ``aside``.
    extras : mapping, optional
        More entries of the bunch.
    """
    features = [name for name in table.column_names if name != target and name not in aside]
    missing = {name for name in (target, *aside) if name is not None} - set(table.column_names)
    if missing:
        raise InputError(
            f"The table has {table.num_columns} columns without {', '.join(sorted(missing))}: expected them "
            "as in the published file. Put the unchanged file in place."
        )
    if return_X_y and target is None:
        raise ParameterError(
            "return_X_y=True for a table without a target: expected a column to predict. Name one with target=."
        )
    target_names = None if target is None else _target_names(table, target)
    set_aside = _convert(table.select(list(aside)), kind) if aside else None
    table = table.select([*features, target] if target is not None else features)
    data, labels, frame = _split(table, features, target, kind)
    if return_X_y:
        return data, labels

    from sklearn.utils import Bunch

    return Bunch(
        data=data,
        target=labels,
        frame=frame,
        feature_names=features,
        target_names=target_names,
        target_column=target,
        aside=set_aside,
        DESCR=description,
        **(extras or {}),
    )


def _target_names(table: pa.Table, target: str) -> list[Any]:
    """List the classes of a target, sorted; for a number to predict, the name of its column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = table.column(target)
    if pa.types.is_floating(column.type):
        return [target]
    values = [value for value in pc.unique(column).to_pylist() if value is not None]
    return sorted(values) if len(values) <= MAX_CATEGORIES else [target]


def _split(table: pa.Table, features: list[str], target: str | None, kind: Kind) -> tuple[Any, Any, Any]:
    if kind == "numpy":
        labels = None if target is None else _to_numpy(table.column(target))
        return _convert(table.select(features), kind), labels, None
    frame = _convert(table, kind)
    if target is None:
        return frame, None, frame
    if kind == "pandas":
        import pandas as pd

        data = frame.iloc[:, :-1]  # copy on write since pandas 3: one copy of the table, not two
        return (data if int(pd.__version__.split(".")[0]) >= 3 else data.copy()), frame[target], frame
    return frame.select(features), frame[target], frame


def _convert(table: pa.Table, kind: Kind) -> Any:
    if kind == "pyarrow":
        return table
    if kind == "polars":
        return importlib.import_module("polars").from_arrow(table)
    if kind == "pandas":
        # Consolidated blocks are copies and therefore writable; self_destruct keeps the peak near one table.
        frame = _with_floats_for_missing(table).to_pandas(self_destruct=True)
        if int(importlib.import_module("pandas").__version__.split(".")[0]) < 3:  # there, codes of categories are not
            for name in frame.columns[frame.dtypes == "category"]:
                frame[name] = frame[name].copy()
        return frame
    import numpy as np
    import pyarrow as pa

    columns = [_to_numpy(column) for column in table.columns]
    if all(pa.types.is_integer(field.type) or pa.types.is_floating(field.type) for field in table.schema):
        return np.column_stack(columns)
    array = np.empty((table.num_rows, table.num_columns), dtype=object)
    for position, column in enumerate(columns):
        array[:, position] = column
    return array


def _with_floats_for_missing(table: pa.Table) -> pa.Table:
    """Store small integers with missing values as float32, where pandas would take eight bytes for each."""
    import pyarrow as pa

    small = {pa.int8(), pa.int16(), pa.uint8(), pa.uint16()}
    for position, field in enumerate(table.schema):
        if field.type in small and table.column(position).null_count:
            table = table.set_column(position, field.name, table.column(position).cast(pa.float32()))
    return table


def _to_numpy(column: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    """Return one column as numbers with NaN for missing, or as objects (text) with NaN for missing."""
    import numpy as np
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return np.asarray(column.to_numpy())
    return np.array([np.nan if value is None else value for value in column.to_pylist()], dtype=object)
