# SPDX-License-Identifier: Apache-2.0
"""Parse a CSV file into text columns: encoding, separator, header and records of equal length.

pyarrow parses; ``csv_columns`` gives the columns their types. A record that is taken for the header would be published
as one, and shown in messages. So the user is asked if the first line looks like a record, and the question shows no
part of it.
"""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InputError, Sentence, named
from sfumato.files.csv_detection import (
    BLANKS,
    SAMPLE_BYTES,
    as_utf8,
    blanks_to_tabs,
    checked_separator,
    detect_separator,
    separator_line,
    without_space_after_separator,
)
from sfumato.frames.from_arrow import one_chunk

SEPARATOR_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}

_BLOCK_BYTES = 8 << 20  # parsed by one thread; a record must fit in one
_BYTES_WORTH_THREADS = 4 << 20  # of a file

_NUMBER = r"[+-]?(?:\d+(?:[.,]\d+)*|[.,]\d+)(?:[eE][+-]?\d+)?%?"
_DATE = r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}(?:[ T].*)?"
_VALUE = f"^(?:{_NUMBER}|{_DATE})$"
_MOST = 0.9  # share of a column's values that makes it a column of numbers or dates, or of one shape


@dataclass(frozen=True)
class GivenType:
    """The type of a column, and for dates an optional format; written as in ``--types``."""

    name: str
    format: str | None = None

    def __str__(self) -> str:
        return f"{self.name}:{self.format}" if self.format else self.name


@dataclass(frozen=True)
class CsvStyle:
    """The parts of a CSV file's form that the output keeps.

    Attributes
    ----------
    encoding : str
        Name of the codec without byte order mark, such as ``"utf-8"`` or ``"cp1252"``.
    byte_order_mark : bool
        Whether the file starts with one.
    separator : str
        One character between the fields.
    decimal : str
        The decimal mark.
    has_header : bool
        Whether the first line names the columns.
    types : mapping of str to GivenType
        The types that the columns were read with.
    """

    encoding: str = "utf-8"
    byte_order_mark: bool = False
    separator: str = ","
    decimal: str = "."
    has_header: bool = True
    types: Mapping[str, GivenType] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class TextColumn:
    """A dictionary-encoded text column.

    Attributes
    ----------
    name : str
    fields : pyarrow.StringArray
        The distinct fields, among them the empty text of ``""``.
    codes : pyarrow.Int32Array
        The position of each record's field; null for an empty field without quotes.
    counts : ndarray of int64
        Number of records with each field.
    """

    name: str
    fields: Any
    codes: Any
    counts: npt.NDArray[np.int64]


def read_text_columns(
    data: bytes,
    *,
    file_name: str,
    encoding: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
) -> tuple[list[TextColumn], CsvStyle, list[str]]:
    """Return the columns of a CSV file as text, the file's style and notes for the user.

    Parameters
    ----------
    data : bytes
        The whole file.
    file_name : str
        For messages.
    encoding, separator : str, optional
        Detected by default.
    header : bool, optional
        Whether the first line names the columns. By default it does, and a first line that looks like a record is an
        error.
    """
    notes: list[str] = []
    text, codec, has_mark = as_utf8(data, file_name, encoding, notes)
    del data  # free each copy of the file as soon as possible
    if not text or text.isspace():
        raise InputError(f"{file_name} is empty: expected a header line and at least one record.")
    declared, text = separator_line(text)
    given = separator or declared
    separator = detect_separator(text) if given is None else checked_separator(given)
    if separator == BLANKS:
        if given is None:
            notes.append(
                Sentence(
                    f"the fields of {file_name} are separated by runs of blanks; the output is separated by tabs. Give "
                    f"{named('separator')} if that is wrong."
                )
            )
        text, separator = blanks_to_tabs(text), "\t"
    text = without_space_after_separator(text, separator)
    table = _parse_text(text, separator, file_name)
    del text
    has_header = header is not False
    if table.num_rows <= has_header:
        raise InputError(
            f"{file_name} has no records: only {'a header line' if has_header else 'empty lines'} was found. "
            "Expected at least one record."
        )
    names = [column[0].as_py() or "" if has_header else "" for column in table.columns]
    columns = _encoded_columns(table.slice(int(has_header)), _filled_names(names))
    if header is None:  # before any message shows the names, which may be a person's data
        _check_first_line_is_header(names, columns, file_name)
    _check_distinct_names(names, file_name)
    return columns, CsvStyle(codec, has_mark, separator, has_header=has_header), notes


