# SPDX-License-Identifier: Apache-2.0
"""Convert Arrow arrays, and arrays of numbers or codes, to columns; ``to_arrow`` converts back."""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.columns import MICROSECONDS_PER_DAY, TICKS_PER_SECOND, Column, Moment
from sfumato.errors import InputError

_FIRST = 65_536  # records that are looked at before all are
#: As many decimal digits as a float64 always holds.
_SAFE_DIGITS = 15


def column_from_arrow(name: str, array: Any, *, as_category: bool = False, for_counting: bool = False) -> Column:
    """Convert an Arrow array, chunked or not, to a column.

    Parameters
    ----------
    name : str
        The name of the column.
    array : pyarrow.Array or pyarrow.ChunkedArray
        The values.
    as_category : bool, default=False
        Whether numbers are codes and become a category.
    for_counting : bool, default=False
        Whether it matters only which values are equal. Values that would be refused for their many digits are then
        read in another way that tells them apart: decimals as text, moments as numbers of nanoseconds.
    """
    import pyarrow as pa

    types = pa.types
    array = one_chunk(array)
    kind = array.type
    is_decimal = types.is_decimal(kind) and kind.scale > 0
    if types.is_null(kind):
        n_records = len(array)
        return Column(name, "category", np.zeros(n_records, np.int32), np.ones(n_records, bool), np.empty(0, object))
    if types.is_dictionary(kind):
        codes = _codes(array.indices)
        return category_column(name, codes, array.dictionary, for_counting=for_counting, is_ordered=kind.ordered)
    if types.is_decimal(kind):
        array = _without_decimals(name, array, for_counting=for_counting)
        kind = array.type
    if is_text(kind):
        encoded = array.dictionary_encode()
        return category_column(name, _codes(encoded.indices), encoded.dictionary, is_encoded=True)
    missing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
    if types.is_boolean(kind):
        codes = array.cast(pa.int8()).fill_null(-1).to_numpy(zero_copy_only=False)
        return category_column(name, codes, pa.array([False, True]))
    if types.is_integer(kind) or types.is_floating(kind):
        if types.is_float16(kind):
            array = array.cast(pa.float32())
        if missing is not None:
            array = array.fill_null(0)
        column = number_column(name, array.to_numpy(zero_copy_only=False), missing, as_category=as_category)
        return replace(column, is_decimal=True) if is_decimal else column
    if types.is_temporal(kind) and not types.is_interval(kind):
        return _moment_column(name, array, missing, as_category=as_category, for_counting=for_counting)
    raise InputError(
        f"column {name!r} has the type {kind}: expected numbers, text, booleans, categories, dates, times or "
        "durations. Convert it, split it into such columns, or drop it."
    )


def number_column(
    name: str,
    values: npt.NDArray[Any],
    missing: npt.NDArray[np.bool_] | None = None,
    *,
    as_category: bool = False,
) -> Column:
    """Convert an array of integers or floats to a column; NaN is missing, infinity raises InputError."""
    if values.dtype.kind in "iu":
        if values.dtype == np.uint64 and values.size and int(values.max()) > np.iinfo(np.int64).max:
            raise InputError(
                f"column {name!r} has unsigned integers above {np.iinfo(np.int64).max}: expected integers that fit 64 "
                "bits with a sign. Convert it to float, or to text if the numbers are codes."
            )
        numbers = np.array(values, dtype=np.int64)
        if missing is not None:
            numbers[missing] = 0
    else:
        numbers = np.add(values, 0.0, dtype=np.float64)  # also turns -0.0 into 0.0: one value, one category
        if missing is not None:
            numbers[missing] = 0.0
        if not np.isfinite(numbers).all():
            not_a_number = np.isnan(numbers)
            if np.isinf(numbers).any():
                raise InputError(
                    f"column {name!r} contains infinity in {int(np.isinf(numbers).sum())} of {len(numbers)} records: "
                    "expected finite numbers. Replace infinity by a number or by a missing value."
                )
            missing = not_a_number if missing is None else missing | not_a_number
            numbers[not_a_number] = 0.0
    if not as_category:
        return Column(name, "number", numbers, missing)
    import pyarrow as pa

    encoded = pa.array(numbers, mask=missing).dictionary_encode()
    return category_column(name, _codes(encoded.indices), encoded.dictionary, is_encoded=True)


