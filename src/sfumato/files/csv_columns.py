# SPDX-License-Identifier: Apache-2.0
"""Give the text columns of a CSV file their types.

The rules, in order (``--types`` overrules them):

- Integers of at most 15 digits without a leading zero or plus: *integer*. Longer ones are account or card numbers,
  and *text*.
- Numbers with the file's decimal mark: *real*.
- ISO dates (``2024-03-01``) and ISO datetimes: *date*, *datetime*.
- Dates such as ``31.12.1980``, if exactly one format fits every value: *date*, *datetime*; a note says so. If two
  formats fit, as in ``01/02/2024``, they stay text unless ``--types`` gives the format.
- Everything else is *text*.

Quotes do not matter. In numbers and dates an empty field, ``?``, ``NA``, ``N/A``, ``NaN`` and ``null`` are missing. In
text only the empty field without quotes is missing; ``""`` is an empty text.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np

from sfumato.errors import InputError, ParameterError, Sentence, named
from sfumato.files.column_names import split_names
from sfumato.files.csv_reading import GivenType, TextColumn
from sfumato.frames.arrow_tables import narrow_integer

TYPE_NAMES = ("text", "category", "integer", "real", "date", "datetime")
MISSING_WORDS = frozenset({"", "?", "NA", "N/A", "NaN", "nan", "null", "NULL"})

_INTEGER = r"^-?(?:0|[1-9][0-9]{0,14})$"
_POINT_NUMBER = r"^-?(?:(?:0|[1-9][0-9]{0,14})(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?$"
_COMMA_NUMBER = r"^-?(?:0|[1-9][0-9]{0,14})(?:,[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?$"
_GROUPED_COMMA_NUMBER = r"^-?[1-9][0-9]{0,2}(?:\.[0-9]{3})+(?:,[0-9]+)?$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_DATETIME = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?$"
)
# Other common formats of days, with an optional time of day.
_OTHER_DATE = r"^(?:[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{4}|[0-9]{4}/[0-9]{1,2}/[0-9]{1,2})"
_TIME_OF_DAY = r" [0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?$"
# --types accepts more than is detected, since the user vouches for it.
_ACCEPTED = {
    ("integer", "."): r"^\s*[+-]?[0-9]{1,18}\s*$",
    ("integer", ","): r"^\s*[+-]?(?:[0-9]{1,18}|[0-9]{1,3}(?:\.[0-9]{3}){1,5})\s*$",
    ("real", "."): r"^\s*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?\s*$",
    ("real", ","): r"^\s*[+-]?(?:[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+)(?:,[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?\s*$",
}
_DATE_FORMATS = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%Y%m%d", "%d-%m-%Y", "%m-%d-%Y")
_DATETIME_FORMATS = tuple(f"{day} {time}" for day in _DATE_FORMATS for time in ("%H:%M", "%H:%M:%S"))

# Text with at most this share of distinct values stays dictionary-encoded.
MOST_DISTINCT = 0.5


def parse_types(text: str) -> dict[str, GivenType]:
    """Return the types in a text such as ``zip=text,born=date:%d.%m.%Y`` by column.

    Examples
    --------
    >>> parse_types("zip=text,age=integer")["age"].name
    'integer'
    """
    given: dict[str, GivenType] = {}
    for part in split_names([text]):
        column, _, type_and_format = part.rpartition("=")
        given[column] = parse_type(column, type_and_format)
    return given


def parse_type(column: str, text: str) -> GivenType:
    """Return the type that a text such as ``integer`` or ``date:%d.%m.%Y`` gives a column."""
    name, _, date_format = text.partition(":")
    name = {"category": "text", "string": "text", "int": "integer", "float": "real"}.get(name, name)
    if not column or name not in TYPE_NAMES or (date_format and not name.startswith("date")):
        raise ParameterError(
            f"{named('types', {column: text})}: expected a type for a column, one of {', '.join(TYPE_NAMES)}; for "
            f"example {named('types', {'zip': 'text', 'age': 'integer', 'born': 'date:%d.%m.%Y'})}."
        )
    return GivenType(name, date_format or None)


# --- detection --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadingRules:
    """The decimal mark and the words for missing values of one file."""

    decimal: str
    missing: frozenset[str] = MISSING_WORDS


def detect_decimal(columns: list[TextColumn], separator: str, missing: Collection[str] = MISSING_WORDS) -> str:
    """Return the comma if commas do not separate fields and some column proves it, or else the point.

    A column of ``1,5`` proves the comma, one of ``1.5`` the point. ``1,234`` proves neither, since it may be a
    thousand. The comma needs a proof and no proof of the point.
    """
    if separator == ",":
        return "."
    for_comma = False
    for column in columns:
        fields = column.fields.filter(~_is_missing(column, missing))
        if not len(fields):
            continue
        if (
            _all_match(fields, _POINT_NUMBER)
            and _any_match(fields, r"\.")
            and not _all_match(_matching(fields, r"\."), r"^-?[1-9][0-9]{0,2}\.[0-9]{3}$")
        ):
            return "."
        if _all_match(fields, f"(?:{_COMMA_NUMBER})|(?:{_GROUPED_COMMA_NUMBER})"):
            with_comma = _matching(fields, ",")
            if len(with_comma) and not _all_match(with_comma, r"^-?[1-9][0-9]{0,2},[0-9]{3}$"):
                for_comma = True
    return "," if for_comma else "."


def read_column(
    column: TextColumn, rules: ReadingRules, given: GivenType | None, file_name: str, notes: list[str]
) -> tuple[Any, GivenType]:
    """Return a column as a typed Arrow array, and its type."""
    import pyarrow as pa

    filled = ~_is_missing(column, rules.missing)
    fields = column.fields.filter(filled)
    wanted = given or _detected_type(column, fields, rules, notes)
    if wanted.name == "text":
        return _read_text(column), wanted
    if wanted.name in ("date", "datetime"):
        values, wanted = _parse_dates(fields, wanted, column.name, file_name)
        n_misfits = "some"
    else:
        values, misfits = _parse_numbers(fields, wanted.name, rules.decimal)
        n_misfits = f"{int(column.counts[filled][misfits].sum()):,}"
    if values is None:
        as_type = wanted.name + (f" by the format {wanted.format}" if wanted.format else "")
        raise InputError(
            f"{file_name}: column {column.name!r} cannot be read as {as_type}: {n_misfits} of its "
            f"{len(column.codes):,} values do not fit. Correct them, name the words for missing values with "
            f"{named('missing')}, or give another type with {named('types')}."
        )
    by_field = pa.array(np.cumsum(filled) - 1, mask=~filled, type=pa.int32())
    return values.take(by_field.take(column.codes)), wanted


def _detected_type(column: TextColumn, fields: Any, rules: ReadingRules, notes: list[str]) -> GivenType:
    if not len(fields):
        return GivenType("real")  # all values are missing
    if _all_match(fields, _INTEGER):
        return GivenType("integer")
    if _is_real(fields, rules.decimal) and _parse_numbers(fields, "real", rules.decimal)[0] is not None:
        return GivenType("real")
    for name, pattern in (("date", _DATE), ("datetime", _DATETIME)):
        if _all_match(fields, pattern) and _parse_iso(fields, name) is not None:
            return GivenType(name)
    for name, ending in (("date", "$"), ("datetime", _TIME_OF_DAY)):
        if _all_match(fields, _OTHER_DATE + ending):
            fitting = _fitting_formats(fields, name)
            if len(fitting) == 1:
                notes.append(
                    Sentence(
                        f"column {column.name!r} was read as dates written {fitting[0][0]}; CSV output has ISO dates. "
                        f"If that is wrong, give {named('types', {column.name: 'text'})}"
                    )
                )
                return GivenType(name, fitting[0][0])
            notes.append(
                Sentence(
                    f"column {column.name!r} was read as text: its values look like dates that are not written as "
                    f"2024-12-31. If they are, give {named('types', {column.name: name})}"
                )
            )
            return GivenType("text")
    _note_almost_numbers(column, rules, notes)
    return GivenType("text")


def _is_real(fields: Any, decimal: str) -> bool:
    if decimal == ".":
        return _all_match(fields, _POINT_NUMBER)
    if _all_match(fields, _COMMA_NUMBER):
        return True
    # Points group thousands only if some value has both marks; otherwise 1.234 could be either number.
    return _any_match(fields, r"\.[0-9]{3},") and _all_match(fields, f"(?:{_COMMA_NUMBER})|(?:{_GROUPED_COMMA_NUMBER})")


def _note_almost_numbers(column: TextColumn, rules: ReadingRules, notes: list[str]) -> None:
    """Add a note if a few other fields turned a column of numbers into text, which a user would not see."""
    numbers = _mask(column.fields, _POINT_NUMBER if rules.decimal == "." else _COMMA_NUMBER)
    digits = _mask(column.fields, "^[0-9]+$")
    if (digits & ~numbers).any():  # 01234, or a card number: codes, which are text
        return
    n_numbers = int(column.counts[numbers].sum())
    n_filled = int(column.counts[_mask(column.fields, ".")].sum())
    n_others = n_filled - n_numbers
    if 0 < n_others <= n_numbers // 9:
        notes.append(
            Sentence(
                f"column {column.name!r} was read as text: {n_numbers:,} of its {n_filled:,} values are numbers and "
                f"the rest are not. If those mean missing, name them with {named('missing')}."
            )
        )


# --- text to values ---------------------------------------------------------------------------------------


def _read_text(column: TextColumn) -> Any:
    import pyarrow as pa

    if len(column.fields) > len(column.codes) * MOST_DISTINCT:
        return column.fields.take(column.codes)
    return pa.DictionaryArray.from_arrays(column.codes.cast(narrow_integer(len(column.fields))), column.fields)


def _parse_numbers(fields: Any, name: str, decimal: str) -> tuple[Any | None, Any]:
    """Return numbers, or None if there are misfits; and for each field whether it is one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    misfits = ~_mask(fields, _ACCEPTED[name, decimal])  # Arrow's cast also takes 0x10, nan and inf for numbers
    if misfits.any():
        return None, misfits
    text = pc.utf8_ltrim(pc.utf8_trim_whitespace(fields), "+")
    if decimal == ",":
        text = pc.replace_substring(pc.replace_substring(text, ".", ""), ",", ".")
    values = text.cast(pa.int64() if name == "integer" else pa.float64())
    if name == "real":  # 1e999 is too large
        misfits = ~np.asarray(pc.is_finite(values).to_numpy(zero_copy_only=False), dtype=np.bool_)
    return None if misfits.any() else values, misfits


