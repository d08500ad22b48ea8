# SPDX-License-Identifier: Apache-2.0
"""``sfumato apply``: recode new records with a saved partition or generalization, for prediction or a release."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import options
from sfumato.cli.console import Console, exit_codes
from sfumato.cli.out_of_core import OutOfCore, is_chosen
from sfumato.errors import InputError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sfumato.anonymize import Release
    from sfumato.cli.csv_values import GivenType
    from sfumato.cli.files import FileTable
    from sfumato.cli.judging import Recount


HELP = options.help_text(
    "Recode new records with a saved partition or generalization.",
    "With a generalization, every value becomes its bucket. With a partition and without --release, every record gets "
    "the values of the group it falls into: right for records that a model is to predict, but [bold]nothing is "
    "promised about the size of groups[/bold] in the new file. With --release, groups are merged until k holds for the "
    "new records, and the written file is recounted.",
    examples=[
        "sfumato apply partition.json new.csv -o recoded.csv",
        "sfumato apply partition.json next-year.csv --release -o released.csv",
        "sfumato apply generalization.json new.csv -o minimized.csv",
    ],
)


class Values(StrEnum):
    """What a bucket of a generalization is written as."""

    labels = "labels"
    codes = "codes"
    representatives = "representatives"


@dataclass(frozen=True)
class SavedPartition:
    """A partition read from a file, and what the command that saved it wrote beside it."""

    partition: Any
    k: int | None = None
    unit: str | None = None
    keep: tuple[str, ...] = ()
    types: Mapping[str, GivenType] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparing:
    """What a release is compared with, and what is kept of it for the next."""

    earlier: tuple[Any, ...] = ()
    persons: str | None = None
    remember: Path | None = None


@options.reads_tables
def apply(
    partition: Annotated[
        Path,
        typer.Argument(
            help="A partition that 'anonymize --save' wrote, or a generalization.",
            show_default=False,
            metavar="DOCUMENT",
        ),
    ],
    file: Annotated[Path, typer.Argument(help="A CSV or Parquet file with new records.", show_default=False)],
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            help="Where the recoded file goes, CSV or Parquet.",
            rich_help_panel="Output",
            show_default=False,
        ),
    ],
    release: Annotated[
        bool,
        typer.Option(
            "--release",
            help="Merge groups until every one has k of the new records, or fail; for files that leave.",
            show_default="off: groups may be of any size",
        ),
    ] = False,
    k: Annotated[
        int | None,
        typer.Option(
            "--k",
            "-k",
            help="Records that every group must have at least, with --release.",
            show_default="the one of the partition",
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            help="The column that says which person a record belongs to, with --release.",
            metavar="COLUMN",
            show_default="the one of the partition",
        ),
    ] = None,
    suppression_limit: Annotated[
        float, typer.Option(help="Share of the records that --release may leave out instead of merging.")
    ] = 0.0,
    identifiers: Annotated[
        list[str] | None,
        typer.Option(help="Further columns to drop.", metavar="A,B,...", show_default="those that the partition drops"),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns that may leave as they are, even if nearly every value is different.",
            metavar="A,B,...",
            show_default="those that were kept before",
        ),
    ] = None,
    values: Annotated[
        Values | None,
        typer.Option(help="What stands for a bucket, with a generalization.", show_default="labels"),
    ] = None,
    earlier: Annotated[
        list[str] | None,
        typer.Option(
            help="What --remember wrote of earlier releases whose readers may get this one, too; a warning says whom "
            "two of them together would single out.",
            metavar="FILE,...",
            show_default="none",
        ),
    ] = None,
    persons: Annotated[
        str | None,
        typer.Option(
            help="The column that says who a record belongs to, by which people are recognised in earlier releases.",
            metavar="COLUMN",
            show_default="records are counted",
        ),
    ] = None,
    remember: Annotated[
        Path | None,
        typer.Option(
            help="Where to keep what the next release is compared with: numbers and digests, no records. Not to be "
            "published.",
            metavar="FILE",
            rich_help_panel="Output",
            show_default="nothing is kept",
        ),
    ] = None,
    pieces: OutOfCore = None,
    force: options.Force = False,
    reading: options.Reading = options.NOTHING_SAID,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
) -> None:
    """Recode new records with a saved partition; ``HELP`` is what users read."""
    console = Console(quiet=quiet, as_json=as_json)
    with exit_codes(console, debug=debug):
        from sfumato.cli.apply_generalization import is_generalization, minimize_file
        from sfumato.cli.files import check_output, format_of, read_file, unknown_column

        given = reading.parsed()
        check_output(output, force=force, inputs=[partition, file])
        is_compared = bool(earlier or persons or remember)
        if remember is not None:
            check_output(remember, force=force, inputs=[partition, file, output], option="--remember")
        obstacle = None
        if format_of(output) != "parquet":
            obstacle = "--out-of-core with an output that is not Parquet: expected -o to end in .parquet."
        elif release:
            obstacle = "--out-of-core with --release, which joins groups of all records: expected --in-memory."
        if is_generalization(partition):
            if release or k is not None or unit is not None or suppression_limit or is_compared:
                raise ParameterError(
                    "--release, --k, --unit, --suppression-limit, --earlier, --persons and --remember go with a "
                    "partition: a generalization promises no group sizes. Leave them out."
                )
            minimize_file(
                console,
                partition,
                file,
                output,
                reading=given,
                values=(values or Values.labels).value,
                identifiers=identifiers,
                keep=keep,
                check_schema=_schema_of,
                in_pieces=is_chosen(console, file, pieces, given, obstacle=obstacle),
            )
            return
        if not release and (k is not None or unit is not None or suppression_limit or is_compared):
            raise ParameterError(
                "--k, --unit, --suppression-limit, --earlier, --persons and --remember go with --release: without it, "
                "no group size is promised."
            )
        if not 0 <= suppression_limit < 1:
            raise ParameterError(f"--suppression-limit {suppression_limit}: expected a share from 0 to below 1.")
        if values is not None:
            raise ParameterError("--values goes with a generalization: a partition says itself what it writes.")
        with console.step(f"reading {partition.name}"):
            saved = load_partition(partition)
        comparing = _comparing(earlier, persons, remember)
        if is_chosen(console, file, pieces, given, obstacle=obstacle):
            _recode_pieces(console, file, saved, output, k, unit, (identifiers, keep))
            return
        with console.step(f"reading {file.name}"):
            source = read_file(file, given, types_if_present=saved.types)
        for sentence in source.notes:
            console.note(sentence)
        columns = source.table.column_names
        saved = _for_this_file(
            saved, columns, k, unit, options.split_names(identifiers, columns), options.split_names(keep, columns)
        )
        if persons is not None and persons not in columns:
            raise ParameterError(unknown_column("--persons", persons, columns))
        if release:
            _check_promises(saved)
        with console.warnings_as_notes():
            _run(console, file, source, saved, output, release, suppression_limit, comparing)


def _comparing(earlier: list[str] | None, persons: str | None, remember: Path | None) -> Comparing:
    from sfumato.anonymize import Publication

    return Comparing(tuple(Publication.load(name) for name in options.split_names(earlier)), persons, remember)


def _recode_pieces(
    console: Console,
    file: Path,
    saved: SavedPartition,
    output: Path,
    k: int | None,
    unit: str | None,
    dropped_and_kept: tuple[list[str] | None, list[str] | None],
) -> None:
    """Recode a file that is not held in memory; no group size is promised."""
    from sfumato.cli.apply_pieces import check_passing, recode_pieces
    from sfumato.parquet.files import ParquetFiles

    files = ParquetFiles(file)
    dropped, kept = (options.split_names(names, files.names) for names in dropped_and_kept)
    saved = _for_this_file(saved, files.names, k, unit, dropped, kept)
    partition = saved.partition
    with console.warnings_as_notes():
        with console.step("looking at the columns that pass through"):
            check_passing(
                files,
                _schema_of,
                partition.categorical,
                quasi_identifiers=list(partition.values),
                identifiers=list(partition.dropped) or None,
                keep=list(saved.keep) or None,
            )
        with console.step(f"recoding {files.n_records:,} records and writing {output.name}"):
            counted = recode_pieces(console, partition, files, output, saved.k or 2)
    _report(console, file, saved, output, counted, False, 0, 0)


def load_partition(path: Path) -> SavedPartition:
    """Read a partition, with or without the notes of the command line."""
    from sfumato.anonymize import Partition
    from sfumato.cli.csv_columns import parse_type
    from sfumato.cli.csv_values import GivenType

    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(f"{str(path)!r} {what}. Expected a partition that 'sfumato anonymize --save' wrote.")
    partition = Partition.load(path)
    notes = json.loads(path.read_text(encoding="utf-8")).get("file") or {}
    # Without notes, what was text has to be text again: a file of few records may hide that codes have leading zeros.
    types = {
        column.name: GivenType("text")
        for column in partition.columns
        if column.kind == "category" and column.name not in partition.categorical
    }
    types |= {name: parse_type(name, text) for name, text in (notes.get("types") or {}).items()}
    return SavedPartition(partition, notes.get("k"), notes.get("unit"), tuple(notes.get("keep") or ()), types)


def _for_this_file(
    saved: SavedPartition, columns: list[str], k: int | None, unit: str | None, dropped: list[str], keep: list[str]
) -> SavedPartition:
    """Fit what was saved and what was said to the columns of this file."""
    from sfumato.cli.files import unknown_column

    partition = saved.partition
    used = {column.name: "splits on" for column in partition.columns} | dict.fromkeys(partition.values, "rewrites")
    absent = [name for name in used if name not in columns]
    if absent:
        raise InputError(
            f"the file lacks {len(absent)} of the {len(used)} columns that the partition uses: "
            f"{', '.join(map(repr, absent[:5]))}. Expected the columns of the file it was made from."
        )
    for option, names in (("--identifiers", dropped), ("--keep", keep), ("--unit", [unit] if unit else [])):
        for name in names:
            if name not in columns:
                raise ParameterError(unknown_column(option, name, columns))
            if name in partition.values:
                raise ParameterError(f"{option} names {name!r}, which the partition rewrites. Leave it out.")
    gone = dict.fromkeys(name for name in (*partition.dropped, *dropped) if name in columns and name not in keep)
    kept = tuple(name for name in dict.fromkeys([*saved.keep, *keep]) if name in columns and name not in gone)
    return replace(
        saved,
        partition=replace(partition, dropped=tuple(gone)),
        k=k if k is not None else saved.k,
        unit=unit if unit is not None else saved.unit,
        keep=kept,
    )


def _run(
    console: Console,
    file: Path,
    source: FileTable,
    saved: SavedPartition,
    output: Path,
    is_release: bool,
    suppression_limit: float,
    comparing: Comparing,
) -> None:
    from sfumato.cli.judging import compact_dictionaries, recount, write_judged

    partition, table = saved.partition, source.table
    n_merged, n_suppressed, units, made = 0, 0, None, None
    rewritten = [part.name for parts in partition.values.values() for part in parts]
    if is_release:
        k = _checked_k(saved, table.num_rows)
        with console.step(f"merging groups until each has {k} of the {table.num_rows:,} records"):
            made, units = _release(table, saved, k, suppression_limit, comparing)
            released, n_merged, n_suppressed = made.table, made.n_merged, made.n_suppressed
    else:
        k = saved.k or 2
        with console.step(f"recoding {table.num_rows:,} records"):
            _check_pass_through(table, saved)
            released = partition.transform(table)
    released = compact_dictionaries(released, rewritten)

    def judge(read: Any) -> Recount:
        return recount(read, rewritten, k, units=units)

    with console.step(f"writing {output.name}, reading it back and counting its groups"):
        counted = write_judged(released, output, style=source.style, judge=judge, must_hold=is_release)
    if made is not None and made.publication is not None and comparing.remember is not None:
        made.publication.save(comparing.remember)
    together = made.measures.get("together", []) if made is not None else []
    _report(console, file, saved, output, counted, is_release, n_merged, n_suppressed, together)


def _checked_k(saved: SavedPartition, n_records: int) -> int:
    if saved.k is None:
        raise ParameterError("--release with a partition that does not say its k. Give --k.")
    if saved.k < 2:
        raise ParameterError(f"--k {saved.k}: expected at least 2.")
    return saved.k


def _check_promises(saved: SavedPartition) -> None:
    """Refuse a partition that promises what this command cannot count: a release must not promise less."""
    promises = saved.partition.guarantees
    persons = [text for text in promises if re.fullmatch(r"every group has at least \d+ different persons", text)]
    others = [
        text
        for text in promises
        if text not in persons and not re.fullmatch(r"every group has at least \d+ records", text)
    ]
    if others:
        raise ParameterError(
            f"--release with a partition that promises more than numbers of records and persons: {'; '.join(others)}. "
            "Expected a partition whose promise this command can keep. Release in Python, with the anonymizer that "
            "made it."
        )
    if persons and saved.unit is None:
        raise ParameterError(
            f"--release with a partition that promises that {persons[0]} and does not name the column that says which "
            "person a record belongs to. Give --unit COLUMN."
        )


def _check_pass_through(table: Any, saved: SavedPartition) -> None:
    """Refuse columns that the partition does not rewrite and that point at persons by themselves."""
    from sfumato.frames import read_table

    partition = saved.partition
    _schema_of(
        read_table(table, categorical=partition.categorical),
        quasi_identifiers=list(partition.values),
        identifiers=list(partition.dropped) or None,
        keep=list(saved.keep) or None,
    )


def _schema_of(table: Any, **roles: Any) -> Any:
    """Build the schema, and advise only what this command has: the partition says what is rewritten."""
    from sfumato.schema import build_schema

    try:
        return build_schema(table, **roles)
    except InputError as error:
        raise InputError(str(error).replace("in quasi_identifiers or identifiers", "in identifiers")) from None


def _release(
    table: Any, saved: SavedPartition, k: int, suppression_limit: float, comparing: Comparing
) -> tuple[Release, Any]:
    """Apply the merging rule of the library to a partition from a file.

    Returns
    -------
    release, units
        The units are the person of each released record, or None; the released table does not have them.
    """
    import numpy as np

    from sfumato.anonymize import ModelGuidedAnonymizer
    from sfumato.cli.judging import plain_values
    from sfumato.criteria import KAnonymity
    from sfumato.frames import read_table

    partition, unit = saved.partition, saved.unit
    if unit is not None and unit not in table.column_names:
        raise ParameterError(
            f"the partition counts persons by {unit!r}, which the file does not have. Add it, or give --unit COLUMN."
        )
    # The person of each record is needed for the recount, so it stays in until the table is ready.
    dropped = [name for name in partition.dropped if name != unit]
    keep = [*saved.keep, *([unit] if unit is not None and unit not in saved.keep else [])]
    partition = replace(partition, dropped=tuple(dropped))
    anonymizer = ModelGuidedAnonymizer(
        k=k,
        criteria=[KAnonymity(k, unit=unit)] if unit is not None else None,
        representative=partition.representative,
        suppression_limit=suppression_limit,
        random_state=0,
    )
    anonymizer.schema_ = _schema_of(
        read_table(table, categorical=partition.categorical),
        quasi_identifiers=list(partition.values),
        identifiers=dropped or None,
        unit=unit,
        keep=keep or None,
        limits=partition.limits or None,
    )
    anonymizer.partition_ = partition
    anonymizer.feature_names_in_ = np.array(table.column_names, dtype=object)
    anonymizer.n_features_in_ = table.num_columns
    result = anonymizer.release(table, earlier=list(comparing.earlier), persons=comparing.persons)
    released, units = result.table, None
    if unit is not None:
        units = plain_values(released.column(unit))
        released = released if unit in saved.keep else released.drop_columns([unit])
    return replace(result, table=released), units


def _report(
    console: Console,
    file: Path,
    saved: SavedPartition,
    output: Path,
    counted: Recount,
    is_release: bool,
    n_merged: int,
    n_suppressed: int,
    together: Sequence[Mapping[str, Any]] = (),
) -> None:
    from sfumato.cli.judging import blurred, verdict

    if console.as_json:
        document: dict[str, Any] = {
            "file": str(file),
            "output": str(output),
            "is_release": is_release,
            "n_records": counted.n_records,
            "n_groups": counted.n_groups,
            "holds": counted.holds if is_release else None,
        }
        if is_release:
            document |= {"k": counted.k, "smallest_group": counted.smallest_group, "n_merged": n_merged}
            is_told = n_suppressed == 0 or n_suppressed >= counted.k
            document["n_suppressed"] = n_suppressed if is_told else blurred(n_suppressed, counted.k)
            document["judged_on"] = "the written file"
            document["together"] = list(together)
        console.result(document | {"seconds": round(console.seconds, 3)})
        return
    console.heading(f"{'release' if is_release else 'recoding'} of {file.name}")
    rows: list[tuple[str, ...]] = [("records", f"{counted.n_records:,}"), ("groups", f"{counted.n_groups:,}")]
    if is_release:
        rows += [("smallest group", f"{counted.smallest_group:,}"), ("groups merged into others", f"{n_merged:,}")]
        rows += [("records left out", blurred(n_suppressed, counted.k))] if n_suppressed else []
        for number, part in enumerate(together, start=1):
            who = "people" if part["is_counted"] else "records"
            hidden = "all hidden among k" if part["is_safe"] else "some singled out: see the warning"
            rows.append((f"{who} also in earlier release {number}", f"{part['n_people']:,}", hidden))
    console.facts([*rows, ("seconds", f"{console.seconds:.1f}")])
    if is_release:
        console.verdict(verdict(counted, "the written file", is_by_person=saved.unit is not None), holds=True)
    else:
        console.verdict(
            "No group size is promised in the new file: use it to predict, and --release to publish.", holds=True
        )
    console.text(f"Written: {output}")