def category_column(
    name: str,
    codes: npt.NDArray[np.integer[Any]],
    dictionary: Any,
    *,
    is_encoded: bool = False,
    for_counting: bool = False,
    is_ordered: bool = False,
) -> Column:
    """Convert an Arrow array of values, and codes into it (negative: missing), to a column with sorted categories.

    The order of the categories depends on their values alone, never on the order of the records or of the
    dictionary. ``is_encoded`` says that the dictionary was made from the records: all in it occur, and once.
    ``is_ordered`` says that its order means something; it is kept beside the categories. The values come in as few
    bits as the categories need.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    types = pa.types
    if types.is_decimal(dictionary.type):
        dictionary = _without_decimals(name, dictionary, for_counting=for_counting)
    elif types.is_string_view(dictionary.type):
        dictionary = dictionary.cast(pa.large_string())
    kind = dictionary.type
    if not (
        is_text(kind)
        or types.is_boolean(kind)
        or types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_null(kind)
    ):
        raise InputError(
            f"column {name!r} is categorical with categories of the type {kind}: expected categories that are text, "
            "numbers or booleans. Convert the categories to text."
        )
    n_listed = len(dictionary)
    occurring = np.arange(n_listed) if is_encoded else occurring_codes(codes, n_listed)
    listed = dictionary.take(pa.array(occurring))
    if types.is_floating(kind):
        numbers = number_column(name, listed.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False))
        listed = pa.array(numbers.values, mask=numbers.missing)
    if is_encoded:
        distinct, indices = listed, np.arange(n_listed, dtype=np.int32)
    else:  # a dictionary may list a value twice, and null; encoding it once more merges and drops those
        again = listed.dictionary_encode()
        distinct, indices = again.dictionary, _codes(again.indices)
    order = (
        np.argsort(distinct.to_numpy(zero_copy_only=False), kind="stable")
        if types.is_boolean(kind)
        else pc.array_sort_indices(distinct).to_numpy()
    )
    rank = np.empty(len(distinct) + 1, np.int32)
    rank[order] = np.arange(len(distinct), dtype=np.int32)
    rank[-1] = len(distinct)  # stands for missing until that is said beside the values
    translate = np.full(n_listed + 1, len(distinct), _narrow_type(len(distinct)))  # codes below 0: the last place
    translate[occurring] = rank[indices]
    values, missing = _translated(codes, translate)
    places = None
    if is_ordered:
        first = np.full(len(distinct), n_listed, np.int64)
        np.minimum.at(first, indices[indices >= 0], occurring[indices >= 0])
        places = first[order]
    categories = _objects(distinct.take(pa.array(order)).to_pylist())
    return Column(name, "category", values, missing, categories, places=places)


def _narrow_type(highest: int) -> npt.DTypeLike:
    """Return the narrowest integer type for codes up to `highest`."""
    return np.uint8 if highest < 2**8 else np.uint16 if highest < 2**16 else np.int32


def _translated(
    codes: npt.NDArray[np.integer[Any]], translate: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    """Return ``translate[codes]`` and a mask of missing values: codes below 0, or translated to the last place."""
    if np.array_equal(translate, np.arange(len(translate))):  # listed in order, and all occur, as most often
        values, missing = codes.astype(translate.dtype), codes < 0
    else:
        values = np.empty(len(codes), translate.dtype)
        for start in range(0, len(codes), _FIRST):  # numpy makes wide indexes of codes: of so many, they stay small
            # Of the modes only this one takes a code below 0 for the last place.
            np.take(translate, codes[start : start + _FIRST], out=values[start : start + _FIRST], mode="wrap")
        missing = values == translate[-1]
    if not missing.any():
        return values, None
    values[missing] = 0
    return values, missing


def occurring_codes(codes: npt.NDArray[np.integer[Any]], n_listed: int) -> npt.NDArray[np.int64]:
    """Return the codes from 0 to `n_listed` - 1 that occur, in rising order; negative codes are missing.

    The first records tell most often that all do, and the others need not be counted.
    """
    for some in (codes[: _FIRST // 16], codes[:_FIRST], codes):
        seen = np.bincount(some.astype(np.int64) + 1, minlength=n_listed + 1)[1:]
        if seen.all():
            break
    return np.flatnonzero(seen)


def moment_column(
    name: str,
    ticks: npt.NDArray[np.int64],
    missing: npt.NDArray[np.bool_] | None,
    unit: str,
    moment: Moment,
    *,
    for_counting: bool = False,
) -> Column:
    """Convert ticks of a unit ("s", "ms", "us", "ns" or "D") to a column of microseconds."""
    ticks = np.array(ticks, dtype=np.int64)
    if missing is not None:
        ticks[missing] = 0
    if unit == "ns":
        n_finer = int(np.count_nonzero(ticks % 1_000))
        if n_finer and for_counting:
            return number_column(name, ticks, missing)
        if n_finer:
            raise InputError(
                f"column {name!r} has digits below a microsecond in {n_finer} of {len(ticks)} records: expected "
                "moments that are whole microseconds. Round it, for example with .dt.round('us') in pandas, or convert "
                "it to text."
            )
        ticks //= 1_000
    elif unit != "us":
        factor = MICROSECONDS_PER_DAY if unit == "D" else 1_000_000 // TICKS_PER_SECOND[unit]
        limit = np.iinfo(np.int64).max // factor
        if ticks.size and (int(ticks.max()) > limit or int(ticks.min()) < -limit):
            raise InputError(
                f"column {name!r} has moments too far from 1970 to be counted in microseconds: expected years between "
                "-290,000 and 290,000. Correct or drop those records."
            )
        ticks *= factor
    return Column(name, "moment", ticks, missing, None, moment)


def one_chunk(array: Any) -> Any:
    """Return a chunked Arrow array as one array; text gets 64-bit offsets, since it may exceed 2 GiB."""
    import pyarrow as pa

    if not isinstance(array, pa.ChunkedArray):
        return array.cast(pa.large_string()) if pa.types.is_string_view(array.type) else array
    if pa.types.is_dictionary(array.type):
        array = array.unify_dictionaries()
    elif is_text(array.type):
        array = array.cast(pa.large_string())
    if array.num_chunks == 1:
        return array.chunk(0)
    return pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)


def _without_decimals(name: str, array: Any, *, for_counting: bool) -> Any:
    """Return decimals as int64 or float64, whichever is exact and can be written back, or else as text.

    Text serves for counting only; decimals that need it are refused otherwise.
    """
    import pyarrow as pa

    readers = (_as_integers, _as_floats) if array.type.scale <= 0 else (_as_floats, _as_integers)
    for read in readers:
        numbers = read(array)
        if numbers is not None:
            return numbers
    if for_counting:
        return array.cast(pa.large_string())
    raise InputError(
        f"column {name!r} has decimals with more digits than a 64-bit number holds: expected integers of 64 bits or "
        f"at most {_SAFE_DIGITS} digits, since others would be taken for equal. Round it, or convert it to text."
    )


def _as_integers(array: Any) -> Any:
    """Return decimals as int64, or None if one is a fraction or beyond 64 bits."""
    import pyarrow as pa

    try:
        return array.cast(pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None


def _as_floats(array: Any) -> Any:
    """Return decimals as float64, or None if the shortest digits of a float are not the decimal."""
    import pyarrow as pa

    if array.type.precision <= _SAFE_DIGITS and not pa.types.is_decimal256(array.type):
        return array.cast(pa.float64())
    encoded = array.dictionary_encode()
    distinct = encoded.dictionary.to_pylist()
    floats = [float(value) for value in distinct]  # Arrow's own way for decimals this wide is not exact
    if any(decimal.Decimal(repr(number)) != value for number, value in zip(floats, distinct, strict=True)):
        return None
    return pa.array(floats, pa.float64()).take(encoded.indices)


def is_text(kind: Any) -> bool:
    """Return True if an Arrow type is a text type."""
    import pyarrow as pa

    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _codes(indices: Any) -> npt.NDArray[np.int32]:
    """Return Arrow indices as int32, -1 where null."""
    import pyarrow as pa

    indices = indices.cast(pa.int32())
    if indices.null_count:
        indices = indices.fill_null(-1)
    codes: npt.NDArray[np.int32] = indices.to_numpy(zero_copy_only=False)
    return codes


def _objects(values: Sequence[Any]) -> npt.NDArray[np.object_]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _moment_column(
    name: str, array: Any, missing: npt.NDArray[np.bool_] | None, *, as_category: bool, for_counting: bool
) -> Column:
    import pyarrow as pa

    types = pa.types
    if as_category:
        raise InputError(
            f"column {name!r} holds dates, times or durations and is named categorical: expected numbers or text. "
            "Leave it out of the categorical features, or convert it to text."
        )
    kind = array.type
    moment: Moment = (
        "date"
        if types.is_date(kind)
        else "datetime"
        if types.is_timestamp(kind)
        else "duration"
        if types.is_duration(kind)
        else "time"
    )
    if types.is_date32(kind):
        unit = "D"
    elif types.is_date64(kind):
        unit = "ms"
    else:
        unit = kind.unit
    if types.is_date32(kind) or types.is_time32(kind):
        array = array.view(pa.int32()).cast(pa.int64())
    else:
        array = array.view(pa.int64())
    if missing is not None:
        array = array.fill_null(0)
    column = moment_column(name, array.to_numpy(zero_copy_only=False), missing, unit, moment, for_counting=for_counting)
    return replace(column, is_zoned=types.is_timestamp(kind) and kind.tz is not None)