def read_written(data: bytes, style: CsvStyle, names: Sequence[str], types: Sequence[Any]) -> Any:
    """Read a file that `csv_writing` wrote, by the types that were written."""
    text, _, _ = as_utf8(data, "the written file", style.encoding, [])
    table = _parse(text, style.separator, types, decimal=style.decimal, skip_rows=int(style.has_header))[0]
    return table.rename_columns(list(names))


# --- parsing ----------------------------------------------------------------------------------------------


def _parse_text(text: bytes, separator: str, file_name: str) -> Any:
    """Parse the file into text columns, the first line included."""
    import pyarrow as pa

    n_columns = _count_fields(text, separator, file_name)
    # A last record of empty fields: a quote that is never closed swallows it.
    last = (b"" if text.endswith((b"\n", b"\r")) else b"\n") + separator.encode() * (n_columns - 1) + b"\n"
    try:
        table, n_ragged = _parse(text + last, separator, [pa.string()] * n_columns)
    except pa.ArrowInvalid as error:
        _explain(text, separator, n_columns, file_name)
        reason = "a record longer than 8 MiB" if "straddling" in str(error) else "a line that cannot be parsed"
        raise InputError(f"{file_name} has {reason}. Check its quotes and separators.") from None
    n_records = table.num_rows - 1
    if n_ragged or n_records < 0 or any(column[n_records].is_valid for column in table.columns):
        _explain(text, separator, n_columns, file_name)
        raise InputError(f"{file_name} has {n_ragged:,} records that cannot be parsed. Check its quotes.")
    return table.slice(0, n_records)


