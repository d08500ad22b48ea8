# SPDX-License-Identifier: Apache-2.0
"""Read and write tables in CSV or Parquet files.

The CSV rules are in the ``csv_*`` modules. ``publishing`` makes files appear whole and together, or not at all.
"""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sfumato.backends.duckdb.address import DuckDBAddress, is_address, parse_address
from sfumato.errors import InputError, ParameterError, Sentence, named
from sfumato.files.column_names import nearly_equal_names, plain_name
from sfumato.files.csv_columns import MISSING_WORDS, MOST_DISTINCT, ReadingRules, detect_decimal, read_column
from sfumato.files.csv_reading import CsvStyle, GivenType, read_text_columns
from sfumato.files.csv_writing import write_csv
from sfumato.files.publishing import check_output as check_output
from sfumato.files.publishing import unfinished as unfinished

if TYPE_CHECKING:
    from sfumato.frames.parquet_columns import ParquetColumns
    from sfumato.progress import Reporter

Format = Literal["csv", "csv.gz", "parquet"]
Location = Path | DuckDBAddress
"""The location of a table: a file, or a table in a database."""
_RECORDS_PER_PIECE = 1 << 18  # of a Parquet file
_SPREADSHEETS = (".xlsx", ".xlsm", ".xls", ".ods")
_ENDINGS: dict[str, Format] = {
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".data": "csv",
    ".csv.gz": "csv.gz",
    ".tsv.gz": "csv.gz",
    ".txt.gz": "csv.gz",
    ".parquet": "parquet",
    ".pq": "parquet",
}


@dataclass(frozen=True)
class ReadingOptions:
    """The user's settings for a CSV file; None or empty means auto-detect."""

    encoding: str | None = None
    separator: str | None = None
    decimal: str | None = None
    header: bool | None = None
    types: Mapping[str, GivenType] = field(default_factory=dict)
    missing: Sequence[str] = ()

    @property
    def is_given(self) -> bool:
        """Whether any setting was given."""
        told = (self.encoding, self.separator, self.decimal, self.header)
        return any(part is not None for part in told) or bool(self.types) or bool(self.missing)


@dataclass(frozen=True, eq=False)
class FileTable:
    """A table and the form of its file.

    Attributes
    ----------
    table : pyarrow.Table
        The records.
    format : str
        ``"csv"``, ``"csv.gz"`` or ``"parquet"``.
    style : CsvStyle or None
        The form of a CSV file, for the output; None for Parquet.
    options : ReadingOptions
        The settings it was read with.
    notes : tuple of str
        Notes for the user about what was detected.
    columns : ParquetColumns or None
        Reads the columns of a Parquet file again, one by one, after the table was freed.
    path : Path or None
        The file; None for a table from Python or from a database.
    address : DuckDBAddress or None
        The table in a database.
    """

    table: Any
    format: Format
    style: CsvStyle | None
    options: ReadingOptions
    notes: tuple[str, ...] = ()
    columns: ParquetColumns | None = None
    path: Path | None = None
    address: DuckDBAddress | None = None

    @property
    def name(self) -> str:
        """The table's name in reports."""
        place = self.path or self.address
        return "the table" if place is None else place.name


def table_in_memory(frame: Any) -> FileTable:
    """Return a frame in the form of a table that was read from a file."""
    from sfumato.frames.assembling import as_arrow

    return FileTable(as_arrow(frame), "parquet", None, ReadingOptions())


# --- reading ----------------------------------------------------------------------------------------------


def location(text: str) -> Location:
    """Return the location of a table: a file, unless the text is an address in a database."""
    return parse_address(text) if is_address(text) else Path(text)


def format_of(path: Location) -> Format:
    """Return the format by the ending of the name; database tables count as Parquet, since both have types."""
    if isinstance(path, DuckDBAddress):
        return "parquet"
    name = path.name.lower()
    for ending, found in _ENDINGS.items():
        if name.endswith(ending):
            return found
    if name.endswith(_SPREADSHEETS):
        raise InputError(
            f"{path.name!r} is a spreadsheet, which sfumato does not read or write. Expected CSV or Parquet: save the "
            "sheet as CSV (UTF-8), and give that name."
        )
    raise InputError(
        f"{path.name!r} has no ending that says what it is. Expected .csv, .tsv, .txt, .csv.gz or .parquet: "
        "rename the file, or convert it first."
    )


