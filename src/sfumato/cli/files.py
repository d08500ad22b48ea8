# SPDX-License-Identifier: Apache-2.0
"""Tables in files: read CSV or Parquet, write the same kind back, and never leave half a file behind.

An output is written under a temporary name in its own folder, read back, judged, and only then moved into place; on any
error or interruption the temporary file is removed. The commands call this; the CSV rules are in the ``csv_*`` modules.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from sfumato.cli.csv_columns import MISSING_WORDS, GivenType, ReadingRules, detect_decimal, read_column
from sfumato.cli.csv_reading import read_text_columns
from sfumato.cli.csv_writing import CsvStyle, csv_bytes, style_for
from sfumato.errors import GuaranteeError, InputError, ParameterError

Format = Literal["csv", "csv.gz", "parquet"]
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
    """What the user says about a CSV file; None or empty means: find out."""

    encoding: str | None = None
    separator: str | None = None
    decimal: str | None = None
    header: bool | None = None
    types: Mapping[str, GivenType] = field(default_factory=dict)
    missing: Sequence[str] = ()
    all_quoted: bool | None = None

    @property
    def is_given(self) -> bool:
        """Whether anything was said at all."""
        return self != ReadingOptions()


@dataclass(frozen=True, eq=False)
class FileTable:
    """A table and how its file was written.

    Attributes
    ----------
    table : pyarrow.Table
        The records.
    format : str
        ``"csv"``, ``"csv.gz"`` or ``"parquet"``.
    style : CsvStyle or None
        How to write it back as CSV; None for Parquet.
    options : ReadingOptions
        How it was read.
    notes : tuple of str
        Sentences about what was detected that a user may want to know.
    """

    table: Any
    format: Format
    style: CsvStyle | None
    options: ReadingOptions
    notes: tuple[str, ...] = ()


# --- reading ----------------------------------------------------------------------------------------------


def format_of(path: Path) -> Format:
    """Tell the format by the ending of the name."""
    name = path.name.lower()
    for ending, found in _ENDINGS.items():
        if name.endswith(ending):
            return found
    raise InputError(
        f"{path.name!r} has no ending that says what it is. Expected .csv, .tsv, .txt, .csv.gz or .parquet: "
        "rename the file, or convert it first."
    )


def read_file(path: Path, options: ReadingOptions | None = None, *, as_format: Format | None = None) -> FileTable:
    """Read a CSV or Parquet file.

    Parameters
    ----------
    path : Path
        The file; its ending tells the format.
    options : ReadingOptions, optional
        For CSV.
    as_format : str, optional
        The format where the name does not tell.
    """
    options = options or ReadingOptions()
    if path.is_dir():
        raise InputError(f"{str(path)!r} is a folder. Expected one CSV or Parquet file.")
    if not path.exists():
        raise InputError(f"{str(path)!r} does not exist. Check the name and the folder.")
    found = as_format or format_of(path)
    try:
        if found == "parquet":
            return _read_parquet(path, options)
        data = path.read_bytes()
        if found == "csv.gz":
            data = gzip.decompress(data)
    except (gzip.BadGzipFile, EOFError):
        raise InputError(f"{path.name!r} is not a gzip file, or ends too early. Copy it again.") from None
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be read: {error.strerror or 'input/output error'}.") from None
    if data[:4] == b"PAR1" and data[-4:] == b"PAR1":
        raise InputError(f"{path.name!r} is a Parquet file with another ending. Rename it to end in .parquet.")
    return _read_csv(data, path.name, found, options)


def _read_csv(data: bytes, file_name: str, found: Format, options: ReadingOptions) -> FileTable:
    import pyarrow as pa

    columns, layout, notes = read_text_columns(
        data,
        file_name=file_name,
        encoding=options.encoding,
        separator=options.separator,
        header=options.header,
        all_quoted=options.all_quoted,
    )
    names = [column.name for column in columns]
    unknown = [name for name in options.types if name not in names]
    if unknown:
        raise ParameterError(unknown_column("types", unknown[0], names))
    missing = MISSING_WORDS | frozenset(options.missing)
    if options.decimal not in (None, ".", ","):
        raise ParameterError(f"decimal {options.decimal!r}: expected '.' or ','.")
    decimal = options.decimal or detect_decimal(columns, layout.separator, missing)
    if decimal == "," and options.decimal is None:
        notes.append(f"numbers in {file_name} have a decimal comma; give --decimal . if that is wrong.")
    rules = ReadingRules(layout.separator, layout.all_quoted, decimal, missing)
    arrays, styles = [], {}
    for column in columns:
        array, styles[column.name] = read_column(column, rules, options.types.get(column.name), file_name, notes)
        arrays.append(array)
    style = CsvStyle(layout, decimal, {column.name: column.written_name for column in columns}, styles)
    return FileTable(pa.table(dict(zip(names, arrays, strict=True))), found, style, options, tuple(notes))


def _read_parquet(path: Path, options: ReadingOptions) -> FileTable:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if options.is_given:
        raise ParameterError(
            f"{path.name!r} is Parquet, which has its own types: --types, --separator, --encoding, --decimal, "
            "--missing and --header are for CSV. Leave them out; name numbers that are codes with --categorical."
        )
    try:
        # Not read_table: that would take hive=style parts of the folder's name for columns.
        with pq.ParquetFile(path) as file:
            table = file.read()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise InputError(f"{path.name!r} is not a readable Parquet file: damaged, or something else.") from None
    repeated = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
    if repeated:
        raise InputError(f"{path.name!r} has more than one column named {repeated[0]!r}. Rename them.")
    if not table.num_rows or not table.num_columns:
        raise InputError(f"{path.name!r} has no records. Expected at least one.")
    return FileTable(table, "parquet", None, options)


def unknown_column(parameter: str, name: str, names: Sequence[str]) -> str:
    """Word the sentence about a column that is not there, with the nearest names that are."""
    from difflib import get_close_matches

    near = get_close_matches(name, names, n=3, cutoff=0.6)
    hint = f"Did you mean {' or '.join(map(repr, near))}?" if near else f"The columns are {_listed(names)}."
    return f"{parameter} names {name!r}, which is not a column of the file. {hint}"


def _listed(names: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


# --- writing ----------------------------------------------------------------------------------------------


def check_output(path: Path, *, force: bool, inputs: Sequence[Path] = (), option: str = "-o") -> None:
    """Refuse an output that cannot or should not be written, before any work is done."""
    if path.is_dir():
        raise ParameterError(f"{option} {str(path)!r} is a folder. Give a file name in it.")
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ParameterError(f"{option} {str(path)!r}: the folder {str(folder)!r} does not exist. Create it first.")
    if any(path.absolute() == other.absolute() or _is_same_file(path, other) for other in inputs):
        raise ParameterError(f"{option} {str(path)!r} is the input itself. Give another name; nothing was written.")
    if path.exists() and not force:
        raise ParameterError(f"{option} {str(path)!r} exists already. Give another name, or --force to replace it.")
    if not os.access(folder, os.W_OK):
        raise ParameterError(f"{option} {str(path)!r}: the folder {str(folder)!r} is not writable.")


def _is_same_file(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


@contextlib.contextmanager
def unfinished(*finals: Path) -> Iterator[list[Path]]:
    """Lend a temporary name beside each final one; move all into place at the end, or remove them.

    Only the owner can read a file while it is unfinished. A process killed outright leaves
    ``NAME.unfinished-XXXXXXXX`` at most, never a part of NAME.
    """
    temporary = [final.with_name(f"{final.name}.unfinished-{secrets.token_hex(4)}") for final in finals]
    try:
        for path in temporary:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        yield temporary
        for path, final in zip(temporary, finals, strict=True):
            _sync(path)
            path.chmod(_mode_for(final))
        for path, final in zip(temporary, finals, strict=True):
            path.replace(final)
    except OSError as error:
        raise InputError(
            f"{str(finals[0])!r} cannot be written: {error.strerror or 'input/output error'}. Nothing was written."
        ) from None
    finally:
        for path in temporary:
            path.unlink(missing_ok=True)


def _mode_for(final: Path) -> int:
    if final.exists():
        return final.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_file(table: Any, path: Path, as_format: Format, style: CsvStyle | None = None) -> CsvStyle | None:
    """Write a table to this very path; return the complete style for CSV, which reading back needs."""
    if as_format == "parquet":
        import pyarrow.parquet as pq

        pq.write_table(table, path, compression="zstd")
        return None
    style = style_for(table, style)
    with path.open("wb") as plain:
        # No time and no name inside, so that equal tables make equal files.
        packed = gzip.GzipFile("", "wb", fileobj=plain, mtime=0) if as_format == "csv.gz" else None
        for piece in csv_bytes(table, style):
            (packed or plain).write(piece)
        if packed is not None:
            packed.close()
    return style


def read_back(path: Path, as_format: Format, style: CsvStyle | None) -> Any:
    """Read a file just written, by the same rules it was written with."""
    if style is None:
        return read_file(path, as_format=as_format).table
    layout = style.layout
    options = ReadingOptions(
        encoding=layout.encoding,
        separator=layout.separator,
        decimal=style.decimal,
        header=layout.has_header,
        types=_types_by_place(style),
        missing=[column.missing.strip('"') for column in style.columns.values()],
        all_quoted=layout.all_quoted,
    )
    file = read_file(path, options, as_format=as_format)
    return file.table.rename_columns(list(style.columns))


def _types_by_place(style: CsvStyle) -> dict[str, GivenType]:
    """Name the columns as the reader will: by the header, or by position where there is no name."""
    types = {}
    for position, (name, column) in enumerate(style.columns.items(), start=1):
        written = style.written_names.get(name, name) if style.layout.has_header else ""
        types[written or f"column{position}"] = column.as_given()
    return types


def check_same(written: Any, read: Any) -> None:
    """Raise unless the table read back says what the table in memory says, column by column.

    Raises
    ------
    GuaranteeError
        Naming the first column that differs.
    """
    import pyarrow as pa

    if written.num_rows != read.num_rows or written.column_names != read.column_names:
        raise GuaranteeError(
            f"the written file was read back with {read.num_rows:,} records and {read.num_columns} columns instead of "
            f"{written.num_rows:,} and {written.num_columns}. Nothing was kept."
        )
    for name in written.column_names:
        meant, found = (plain_values(table.column(name)) for table in (written, read))
        try:
            same = found.cast(meant.type).equals(meant)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            same = False
        if not same:
            raise GuaranteeError(
                f"column {name!r} of the written file does not read back as what was written. Nothing was kept. "
                "Writing Parquet (-o NAME.parquet) avoids text; please report this."
            )


def plain_values(column: Any) -> Any:
    """Return a column without dictionaries, with not-a-number as missing and no negative zero."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(column.type):
        column = pc.cast(column, column.type.value_type)
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
        column = pc.if_else(pc.equal(column, 0), pa.scalar(0, column.type), column)
    return column