def _parse_dates(fields: Any, wanted: GivenType, column: str, file_name: str) -> tuple[Any | None, GivenType]:
    """Return dates, or None if no format fits, and their type with the format.

    ISO dates fit any given format: they are what a release of such a column has.
    """
    if wanted.format is not None:
        values = _by_format(fields, wanted.format, wanted.name)
        return _parse_iso(fields, wanted.name) if values is None else values, wanted
    values = _parse_iso(fields, wanted.name)
    if values is not None:
        return values, wanted
    fitting = _fitting_formats(fields, wanted.name)
    if len(fitting) > 1:
        raise InputError(
            f"{file_name}: the dates of column {column!r} can be read in {len(fitting)} ways "
            f"({', '.join(date_format for date_format, _ in fitting)}). "
            f"Say which: {named('types', {column: f'{wanted.name}:{fitting[0][0]}'})}"
        )
    return (fitting[0][1], GivenType(wanted.name, fitting[0][0])) if fitting else (None, wanted)


def _fitting_formats(fields: Any, name: str) -> list[tuple[str, Any]]:
    """Return the formats that fit every value, each with the values."""
    candidates = _DATE_FORMATS if name == "date" else _DATETIME_FORMATS
    return [(own, values) for own in candidates if (values := _by_format(fields, own, name)) is not None]


