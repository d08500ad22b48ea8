# SPDX-License-Identifier: Apache-2.0
"""One column as plain arrays: the form in which every layer reads and returns columns.

``frames`` reads a :class:`Column` from any library's column and writes :class:`GroupedValues` into one; nothing here
knows pandas, polars, Arrow or narwhals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from sfumato.errors import InputError, named

Kind = Literal["number", "moment", "category"]
Moment = Literal["date", "datetime", "duration", "time"]

#: Moments are counted in microseconds, whatever the unit of the frame: a partition fitted on one library's
#: nanoseconds must mean the same to another library's milliseconds.
MICROSECONDS_PER_DAY = 86_400_000_000
TICKS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True, eq=False)
class Column:
    """One column as plain arrays.

    Parameters
    ----------
    name : str
        The name of the column.
    kind : {"number", "moment", "category"}
        Kind of the values.
    values : ndarray of shape (n_records,)
        number: int64 or float64; moment: int64 microseconds (since 1970-01-01 UTC, since midnight, or in
        length); category: int32 indexes into ``categories``, or unsigned ones of fewer bits where that is asked
        for. 0 where a value is missing. The array is contiguous, writeable and belongs to the column alone.
    missing : ndarray of bool of shape (n_records,) or None
        True where a value is missing; None when nothing is missing.
    categories : ndarray of object or None, default=None
        For a category: the distinct values that occur, sorted (numbers by value, text by code point).
    moment : {"date", "datetime", "duration", "time"} or None, default=None
        For a moment: its kind.
    is_zoned : bool, default=False
        Whether the values are datetimes with a time zone.
    places : ndarray of int or None, default=None
        For a category whose type declares an order: the place of each of ``categories`` in it.
    is_decimal : bool, default=False
        Whether the values are decimals with a fixed number of digits after the point, to which others are rounded.

    Notes
    -----
    Decimals are read as int64 or float64, whichever represents them without loss. If neither does, or if datetimes have
    digits below a microsecond, reading raises an error, unless the values are only counted.
    """

    name: str
    kind: Kind
    values: npt.NDArray[Any]
    missing: npt.NDArray[np.bool_] | None
    categories: npt.NDArray[np.object_] | None = None
    moment: Moment | None = None
    is_zoned: bool = False
    places: npt.NDArray[np.int64] | None = None
    is_decimal: bool = False

    @property
    def n_records(self) -> int:
        """Number of records."""
        return len(self.values)

    @property
    def is_text(self) -> bool:
        """True for a category column whose values are text, also if it has no values."""
        return self.categories is not None and all(isinstance(value, str) for value in self.categories)

    @property
    def is_integer(self) -> bool:
        """True for a number column of integers."""
        return self.kind == "number" and self.values.dtype.kind == "i"


@dataclass(frozen=True, eq=False)
class GroupedValues:
    """New values of a column, one per group, to be written in the column's own type.

    Parameters
    ----------
    values : ndarray of shape (n_groups,)
        As in :class:`Column`; for a category, indexes into the categories.
    missing : ndarray of bool of shape (n_groups,) or None
        True for groups whose value is missing.
    group : ndarray of int of shape (n_records,)
        The group of each record.
    categories : ndarray of object or None, default=None
        For a category: what ``values`` index; None means the categories of the table's own column.
    replaces_categories : bool, default=False
        Whether a categorical type must list only ``categories``. Set it for coarsened columns: the exact values must
        not be released inside the type. Otherwise the type keeps its list, extended by new values.
    moment : {"date", "datetime", "duration", "time"} or None, default=None
        Kind of the moments. Needed only to write into a column that is all missing and untyped.
    """

    values: npt.NDArray[Any]
    missing: npt.NDArray[np.bool_] | None
    group: npt.NDArray[np.integer[Any]]
    categories: npt.NDArray[np.object_] | None = None
    replaces_categories: bool = False
    moment: Moment | None = None


@dataclass(frozen=True, eq=False)
class GroupedLabels:
    """New text of a column, one label (or None for missing) per group; an array of integers is written as integers."""

    labels: Sequence[str | None] | npt.NDArray[np.integer[Any]]
    group: npt.NDArray[np.integer[Any]]


def join_columns(columns: Sequence[Column]) -> Column:
    """Return one column with the records of several, in their order; its categories are sorted again.

    A column without any value takes the kind of the others.

    Raises
    ------
    InputError
        If the columns hold values of different kinds or types.
    """
    name = columns[0].name
    filled = [column for column in columns if column.missing is None or not column.missing.all()]
    if len({(column.kind, column.moment, column.is_zoned) for column in filled}) > 1:
        kinds = sorted({column.kind for column in filled})
        raise InputError(
            f"column {name!r} holds different kinds of values in different tables ({', '.join(kinds)}): expected one "
            f"kind. Convert it in all tables, or name it in {named('categorical_features')}."
        )
    like = filled[0] if filled else columns[0]
    is_missing = np.concatenate([_missing_of(column) for column in columns])
    missing = is_missing if is_missing.any() else None
    if like.categories is not None:
        return _join_categories(columns, missing)
    # The values at missing places of a column without any value may have another type.
    values = [c.values if c in filled or not filled else np.zeros(c.n_records, like.values.dtype) for c in columns]
    return Column(name, like.kind, np.concatenate(values), missing, None, like.moment, like.is_zoned)


def _missing_of(column: Column) -> npt.NDArray[np.bool_]:
    return np.zeros(column.n_records, np.bool_) if column.missing is None else column.missing


def _join_categories(columns: Sequence[Column], missing: npt.NDArray[np.bool_] | None) -> Column:
    name = columns[0].name
    listed = [[] if column.categories is None else column.categories.tolist() for column in columns]
    try:
        every = sorted({value for values in listed for value in values})
    except TypeError:
        raise InputError(
            f"column {name!r} holds categories of several types in different tables: expected one type. Convert it to "
            "text."
        ) from None
    code_of = {value: code for code, value in enumerate(every)}
    categories = np.empty(len(every), object)
    categories[:] = every
    codes = []
    for column, values in zip(columns, listed, strict=True):
        new_code = np.array([*(code_of[value] for value in values), 0], np.int32)  # the last is read at missing places
        codes.append(new_code[column.values if values else np.zeros(column.n_records, np.int64)])
    return Column(name, "category", np.concatenate(codes), missing, categories, places=_join_places(columns, every))


def _join_places(columns: Sequence[Column], categories: Sequence[Any]) -> npt.NDArray[np.int64] | None:
    """Return the places of all categories in the declared order if all columns declare the same, else None."""
    place: dict[Any, int] = {}
    for column in columns:
        if column.categories is None or not len(column.categories):
            continue
        if column.places is None:
            return None
        own = dict(zip(column.categories, column.places.tolist(), strict=True))
        if any(place.get(value, at) != at for value, at in own.items()):
            return None
        place |= own
    if not place or len(set(place.values())) < len(place):
        return None
    return np.array([place[value] for value in categories], np.int64)
