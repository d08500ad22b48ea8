# SPDX-License-Identifier: Apache-2.0
"""The type of a CSV column: how text becomes values, and how values become the same text again.

The rules, in the order they are tried (``--types`` goes before all of them):

- A field in quotes that would not need them is text, so ``"00123"`` and ``"42"`` make their column text. In a
  file where every field is quoted, quotes say nothing and are ignored.
- Whole numbers of at most 15 digits without a leading zero or plus: *integer*. Longer ones are account or
  card numbers, and text.
- Numbers with the file's decimal mark: *real*.
- ISO dates (``2024-03-01``) and ISO datetimes: *date*, *datetime*.
- Dates such as ``31.12.1980``, where one way to read them fits every value: *date*, *datetime*, written back the same
  way; a note says so. Where two ways fit, as in ``01/02/2024``, they stay text unless ``--types`` says which.
- Everything else is *text*.

In numbers and dates an empty field, ``?``, ``NA``, ``N/A``, ``NaN`` and ``null`` are missing. In text only the empty
field without quotes is missing; ``""`` is a text of no letters (in a file where everything is quoted it is missing).
``csv_reading`` hands the columns over, ``csv_writing`` uses the way back, ``files`` calls both.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from sfumato.errors import InputError, ParameterError, Sentence, named
from sfumato.files.csv_reading import TextColumn
from sfumato.files.csv_values import ColumnStyle, GivenType, plain_text
from sfumato.files.names import split_names

TYPE_NAMES = ("text", "category", "integer", "real", "date", "datetime")
MISSING_WORDS = frozenset({"", "?", "NA", "N/A", "NaN", "nan", "null", "NULL"})

_INTEGER = r"^-?(?:0|[1-9][0-9]{0,14})$"
_POINT_NUMBER = r"^-?(?:(?:0|[1-9][0-9]{0,14})(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?$"
_COMMA_NUMBER = r"^-?(?:0|[1-9][0-9]{0,14})(?:,[0-9]+)?$"
_GROUPED_COMMA_NUMBER = r"^-?[1-9][0-9]{0,2}(?:\.[0-9]{3})+(?:,[0-9]+)?$"
_DATE = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$"
_DATETIME = (
    r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,9})?)?(?:Z|[+-][0-9]{2}:[0-9]{2})?$"
)
# Days as people write them, and a time of day after them or none.
_OTHER_DATE = r"^(?:[0-9]{1,2}[./-][0-9]{1,2}[./-][0-9]{4}|[0-9]{4}/[0-9]{1,2}/[0-9]{1,2})"
_TIME_OF_DAY = r" [0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?$"
# What --types accepts: more than what is recognised without being told, since the user vouches for it.
_ACCEPTED = {
    ("integer", "."): r"^\s*[+-]?[0-9]{1,18}\s*$",
    ("integer", ","): r"^\s*[+-]?(?:[0-9]{1,18}|[0-9]{1,3}(?:\.[0-9]{3}){1,5})\s*$",
    ("real", "."): r"^\s*[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?\s*$",
    ("real", ","): r"^\s*[+-]?(?:[0-9]+|[0-9]{1,3}(?:\.[0-9]{3})+)(?:,[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?\s*$",
}
# Formats that --types COLUMN=date tries; the one chosen has to be the only one that fits every value.
_DATE_FORMATS = ("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%Y%m%d", "%d-%m-%Y", "%m-%d-%Y")
_DATETIME_FORMATS = tuple(f"{day} {time}" for day in _DATE_FORMATS for time in ("%H:%M", "%H:%M:%S"))


# Text with at most so many different values per record is held as a list of values and a number per record.
MOST_DISTINCT = 0.5


def parse_types(text: str) -> dict[str, GivenType]:
    """Read ``zip=text,born=date:%d.%m.%Y`` into a mapping.

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
    """Read the type of one column: ``integer``, ``date:%d.%m.%Y``."""
    name, _, date_format = text.partition(":")
    name = {"category": "text", "string": "text", "int": "integer", "float": "real"}.get(name, name)
    if not column or name not in TYPE_NAMES or (date_format and not name.startswith("date")):
        raise ParameterError(
            f"{named('types', {column: text})}: expected a type for a column, one of {', '.join(TYPE_NAMES)}; for "
            f"example {named('types', {'zip': 'text', 'age': 'integer', 'born': 'date:%d.%m.%Y'})}."
        )
    return GivenType(name, date_format or None)  # type: ignore[arg-type]


# --- text to values ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ReadingRules:
    """What holds for all columns of one file."""

    separator: str
    all_quoted: bool
    decimal: str
    missing: frozenset[str] = MISSING_WORDS