def _parse_iso(fields: Any, name: str) -> Any | None:
    """Return ISO dates or datetimes; None if a field is not a valid one, or if time zones differ."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not len(fields):
        return pa.array([], type=pa.date32() if name == "date" else pa.timestamp("us"))
    try:
        if name == "date":
            return fields.cast(pa.date32()) if _all_match(fields, _DATE) else None
        if not _all_match(fields, _DATETIME):
            return None
        zones = pc.unique(pc.replace_substring_regex(fields, r"^.{16}[0-9:.]*", ""))
        if len(zones) != 1:
            return None
        zone = zones[0].as_py()
        unit = "ns" if _any_match(fields, r"\.[0-9]{7}") else "us"
        local = (fields if not zone else pc.utf8_slice_codeunits(fields, 0, -len(zone))).cast(pa.timestamp(unit))
        return _in_zone(local, zone) if zone else local
    except (pa.ArrowInvalid, ValueError):
        return None


def _in_zone(local: Any, zone: str) -> Any:
    """Return datetimes with an offset such as +02:00, or Z. Arrow itself knows offsets only from version 22 on."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if zone == "Z":
        return pc.assume_timezone(local, "UTC")
    offset = datetime.strptime(zone, "%z").utcoffset()  # raises for one of more than a day
    utc = pc.assume_timezone(pc.subtract_checked(local, pa.scalar(offset, pa.duration(local.type.unit))), "UTC")
    return utc.cast(pa.timestamp(local.type.unit, zone))


def _by_format(fields: Any, date_format: str, name: str) -> Any | None:
    """Parse dates by a format, with Python: Arrow reads the 30th of February as the 1st of March."""
    import pyarrow as pa

    try:
        read = [datetime.strptime(text, date_format) for text in fields.to_pylist()]
    except (ValueError, re.error):
        return None
    if name == "date":
        return pa.array([own.date() for own in read], type=pa.date32())
    zone = "UTC" if any(own.tzinfo is not None for own in read) else None
    return pa.array(read, type=pa.timestamp("us", tz=zone))


# --- tests on distinct fields -----------------------------------------------------------------------------


def _is_missing(column: TextColumn, missing: Collection[str]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.is_in(column.fields, value_set=pa.array(sorted(missing)))
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _mask(fields: Any, pattern: str) -> Any:
    import pyarrow.compute as pc

    return np.asarray(pc.match_substring_regex(fields, pattern).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _matching(fields: Any, pattern: str) -> Any:
    return fields.filter(_mask(fields, pattern))


def _all_match(fields: Any, pattern: str) -> bool:
    return bool(_mask(fields, pattern).all())


def _any_match(fields: Any, pattern: str) -> bool:
    return bool(_mask(fields, pattern).any())
