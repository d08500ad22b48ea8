# SPDX-License-Identifier: Apache-2.0
"""Count the groups of a table one record at a time, with nothing but a ``Counter``.

Slow on purpose: this is the judge that tests and checks call. It reads frames by their own methods, not through
``sfumato.frames``, and knows no bins, no trees and no Arrow kernels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

MISSING = "\x00missing"
"""Stands for a missing value in a key: NaN differs from itself, and would make every record a group."""

_MISSING_TYPES = ("NoneType", "NAType", "NaTType")  # by name, since pandas may not be installed


def missing_as_one(value: Any) -> Any:
    """Return the value, or `MISSING` for None, NaN, NaT and NA.

    >>> missing_as_one(float("nan")) == missing_as_one(None)
    True
    """
    if type(value).__name__ in _MISSING_TYPES or (isinstance(value, float) and value != value):
        return MISSING
    return value


def rows_of(frame: Any, columns: Iterable[str | int] | None = None) -> list[tuple[Any, ...]]:
    """Return the records of a pandas or polars frame, a pyarrow table or a numpy array as tuples.

    Parameters
    ----------
    frame : frame or array
    columns : iterable of str or int, optional
        Names of the columns, positions for an array; all of them unless given.

    Examples
    --------
    >>> import numpy as np
    >>> rows_of(np.array([[1, 2], [3, 4]]), [1])
    [(2,), (4,)]
    """
    if hasattr(frame, "column_names"):  # pyarrow
        names = list(frame.column_names if columns is None else columns)
        lists = [frame.column(name).to_pylist() for name in names]
    elif hasattr(frame, "columns"):  # pandas and polars
        names = list(frame.columns if columns is None else columns)
        lists = [frame[name].to_list() for name in names]
    else:  # arrays
        names = list(range(frame.shape[1]) if columns is None else columns)
        lists = [frame[:, position].tolist() for position in names]
    return list(zip(*(map(missing_as_one, values) for values in lists), strict=True))


def group_sizes(
    frame: Any, columns: Iterable[str | int] | None = None, *, persons: Sequence[Any] | None = None
) -> Counter[tuple[Any, ...]]:
    """Count the records, or the different persons, that agree in all the columns.

    Parameters
    ----------
    frame : frame or array
    columns : iterable of str or int, optional
        The quasi-identifiers; all columns unless given.
    persons : sequence, optional
        The person each record belongs to; given, a person counts once per group.

    Examples
    --------
    >>> import numpy as np
    >>> sorted(group_sizes(np.array([[1.0], [float("nan")], [float("nan")]])).values())
    [1, 2]
    """
    keys = rows_of(frame, columns)
    if persons is None:
        return Counter(keys)
    return Counter(key for key, _ in set(zip(keys, map(missing_as_one, persons), strict=True)))


def smallest_group(
    frame: Any, columns: Iterable[str | int] | None = None, *, persons: Sequence[Any] | None = None
) -> int:
    """Return the size of the smallest group of records that agree in all the columns."""
    return min(group_sizes(frame, columns, persons=persons).values())
