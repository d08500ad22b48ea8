# SPDX-License-Identifier: Apache-2.0
"""``sfumato apply`` with a partition: every record gets the values of its group, for prediction or for a release."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.cli import options
from sfumato.documents import MapOf, check_shape, is_count, is_text, or_none
from sfumato.errors import InputError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sfumato.anonymize import Release
    from sfumato.cli.console import Console
    from sfumato.files.csv_reading import GivenType
    from sfumato.files.table_file import FileTable, Location
    from sfumato.files.verified_output import Recount

_NOTES = {"k?": or_none(is_count), "unit?": or_none(is_text), "keep?": [is_text], "types?": MapOf(is_text)}
"""What ``sfumato anonymize`` notes about the file that it read."""


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


def read_comparing(earlier: list[str] | None, persons: str | None, remember: Path | None) -> Comparing:
    """Read what was kept of earlier releases."""
    from sfumato.anonymize import Publication

    return Comparing(tuple(Publication.load(name) for name in options.split_names(earlier)), persons, remember)


def recode_pieces_of(
    console: Console,
    file: Location,
    saved: SavedPartition,
    output: Path,
    k: int | None,
    unit: str | None,
    dropped_and_kept: tuple[list[str] | None, list[str] | None],
) -> None:
    """Recode a file that is not held in memory; no group size is promised."""
    from sfumato.cli.apply_pieces import check_passing, recode_pieces
    from sfumato.cli.out_of_core import opened
    from sfumato.files.table_file import unfinished

    with opened(file) as files, console.warnings_as_notes():
        dropped, kept = (options.split_names(names, files.names) for names in dropped_and_kept)
        saved = for_this_file(saved, files.names, k, unit, dropped, kept)
        partition = saved.partition
        with console.step("looking at the columns that pass through"):
            check_passing(
                files,
                schema_of,
                partition.categorical,
                quasi_identifiers=list(partition.values),
                identifiers=list(partition.dropped) or None,
                keep=list(saved.keep) or None,
            )
        what = f"recoding {files.n_records:,} records and writing {output.name}"
        with console.step(what), unfinished(output) as [temporary]:
            counted = recode_pieces(console, partition, files, temporary, saved.k or 2)
    _report(console, file, saved, output, counted, False, 0, 0)


def load_partition(path: Path) -> SavedPartition:
    """Read a partition, with or without the notes of the command line."""
    from sfumato.anonymize import Partition
    from sfumato.documents import read_document
    from sfumato.files.csv_columns import parse_type
    from sfumato.files.csv_reading import GivenType

    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(f"{str(path)!r} {what}. Expected a partition that 'sfumato anonymize --save' wrote.")
    document = read_document(path, "a partition", "sfumato anonymize --save")
    partition = Partition.from_dict(document)
    check_shape(document, {"file?": _NOTES}, "a partition document", "sfumato anonymize --save")
    notes = document.get("file", {})
    # Without notes, what was text has to be text again: a file of few records may hide that codes have leading zeros.
    types = {
        column.name: GivenType("text")
        for column in partition.columns
        if column.kind == "category" and column.name not in partition.categorical
    }
    types |= {name: parse_type(name, text) for name, text in notes.get("types", {}).items()}
    return SavedPartition(partition, notes.get("k"), notes.get("unit"), tuple(notes.get("keep", ())), types)


def for_this_file(
    saved: SavedPartition, columns: list[str], k: int | None, unit: str | None, dropped: list[str], keep: list[str]
) -> SavedPartition:
    """Fit what was saved and what was said to the columns of this file."""
    from sfumato.files.table_file import unknown_column

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


def recode_table(
    console: Console,
    file: Location,
    source: FileTable,
    saved: SavedPartition,
    output: Path,
    is_release: bool,
    suppression_limit: float,
    comparing: Comparing,
    *,
    keep_order: bool = False,
) -> None:
    """Recode or release a table, write it and say what was done."""
    from sfumato.files.verified_output import (
        ORDER_KEPT,
        compact_dictionaries,
        formula_warning,
        recount,
        shuffled,
        write_judged,
    )

    partition, table = saved.partition, source.table
    n_merged, n_suppressed, units, made = 0, 0, None, None
    rewritten = [part.name for parts in partition.values.values() for part in parts]
    if is_release:
        k = _checked_k(saved)
        with console.step(f"merging groups until each has {k} of the {table.num_rows:,} records"):
            made, units = _release(table, saved, k, suppression_limit, comparing)
            released, n_merged, n_suppressed = made.table, made.n_merged, made.n_suppressed
    else:
        k = saved.k or 2
        with console.step(f"recoding {table.num_rows:,} records"):
            _check_pass_through(table, saved)
            released = partition.transform(table)
    released = compact_dictionaries(released)
    if is_release and keep_order:
        console.note(ORDER_KEPT, is_warning=True)
    elif is_release:
        released, units = shuffled(released, units)
    if formulas := formula_warning(released, output):
        console.note(formulas, is_warning=True)

    def judge(read: Any) -> Recount:
        return recount(read, rewritten, k, units=units)

    with console.step(f"writing {output.name}, reading it back and counting its groups"):
        counted = write_judged(released, output, style=source.style, judge=judge, must_hold=is_release)
    if made is not None and made.publication is not None and comparing.remember is not None:
        made.publication.save(comparing.remember)
    together = made.measures.get("together", []) if made is not None else []
    _report(console, file, saved, output, counted, is_release, n_merged, n_suppressed, together)


def _checked_k(saved: SavedPartition) -> int:
    if saved.k is None:
        raise ParameterError("--release with a partition that does not say its k. Give --k.")
    if saved.k < 2:
        raise ParameterError(f"--k {saved.k}: expected at least 2.")
    return saved.k


def check_promises(saved: SavedPartition) -> None:
    """Refuse a partition that promises what this command cannot count: a release must not promise less."""
    persons, others = _promised(saved.partition)
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


def _promised(partition: Any) -> tuple[list[str], list[str]]:
    """Return the sentences of a partition about numbers of persons, and those about anything but numbers of records."""
    by_records = r"every group has at least \d+ records"
    by_persons = r"every group has at least \d+ different persons"
    if not partition.criteria:  # saved before criteria were saved as data, or by Partition.save
        persons = [text for text in partition.guarantees if re.fullmatch(by_persons, text)]
        others = [text for text in partition.guarantees if text not in persons and not re.fullmatch(by_records, text)]
        return persons, others
    persons, others = [], []
    for criterion, text in zip(partition.criteria, partition.guarantees, strict=True):
        if criterion["name"] != "k-anonymity":
            others.append(text)
        elif criterion.get("unit") is not None:
            persons.append(text)
    return persons, others


def _check_pass_through(table: Any, saved: SavedPartition) -> None:
    """Refuse columns that the partition does not rewrite and that point at persons by themselves."""
    from sfumato.frames import read_table

    partition = saved.partition
    schema_of(
        read_table(table, categorical=partition.categorical),
        quasi_identifiers=list(partition.values),
        identifiers=list(partition.dropped) or None,
        keep=list(saved.keep) or None,
    )


def schema_of(table: Any, **roles: Any) -> Any:
    """Build the schema, and advise only what this command has: the partition says what is rewritten."""
    from sfumato.schema import ExposedColumnError, build_schema

    try:
        return build_schema(table, coarsened=roles.get("quasi_identifiers", ()), **roles)
    except ExposedColumnError as error:
        raise ExposedColumnError(error.column, error.why, instead=["identifiers"]) from None


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
    from sfumato.criteria import KAnonymity
    from sfumato.files.verified_output import plain_values
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
        n_jobs=-1,
    )
    anonymizer.schema_ = schema_of(
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
    result = anonymizer.release(table, earlier=list(comparing.earlier), persons=comparing.persons, shuffle=False)
    released, units = result.table, None
    if unit is not None:
        units = plain_values(released.column(unit))
        released = released if unit in saved.keep else released.drop_columns([unit])
    return replace(result, table=released), units


def _report(
    console: Console,
    file: Location,
    saved: SavedPartition,
    output: Path,
    counted: Recount,
    is_release: bool,
    n_merged: int,
    n_suppressed: int,
    together: Sequence[Mapping[str, Any]] = (),
) -> None:
    from sfumato.files.verified_output import blurred, verdict

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
