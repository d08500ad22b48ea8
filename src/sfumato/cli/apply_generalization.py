# SPDX-License-Identifier: Apache-2.0
"""``sfumato apply`` with a generalization: every value becomes its bucket, and what is no attribute passes through."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.documents import MapOf, check_shape, is_text, parse_json
from sfumato.errors import InputError, ParameterError
from sfumato.files.names import split_names

if TYPE_CHECKING:
    from sfumato.cli.console import Console
    from sfumato.files.csv_reading import GivenType
    from sfumato.files.table_file import FileTable, Location, ReadingOptions
    from sfumato.files.verified_output import Recount
    from sfumato.generalization.artifact import Output

_NOTES = {"types?": MapOf(is_text)}
"""What ``sfumato minimize`` notes about the file that it read."""


@dataclass(frozen=True)
class SavedGeneralization:
    """A generalization read from a file, and what the command that saved it wrote beside it."""

    generalization: Any
    types: Mapping[str, GivenType] = field(default_factory=dict)


def is_generalization(path: Path) -> bool:
    """Say whether a file is the document of a generalization; whatever else it is, others will say."""
    from sfumato.generalization.document import FORMAT

    try:
        document = parse_json(path.read_bytes(), "sfumato")
    except (OSError, InputError):
        return False
    return document.get("format") == FORMAT


def load_generalization(path: Path) -> SavedGeneralization:
    """Read a generalization, with or without the notes of the command line."""
    from sfumato.files.csv_columns import parse_type
    from sfumato.files.csv_reading import GivenType
    from sfumato.generalization import CategoryAttribute, Generalization

    document = parse_json(path.read_bytes(), "sfumato minimize")
    generalization = Generalization.from_dict(document)
    # What was text has to be text again: a file of few records may hide that codes have leading zeros.
    types = {
        attribute.name: GivenType("text")
        for attribute in generalization.attributes
        if isinstance(attribute, CategoryAttribute) and attribute.value_type == "text" and attribute.categories
    }
    check_shape(document, {"file?": _NOTES}, "a generalization", "sfumato minimize")
    notes = document.get("file", {})
    types |= {name: parse_type(name, given) for name, given in notes.get("types", {}).items()}
    return SavedGeneralization(generalization, types)


def minimize_file(
    console: Console,
    document: Path,
    file: Location,
    output: Path,
    *,
    reading: ReadingOptions,
    values: Output,
    identifiers: list[str] | None,
    keep: list[str] | None,
    check_schema: Callable[..., Any],
    in_pieces: bool = False,
) -> None:
    """Replace the values of a file by their buckets, write it and say what was done.

    Parameters
    ----------
    console : Console
    document : Path
        The generalization.
    file, output : Path
    reading : ReadingOptions
    values : {"labels", "codes", "representatives"}
    identifiers, keep : list of str or None
        Columns to drop, and columns that may pass through although nearly every value is different.
    check_schema : callable
        Refuses columns that point at persons by themselves.
    in_pieces : bool
        Whether to work through a Parquet file piece by piece.
    """
    from sfumato.files.table_file import read_and_tell

    with console.step(f"reading {document.name}"):
        saved = load_generalization(document)
    if in_pieces:
        _minimize_pieces(console, saved.generalization, file, output, values, identifiers, keep, check_schema)
        return
    source = read_and_tell(console, file, reading, saved.types)
    columns = source.table.column_names
    dropped, kept = split_names(identifiers, columns), split_names(keep, columns)
    names = [name for name in saved.generalization.names if name in columns]
    _check_names(names, columns, dropped, kept)
    table = source.table.drop_columns(dropped)
    passed = [name for name in table.column_names if name not in names]
    with console.warnings_as_notes():
        with console.step(f"finding the buckets of {table.num_rows:,} records"):
            minimized = _minimized(table, saved.generalization, values, names, passed, kept, check_schema)
        with console.step(f"writing {output.name} and reading it back"):
            counted = _write(minimized, output, source, names)
    _report(console, file, output, saved.generalization, counted.n_records, passed, values)


def _minimize_pieces(
    console: Console,
    generalization: Any,
    file: Location,
    output: Path,
    values: Output,
    identifiers: list[str] | None,
    keep: list[str] | None,
    check_schema: Callable[..., Any],
) -> None:
    from sfumato.cli.apply_pieces import check_passing, minimize_pieces
    from sfumato.cli.out_of_core import opened
    from sfumato.files.table_file import unfinished

    with opened(file) as files, console.warnings_as_notes():
        dropped, kept = split_names(identifiers, files.names), split_names(keep, files.names)
        names = [name for name in generalization.names if name in files.names]
        _check_names(names, files.names, dropped, kept)
        passed = [name for name in files.names if name not in names and name not in dropped]
        if passed:
            with console.step("looking at the columns that pass through"):
                roles = {"quasi_identifiers": names, "identifiers": dropped or None, "keep": kept or None}
                check_passing(files, check_schema, (), **roles)
        what = f"finding the buckets of {files.n_records:,} records and writing {output.name}"
        with console.step(what), unfinished(output) as [temporary]:
            minimize_pieces(console, generalization, files, temporary, values=values, drop=dropped)
        n_records = files.n_records
    _report(console, file, output, generalization, n_records, passed, values)


def _minimized(
    table: Any,
    generalization: Any,
    values: Output,
    names: list[str],
    passed: list[str],
    keep: list[str],
    check_schema: Callable[..., Any],
) -> Any:
    from sfumato.files.verified_output import compact_dictionaries
    from sfumato.frames import read_table

    if passed:
        check_schema(read_table(table), quasi_identifiers=names, keep=keep or None)
    return compact_dictionaries(generalization.transform(table, values))


def _write(table: Any, output: Path, source: FileTable, names: list[str]) -> Recount:
    """Write the file, read back what was written and compare."""
    from sfumato.files.verified_output import recount, write_judged

    return write_judged(table, output, style=source.style, judge=lambda read: recount(read, names, 2), must_hold=False)


def _check_names(names: Sequence[str], columns: Sequence[str], identifiers: Sequence[str], keep: Sequence[str]) -> None:
    from sfumato.files.table_file import unknown_column

    if not names:
        raise InputError(
            "the file has none of the attributes of the generalization. Expected the columns that it was made from."
        )
    for option, given in (("--identifiers", identifiers), ("--keep", keep)):
        for name in given:
            if name not in columns:
                raise ParameterError(unknown_column(option, name, columns))
            if name in names:
                raise ParameterError(f"{option} names {name!r}, which the generalization makes coarser. Leave it out.")


def _report(
    console: Console,
    file: Location,
    output: Path,
    generalization: Any,
    n_records: int,
    passed: Sequence[str],
    values: Output,
) -> None:
    asked = [attribute.name for attribute in generalization.attributes if attribute.is_collected]
    if console.as_json:
        console.result(
            {
                "file": str(file),
                "output": str(output),
                "fingerprint": generalization.fingerprint,
                "values": values,
                "n_records": n_records,
                "n_attributes": len(generalization.names),
                "n_collected": len(asked),
                "passed_through": list(passed),
                "seconds": round(console.seconds, 3),
            }
        )
        return
    console.heading(f"minimized records of {file.name}")
    console.facts(
        [
            ("records", f"{n_records:,}"),
            ("attributes", f"{len(generalization.names):,}, of which {len(asked):,} are collected"),
            ("values told apart", f"{sum(a.n_before for a in generalization.attributes):,}"),
            ("buckets", f"{sum(generalization.n_buckets):,}"),
            ("seconds", f"{console.seconds:.1f}"),
        ]
    )
    if passed:
        console.note(f"{len(passed)} columns are no attributes and left as they are: {', '.join(passed[:10])}")
    console.verdict("Every value is its bucket. No group size is promised: audit before you publish.", holds=True)
    console.text(f"Written: {output}")