def detect_decimal(columns: list[TextColumn], separator: str, missing: Collection[str] = MISSING_WORDS) -> str:
    """Say whether numbers have a decimal comma: only where commas do not separate, and only when it is certain.

    A column of ``1,5`` speaks for the comma, one of ``1.5`` for the point; ``1,234`` speaks for neither, since it may
    be a thousand. The comma needs a voice for it and none against.
    """
    if separator == ",":
        return "."
    for_comma = False
    for column in columns:
        fields = _present(column, missing)
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
) -> tuple[Any, ColumnStyle]:
    """Turn one text column into a typed Arrow array and the style to write it back with."""
    import pyarrow as pa
    import pyarrow.compute as pc

    lengths = np.asarray(pc.binary_length(column.fields).to_numpy(zero_copy_only=False))
    needs_quotes = np.asarray(
        pc.match_substring(column.fields, rules.separator).to_numpy(zero_copy_only=False), dtype=np.bool_
    )
    is_missing = np.asarray(
        pc.is_in(column.fields, value_set=pa.array(sorted(rules.missing))).to_numpy(zero_copy_only=False)
    )
    used = column.counts > 0
    filled = used & ~is_missing
    fields = column.fields.filter(pa.array(filled))
    wanted = given or _inferred_type(
        column, fields, rules, speaks_as_text=bool((filled & column.quoted & ~needs_quotes).any()), notes=notes
    )
    if wanted.name == "text":
        return _read_text(column, rules, lengths, used)

    values, style = _parse_values(fields, wanted, rules, column, filled, file_name)
    positions = np.cumsum(filled) - 1  # from a distinct field to its place among the filled ones
    by_field = pa.array(positions, mask=~filled, type=pa.int32())
    array = values.take(by_field.take(column.codes))
    return array, _with_habits(style, column, values, filled, is_missing & used, rules)


def _inferred_type(
    column: TextColumn, fields: Any, rules: ReadingRules, *, speaks_as_text: bool, notes: list[str]
) -> GivenType:
    import pyarrow.compute as pc

    if not len(fields):
        return GivenType("real")  # all missing: the type that writes nothing wrong
    if speaks_as_text and not rules.all_quoted:
        return GivenType("text")
    if _all_match(fields, _INTEGER):
        return GivenType("integer")
    if _is_real(fields, rules.decimal) and bool(pc.all(pc.is_finite(_as_floats(fields, rules.decimal))).as_py()):
        return GivenType("real")  # 1e999 is no number that a computer holds
    for name, pattern in (("date", _DATE), ("datetime", _DATETIME)):
        if _all_match(fields, pattern) and _as_moments(fields, name) is not None:
            return GivenType(name)  # type: ignore[arg-type]
    for name, ending in (("date", "$"), ("datetime", _TIME_OF_DAY)):
        if _all_match(fields, _OTHER_DATE + ending):
            fitting = _fitting_formats(fields, name)
            if len(fitting) == 1:
                notes.append(
                    Sentence(
                        f"column {column.name!r} was read as dates written {fitting[0][0]}. If that is wrong, give "
                        f"{named('types', {column.name: 'text'})}"
                    )
                )
                return GivenType(name, fitting[0][0])  # type: ignore[arg-type]
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
    # Points group thousands only where some value has both marks; else 1.234 could be either number.
    return _any_match(fields, r"\.[0-9]{3},") and _all_match(fields, f"(?:{_COMMA_NUMBER})|(?:{_GROUPED_COMMA_NUMBER})")


def _note_almost_numbers(column: TextColumn, rules: ReadingRules, notes: list[str]) -> None:
    """Say so when a few odd fields turned a column of numbers into text; a user would never see it otherwise."""
    import pyarrow.compute as pc

    pattern = _POINT_NUMBER if rules.decimal == "." else _COMMA_NUMBER
    numbers = np.asarray(pc.match_substring_regex(column.fields, pattern).to_numpy(zero_copy_only=False))
    n_numbers, n_records = int(column.counts[numbers].sum()), int(column.counts.sum())
    n_empty = int(column.counts[np.asarray(pc.equal(column.fields, "").to_numpy(zero_copy_only=False))].sum())
    n_others = n_records - n_numbers - n_empty
    digits = np.asarray(pc.match_substring_regex(column.fields, "^[0-9]+$").to_numpy(zero_copy_only=False))
    if column.counts[digits & ~numbers].any():  # 01234, or a card number: codes, and text is what they are
        return
    if n_numbers >= 0.9 * (n_records - n_empty) and _distinct_others_are_few(n_others, n_numbers):
        notes.append(
            Sentence(
                f"column {column.name!r} was read as text: {n_numbers:,} of its {n_records - n_empty:,} values are "
                f"numbers and the rest are not. If those mean missing, name them with {named('missing')}."
            )
        )


