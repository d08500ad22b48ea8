# SPDX-License-Identifier: Apache-2.0
"""From the bytes of a CSV file to text columns: encoding, separator, quotes, header.

Nothing is guessed about the meaning of a value here; ``csv_columns`` decides the types. What a CSV library
usually throws away is kept: which fields were quoted, because ``"00123"`` and ``00123`` are not the same
statement, and how the file was written, because the output has to look like the input. ``files`` calls this.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InputError, Sentence, named
from sfumato.files.csv_detection import (
    BLANKS,
    QUOTE,
    SAMPLE_BYTES,
    as_utf8,
    blanks_to_tabs,
    checked_separator,
    detect_separator,
    newline_of,
    separator_line,
)
from sfumato.files.csv_header import check_distinct_names, refuse_record_as_header
from sfumato.files.csv_quotes import Bytes, Quotes, check_quotes, marked_pieces
from sfumato.frames.from_arrow import one_chunk

SEPARATOR_NAMES = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}

_PIECE_BYTES = 16 << 20  # of a file, parsed before the next is marked
_BLOCK_BYTES = 8 << 20  # of a piece, for one thread; a record must fit in one
_BYTES_WORTH_THREADS = 4 << 20  # of a file
_SPACE = 0x20


@dataclass(frozen=True)
class CsvLayout:
    """How a CSV file is written, apart from its values; the output is written the same way.

    Attributes
    ----------
    encoding : str
        Name of the codec without byte order mark, such as ``"utf-8"`` or ``"cp1252"``.
    byte_order_mark : bool
        Whether the file starts with one.
    separator : str
        One character between the fields.
    space_after_separator : bool
        Whether every separator is followed by a space that belongs to no value, as in ``39, Private``.
    newline : str
        The end of a line: ``"\\n"``, ``"\\r\\n"`` or ``"\\r"``.
    has_header : bool
        Whether the first line names the columns.
    separator_line : bool
        Whether a line such as ``sep=;`` comes before everything, for Excel.
    header_quoted : bool
        Whether those names are in quotes.
    all_quoted : bool
        Whether every value that is not empty is in quotes: then quotes say nothing about types.
    """

    encoding: str = "utf-8"
    byte_order_mark: bool = False
    separator: str = ","
    space_after_separator: bool = False
    newline: str = "\n"
    has_header: bool = True
    separator_line: bool = False
    header_quoted: bool = False
    all_quoted: bool = False


@dataclass(frozen=True, eq=False)
class TextColumn:
    """One column as text: each record points to one of the distinct fields.

    Attributes
    ----------
    name : str
        What the column is called here; ``written_name`` is what the header says (it may be empty).
    fields : pyarrow.StringArray
        The distinct fields without their quotes; a field that occurs both with and without is there twice.
    quoted : ndarray of bool
        Whether a distinct field was in quotes.
    counts : ndarray of int64
        How many records have it; zero for one that occurs in the header only.
    codes : pyarrow.Int32Array
        For each record the position of its field.
    """

    name: str
    written_name: str
    fields: Any
    quoted: npt.NDArray[np.bool_]
    counts: npt.NDArray[np.int64]
    codes: Any


def read_text_columns(
    data: bytes,
    *,
    file_name: str,
    encoding: str | None = None,
    separator: str | None = None,
    header: bool | None = None,
    all_quoted: bool | None = None,
) -> tuple[list[TextColumn], CsvLayout, list[str]]:
    """Take a CSV file apart.

    Parameters
    ----------
    data : bytes
        The whole file.
    file_name : str
        For messages.
    encoding, separator : str, optional
        Given by the user; detected otherwise.
    header : bool, optional
        Whether the first line names the columns; by default it does, and a first line that looks like data is refused.
    all_quoted : bool, optional
        Whether quotes say nothing, where that is known; found out otherwise.

    Returns
    -------
    columns, layout, notes
        The notes are sentences about what was detected that a user may want to know.
    """
    notes: list[str] = []
    text, codec, has_mark = as_utf8(data, file_name, encoding, notes)
    del data  # what is no longer needed goes at once: each of these is as large as the file
    if not text or text.isspace():
        raise InputError(f"{file_name} is empty: expected a header line and at least one record.")
    told, text = separator_line(text)
    given = separator or told
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
    raw = np.frombuffer(text, dtype=np.uint8)
    raw, spaced = _without_space_after_separator(raw, separator)
    newline = newline_of(raw)
    quotes = check_quotes(raw, separator, file_name)
    table = _parse(raw, separator, quotes, file_name)
    del text, raw
    has_header = True if header is None else header
    if table.num_rows <= int(has_header):
        raise InputError(
            f"{file_name} has no records: only {'a header line' if has_header else 'empty lines'} was found. "
            "Expected at least one record."
        )
    columns, names_quoted = _split_header(table, chr(quotes.marker), has_header)
    if header is None:  # before anything else is said about the names: they may be somebody's data
        refuse_record_as_header(columns, file_name)
    check_distinct_names(columns, file_name)
    columns = _with_names(columns)
    if all_quoted is None:
        all_quoted = quotes.n_quoted > 0 and _everything_is_quoted(columns)
    layout = CsvLayout(
        encoding=codec,
        byte_order_mark=has_mark,
        separator=separator,
        space_after_separator=spaced,
        newline=newline,
        has_header=has_header,
        separator_line=told is not None,
        header_quoted=names_quoted,
        all_quoted=all_quoted,
    )
    return columns, layout, notes


# --- spaces -----------------------------------------------------------------------------------------------


def _without_space_after_separator(raw: Bytes, separator: str) -> tuple[Bytes, bool]:
    """Drop the spaces of ``39, Private`` when every separator outside quotes is followed by one."""
    if separator == " ":
        return raw, False
    for part in (raw[:SAMPLE_BYTES], raw):  # the beginning of most files already says no
        at = np.flatnonzero(part[:-1] == ord(separator))
        at = at[np.searchsorted(np.flatnonzero(part == QUOTE), at) % 2 == 0]
        if not len(at) or not (part[at + 1] == _SPACE).all():
            return raw, False
    return np.delete(raw, at + 1), True


# --- fields -----------------------------------------------------------------------------------------------


def _count_fields(raw: Bytes, separator: str, file_name: str) -> int:
    """Count the fields of the first line that is not empty."""
    head = raw[: 16 * SAMPLE_BYTES].tobytes().decode("utf-8", errors="ignore")
    try:
        for row in csv.reader(io.StringIO(head, newline=""), delimiter=separator):
            if row:
                return len(row)
    except csv.Error:
        pass
    raise InputError(f"{file_name} has no readable first line: expected the names of the columns.")


def _parse(raw: Bytes, separator: str, quotes: Quotes, file_name: str) -> Any:
    """Parse the file piece by piece into dictionaries of text; each piece is a chunk of the table."""
    import pyarrow as pa

    parser = _Parser(
        separator,
        _count_fields(raw, separator, file_name),
        has_newline_inside=quotes.spans_lines,
        # A thread of a parser may let go of what Python handed it after the command has ended, and then the process
        # aborts: a small file, after which that comes soon, is parsed on this thread.
        use_threads=len(raw) >= _BYTES_WORTH_THREADS,
    )
    tables = []
    try:
        for table in map(parser.parse, marked_pieces(raw, separator, quotes, _PIECE_BYTES)):
            # Joined at once: a parser leaves many small pieces, and those of the next take their place.
            tables.append(table.unify_dictionaries().combine_chunks())
    except pa.ArrowInvalid as error:
        reason = "a record longer than 8 MiB" if "straddling" in str(error) else "a line that cannot be parsed"
        raise InputError(f"{file_name} has {reason}. Check its quotes and separators.") from None
    if parser.ragged:
        expected, actual, number = parser.ragged[0]
        where = f"record {number} (the first line is record 1)" if number else "a record"
        more = f", and {len(parser.ragged) - 1:,} more records differ" if len(parser.ragged) > 1 else ""
        raise InputError(
            f"{file_name}: {where} has {actual} {'field' if actual == 1 else 'fields'} where the first line has "
            f"{expected}{more}. The separator was taken to be {_separator_in_words(separator)}; "
            f"give {named('separator')} if that is wrong, or put values that contain it in quotes."
        )
    return pa.concat_tables(tables)


class _Parser:
    """Arrow's parser of CSV, told to keep all text as it is, and to remember records of another length.

    Attributes
    ----------
    ragged : list of tuple
        For each such record the fields it should have and has, and for the first its number in the file.
    """

    def __init__(self, separator: str, n_columns: int, *, has_newline_inside: bool, use_threads: bool) -> None:
        self.separator, self.has_newline_inside, self.use_threads = separator, has_newline_inside, use_threads
        self.names = [f"f{position}" for position in range(n_columns)]
        self.ragged: list[tuple[int, int, int | None]] = []
        self._n_records = 0

    def parse(self, piece: Bytes) -> Any:
        """Return the records of a piece as dictionaries; pieces come in the order of the file."""
        found: list[Any] = []
        table = self._read(piece, found, self.use_threads)
        if found and self.use_threads and not self.ragged:
            # Only the parser on one thread knows line numbers, so look again before complaining.
            found.clear()
            self._read(piece, found, use_threads=False)
        for row in found:
            number = None if row.number is None else row.number + self._n_records
            self.ragged.append((row.expected_columns, row.actual_columns, number))
        self._n_records += table.num_rows
        return table

    def _read(self, piece: Bytes, ragged: list[Any], use_threads: bool) -> Any:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        def remember(row: Any) -> str:
            ragged.append(row)
            return "skip"

        return arrow_csv.read_csv(
            pa.BufferReader(pa.py_buffer(piece)),
            read_options=arrow_csv.ReadOptions(
                column_names=self.names,
                use_threads=use_threads,
                block_size=min(max(len(piece) + 1, 1024), _BLOCK_BYTES),
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=self.separator,
                newlines_in_values=self.has_newline_inside,
                # In a file of one column an empty line is a record whose value is missing.
                ignore_empty_lines=len(self.names) > 1,
                invalid_row_handler=remember,
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(self.names, pa.dictionary(pa.int32(), pa.string())),
                null_values=[],
                strings_can_be_null=False,
            ),
        )


def _separator_in_words(separator: str) -> str:
    return f"the {SEPARATOR_NAMES[separator]}" if separator in SEPARATOR_NAMES else repr(separator)


def _split_header(table: Any, marker: str, has_header: bool) -> tuple[list[TextColumn], bool]:
    """Take the first line off; hand out each column's distinct fields, and whether the names were quoted."""
    import pyarrow.compute as pc

    columns = []
    names_quoted = has_header
    for _ in range(table.num_columns):
        column = one_chunk(table.column(0))
        table = table.remove_column(0)  # not all columns twice at once
        fields, codes = column.dictionary, column.indices
        quoted = np.asarray(pc.starts_with(fields, marker).to_numpy(zero_copy_only=False), dtype=np.bool_)
        if quoted.any():
            fields = pc.replace_substring_regex(fields, pattern=f"^{re.escape(marker)}", replacement="")
        name = ""
        if has_header:
            at = codes[0].as_py()
            name = fields[at].as_py()
            names_quoted = names_quoted and (bool(quoted[at]) or not name)
            codes = codes.slice(1)
        counts = np.bincount(codes.to_numpy(), minlength=len(fields)).astype(np.int64)
        columns.append(TextColumn(name, name, fields, quoted, counts, codes))
    return columns, names_quoted


def _with_names(columns: list[TextColumn]) -> list[TextColumn]:
    """Name the nameless, such as the index that pandas writes."""
    written = [column.written_name for column in columns]
    named = []
    for position, column in enumerate(columns, start=1):
        name = column.written_name or f"column{position}"
        while not column.written_name and name in written:
            name += "_"
        named.append(replace(column, name=name))
    return named


def _everything_is_quoted(columns: list[TextColumn]) -> bool:
    import pyarrow.compute as pc

    for column in columns:
        filled = np.asarray(pc.binary_length(column.fields).to_numpy(zero_copy_only=False)) > 0
        if (filled & (column.counts > 0) & ~column.quoted).any():
            return False
    return True
