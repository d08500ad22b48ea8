# SPDX-License-Identifier: Apache-2.0
"""From an Arrow table to the bytes of a CSV file, in the manner of the file it came from.

Fields are put together column by column with Arrow's text functions; the bytes of the joined lines are the file, so no
Python runs per record. ``files`` calls this.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from sfumato.errors import InputError, named
from sfumato.files.csv_columns import MISSING_WORDS
from sfumato.files.csv_reading import CsvLayout
from sfumato.files.csv_values import ColumnStyle, TypeName, format_values
from sfumato.frames.arrow_tables import value_type

_RECORDS_AT_ONCE = 65_536
# Spreadsheets begin a formula with these, also in their wide forms; a lone dash or a negative number is none.
_FORMULA = r"^[=+@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}]|^-+[^-0-9.,\s]|^-[0-9.,]+[^0-9.,%eE]"
_LOOKS_LIKE_A_VALUE = r"^[+-]?[0-9.,]+(?:[eE][+-]?[0-9]+)?$|^[0-9]{4}-[0-9]{2}-[0-9]{2}"


@dataclass(frozen=True)
class CsvStyle:
    """A layout, the decimal mark, and for each column its name in the header and how its values are written."""

    layout: CsvLayout = field(default_factory=CsvLayout)
    decimal: str = "."
    written_names: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, ColumnStyle] = field(default_factory=dict)


def style_for(table: Any, known: CsvStyle | None = None) -> CsvStyle:
    """Complete a style: columns that the input did not have (or had with another type) get the plain rules.

    Text that looks like numbers, dates or missing values is put in quotes there, so that it is read as text again.
    """
    known = known or CsvStyle()
    all_quoted = known.layout.all_quoted
    columns: dict[str, ColumnStyle] = {}
    for name in table.column_names:
        values = value_type(table.schema.field(name).type)
        type_name = type_name_of(values)
        if name in known.columns and known.columns[name].type == type_name:
            columns[name] = known.columns[name]
            continue
        columns[name] = ColumnStyle(
            type_name,
            quoted=all_quoted or (type_name == "text" and _reads_as_something_else(table.column(name))),
            missing='""' if all_quoted else "",
            decimal=known.decimal,
            zone=_zone_of(values),
        )
    return CsvStyle(known.layout, known.decimal, known.written_names, columns)


def type_name_of(arrow_type: Any) -> TypeName:
    """Name the CSV type that holds an Arrow type, or say that none does."""
    import pyarrow as pa

    types = pa.types
    if types.is_nested(arrow_type) or types.is_duration(arrow_type) or _is_binary(arrow_type):
        raise InputError(
            f"a column of type {arrow_type} cannot be written as CSV. Write Parquet instead "
            f"({named('output', 'NAME.parquet')}), or drop the column with {named('identifiers')}."
        )
    if pa.types.is_integer(arrow_type):
        return "integer"
    if pa.types.is_floating(arrow_type) or pa.types.is_decimal(arrow_type):
        return "real"
    if pa.types.is_date(arrow_type):
        return "date"
    if pa.types.is_timestamp(arrow_type):
        return "datetime"
    return "text"


def csv_bytes(table: Any, style: CsvStyle) -> Iterator[bytes]:
    """Yield the file piece by piece.

    Raises
    ------
    InputError
        When a value cannot be written in the file's encoding.
    """
    layout = style.layout
    if layout.byte_order_mark:
        yield {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}.get(layout.encoding, codecs.BOM_UTF8)
    separator = layout.separator + (" " if layout.space_after_separator else "")
    if layout.separator_line:
        yield _encoded(f"sep={layout.separator}{layout.newline}", layout.encoding)
    if layout.has_header:
        names = [_header_field(style.written_names.get(name, name), layout) for name in table.column_names]
        yield _encoded(separator.join(names) + layout.newline, layout.encoding)
    for start in range(0, table.num_rows, _RECORDS_AT_ONCE):
        yield _encoded_lines(table.slice(start, _RECORDS_AT_ONCE), style, separator)


def _encoded_lines(piece: Any, style: CsvStyle, separator: str) -> bytes:
    import pyarrow.compute as pc

    columns = [_fields(piece.column(name), style.columns[name], style.layout) for name in piece.column_names]
    columns[-1] = pc.binary_join_element_wise(columns[-1], style.layout.newline, "")
    lines = pc.binary_join_element_wise(*columns, separator) if len(columns) > 1 else columns[0]
    # The lines lie one after the other in one buffer, and that buffer is the text of the file.
    offsets = memoryview(lines.buffers()[1]).cast("i")
    data = lines.buffers()[2]
    text = bytes(memoryview(data)[offsets[lines.offset] : offsets[lines.offset + len(lines)]]) if data else b""
    if style.layout.encoding == "utf-8":
        return text
    return _encoded(text.decode("utf-8"), style.layout.encoding)


def _fields(column: Any, style: ColumnStyle, layout: CsvLayout) -> Any:
    """Return the fields of one column as they stand in the file, quotes included."""
    import pyarrow as pa
    import pyarrow.compute as pc

    column = column.combine_chunks()
    column = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)  # not a number is how some tables say missing
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    values = column.dictionary
    text = format_values(values, style)
    if style.type == "text" or style.quoted:
        text = _quoted(text, layout, always=style.quoted)
    elif pc.any(pc.match_substring(text, layout.separator), min_count=0).as_py():
        text = _quoted(text, layout, always=False)
    return pc.fill_null(text.take(column.indices), style.missing)


def _quoted(text: Any, layout: CsvLayout, *, always: bool) -> Any:
    import pyarrow.compute as pc

    in_quotes = pc.binary_join_element_wise('"', pc.replace_substring(text, '"', '""'), '"', "")
    if always:
        return in_quotes
    needs = pc.or_(pc.match_substring_regex(text, '["\r\n]'), pc.match_substring(text, layout.separator))
    # An empty text is not a missing value, and a leading space is not the one after the separator.
    needs = pc.or_(needs, pc.equal(text, ""))
    if layout.space_after_separator:
        needs = pc.or_(needs, pc.starts_with(text, " "))
    return pc.if_else(needs, in_quotes, text)


def formula_columns(table: Any) -> list[str]:
    """Return the text columns with values that spreadsheets take for formulas, or whose names they do.

    Values are never changed for it: a release that says something else than the data would be worse. Who opens the
    file as a spreadsheet has to be told.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    found = []
    for name in table.column_names:
        column = table.column(name)
        is_formula = bool(pc.match_substring_regex(pa.scalar(name), _FORMULA).as_py())
        if type_name_of(value_type(column.type)) == "text":
            values = column.unique()
            values = values.cast(pa.string()) if not pa.types.is_dictionary(values.type) else values.dictionary
            begins = pc.match_substring_regex(values.cast(pa.string()), _FORMULA)
            is_formula |= bool(pc.any(begins, min_count=0).as_py())
        if is_formula:
            found.append(name)
    return found


