# SPDX-License-Identifier: Apache-2.0
"""Anatomize a table into files, attack what would be published, and write it only if no attack gains too much."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
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
    from sfumato.parquet import ParquetAnatomy
    from sfumato.progress import Reporter

_MOST_NAMED = 3
_MOST_KNOWN = 100  # people whom the deFinetti attacker knows, one in a hundred at the most
_LEAST_TOLD = 0.05  # a column that adds fewer right guesses is not worth dropping


@dataclass(frozen=True)
class AnatomizeSettings:
    """What to publish, and what must hold.

    Attributes
    ----------
    folder : Path
        The files and their manifest go here.
    format : {"csv", "parquet"}
    l : int or mapping of str to int
        One number, or one for each sensitive column.
    sensitive, identifiers, keep : sequence of str
        Sensitive columns, columns to drop, and columns to share although they seem to name people.
    joint : bool or list of list of str
        Sensitive columns that share a table, see ``Anatomizer``.
    suppression_limit : float
    assignment : {"largest", "random"}
    seed : int or None
    max_attack : float or None
        Maximum attack advantage; None: no attack is run.
    """

    folder: Path
    format: Literal["csv", "parquet"]
    l: int | Mapping[str, int]  # noqa: E741
    sensitive: Sequence[str]
    identifiers: Sequence[str] = ()
    keep: Sequence[str] = ()
    joint: bool | list[list[str]] = False
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

    @property
    def largest_l(self) -> int:
        """The largest l of all columns."""
        return max(self.l.values()) if isinstance(self.l, Mapping) else self.l

    def paths(self, n_tables: int) -> list[Path]:
        """Return the files that are written with so many sensitive tables, the manifest last."""
        from sfumato.anatomize.tables import MANIFEST, sensitive_labels

        labels = ["identifying", *sensitive_labels(n_tables)]
        return [*(self.folder / f"{label}.{self.format}" for label in labels), self.folder / MANIFEST]

    def check_folder(self, *, force: bool, file: Location, n_tables: int = 1) -> None:
        """Raise ParameterError for a folder that cannot or should not be written to, before any work."""
        folder, output = self.folder, f"{named('output')} {str(self.folder)!r}"
        if folder.exists() and not folder.is_dir():
            raise ParameterError(f"{output} is a file: expected a folder. Give another name.")
        if not folder.is_dir():
            if not folder.absolute().parent.is_dir():
                raise ParameterError(f"{output} lies in a folder that does not exist. Create that first.")
            for path in self.paths(n_tables):
                look_at(path)
            return
        own = self.paths(n_tables)
        for path in own:
            check_output(path, force=force, inputs=[file])
        earlier = [path for name in ("identifying.*", "sensitive.*", "sensitive-*.*") for path in folder.glob(name)]
        other = [path for path in earlier if path not in own and path.suffix in (".csv", ".parquet")]
        if other:
            raise ParameterError(
                f"{output} has {other[0].name!r} of an earlier run: expected no other grouping of the same "
                "people, since two reveal more than either. Give another folder, or remove it."
            )


@dataclass(frozen=True)
class Anatomized:
    """Published tables, and the attacks on them.

    Attributes
    ----------
    anatomizer : Anatomizer
        Fitted.
    dropped : list of str
    written : list of Path
    n_records : int
        Released records.
    diversity : dict of str to float
        The l of each sensitive column, as counted on the written files.
    attacks : list of (str, AttackResult)
        Sensitive column, and an attack on it.
    if_known : list of (str, str, AttackResult)
        Sensitive column, another one whose value the attacker knows of everybody, and what is guessed then; of each
        column the worst. These attacks say what a known value reveals, and no limit is set to them.
    """

    anatomizer: Any
    dropped: list[str]
    written: list[Path]
    n_records: int
    diversity: dict[str, float]
    attacks: list[tuple[str, AttackResult]] = field(default_factory=list)
    if_known: list[tuple[str, str, AttackResult]] = field(default_factory=list)


def anatomize_table(
    reporter: Reporter,
    table: FileTable | BlockTable,
    settings: AnatomizeSettings,
    *,
    force: bool = False,
    file: Location | None = None,
) -> Anatomized:
    """Anatomize a table, attack the result, write all tables and judge the files.

    Columns without a role that seem to name people are dropped. Out of core, no attack is run.
    """
    from sfumato.anatomize.table_division import sensitive_tables
    from sfumato.frames import read_table

    columns = columns_of(table)
    decided = {*settings.sensitive, *settings.identifiers, *settings.keep}
    others = [name for name in columns if name not in decided]
    shared = without_names(
        reporter, example_of(table), others, done="dropped", otherwise=f"To share it, name it in {named('keep')}."
    )
    dropped = [*settings.identifiers, *(name for name in others if name not in shared)]
    anatomizer = _new_anatomizer(settings, columns, dropped)
    n_tables = len(sensitive_tables(anatomizer, read_table(example_of(table))))
    if file is not None:
        settings.check_folder(force=force, file=file, n_tables=n_tables)
    paths = settings.paths(n_tables)
    if not isinstance(table, FileTable):
        made = _write_blocks(reporter, table, anatomizer, settings, paths)
        return Anatomized(anatomizer, dropped, paths, made.n_records, made.diversity)
    records = table.table
    with reporter.step(f"dividing {records.num_rows:,} records into groups"):
        anatomized, rows = anatomizer.fit_transform_with_rows(records)
    attacks: list[tuple[str, AttackResult]] = []
    if_known: list[tuple[str, str, AttackResult]] = []
    if settings.max_attack is not None:
        with reporter.step(f"attacking {', '.join(settings.sensitive)}"):
            attacks, if_known = _attacked(anatomized, records, rows)
        check_attacks(attacks, settings.max_attack, anatomized, records)
    with reporter.step(f"writing to {settings.folder.name}, reading it back and counting its groups"):
        diversity = _write(anatomized, table, settings, paths)
    return Anatomized(anatomizer, dropped, paths, anatomized.n_records, diversity, attacks, if_known)


def _new_anatomizer(settings: AnatomizeSettings, columns: Sequence[str], dropped: Sequence[str]) -> Any:
    from sfumato.anatomize import Anatomizer

    group = "group"
    while any(name == group or name.startswith(f"{group}_") for name in columns):
        group += "_"
    return Anatomizer(
        settings.l,
        sensitive=list(settings.sensitive),
        joint=settings.joint,
        identifiers=list(dropped) or None,
        keep=[name for name in columns if name not in (*settings.sensitive, *dropped)],  # decided above
        suppression_limit=settings.suppression_limit,
        assignment=settings.assignment,
        group=group,
        random_state=settings.seed,
    )


def _attacked(
    anatomized: AnatomizedTable, table: Any, rows: Any
) -> tuple[list[tuple[str, AttackResult]], list[tuple[str, str, AttackResult]]]:
    """Attack every sensitive column with the tables that would be published."""
    import numpy as np
    import pyarrow as pa

    from sfumato.attack.anatomy_attacks import definetti_of_all, minimality
    from sfumato.attack.table_intersection import intersect_tables
    from sfumato.files.verified_output import plain_values

    tables, names = (anatomized.identifying, anatomized.sensitive), anatomized.sensitive_columns
    truth = pa.table({name: plain_values(table.column(name)) for name in names}).take(rows)
    n_known = min(_MOST_KNOWN, anatomized.n_records // 100)
    learned = definetti_of_all(*tables, truth, n_known=n_known if n_known >= 10 else 0)
    attacks, if_known = [], []
    for name, result, l in zip(names, learned, anatomized.diversities, strict=True):  # noqa: E741
        attacks.append((name, result))
        values = np.array(truth.column(name).to_pylist(), dtype=object)
        attacks.append((name, minimality(*tables, values, l=l, column=name)))
        others = [other for other in names if other != name]
        if others:
            attacks.append((name, intersect_tables(*tables, truth, column=name)))
            knowing = [(other, intersect_tables(*tables, truth, column=name, known=[other])) for other in others]
            if_known.append((name, *max(knowing, key=lambda found: found[1].rate)))
    return attacks, if_known


def _write_blocks(
    reporter: Reporter, blocks: BlockTable, anatomizer: Any, settings: AnatomizeSettings, paths: Sequence[Path]
) -> ParquetAnatomy:
    """Anatomize and judge a table out of core."""
    from sfumato.parquet.anatomizing import write_anatomy

    folder = settings.folder
    step = reporter.step(f"dividing {blocks.n_records:,} records into groups and writing to {folder.name}")
    with step, _made(folder), unfinished(*paths) as working:
        path_of = dict(zip((path.name for path in paths), working, strict=True))
        made = write_anatomy(anatomizer, blocks, path_of.__getitem__, folder, progress=progress_of(reporter))
    if settings.max_attack is not None:
        reporter.note(
            Sentence(
                f"attacks need the table in memory, so none was run and {named('max_attack')} was not checked. "
                f"Anatomize a sample with {named('out_of_core', False)} before you share this."
            ),
            is_warning=True,
        )
    return made


def _write(
    anatomized: AnatomizedTable, source: FileTable, settings: AnatomizeSettings, paths: Sequence[Path]
) -> dict[str, float]:
    """Write all tables and the manifest; return the l of each sensitive column, counted on what was read back."""
    from sfumato.anatomize import AnatomizedTable
    from sfumato.files.csv_reading import CsvStyle
    from sfumato.files.table_file import write_file
    from sfumato.files.verified_output import check_same, read_back
    from sfumato.verification import diversity_of

    tables = anatomized.plain_tables()
    manifest: dict[str, Any] = anatomized.manifest(settings.format, tables)
    style = None
    if settings.format == "csv":
        given = source.style or CsvStyle()
        style = CsvStyle(separator=given.separator, decimal=given.decimal)
        manifest["csv"] = {"separator": given.separator, "decimal": given.decimal}
    with _made(settings.folder), unfinished(*paths) as working:
        read = []
        for path, table in zip(working, tables.values(), strict=False):
            write_file(table, path, settings.format, style)
            read.append(read_back(table, path, settings.format, style))
            check_same(table, read[-1])
        identifying, *sensitive = read
        several = tuple(sensitive) if len(sensitive) > 1 else sensitive[0]
        AnatomizedTable(identifying, several, anatomized.l, anatomized.group).check()
        working[-1].write_text(json.dumps(manifest, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return {
        name: diversity_of(table, table.column_names[-1], name)
        for table in sensitive
        for name in table.column_names[:-1]
    }


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
    attacks: Sequence[tuple[str, AttackResult]], limit: float, anatomized: AnatomizedTable, table: Any
) -> None:
    """Raise GuaranteeError if an attack is right in more records than `limit` beyond its baseline.

    Parameters
    ----------
    attacks : sequence of (str, AttackResult)
        Sensitive columns, and what an attack on each found.
    limit : float
    anatomized : AnatomizedTable
        The tables that would be shared.
    table : pyarrow.Table
        The original records.
    """
    if not attacks:
        return
    name, worst = max(attacks, key=lambda attack: attack[1].rate - attack[1].baseline)
    advantage = worst.rate - worst.baseline
    if advantage <= limit:
        return
    shared = [column for column in anatomized.identifying_columns if column in table.column_names]
    telling = telling_columns(table, name, shared)
    drop = f"drop more columns with {named('identifiers')}"
    if telling:
        columns = ", ".join(f"{column!r} (alone right in {rate:.0%})" for column, rate in telling)
        drop = f"drop columns that predict {name!r} with {named('identifiers')}, such as {columns}"
    combined = [found for own, found in attacks if own == name and found.attack == "intersection of tables"]
    if any(found.rate - found.baseline > limit for found in combined):
        drop += f", put columns that depend on {name!r} into one table with {named('joint')}"
    l = dict(zip(anatomized.sensitive_columns, anatomized.diversities, strict=True))[name]  # noqa: E741
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