def _distinct_others_are_few(n_others: int, n_numbers: int) -> bool:
    return 0 < n_others <= n_numbers // 9


def _read_text(column: TextColumn, rules: ReadingRules, lengths: Any, used: Any) -> tuple[Any, ColumnStyle]:
    import pyarrow as pa

    empty = lengths == 0
    missing = empty if rules.all_quoted else empty & ~column.quoted
    n_records = int(column.counts.sum())
    if int(used.sum()) <= n_records * MOST_DISTINCT:
        array = _as_dictionary(column, used & ~missing)
    else:
        fields = pa.array(np.arange(len(lengths)), mask=missing, type=pa.int32())
        array = column.fields.take(fields.take(column.codes))
    filled = used & ~empty
    # Unquoted text may need quotes here and there; a habit is only what holds for every value.
    quoted = bool(filled.any()) and bool(column.quoted[filled].all())
    return array, ColumnStyle("text", quoted=quoted or rules.all_quoted, missing='""' if rules.all_quoted else "")


def _as_dictionary(column: TextColumn, present: Any) -> Any:
    """Return text as a list of the values that occur and a narrow number per record: a fraction of the memory."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = pc.unique(column.fields.filter(pa.array(present)))  # with and without quotes, a field is one value
    narrow = next(kind for kind in (pa.int8(), pa.int16(), pa.int32()) if len(values) <= 2 ** (kind.bit_width - 1))
    by_field = pc.if_else(pa.array(present), pc.index_in(column.fields, value_set=values), None).cast(narrow)
    return pa.DictionaryArray.from_arrays(by_field.take(column.codes), values)


def _parse_values(
    fields: Any, wanted: GivenType, rules: ReadingRules, column: TextColumn, filled: Any, file_name: str
) -> tuple[Any, ColumnStyle]:
    import pyarrow as pa
    import pyarrow.compute as pc

    style = ColumnStyle(wanted.name, decimal=rules.decimal)
    if wanted.name in ("date", "datetime"):
        values, style = _parse_moments(fields, wanted, style, column, file_name)
        misfits = None
    else:
        values = None
        # Arrow's own reader would also take 0x10, nan and inf for numbers.
        misfits = ~np.asarray(
            pc.match_substring_regex(fields, _ACCEPTED[wanted.name, rules.decimal]).to_numpy(zero_copy_only=False),
            dtype=np.bool_,
        )
        if not misfits.any():
            text = _with_point(fields, rules.decimal)
            values = text.cast(pa.int64() if wanted.name == "integer" else pa.float64())
            if wanted.name == "real" and not pc.all(pc.is_finite(values), min_count=0).as_py():
                misfits = ~np.asarray(pc.is_finite(values).to_numpy(zero_copy_only=False), dtype=np.bool_)
                values = None
    if values is None:
        n_misfits = "some" if misfits is None else f"{int(column.counts[filled][misfits].sum()):,}"
        as_what = wanted.name + (f" by the format {wanted.format}" if wanted.format else "")
        raise InputError(
            f"{file_name}: column {column.name!r} cannot be read as {as_what}: {n_misfits} of its "
            f"{int(column.counts.sum()):,} values do not fit. Correct them, name what means missing with "
            f"{named('missing')}, or give another type with {named('types')}."
        )
    return values, style


def _with_point(fields: Any, decimal: str) -> Any:
    import pyarrow.compute as pc

    text = pc.utf8_ltrim(pc.utf8_trim_whitespace(fields), "+")
    return pc.replace_substring(pc.replace_substring(text, ".", ""), ",", ".") if decimal == "," else text


def _as_floats(fields: Any, decimal: str) -> Any:
    import pyarrow as pa

    return _with_point(fields, decimal).cast(pa.float64())


# --- dates ------------------------------------------------------------------------------------------------


def _parse_moments(
    fields: Any, wanted: GivenType, style: ColumnStyle, column: TextColumn, file_name: str
) -> tuple[Any, ColumnStyle]:
    if wanted.format is None:
        iso = _as_moments(fields, wanted.name)
        if iso is not None:
            return iso, _moment_style(fields, wanted.name, style)
        fitting = _fitting_formats(fields, wanted.name)
        if len(fitting) > 1:
            raise InputError(
                f"{file_name}: the dates of column {column.name!r} can be read in {len(fitting)} ways "
                f"({', '.join(date_format for date_format, _ in fitting)}). "
                f"Say which: {named('types', {column.name: f'{wanted.name}:{fitting[0][0]}'})}"
            )
        if not fitting:
            return None, style
        date_format, values = fitting[0]
    else:
        date_format = wanted.format
        values = _by_format(fields, date_format, wanted.name)
    return values, replace(style, format=date_format)


def _fitting_formats(fields: Any, name: str) -> list[tuple[str, Any]]:
    """Return the ways of writing a date that fit every value, with what they make of them."""
    candidates = _DATE_FORMATS if name == "date" else _DATETIME_FORMATS
    return [(own, values) for own in candidates if (values := _by_format(fields, own, name)) is not None]


def _as_moments(fields: Any, name: str) -> Any | None:
    """Read ISO text; None when one of them is no such day, or when the zones differ."""
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
        return pc.assume_timezone(local, "UTC" if zone == "Z" else zone) if zone else local
    except (pa.ArrowInvalid, ValueError):
        return None


def _moment_style(fields: Any, name: str, style: ColumnStyle) -> ColumnStyle:
    import pyarrow.compute as pc

    if name == "date" or not len(fields):
        return style
    first = fields[0].as_py()
    zone = re.sub(r"^.{16}[0-9:.]*", "", first)
    lengths = pc.binary_length(fields)
    return replace(style, separator=first[10], zone=zone, precision=pc.max(lengths).as_py() - len(zone))


def _by_format(fields: Any, date_format: str, name: str) -> Any | None:
    """Read by a format; Python's reader, since Arrow's takes the 30th of February for the 1st of March."""
    import pyarrow as pa

    try:
        read = [datetime.strptime(text, date_format) for text in fields.to_pylist()]
    except (ValueError, re.error):
        return None
    if name == "date":
        return pa.array([moment.date() for moment in read], type=pa.date32())
    zone = "UTC" if any(moment.tzinfo is not None for moment in read) else None
    return pa.array(read, type=pa.timestamp("us", tz=zone))


# --- habits -----------------------------------------------------------------------------------------------


def _with_habits(
    style: ColumnStyle, column: TextColumn, values: Any, filled: Any, missing: Any, rules: ReadingRules
) -> ColumnStyle:
    """Look at how the input writes this column: quotes, missing values, decimal places, odd spellings."""
    import pyarrow as pa
    import pyarrow.compute as pc

    quoted = bool(filled.any()) and bool(column.quoted[filled].all())
    blank = '""' if rules.all_quoted else ""
    if missing.any():
        # The most frequent way to say missing, the shorter one on ties, speaks for all of them.
        ways = sorted(
            (-int(column.counts[at]), f'"{text}"' if column.quoted[at] else text)
            for at in np.flatnonzero(missing)
            for text in (column.fields[int(at)].as_py(),)
        )
        blank = ways[0][1]
    style = replace(style, quoted=quoted or rules.all_quoted, missing=blank)
    fields = column.fields.filter(pa.array(filled))
    if not len(fields):
        return style
    if style.type == "real":
        places = pc.utf8_length(
            pc.replace_substring_regex(fields, rf"^[^{style.decimal}]*{re.escape(style.decimal)}?", "")
        )
        least = pc.min(places).as_py()
        if 0 < least <= 9:
            style = replace(style, decimals=least)
    odd = pc.fill_null(pc.not_equal(plain_text(values, style), fields), False)
    if pc.any(odd).as_py():
        # Order by frequency, then text, and keep one spelling per value: never by first appearance.
        table = pa.table({"value": values, "text": fields, "count": pa.array(-column.counts[filled])})
        table = table.sort_by([("count", "ascending"), ("text", "ascending")])
        firsts = table.group_by("value", use_threads=False).aggregate([("text", "first")])
        style = replace(style, spellings=(_one_chunk(firsts["value"]), _one_chunk(firsts["text_first"])))
    return style


def _one_chunk(column: Any) -> Any:
    import pyarrow as pa

    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else combined.chunk(0)


# --- small tests on distinct fields -----------------------------------------------------------------------


def _present(column: TextColumn, missing: Collection[str]) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    absent = pc.is_in(column.fields, value_set=pa.array(sorted(missing)))
    return column.fields.filter(pc.and_(pa.array(column.counts > 0), pc.invert(absent)))


def _matching(fields: Any, pattern: str) -> Any:
    import pyarrow.compute as pc

    return fields.filter(pc.match_substring_regex(fields, pattern))


def _all_match(fields: Any, pattern: str) -> bool:
    import pyarrow.compute as pc

    return bool(pc.all(pc.match_substring_regex(fields, pattern), min_count=0).as_py())


def _any_match(fields: Any, pattern: str) -> bool:
    import pyarrow.compute as pc

    return bool(pc.any(pc.match_substring_regex(fields, pattern), min_count=0).as_py())