def _header_field(name: str, layout: CsvLayout) -> str:
    needs = layout.header_quoted or any(letter in name for letter in (layout.separator, '"', "\r", "\n"))
    if not needs:
        return name
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _encoded(text: str, encoding: str) -> bytes:
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        raise InputError(
            f"the output cannot be written as {encoding}, the encoding of the input: "
            f"{error.end - error.start} or more of its letters do not exist there. "
            f"Convert the input to UTF-8 first, or write Parquet ({named('output', 'NAME.parquet')})."
        ) from None


def _reads_as_something_else(column: Any) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = column.unique()
    column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
    if _is_binary(column.type) or not str(column.type).endswith(("string", "string_view")):
        return False
    column = column.cast(pa.string())
    words = pa.array(sorted(MISSING_WORDS - {""}))
    odd = pc.or_(pc.match_substring_regex(column, _LOOKS_LIKE_A_VALUE), pc.is_in(column, value_set=words))
    return bool(pc.any(odd, min_count=0).as_py())


def _is_binary(arrow_type: Any) -> bool:
    return str(arrow_type).endswith(("binary", "binary_view")) or str(arrow_type).startswith("fixed_size_binary")


def _zone_of(arrow_type: Any) -> str:
    """Return what is written behind a time: an offset as it is, every other zone as UTC."""
    zone = getattr(arrow_type, "tz", None)
    if zone is None:
        return ""
    return str(zone) if zone[:1] in ("+", "-") else "Z"
