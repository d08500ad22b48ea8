# SPDX-License-Identifier: Apache-2.0
"""Convert one value per group to Arrow arrays of the column's type.

Arrow is the common tongue of the libraries: a short array written here goes into any of them without a loop.
"""

from __future__ import annotations

import decimal
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.columns import MICROSECONDS_PER_DAY, TICKS_PER_SECOND, GroupedValues, Kind, Moment
from sfumato.errors import InputError

#: As many digits as decimals of 128 bits hold, which is all that polars has.
_MOST_DIGITS = 38


def grouped_arrow(
    column_type: Any,
    kind: Kind,
    new: GroupedValues,
    categories: npt.NDArray[np.object_] | None,
    *,
    missing_as_nan: bool = False,
) -> tuple[Any, npt.NDArray[np.integer[Any]]]:
    """Return a short Arrow array and, per record, the place in it of the record's new value.

    Parameters
    ----------
    column_type : pyarrow.DataType
        The type wanted. Where the new values do not fit (integers too large, say), a wider type comes back.
    kind : {"number", "moment", "category"}
        The kind of the column.
    new : GroupedValues
        The values per group.
    categories : ndarray of object or None
        What the values of a category index, unless ``new`` brings its own.
    missing_as_nan : bool, default=False
        Whether missing numbers are written as NaN, not as null.
    """
    import pyarrow as pa

    types = pa.types
    missing = new.missing if new.missing is not None and new.missing.any() else None
    is_empty = missing is not None and bool(missing.all())
    if types.is_null(column_type) and new.categories is None and not is_empty:
        # All missing and untyped, as in a single record with an empty field: the new values bring the type.
        kind = "number" if new.moment is None else "moment"
        column_type = _untyped_moment(new.moment) if new.moment else pa.from_numpy_dtype(np.asarray(new.values).dtype)
    if kind == "category":
        listed = new.categories if new.categories is not None else categories
        assert listed is not None
        codes = np.asarray(new.values).astype(np.int32)
        if missing is not None:
            codes = np.where(missing, np.int32(len(listed)), codes)
        value_type = column_type.value_type if types.is_dictionary(column_type) else column_type
        return _array_of(listed, value_type, missing_as_nan), codes.take(new.group)
    values = np.asarray(new.values)
    if kind == "moment":
        short = _moments_to_arrow(values.astype(np.int64), missing, column_type)
    elif types.is_integer(column_type):
        short = _integers_to_arrow(values, missing, column_type)
    elif types.is_decimal(column_type):
        short = _decimals_to_arrow(values, missing, column_type)
    else:
        numbers = values.astype(_wide_enough(values, missing, np.dtype(column_type.to_pandas_dtype())))
        if missing is not None and missing_as_nan:
            numbers[missing] = np.nan
            missing = None
        short = pa.array(numbers, mask=missing)
    return short, np.asarray(new.group)


def _wide_enough(values: npt.NDArray[Any], missing: npt.NDArray[np.bool_] | None, kind: np.dtype[Any]) -> np.dtype[Any]:
    """Return a float type, or that of 64 bits if a value would be infinite in it."""
    known = values if missing is None else values[~missing]
    is_narrow = kind.kind == "f" and known.size and np.abs(known.astype(np.float64)).max() > np.finfo(kind).max
    return np.dtype(np.float64) if is_narrow else kind


def _integers_to_arrow(values: npt.NDArray[Any], missing: npt.NDArray[np.bool_] | None, kind: Any) -> Any:
    """Return numbers as integers of the given type, as 64 bits if necessary, or as floats beyond that."""
    import pyarrow as pa

    if values.dtype.kind == "f":
        values = np.rint(values) if missing is None else np.where(missing, 0.0, np.rint(values))
        if values.size and np.abs(values).max() >= 2.0**63:
            return pa.array(values, pa.float64(), mask=missing)
    whole = values.astype(np.int64)
    target = np.dtype(kind.to_pandas_dtype())
    if whole.size and not (np.iinfo(target).min <= whole.min() and whole.max() <= np.iinfo(target).max):
        target = np.dtype(np.int64)
    return pa.array(whole.astype(target), mask=missing)


