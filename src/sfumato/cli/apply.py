# SPDX-License-Identifier: Apache-2.0
"""``sfumato apply``: recode new records with a saved partition or generalization, for prediction or a release."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli import options
from sfumato.cli.console import Console, exit_codes
from sfumato.cli.out_of_core import OutOfCore, is_chosen
from sfumato.errors import ParameterError

HELP = options.help_text(
    "Recode new records with a saved partition or generalization.",
    "With a generalization, every value becomes its bucket. With a partition and without --release, every record gets "
    "the values of the group it falls into: right for records that a model is to predict, but [bold]nothing is "
    "promised about the size of groups[/bold] in the new file. With --release, groups are merged until k holds for the "
    "new records, and the written file is shuffled and recounted. Without it, records keep their order.",
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
    file: Annotated[
        options.Location,
        options.table_argument(
            "A CSV or Parquet file with new records, or a table such as duckdb:people.db?table=people."
        ),
    ],
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
    keep_order: options.KeepOrder = False,
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
        from sfumato.cli.apply_partition import (
            check_promises,
            for_this_file,
            load_partition,
            read_comparing,
            recode_pieces_of,
            recode_table,
            schema_of,
        )
        from sfumato.files.table_file import check_output, format_of, read_and_tell

        given = reading.parsed()
        check_output(output, force=force, inputs=[partition, file])
        is_compared = bool(earlier or persons or remember)
        if remember is not None:
            check_output(remember, force=force, inputs=[partition, file], outputs=[output], option="--remember")
        obstacle = None
        if format_of(output) != "parquet":
            obstacle = "--out-of-core with an output that is not Parquet: expected -o to end in .parquet."
        elif release:
            obstacle = "--out-of-core with --release, which joins groups of all records: expected --in-memory."
        if is_generalization(partition):
            if release or k is not None or unit is not None or suppression_limit or is_compared or keep_order:
                raise ParameterError(
                    "--release, --k, --unit, --suppression-limit, --earlier, --persons, --remember and --keep-order go "
                    "with a partition: a generalization promises no group sizes. Leave them out."
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
                check_schema=schema_of,
                in_pieces=is_chosen(console, file, pieces, given, obstacle=obstacle),
            )
            return
        if not release and (k is not None or unit is not None or suppression_limit or is_compared or keep_order):
            raise ParameterError(
                "--k, --unit, --suppression-limit, --earlier, --persons, --remember and --keep-order go with "
                "--release: without it, no group size is promised and records keep their order."
            )
        if not 0 <= suppression_limit < 1:
            raise ParameterError(f"--suppression-limit {suppression_limit}: expected a share from 0 to below 1.")
        if values is not None:
            raise ParameterError("--values goes with a generalization: a partition says itself what it writes.")
        with console.step(f"reading {partition.name}"):
            saved = load_partition(partition)
        comparing = read_comparing(earlier, persons, remember)
        if is_chosen(console, file, pieces, given, obstacle=obstacle):
            recode_pieces_of(console, file, saved, output, k, unit, (identifiers, keep))
            return
        source = read_and_tell(console, file, given, saved.types)
        columns = source.table.column_names
        saved = for_this_file(
            saved, columns, k, unit, options.split_names(identifiers, columns), options.split_names(keep, columns)
        )
        if persons is not None:
            options.check_columns("--persons", [persons], columns)
        if release:
            check_promises(saved)
        with console.warnings_as_notes():
            recode_table(
                console, file, source, saved, output, release, suppression_limit, comparing, keep_order=keep_order
            )
