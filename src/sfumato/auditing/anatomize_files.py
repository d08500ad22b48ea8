# SPDX-License-Identifier: Apache-2.0
"""Anatomize a table into two files, attack what would be published, and write it only if no attack gains too much."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sfumato.auditing.open_tables import columns_of, example_of, progress_of
from sfumato.auditing.roles import without_names
from sfumato.errors import GuaranteeError, ParameterError, Sentence, named
from sfumato.files.publishing import check_output, look_at
from sfumato.files.table_file import FileTable, Location, unfinished

if TYPE_CHECKING:
    from sfumato.anatomize import AnatomizedTable
    from sfumato.attack.result import AttackResult
    from sfumato.backends.blocks.block_table import BlockTable
    from sfumato.progress import Reporter

_TABLES = ("identifying", "sensitive")
_MOST_NAMED = 3
_LEAST_TOLD = 0.05  # a column that adds fewer right guesses is not worth dropping


@dataclass(frozen=True)
class AnatomizeSettings:
    """What to publish, and what must hold.

    Attributes
    ----------
    folder : Path
        Both files and their manifest go here.
    format : {"csv", "parquet"}
    l : int
    sensitive, identifiers, keep : sequence of str
        Sensitive columns, columns to drop, and columns to share although they seem to name people.
    suppression_limit : float
    assignment : {"largest", "random"}
    seed : int or None
    max_attack : float or None
        Maximum attack advantage; None: no attack is run.
    """

    folder: Path
    format: Literal["csv", "parquet"]
    l: int  # noqa: E741
    sensitive: Sequence[str]
    identifiers: Sequence[str] = ()
    keep: Sequence[str] = ()
    suppression_limit: float = 0.0
    assignment: Literal["largest", "random"] = "largest"
    seed: int | None = None
    max_attack: float | None = 0.2

    def __post_init__(self) -> None:
        """Raise ParameterError for numbers that are out of range."""
        if self.seed is not None and self.seed < 0:
            raise ParameterError(f"{named('seed', self.seed)}: expected an integer >= 0.")
        if self.max_attack is not None and not 0 <= self.max_attack <= 1:
            raise ParameterError(f"{named('max_attack', self.max_attack)}: expected a share from 0 to 1.")

    def paths(self, written_as: str | None = None) -> list[Path]:
        """Return the files that are written, the manifest last."""
        from sfumato.anatomize.tables import MANIFEST

        ending = written_as or self.format
        return [*(self.folder / f"{name}.{ending}" for name in _TABLES), self.folder / MANIFEST]

    def check_folder(self, *, force: bool, file: Location) -> None:
        """Raise ParameterError for a folder that cannot or should not be written to, before any work."""
        folder, output = self.folder, f"{named('output')} {str(self.folder)!r}"
        if folder.exists() and not folder.is_dir():
            raise ParameterError(f"{output} is a file: expected a folder. Give another name.")
        if folder.is_dir():
            for path in self.paths():
                check_output(path, force=force, inputs=[file])
            for other in self.paths("csv" if self.format == "parquet" else "parquet")[:-1]:
                if other.exists():
                    raise ParameterError(
                        f"{output} has {other.name!r} of an earlier run: expected no other grouping of the same "
                        "people, since two reveal more than either. Give another folder, or remove it."
                    )
        elif not folder.absolute().parent.is_dir():
            raise ParameterError(f"{output} lies in a folder that does not exist. Create that first.")
        else:
            for path in self.paths():
                look_at(path)


@dataclass(frozen=True)
class Anatomized:
    """Two published tables, and the attacks on them.

    Attributes
    ----------
    anatomizer : Anatomizer
        Fitted.
    dropped : list of str
    diversity : dict of str to float
        The l of each sensitive column, as counted on the written files.
    attacks : list of (str, AttackResult)
        Sensitive column, and an attack on it.
    """

    anatomizer: Any
    dropped: list[str]
    diversity: dict[str, float]
    attacks: list[tuple[str, AttackResult]]


def anatomize_table(reporter: Reporter, table: FileTable | BlockTable, settings: AnatomizeSettings) -> Anatomized:
    """Anatomize a table, attack the result, write both tables and judge the files.

    Columns without a role that seem to name people are dropped. Out of core, no attack is run.
    """
    columns = columns_of(table)
    decided = {*settings.sensitive, *settings.identifiers, *settings.keep}
    others = [name for name in columns if name not in decided]
    shared = without_names(
        reporter, example_of(table), others, done="dropped", otherwise=f"To share it, name it in {named('keep')}."
    )
    dropped = [*settings.identifiers, *(name for name in others if name not in shared)]
    anatomizer = _new_anatomizer(settings, columns, dropped)
    if not isinstance(table, FileTable):
        return Anatomized(anatomizer, dropped, _write_blocks(reporter, table, anatomizer, settings), [])
    records = table.table
    with reporter.step(f"dividing {records.num_rows:,} records into groups"):
        anatomized, rows = anatomizer.fit_transform_with_rows(records)
    attacks: list[tuple[str, AttackResult]] = []
    if settings.max_attack is not None:
        for name in settings.sensitive:
            with reporter.step(f"attacking {name}"):
                attacks += [(name, result) for result in _attacked(anatomized, records, rows, name, settings.l)]
        check_attacks(attacks, settings.max_attack, settings.l, records, anatomized.identifying_columns)
    with reporter.step(f"writing to {settings.folder.name}, reading it back and counting its groups"):
        diversity = _write(anatomized, table, settings)
    return Anatomized(anatomizer, dropped, diversity, attacks)


def _new_anatomizer(settings: AnatomizeSettings, columns: Sequence[str], dropped: Sequence[str]) -> Any:
    from sfumato.anatomize import Anatomizer

    group = "group"
    while group in columns:
        group += "_"
    return Anatomizer(
        settings.l,
        sensitive=list(settings.sensitive),
        identifiers=list(dropped) or None,
        keep=[name for name in columns if name not in (*settings.sensitive, *dropped)],  # decided above
        suppression_limit=settings.suppression_limit,
        assignment=settings.assignment,
        group=group,
        random_state=settings.seed,
    )


def _attacked(anatomized: AnatomizedTable, table: Any, rows: Any, name: str, l: int) -> list[AttackResult]:  # noqa: E741
    """Attack one sensitive column with the tables that would be published."""
    import numpy as np

    from sfumato.attack.anatomy_attacks import definetti, minimality
    from sfumato.files.verified_output import plain_values

    truth = np.array(plain_values(table.column(name)).to_pylist(), dtype=object)[rows]
    tables = anatomized.identifying, anatomized.sensitive, truth
    return [definetti(*tables, column=name), minimality(*tables, l=l, column=name)]


def _write_blocks(
    reporter: Reporter, blocks: BlockTable, anatomizer: Any, settings: AnatomizeSettings
) -> dict[str, float]:
    """Anatomize and judge a table out of core; return the l of each sensitive column."""
    from sfumato.parquet.anatomizing import write_anatomy

    folder = settings.folder
    step = reporter.step(f"dividing {blocks.n_records:,} records into groups and writing to {folder.name}")
    with step, _made(folder), unfinished(*settings.paths()) as paths:
        made = write_anatomy(anatomizer, blocks, paths, folder, progress=progress_of(reporter))
    if settings.max_attack is not None:
        reporter.note(
            Sentence(
                f"attacks need the table in memory, so none was run and {named('max_attack')} was not checked. "
                f"Anatomize a sample with {named('out_of_core', False)} before you share this."
            ),
            is_warning=True,
        )
    found: dict[str, float] = made.diversity
    return found


def _write(anatomized: AnatomizedTable, source: FileTable, settings: AnatomizeSettings) -> dict[str, float]:
    """Write both tables and the manifest; return the l of each sensitive column, counted on what was read back."""
    from sfumato.anatomize.tables import check_groups, plain_table
    from sfumato.files.csv_reading import CsvStyle
    from sfumato.files.table_file import write_file
    from sfumato.files.verified_output import check_same, read_back
    from sfumato.verification import diversity_of

    tables = {name: plain_table(getattr(anatomized, name)) for name in _TABLES}
    manifest: dict[str, Any] = anatomized.manifest(settings.format, tables)
    style = None
    if settings.format == "csv":
        given = source.style or CsvStyle()
        style = CsvStyle(separator=given.separator, decimal=given.decimal)
        manifest["csv"] = {"separator": given.separator, "decimal": given.decimal}
    with _made(settings.folder), unfinished(*settings.paths()) as paths:
        read = {}
        for path, (name, table) in zip(paths, tables.items(), strict=False):
            write_file(table, path, settings.format, style)
            read[name] = read_back(table, path, settings.format, style)
            check_same(table, read[name])
        check_groups(read["identifying"], read["sensitive"], settings.l)
        paths[-1].write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    group = anatomized.group
    return {name: diversity_of(read["sensitive"], group, name) for name in settings.sensitive}


@contextlib.contextmanager
def _made(folder: Path) -> Iterator[None]:
    """Make a folder, and remove it again if nothing was written to it."""
    is_new = not folder.exists()
    folder.mkdir(exist_ok=True)
    try:
        yield
    except BaseException:
        if is_new:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


def check_attacks(
    attacks: Sequence[tuple[str, AttackResult]],
    limit: float,
    l: int,  # noqa: E741 - the literature's own letter
    table: Any,
    identifying: Sequence[str],
) -> None:
    """Raise GuaranteeError if an attack is right in more records than `limit` beyond its baseline.

    Parameters
    ----------
    attacks : sequence of (str, AttackResult)
        Sensitive columns, and what an attack on each found.
    limit : float
    l : int
    table : pyarrow.Table
        The original records.
    identifying : sequence of str
        Columns that would be shared beside the sensitive ones.
    """
    if not attacks:
        return
    name, worst = max(attacks, key=lambda attack: attack[1].rate - attack[1].baseline)
    advantage = worst.rate - worst.baseline
    if advantage <= limit:
        return
    telling = telling_columns(table, name, [column for column in identifying if column in table.column_names])
    drop = f"drop more columns with {named('identifiers')}"
    if telling:
        columns = ", ".join(f"{column!r} (alone right in {rate:.0%})" for column, rate in telling)
        drop = f"drop columns that predict {name!r} with {named('identifiers')}, such as {columns}"
    raise GuaranteeError(
        f"l = {l} holds, but the {worst.attack} attack guesses {name!r} right in {worst.rate:.1%} of the records, and "
        f"{worst.baseline:.1%} are guessed by the group alone: advantage {advantage:.1%}, limit {limit:.1%}. Nothing "
        f"was written. Raise {named('l')}, {drop}, or allow more with {named('max_attack')}."
    )


def telling_columns(table: Any, sensitive: str, columns: Sequence[str]) -> list[tuple[str, float]]:
    """Return the columns that by themselves predict a sensitive column best, and their accuracy.

    Only columns that are clearly more often right than the most frequent value; numbers count by their bins.
    """
    import numpy as np

    from sfumato.backends.memory import MemorySource
    from sfumato.frames import read_table

    source = MemorySource(read_table(table), [sensitive, *columns])
    truth = source.columns[0].codes.astype(np.int64)
    n_values = source.columns[0].bins.n_bins
    always = float(np.bincount(truth).max()) / len(truth)
    found = []
    for column in source.columns[1:]:
        n_bins = column.bins.n_bins
        if n_bins * 5 > len(truth) or n_bins * n_values > 50_000_000:  # so fine that it identifies records
            continue
        counts = np.bincount(column.codes * np.int64(n_values) + truth, minlength=n_bins * n_values)
        rate = float(counts.reshape(n_bins, n_values).max(axis=1).sum()) / len(truth)
        if rate >= always + _LEAST_TOLD:
            found.append((column.name, rate))
    return sorted(found, key=lambda entry: -entry[1])[:_MOST_NAMED]
