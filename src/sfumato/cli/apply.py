# SPDX-License-Identifier: Apache-2.0
"""``sfumato apply``: recode new records with a saved partition or generalization, for prediction or a release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sfumato.cli import options
from sfumato.cli.console import Console

if TYPE_CHECKING:
    from sfumato.auditing.apply_files import Minimized, Recoded
    from sfumato.files.table_file import Location

HELP = options.help_text(
    "Recode new records with a saved partition or generalization.",
    "With a generalization, every value becomes its bucket. With a partition and without --release, every record gets "
    "the values of its group: right for records that a model is to predict, but [bold]no group size is promised[/bold] "
    "in the new file. With --release, groups are merged until k holds for the new records, and the file is shuffled "
    "and recounted. Without it, records keep their order.",
    examples=[
        "sfumato apply partition.json new.csv -o recoded.csv",
        "sfumato apply partition.json next-year.csv --release -o released.csv",
        "sfumato apply generalization.json new.csv -o minimized.csv",
    ],
)


@options.command
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
            help="The recoded file, CSV or Parquet.",
            rich_help_panel="Output",
            show_default=False,
        ),
    ],
    release: Annotated[
        bool,
        typer.Option(
            "--release",
            help="Merge groups until each has k of the new records, or fail; for files to publish.",
            show_default="off: groups may be of any size",
        ),
    ] = False,
    k: Annotated[
        int | None,
        typer.Option(
            "--k",
            "-k",
            help="Minimum group size, with --release.",
            show_default="that of the partition",
        ),
    ] = None,
    unit: Annotated[
        str | None,
        typer.Option(
            help="The column that identifies the person of each record, with --release.",
            metavar="COLUMN",
            show_default="that of the partition",
        ),
    ] = None,
    suppression_limit: Annotated[
        float, typer.Option(help="Maximum share of records that --release suppresses instead of merging.")
    ] = 0.0,
    identifiers: Annotated[
        list[str] | None,
        typer.Option(help="Further columns to drop.", metavar="A,B,...", show_default="those that the partition drops"),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            help="Columns to release unchanged even if nearly all their values are unique.",
            metavar="A,B,...",
            show_default="those that were kept before",
        ),
    ] = None,
    values: Annotated[
        Literal["labels", "codes", "representatives"] | None,
        typer.Option(
            help="What a bucket is written as, with a generalization: labels, codes or representatives.",
            metavar="NAME",
            show_default="labels",
        ),
    ] = None,
    earlier: Annotated[
        list[str] | None,
        typer.Option(
            help="Files of --remember for earlier releases whose readers may get this one, too; a warning says if two "
            "releases together single people out.",
            metavar="FILE,...",
            show_default="none",
        ),
    ] = None,
    persons: Annotated[
        str | None,
        typer.Option(
            help="The column that identifies people in earlier releases.",
            metavar="COLUMN",
            show_default="records are counted",
        ),
    ] = None,
    remember: Annotated[
        Path | None,
        typer.Option(
            help="Save what the next release is compared with: counts and digests, no records. Do not publish it.",
            metavar="FILE",
            rich_help_panel="Output",
            show_default="nothing is kept",
        ),
    ] = None,
    out_of_core: options.OutOfCore = None,
    keep_order: options.KeepOrder = False,
    force: options.Force = False,
    *,
    reading: options.Reading,
    console: Console,
) -> None:
    """Recode new records with a saved partition or generalization; ``HELP`` is what users read."""
    from sfumato.auditing.apply_files import ApplySettings, Minimized, apply_document
    from sfumato.files.table_file import check_output

    check_output(output, force=force, inputs=[partition, file])
    if remember is not None:
        check_output(remember, force=force, inputs=[partition, file], outputs=[output], option="--remember")
    settings = ApplySettings(
        output=output,
        is_release=release,
        k=k,
        unit=unit,
        suppression_limit=suppression_limit,
        identifiers=identifiers or (),
        keep=keep or (),
        values=values,
        earlier=earlier or (),
        persons=persons,
        remember=remember,
        keep_order=keep_order,
    )
    with console.warnings_as_notes():
        done = apply_document(console, partition, file, settings, reading=reading, out_of_core=out_of_core)
    if isinstance(done, Minimized):
        _show_minimized(console, file, output, done)
    else:
        _show_recoded(console, file, output, done)


def _show_recoded(console: Console, file: Location, output: Path, done: Recoded) -> None:
    from sfumato.files.verified_output import blurred, verdict

    counted, n_suppressed = done.counted, done.n_suppressed
    if console.as_json:
        document: dict[str, Any] = {
            "file": str(file),
            "output": str(output),
            "is_release": done.is_release,
            "n_records": counted.n_records,
            "n_groups": counted.n_groups,
            "holds": counted.holds if done.is_release else None,
        }
        if done.is_release:
            is_shown = n_suppressed == 0 or n_suppressed >= counted.k
            document |= {
                "k": counted.k,
                "smallest_group": counted.smallest_group,
                "n_merged": done.n_merged,
                "n_suppressed": n_suppressed if is_shown else blurred(n_suppressed, counted.k),
                "judged_on": "the written file",
                "together": list(done.together),
            }
            if done.all_together is not None:
                document["all_together"] = dict(done.all_together)
        console.result(document | {"seconds": round(console.seconds, 3)})
        return
    console.heading(f"{'release' if done.is_release else 'recoding'} of {file.name}")
    rows: list[tuple[str, ...]] = [("records", f"{counted.n_records:,}"), ("groups", f"{counted.n_groups:,}")]
    if done.is_release:
        rows += [("smallest group", f"{counted.smallest_group:,}"), ("groups merged into others", f"{done.n_merged:,}")]
        rows += [("suppressed records", blurred(n_suppressed, counted.k))] if n_suppressed else []
        for number, part in enumerate(done.together, start=1):
            who = "people" if part["is_counted"] else "records"
            hidden = "all hidden among k" if part["is_safe"] else "some singled out: see the warning"
            rows.append((f"{who} also in earlier release {number}", f"{part['n_people']:,}", hidden))
        if done.all_together is not None:
            hidden = "all hidden among k" if done.all_together["is_safe"] else "some singled out"
            rows.append(("all releases together", f"{done.all_together['n_people']:,}", hidden))
    console.facts([*rows, ("seconds", f"{console.seconds:.1f}")])
    sentence = "No group size is promised in the new file: use it to predict, and --release to publish."
    if done.is_release:
        sentence = verdict(counted, "the written file", is_by_person=done.unit is not None)
    console.verdict(sentence, holds=True)
    console.text(f"Written: {output}")


def _show_minimized(console: Console, file: Location, output: Path, done: Minimized) -> None:
    generalization, unchanged = done.generalization, done.unchanged
    n_collected = sum(attribute.is_collected for attribute in generalization.attributes)
    if console.as_json:
        console.result(
            {
                "file": str(file),
                "output": str(output),
                "fingerprint": generalization.fingerprint,
                "values": done.values,
                "n_records": done.n_records,
                "n_attributes": len(generalization.names),
                "n_collected": n_collected,
                "passed_through": unchanged,
                "seconds": round(console.seconds, 3),
            }
        )
        return
    console.heading(f"minimized records of {file.name}")
    console.facts(
        [
            ("records", f"{done.n_records:,}"),
            ("attributes", f"{len(generalization.names):,}, of which {n_collected:,} are collected"),
            ("distinct values before", f"{sum(a.n_before for a in generalization.attributes):,}"),
            ("buckets", f"{sum(generalization.n_buckets):,}"),
            ("seconds", f"{console.seconds:.1f}"),
        ]
    )
    if unchanged:
        console.note(f"{len(unchanged)} columns are not attributes and are unchanged: {', '.join(unchanged[:10])}")
    console.verdict("Every value is its bucket. No group size is promised: audit before you publish.", holds=True)
    console.text(f"Written: {output}")