def read_file(
    path: Location,
    options: ReadingOptions | None = None,
    *,
    as_format: Format | None = None,
    types_if_present: Mapping[str, GivenType] | None = None,
    keep_types: bool = True,
) -> FileTable:
    """Read a CSV or Parquet file, or a table of a database.

    Parameters
    ----------
    path : Path or DuckDBAddress
        The ending of a file's name determines the format.
    options : ReadingOptions, optional
        For CSV.
    as_format : str, optional
        Overrides the ending.
    types_if_present : mapping, optional
        For CSV: types of columns that the file may have; ``options.types`` has priority.
    keep_types : bool, default=True
        For Parquet: False dictionary-encodes text, as CSV does; ``columns`` has the file's own types.
    """
    options = options or ReadingOptions()
    if isinstance(path, DuckDBAddress):
        return _read_database(path, options)
    _check_is_there(path)
    found = as_format or format_of(path)
    try:
        if found == "parquet":
            return _read_parquet(path, options, keep_types=keep_types)
        return _read_csv(path, found, options, types_if_present or {})
    except (gzip.BadGzipFile, EOFError):
        raise InputError(f"{path.name!r} is not a gzip file, or ends too early. Copy it again.") from None
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror or 'input/output error'}.") from None


def _read_database(address: DuckDBAddress, options: ReadingOptions) -> FileTable:
    from sfumato.backends.duckdb.reader import DuckDBTable

    if options.is_given:
        raise ParameterError(
            f"{address.text!r} is a table of a database, which has its own types: expected nothing about types, "
            "separator, encoding, decimal mark, missing values or header, which are for CSV. Omit those; name "
            f"numeric categories with {named('categorical_features')}."
        )
    with DuckDBTable(address) as table:
        whole = table.whole()
    notes = tuple(nearly_equal_names(table.names))
    return FileTable(whole, "parquet", None, options, notes, address=address)


def _check_is_there(path: Location) -> None:
    if isinstance(path, DuckDBAddress):
        return
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder. Expected one CSV or Parquet file.")
    if not path.exists():
        raise InputError(f"{str(path)!r} does not exist. Check the name and the folder.")


def read_files(paths: Sequence[Location], options: ReadingOptions) -> list[FileTable]:
    """Read several files with one set of options, which apply to the CSV files among them.

    A type may be given for a column that only some of the files have.
    """
    for path in paths:
        _check_is_there(path)
    is_csv = [format_of(path) != "parquet" for path in paths]
    if not any(is_csv):
        return [read_file(path, options) for path in paths]  # says that options are for CSV
    loose = replace(options, types={})
    files = [
        read_file(path, loose, types_if_present=options.types) if own else read_file(path)
        for path, own in zip(paths, is_csv, strict=True)
    ]
    columns = list(dict.fromkeys(name for file in files for name in file.table.column_names))
    for name in options.types:
        if name not in columns:
            raise ParameterError(unknown_column(named("types"), name, columns))
    return files


def bytes_of(path: Path, found: Format) -> bytes:
    """Return the bytes of a CSV file, decompressed."""
    data = path.read_bytes()
    if found == "csv.gz":
        data = gzip.decompress(data)
    if data[:4] == b"PAR1" and data[-4:] == b"PAR1":
        raise InputError(f"{path.name!r} is a Parquet file with another ending. Rename it to end in .parquet.")
    return data


def _read_csv(
    path: Path, found: Format, options: ReadingOptions, types_if_present: Mapping[str, GivenType]
) -> FileTable:
    import pyarrow as pa

    file_name = path.name
    columns, style, notes = read_text_columns(
        bytes_of(path, found),  # without a name here, so that they are gone before the columns get their types
        file_name=file_name,
        encoding=options.encoding,
        separator=options.separator,
        header=options.header,
    )
    names = [column.name for column in columns]
    notes += nearly_equal_names(names)
    unknown = [name for name in options.types if name not in names]
    if unknown:
        raise ParameterError(unknown_column(named("types"), unknown[0], names))
    missing = MISSING_WORDS | frozenset(options.missing)
    if options.decimal not in (None, ".", ","):
        raise ParameterError(f"{named('decimal', options.decimal)}: expected '.' or ','.")
    decimal = options.decimal or detect_decimal(columns, style.separator, missing)
    if decimal == "," and options.decimal is None:
        notes.append(
            Sentence(f"numbers in {file_name} have a decimal comma; give {named('decimal', '.')} if that is wrong.")
        )
    rules = ReadingRules(decimal, missing)
    given = {**types_if_present, **options.types}
    arrays, types = [], {}
    while columns:  # free the text as soon as it has become values
        column = columns.pop(0)
        array, types[column.name] = read_column(column, rules, given.get(column.name), file_name, notes)
        arrays.append(array)
    style = replace(style, decimal=decimal, types=types)
    return FileTable(pa.table(dict(zip(names, arrays, strict=True))), found, style, options, tuple(notes), path=path)


