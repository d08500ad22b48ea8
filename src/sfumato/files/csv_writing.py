# SPDX-License-Identifier: Apache-2.0
"""Write an Arrow table as CSV with pyarrow, in the encoding and with the separator of the input.

Text is in quotes, missing values are empty, dates are ISO, datetimes with a time zone are in UTC. Numbers
have the digits that read back as the same number.
"""

from __future__ import annotations

import codecs
from typing import Any

from sfumato.errors import InputError, named
from sfumato.files.csv_reading import CsvStyle
from sfumato.frames.arrow_tables import value_type
from sfumato.frames.from_arrow import is_text

_RECORDS_AT_ONCE = 65_536
# Spreadsheets begin a formula with these, also in their wide forms; a lone dash or a negative number is not one.
_FORMULA = r"^[=+@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]|^-+[^-0-9.,\s]|^-[0-9.,]+[^0-9.,%eE]"


def write_csv(table: Any, file: Any, style: CsvStyle) -> None:
    """Write a table to a binary file.

    Raises
    ------
    InputError
        If a column's type has no form in CSV, or the encoding lacks a letter.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    for column in table.schema:
        _check_writable(value_type(column.type))
    if style.byte_order_mark:
        marks = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
        file.write(marks.get(style.encoding, codecs.BOM_UTF8))
    if style.has_header:
        header = style.separator.join(_header_field(name, style.separator) for name in table.column_names) + "\n"
        file.write(_encoded(header.encode(), style.encoding))
    options = arrow_csv.WriteOptions(include_header=False, delimiter=style.separator)
    for start in range(0, table.num_rows, _RECORDS_AT_ONCE):
        records = table.slice(start, _RECORDS_AT_ONCE)
        fields = [_written_column(column, style.decimal) for column in records.columns]
        text = pa.BufferOutputStream()
        arrow_csv.write_csv(pa.table(fields, names=table.column_names), text, options)
        file.write(_encoded(text.getvalue().to_pybytes(), style.encoding))


def types_to_read(table: Any) -> list[Any]:
    """Return the types to read the columns of a written file with."""
    import pyarrow as pa

    types = []
    for column in table.schema:
        own = value_type(column.type)
        if pa.types.is_timestamp(own) and own.tz is not None:
            own = pa.timestamp(own.unit, "UTC")
        elif pa.types.is_floating(own):
            own = pa.float64()
        elif pa.types.is_date(own):
            own = pa.date32()
        elif is_text(own):
            own = pa.dictionary(pa.int32(), pa.string()) if pa.types.is_dictionary(column.type) else pa.string()
        types.append(own)
    return types


def formula_columns(table: Any) -> list[str]:
    """Return the text columns with names or values that spreadsheets take for formulas.

    Values are never changed for it: a release that says something other than the data would be worse. Anyone who
    opens the file as a spreadsheet needs a warning.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    found = []
    for name in table.column_names:
        values = pa.array([name])
        column = table.column(name)
        if is_text(value_type(column.type)):
            distinct = column.unique()
            distinct = distinct.dictionary if pa.types.is_dictionary(distinct.type) else distinct
            values = pa.concat_arrays([values, distinct.cast(pa.string())])
        if pc.any(pc.match_substring_regex(values, _FORMULA)).as_py():
            found.append(name)
    return found


def _check_writable(own: Any) -> None:
    import pyarrow as pa

    if pa.types.is_nested(own) or pa.types.is_duration(own) or "binary" in str(own):
        raise InputError(
            f"a column of type {own} cannot be written as CSV. Write Parquet instead "
            f"({named('output', 'NAME.parquet')}), or drop the column with {named('identifiers')}."
        )


def _written_column(column: Any, decimal: str) -> Any:
    """Return a column as pyarrow should write it."""
    import pyarrow as pa
    import pyarrow.compute as pc

    own = value_type(column.type)
    column = column.cast(pa.string() if is_text(own) else own)
    if pa.types.is_floating(own):
        column = pc.if_else(pc.is_nan(column), None, column)  # some tables mark missing values as not a number
    if decimal == "," and (pa.types.is_floating(own) or pa.types.is_decimal(own)):
        return pc.replace_substring(column.cast(pa.string()), ".", ",")
    if pa.types.is_timestamp(own) and own.tz is not None:
        return column.cast(pa.timestamp(own.unit, "UTC"))
    return column


def _header_field(name: str, separator: str) -> str:
    if not any(letter in name for letter in (separator, '"', "\r", "\n")):
        return name
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _encoded(text: bytes, encoding: str) -> bytes:
    if encoding == "utf-8":
        return text
    try:
        return text.decode("utf-8").encode(encoding)
    except UnicodeEncodeError as error:
        raise InputError(
            f"the output cannot be written as {encoding}, the encoding of the input: "
            f"{error.end - error.start} or more of its letters do not exist there. "
            f"Convert the input to UTF-8 first, or write Parquet ({named('output', 'NAME.parquet')})."
        ) from None