def _parse(
    text: bytes, separator: str, types: Sequence[Any], *, decimal: str = ".", skip_rows: int = 0
) -> tuple[Any, int]:
    """Return the records as columns f0, f1, ... and the number of records with too few or too many fields."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    n_ragged = 0

    def skip(_: Any) -> str:
        nonlocal n_ragged
        n_ragged += 1
        return "skip"

    column_types = {f"f{position}": own for position, own in enumerate(types)}
    table = arrow_csv.read_csv(
        pa.BufferReader(text),
        read_options=arrow_csv.ReadOptions(
            column_names=list(column_types),
            skip_rows=skip_rows,
            # A parser's thread may free what Python handed it after the command has ended; then the process aborts.
            # Small files, after which commands end soon, are parsed on this thread.
            use_threads=len(text) >= _BYTES_WORTH_THREADS,
            block_size=min(max(len(text) + 1, 1024), _BLOCK_BYTES),
        ),
        parse_options=arrow_csv.ParseOptions(
            delimiter=separator,
            newlines_in_values=True,
            ignore_empty_lines=len(types) > 1,  # in a file of one column an empty line is a missing value
            invalid_row_handler=skip,
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=column_types,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            decimal_point=decimal,
        ),
    )
    return table, n_ragged


def _count_fields(text: bytes, separator: str, file_name: str) -> int:
    """Count the fields of the first line that is not empty."""
    head = text[: 16 * SAMPLE_BYTES].decode("utf-8", errors="ignore")
    try:
        for row in csv.reader(io.StringIO(head, newline=""), delimiter=separator):
            if row:
                return len(row)
    except csv.Error:
        pass
    raise InputError(f"{file_name} has no readable first line: expected the names of the columns.")


def _explain(text: bytes, separator: str, n_columns: int, file_name: str) -> None:
    """Raise InputError for the first line that has a misplaced quote or another number of fields."""
    limit = csv.field_size_limit(len(text) + 1)
    rows = csv.reader(io.StringIO(text.decode(), newline=""), delimiter=separator, strict=True)
    line = 1
    try:
        for row in rows:
            if row and len(row) != n_columns:
                raise InputError(
                    f"{file_name}, line {line}: {len(row)} {'field' if len(row) == 1 else 'fields'} where the first "
                    f"line has {n_columns}. The separator was taken to be {_separator_in_words(separator)}; "
                    f"give {named('separator')} if that is wrong, or put values that contain it in quotes."
                )
            line = rows.line_num + 1
    except csv.Error as error:
        is_open = "end of data" in str(error)
        problem = (
            "a quoted field is never closed. Close it, or write" if is_open else "text follows a closing quote. Write"
        )
        raise InputError(
            f'{file_name}, line {line}: {problem} a quote that belongs to a value as "" inside quotes.'
        ) from None
    finally:
        csv.field_size_limit(limit)


def _separator_in_words(separator: str) -> str:
    return f"the {SEPARATOR_NAMES[separator]}" if separator in SEPARATOR_NAMES else repr(separator)


def _encoded_columns(table: Any, names: Sequence[str]) -> list[TextColumn]:
    import pyarrow as pa

    columns = []
    for name in names:
        column = one_chunk(table.column(0)).dictionary_encode()
        table = table.remove_column(0)  # not all columns twice at once
        used = column.indices.drop_null().to_numpy()
        counts = np.bincount(used, minlength=len(column.dictionary)).astype(np.int64)
        columns.append(TextColumn(name, column.dictionary.cast(pa.string()), column.indices, counts))
    return columns


# --- header -----------------------------------------------------------------------------------------------


def _check_first_line_is_header(names: Sequence[str], columns: Sequence[TextColumn], file_name: str) -> None:
    """Raise InputError if the first line looks like a record; the message shows counts and no part of the line."""
    n_alike = sum(map(_is_like_values_below, names, columns))
    if n_alike:
        raise InputError(
            f"the first line of {file_name} looks like a record: in {n_alike} of {len(names)} columns it is like the "
            f"values below it. Expected the names of the columns. Give {named('header', False)} if it is a record "
            f"(columns are then called column1, column2, ...), or {named('header', True)} if it names the columns."
        )


def _is_like_values_below(name: str, column: TextColumn) -> bool:
    """Return True if a name is one of the values of its column, or a number or code as most of them are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    filled = pc.not_equal(column.fields, "")
    fields, counts = column.fields.filter(filled), pa.array(column.counts).filter(filled)
    if not name or not len(fields):
        return False
    if pc.any(pc.equal(fields, name)).as_py():
        return True
    if re.match(_VALUE, name):
        alike = pc.match_substring_regex(fields, _VALUE)
    elif re.search(r"[0-9@]", name):
        alike = pc.equal(_shape(fields), _shape(pa.array([name]))[0])
    else:
        return False
    return bool(pc.sum(counts.filter(alike), min_count=0).as_py() >= _MOST * pc.sum(counts).as_py())


def _shape(fields: Any) -> Any:
    """Return text with 9 for each run of digits and a for each run of letters: A12-7 and B3-41 are alike."""
    import pyarrow.compute as pc

    return pc.replace_substring_regex(pc.replace_substring_regex(fields, r"\pL+", "a"), "[0-9]+", "9")


def _check_distinct_names(names: Sequence[str], file_name: str) -> None:
    """Raise InputError if columns share a name; the message gives positions, since the name may be a person's value."""
    places = defaultdict(list)
    for place, name in enumerate(names, start=1):
        if name:
            places[name].append(place)
    repeated = [own for own in places.values() if len(own) > 1]
    if repeated:
        shown = " and ".join(map(str, repeated[0][:5]))
        more = f", and so have {len(repeated) - 1} other groups of columns" if len(repeated) > 1 else ""
        raise InputError(
            f"the first line of {file_name} has the same text in columns {shown}{more}. Expected every column to have "
            f"its own name: rename them, or give {named('header', False)} if the first line is a record."
        )


def _filled_names(names: Sequence[str]) -> list[str]:
    """Name the nameless columns, such as the index that pandas writes, by their positions."""
    filled = []
    for position, name in enumerate(names, start=1):
        own = name or f"column{position}"
        while not name and own in names:
            own += "_"
        filled.append(own)
    return filled