def _read_parquet(path: Path, options: ReadingOptions, *, keep_types: bool) -> FileTable:
    import pyarrow as pa

    from sfumato.frames.parquet_columns import ParquetColumns

    if options.is_given:
        raise ParameterError(
            f"{path.name!r} is Parquet, which has its own types: expected nothing about types, separator, encoding, "
            "decimal mark, missing values or header, which are for CSV. Omit those; name numeric categories "
            f"with {named('categorical_features')}."
        )
    try:
        columns = ParquetColumns(path)
        names = columns.column_names
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise InputError(f"{path.name!r} has more than one column named {repeated[0]!r}. Rename them.")
        if not columns.num_rows or not names:
            raise InputError(f"{path.name!r} has no records. Expected at least one.")
        table = columns.read() if keep_types else _with_dictionaries(columns)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(f"{path.name!r} is not a readable Parquet file: damaged, or something else.") from None
    return FileTable(table, "parquet", None, options, tuple(nearly_equal_names(names)), columns, path)


def _with_dictionaries(columns: ParquetColumns) -> Any:
    """Read one column after the other, so that memory holds the text of one column at a time."""
    import pyarrow as pa

    from sfumato.frames.arrow_tables import text_as_dictionary

    read = (text_as_dictionary(columns.column(at), MOST_DISTINCT) for at in range(len(columns.column_names)))
    return pa.table(list(read), names=columns.column_names)


def read_and_tell(
    reporter: Reporter, path: Location, reading: ReadingOptions, types_if_present: Mapping[str, GivenType] | None = None
) -> FileTable:
    """Read a file as a step of a command, and show the notes about it."""
    with reporter.step(f"reading {path.name}"):
        source = read_file(path, reading, types_if_present=types_if_present)
    for sentence in source.notes:
        reporter.note(sentence)
    return source


def unknown_column(where: str, name: str, names: Sequence[str]) -> str:
    """Return a message about an unknown column, with the nearest known names.

    Parameters
    ----------
    where : str
        The place that names the column: a setting (see `errors.named`), an option, or a place in a policy.
    name : str
    names : sequence of str
        The columns.
    """
    from difflib import get_close_matches

    near = [own for own in names if plain_name(own) == plain_name(name)] or get_close_matches(
        name, names, n=3, cutoff=0.6
    )
    hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else f"The columns are {listed(names)}."
    if near and near[0] != near[0].strip():
        hint += " Blanks count: put the name in quotes inside the option's value."
    if not near and any("," in own and plain_name(name) in map(plain_name, own.split(",")) for own in names):
        hint += " A name with a comma stands in quotes inside the option's value, or alone in an option of its own."
    return f"{where} names {name!r}, which is not a column of the file. {hint}"


def listed(names: Sequence[str], most: int = 20) -> str:
    """Return names of columns as text; beyond `most`, only the number of the others."""
    shown = ", ".join(repr(name) if "," in name else name for name in names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


# --- writing ----------------------------------------------------------------------------------------------


def with_separator_of(path: Path, style: CsvStyle | None) -> CsvStyle | None:
    """Return the style with tabs as separator if the file ends in .tsv."""
    if ".tsv" not in "".join(path.suffixes[-2:]).lower():
        return style
    return replace(style or CsvStyle(), separator="\t")


def write_file(table: Any, path: Path, as_format: Format, style: CsvStyle | None = None) -> None:
    """Write a table to exactly this path.

    Parquet files get only the metadata that pandas needs: the rest may describe the people in the table. Text of a CSV
    file becomes text in Parquet, even if it is dictionary-encoded here.
    """
    if as_format == "parquet":
        _write_parquet(table, path, decode=style is not None)
        return
    with path.open("wb") as plain:
        # No time and no name inside, so that equal tables make equal files.
        packed = (
            gzip.GzipFile("", "wb", fileobj=plain, mtime=0) if as_format == "csv.gz" else contextlib.nullcontext(plain)
        )
        with packed as file:
            write_csv(table, file, style or CsvStyle())


def _write_parquet(table: Any, path: Path, *, decode: bool) -> None:
    """Write in blocks, so that memory holds little beside the table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from sfumato.frames.arrow_tables import without_metadata

    table = without_metadata(table)
    schema = table.schema
    for place, column in enumerate(schema if decode else ()):
        if pa.types.is_dictionary(column.type):
            schema = schema.set(place, column.with_type(column.type.value_type))
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for start in range(0, table.num_rows, _RECORDS_PER_PIECE):
            writer.write_table(table.slice(start, _RECORDS_PER_PIECE).cast(schema))
