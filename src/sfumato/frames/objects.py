# SPDX-License-Identifier: Apache-2.0
"""Convert columns of Python objects to Arrow by their types, and back to objects of the same types.

The backends call this for pandas columns and categories of the type object and for numpy arrays of objects.
"""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InputError

#: By name, since pandas may not be installed.
_MISSING_TYPES = ("NoneType", "NAType", "NaTType")
_PLAIN_MODULES = ("builtins", "datetime", "decimal")

#: The first parent that fits decides: a bool is an int to Python, and a datetime is a date.
_FAMILIES: tuple[tuple[tuple[type, ...], str], ...] = (
    ((str,), "text"),
    ((bool, np.bool_), "boolean"),
    ((np.timedelta64, np.datetime64), "other"),
    ((int, np.integer), "integer"),
    ((float, np.floating), "float"),
    ((decimal.Decimal,), "decimal"),
    ((datetime.datetime,), "datetime"),
    ((datetime.date,), "date"),
    ((datetime.timedelta,), "duration"),
    ((datetime.time,), "time"),
)


def arrow_from_objects(name: str, objects: npt.NDArray[np.object_]) -> Any:
    """Convert Python objects of one type, with missing values, to an Arrow array.

    Raises
    ------
    InputError
        When the objects are of several types, or of one that no column can have.
    """
    import pyarrow as pa

    kinds = _types_in(objects)
    families = {_family(kind) for kind in kinds}
    if families == {"integer", "float"}:
        families = {"float"}
    elif len(families) > 1 and "float" in families and not _has_number_among(objects):
        families.discard("float")  # NaN among text is a missing value
    if not families:
        return pa.nulls(len(objects))
    family = families.pop()
    if families or family == "other":
        raise _mixed(name, kinds)
    wanted = {
        "text": pa.large_string(),
        "boolean": pa.bool_(),
        "integer": pa.int64(),
        "float": pa.float64(),
        "date": pa.date32(),
        "duration": pa.duration("us"),
        "time": pa.time64("us"),
    }.get(family)
    try:
        array = pa.array(objects, type=wanted, from_pandas=True)
    except UnicodeEncodeError:
        raise InputError(
            f"column {name!r} has text that is not valid Unicode: expected text that can be written as UTF-8. Decode "
            "the column again with the right encoding."
        ) from None
    except (pa.ArrowException, TypeError, OverflowError, ValueError):
        # The message of the cause quotes a cell, so the cause does not travel on.
        raise _mixed(name, kinds) from None
    if family in ("datetime", "duration") and any(_below_microsecond(value) for value in objects.tolist()):
        raise InputError(
            f"column {name!r} has objects with digits below a microsecond: expected moments that are whole "
            "microseconds. Round it, or convert it to text."
        )
    if family == "datetime":
        is_missing = array.is_null().to_numpy(zero_copy_only=False)
        if len({moment.tzinfo is None for moment in objects[~is_missing]}) > 1:
            raise InputError(
                f"column {name!r} has datetimes with and without a time zone: expected one or the other. Give all of "
                "them a time zone."
            )
    return array


def objects_like(old: npt.NDArray[np.object_], short: Any) -> npt.NDArray[np.object_]:
    """Convert an Arrow array to objects of the Python type of a column, with its mark for missing values."""
    kinds = set(map(type, old.tolist()))
    marker = _missing_marker(old, {kind.__name__ for kind in kinds})
    valued = [kind for kind in kinds if kind.__name__ not in _MISSING_TYPES]
    # numpy's scalars and pandas' moments are not what Arrow gives back, so they are made again.
    wrap = valued[0] if len(valued) == 1 and valued[0].__module__ not in _PLAIN_MODULES else None
    result = np.empty(len(short), dtype=object)
    for place, value in enumerate(short.to_pylist()):
        if value is None:
            result[place] = marker
        else:
            result[place] = value if wrap is None or isinstance(value, wrap) else wrap(value)
    return result


def _below_microsecond(value: Any) -> bool:
    """Return True if a pandas datetime has nanoseconds, which Python's datetime lacks."""
    finest = getattr(value, "nanosecond", None) or getattr(value, "nanoseconds", None)
    return finest is not None and finest == finest and finest != 0


def _missing_marker(objects: npt.NDArray[np.object_], kinds: set[str]) -> Any:
    """Return the object that marks missing values: None before NaN, NA and NaT, whatever the order of records."""
    if "NoneType" in kinds:
        return None
    has_floats = any(kind.startswith("float") for kind in kinds)
    if has_floats and any(isinstance(value, float | np.floating) and value != value for value in objects.tolist()):
        return np.nan
    for kind in ("NAType", "NaTType"):
        if kind in kinds:
            return next(value for value in objects.tolist() if type(value).__name__ == kind)
    return None


def _types_in(objects: npt.NDArray[np.object_]) -> set[type]:
    return {kind for kind in set(map(type, objects.tolist())) if kind.__name__ not in _MISSING_TYPES}


def _has_number_among(objects: npt.NDArray[np.object_]) -> bool:
    return any(isinstance(value, float | np.floating) and value == value for value in objects.tolist())


def _family(kind: type) -> str:
    return next((family for parents, family in _FAMILIES if issubclass(kind, parents)), "other")


def _mixed(name: str, kinds: set[type]) -> InputError:
    listed = ", ".join(sorted(kind.__name__ for kind in kinds))
    return InputError(
        f"column {name!r} holds Python objects of mixed or unknown types ({listed}): expected one of text, booleans, "
        "integers of 64 bits, floats, decimals, dates, datetimes or durations. Convert the whole column to one type."
    )