def _decimals_to_arrow(values: npt.NDArray[Any], missing: npt.NDArray[np.bool_] | None, kind: Any) -> Any:
    """Return numbers as decimals: floats by their shortest digits, so that 0.1 is 0.1 with any number of places.

    Numbers that no decimal holds stay floats.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    widest = pa.decimal256(76, kind.scale)
    if values.dtype.kind == "i":
        short = pa.array(values, mask=missing).cast(widest)
    else:
        context = decimal.Context(prec=400)  # more digits than any float64 has
        step = decimal.Decimal(1).scaleb(-kind.scale, context)
        exact = [decimal.Decimal(repr(value)).quantize(step, context=context) for value in values.tolist()]
        try:
            short = pa.array(exact, widest)
        except pa.ArrowInvalid:  # more digits than any decimal has
            return pa.array(values, mask=missing)
        if missing is not None:
            short = pc.if_else(pa.array(missing), None, short)
    # Where there are too many digits for the type: the same scale, and no more digits than other libraries know.
    known = () if kind.scale > _MOST_DIGITS else (pa.decimal128(_MOST_DIGITS, kind.scale),)
    for wanted in (kind, *known):
        try:
            return short.cast(wanted)
        except pa.ArrowInvalid:
            continue
    return short


def short_decimals(short: Any) -> Any:
    """Return decimals of 256 bits, which polars cannot work with, as decimals of 38 digits, or else as floats.

    Digits behind the point go first: they are finer than any number that was read.
    """
    import pyarrow as pa

    if not pa.types.is_decimal256(short.type):
        return short
    values = short.to_pylist()
    n_whole = max((value.adjusted() + 1 for value in values if value), default=1)
    scale = min(short.type.scale, _MOST_DIGITS - n_whole)
    if scale < 0:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    context = decimal.Context(prec=_MOST_DIGITS)
    step = decimal.Decimal(1).scaleb(-scale, context)
    rounded = [None if value is None else value.quantize(step, context=context) for value in values]
    return pa.array(rounded, pa.decimal128(_MOST_DIGITS, scale))


def _untyped_moment(moment: Moment) -> Any:
    import pyarrow as pa

    if moment == "date":
        return pa.date32()
    return {"datetime": pa.timestamp, "duration": pa.duration, "time": pa.time64}[moment]("us")


def merge_categories(
    label: Hashable, listed: Sequence[Any], wanted: npt.NDArray[np.object_], *, replace: bool
) -> tuple[list[Any], npt.NDArray[np.int64]]:
    """Return the categories of a type extended by the wanted values, and the place of each wanted value.

    The list stays as it is when it has all of them; else it is the sorted union, or, with ``replace``, the sorted
    values wanted and nothing else.
    """
    values = wanted.tolist()
    merged = list(listed)
    try:
        if replace:
            merged = sorted(set(values))
        elif not set(values) <= set(listed):
            merged = sorted({*listed, *values})
    except TypeError:
        raise InputError(
            f"column {label!r} has categories of another type than the values to be written: expected the type it had "
            "when the groups were made. Convert the categories."
        ) from None
    place = {value: position for position, value in enumerate(merged)}
    return merged, np.array([place[value] for value in values], dtype=np.int64)


def _array_of(categories: npt.NDArray[np.object_], kind: Any, missing_as_nan: bool) -> Any:
    """Return the categories and a missing value after them, in the given type if they fit it."""
    import pyarrow as pa

    values = [*categories.tolist(), float("nan") if missing_as_nan else None]
    if pa.types.is_string_view(kind):
        kind = pa.large_string()
    try:
        return pa.array(values, None if pa.types.is_null(kind) else kind, from_pandas=False)
    except (pa.ArrowException, TypeError, OverflowError):
        return pa.array(values)


def _moments_to_arrow(microseconds: npt.NDArray[np.int64], missing: npt.NDArray[np.bool_] | None, kind: Any) -> Any:
    """Return microseconds in the unit of the type, rounded down to its ticks."""
    import pyarrow as pa

    types = pa.types
    if types.is_date32(kind):
        days = (microseconds // MICROSECONDS_PER_DAY).astype(np.int32)
        return pa.array(days, mask=missing).view(kind)
    if types.is_date64(kind):
        days_in_milliseconds = microseconds // MICROSECONDS_PER_DAY * 86_400_000
        return pa.array(days_in_milliseconds, mask=missing).view(kind)
    ticks = microseconds * 1_000 if kind.unit == "ns" else microseconds // (1_000_000 // TICKS_PER_SECOND[kind.unit])
    if types.is_time32(kind):
        ticks = ticks.astype(np.int32)
    return pa.array(ticks, mask=missing).view(kind)