# --- judging ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Recount:
    """What was counted on a table, independently of the engine that made it."""

    n_records: int
    n_groups: int
    smallest_group: int
    median_group: float
    n_records_in_small_groups: int
    k: int

    @property
    def holds(self) -> bool:
        """Whether every group has k members."""
        return self.n_records_in_small_groups == 0


def recount(table: Any, columns: Sequence[str], k: int, *, units: Any = None) -> Recount:
    """Count the groups of equal values over some columns with Arrow's group_by and nothing else.

    Parameters
    ----------
    table : pyarrow.Table
        What was read back.
    columns : sequence of str
        The quasi-identifiers as they stand in the table.
    k : int
        The size asked for.
    units : pyarrow array, optional
        One person per record; then a group's size is its number of different persons.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    keys = {f"q{position}": plain_values(table.column(name)) for position, name in enumerate(columns)}
    counted = pa.table({**keys, "unit": units} if units is not None else keys)
    if not keys:  # nothing identifies anybody: all records are one group
        counted = counted.append_column("q", pa.array(np.zeros(table.num_rows, dtype=np.int8)))
        keys = {"q": None}
    wanted: list[tuple[Any, ...]] = [([], "count_all")]
    if units is not None:
        wanted.append(("unit", "count_distinct", pc.CountOptions(mode="all")))
    groups = counted.group_by(list(keys)).aggregate(wanted)
    records = groups["count_all"].to_numpy()
    sizes = groups["unit_count_distinct"].to_numpy() if units is not None else records
    return Recount(
        n_records=table.num_rows,
        n_groups=len(sizes),
        smallest_group=int(sizes.min()),
        median_group=float(np.median(sizes)),
        n_records_in_small_groups=int(records[sizes < k].sum()),
        k=k,
    )


def write_judged(
    table: Any,
    path: Path,
    *,
    style: CsvStyle | None,
    judge: Callable[[Any], Recount],
    beside: Mapping[Path, Callable[[Path], None]] | None = None,
) -> Recount:
    """Write a release: to a temporary name, read back, judged on what was read, moved into place.

    Parameters
    ----------
    table : pyarrow.Table
        What to release.
    path : Path
        Its final name; the ending tells the format.
    style : CsvStyle or None
        The style of the input, for CSV.
    judge : callable
        Takes the table that was read back and counts.
    beside : mapping of Path to callable, optional
        Further files that belong to the release; each callable writes to the path it gets. All or none appear.

    Raises
    ------
    GuaranteeError
        When k does not hold on what was read back. Then nothing is written.
    """
    beside = dict(beside or {})
    as_format = format_of(path)
    with unfinished(path, *beside) as (temporary, *others):
        complete = write_file(table, temporary, as_format, style)
        read = read_back(temporary, as_format, complete)
        check_same(table, read)
        result = judge(read)
        if not result.holds:
            raise GuaranteeError(
                f"k = {result.k} does not hold on the written file: {result.n_records_in_small_groups:,} of "
                f"{result.n_records:,} records are in a group smaller than {result.k}. Nothing was kept."
            )
        for other, write in zip(others, beside.values(), strict=True):
            write(other)
    return result
