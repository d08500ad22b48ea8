# SPDX-License-Identifier: Apache-2.0
"""Measure how well people hide in a table, in memory or out of core, with roles found for columns without one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sfumato.auditing.open_tables import columns_of, example_of, open_blocks, progress_of
from sfumato.auditing.roles import without_names
from sfumato.errors import ParameterError, Sentence, named
from sfumato.files.table_file import FileTable, ReadingOptions, format_of, location, read_file, unknown_column

if TYPE_CHECKING:
    from sfumato.backends.blocks.block_table import BlockTable
    from sfumato.measurement import Measurement
    from sfumato.progress import Reporter

Reasons = dict[tuple[str, str], list[str]]
"""The columns of each role, by the role and the reason for it."""

_MOST_LEFT_OUT = 60  # columns, each left out once to see whether the others form groups
_LOOKS_LIKE_GROUPS = 5  # records of the smallest group; by chance a raw table has none such
_ROLES = {
    "quasi_identifiers": "quasi-identifier",
    "sensitive": "sensitive",
    "target": "target",
    "unit": "person",
    "weights": "weight",
}


@dataclass(frozen=True)
class MeasureSettings:
    """What to measure.

    Attributes
    ----------
    quasi_identifiers, sensitive, categorical : sequence of str
    target, unit, weights : str, optional
    hierarchies : mapping of str to Path
        Hierarchy file by sensitive column.
    missing : {"value", "wildcard"}
    min_k : int, optional
        Minimum group size, in records, or in persons with a unit.
    """

    quasi_identifiers: Sequence[str] = ()
    sensitive: Sequence[str] = ()
    categorical: Sequence[str] = ()
    target: str | None = None
    unit: str | None = None
    weights: str | None = None
    hierarchies: Mapping[str, Path] = field(default_factory=dict)
    missing: Literal["value", "wildcard"] = "value"
    min_k: int | None = None

    def __post_init__(self) -> None:
        """Raise ParameterError for a condition that cannot be judged."""
        if self.min_k is not None and self.min_k < 1:
            raise ParameterError(f"{named('min_k', self.min_k)}: expected an integer >= 1.")
        if self.unit is not None and self.min_k is not None and self.missing == "wildcard":
            raise ParameterError(
                f"{named('min_k')} with {named('unit')} and {named('missing_is', 'wildcard')}: expected "
                f"{named('missing_is', 'value')}, since groups that overlap are not counted in persons."
            )

    def named(self) -> dict[str, list[str]]:
        """Return the named columns by setting."""
        given = {name: getattr(self, name) for name in (*_ROLES, "categorical", "hierarchies")}
        return {n: [own] if isinstance(own, str) else list(own or ()) for n, own in given.items()}

    def check_columns(self, columns: Sequence[str]) -> None:
        """Raise ParameterError for names that are not columns, and for a target with another role."""
        own = self.named()
        for setting, names in own.items():
            for name in names:
                if name not in columns:
                    raise ParameterError(unknown_column(named(setting), name, columns))
        if self.target is not None and self.target in (*own["quasi_identifiers"], *own["unit"]):
            raise ParameterError(
                f"the column {self.target!r} is named in {named('target')} and in another role. Name it once."
            )


@dataclass(frozen=True)
class MeasuredTable:
    """A measurement, the roles of the columns, and the verdict.

    Attributes
    ----------
    found : Measurement
    reasons : dict
        See `Reasons`.
    min_k : int or None
    """

    found: Measurement
    reasons: Reasons
    min_k: int | None

    @property
    def smallest(self) -> int:
        """Records of the smallest group, or persons if they were counted."""
        persons = self.found.groups.smallest_in_persons
        return self.found.k if persons is None else persons

    @property
    def holds(self) -> bool | None:
        """Whether every group has at least `min_k`; None without a condition."""
        return None if self.min_k is None else self.smallest >= self.min_k


def measure_table(
    reporter: Reporter, table: FileTable | BlockTable, settings: MeasureSettings, *, name: str, population: Any = None
) -> MeasuredTable:
    """Measure a table.

    Parameters
    ----------
    reporter : Reporter
    table : FileTable or BlockTable
    settings : MeasureSettings
    name : str
        What steps call the table.
    population : frame, BlockTable or int, optional
        As `open_population` yields it.
    """
    from sfumato.measurement import measure
    from sfumato.parquet import measure as measure_blocks

    settings.check_columns(columns_of(table))
    chosen, reasons = _settle(reporter, table, settings)
    asked: dict[str, Any] = {
        "quasi_identifiers": chosen,
        "sensitive": list(settings.sensitive),
        "population": population,
        "weights": settings.weights,
        "unit": settings.unit,
        "missing": settings.missing,
        "categorical_features": list(settings.categorical),
        "hierarchies": {column: _read_hierarchy(path) for column, path in settings.hierarchies.items()},
    }
    if isinstance(table, FileTable):
        with reporter.step(f"measuring {table.table.num_rows:,} records"):
            found = measure(table.table, **asked)
    else:
        with reporter.step(f"measuring {name} out of core"):
            found = measure_blocks(table, **asked, progress=progress_of(reporter))
    return MeasuredTable(found, reasons, settings.min_k)


@contextmanager
def open_population(
    reporter: Reporter, given: str | None, table: FileTable | BlockTable, reading: ReadingOptions
) -> Iterator[Any]:
    """Yield a population: its table, its number of people, or None.

    Its columns get the types of the table's. If the table itself is read out of core, so is a population in Parquet or
    DuckDB.

    Parameters
    ----------
    reporter : Reporter
    given : str or None
        A file, an address in a database, or a number.
    table : FileTable or BlockTable
    reading : ReadingOptions
    """

    if given is None or (given.isdecimal() and not Path(given).exists()):
        yield None if given is None else int(given)
        return
    people = location(given)
    is_there = not isinstance(people, Path) or people.is_file()
    if not isinstance(table, FileTable) and is_there and format_of(people) == "parquet":
        with open_blocks(people) as blocks:
            yield blocks
        return
    types = table.style.types if isinstance(table, FileTable) and table.style is not None else {}
    with reporter.step(f"reading {people.name}"):
        read = read_file(people, reading, types_if_present=types).table
    yield read


def _read_hierarchy(path: Path) -> Any:
    from sfumato.hierarchies import read_hierarchy

    if not path.is_file():
        raise ParameterError(
            f"{named('hierarchies')} names {str(path)!r}, which is not a file. Check the name and the folder."
        )
    return read_hierarchy(path)


def _settle(reporter: Reporter, table: FileTable | BlockTable, settings: MeasureSettings) -> tuple[list[str], Reasons]:
    """Return the quasi-identifiers, and the role of each column with the reason.

    Columns that seem to name people are left out. In a file that looks like a release with groups, columns that were
    not rewritten are set apart if no role was given; a verdict never depends on that.
    """
    own, example = settings.named(), example_of(table)
    reasons: Reasons = {
        (role, Sentence(f"named with {named(setting)}")): own[setting]
        for setting, role in _ROLES.items()
        if own[setting]
    }
    if own["quasi_identifiers"]:
        return own["quasi_identifiers"], reasons
    taken = {name for setting in _ROLES for name in own[setting]}
    free = [name for name in example.column_names if name not in taken]
    chosen = without_names(
        reporter, example, free, done="left out",
        otherwise=f"To count it, name all columns to count in {named('quasi_identifiers')}.",
    )  # fmt: skip
    if left_out := [name for name in free if name not in chosen]:
        reasons["left out", "seems to name people"] = left_out
    is_whole = isinstance(table, FileTable)
    aside, smallest = ([], 0) if taken or not is_whole else find_unchanged(example, chosen)
    if aside and settings.min_k is None:
        chosen = [name for name in chosen if name not in aside]
        why = f"auto-detected: without it every group has at least {smallest} records; name it with {named('target')}"
        reasons["released unchanged", Sentence(why)] = aside
    elif aside:
        reporter.note(
            Sentence(
                f"without {' and '.join(map(repr, aside))} every group has at least {smallest} records. If a model "
                f"predicts that column, or it is sensitive, name it: {named('target', aside[0])}."
            )
        )
    reasons["quasi-identifier", "has no other role"] = chosen
    return chosen, reasons


def find_unchanged(table: Any, columns: Sequence[str]) -> tuple[list[str], int]:
    """Return the one or two columns of a release that hide its groups, and the smallest group without them.

    Return nothing if no record is unique, or if leaving out two columns shows no groups.
    """
    from sfumato.verification import count_groups

    def sizes(without: Sequence[str]) -> tuple[int, int]:
        counted = count_groups(table, [name for name in columns if name not in without])
        return int(counted.min()), -len(counted)

    if not 2 < len(columns) <= _MOST_LEFT_OUT or sizes([])[0] > 1:
        return [], 0
    aside: list[str] = []
    while len(aside) < 2:
        others = [name for name in columns if name not in aside]
        aside.append(max(others, key=lambda name: sizes([*aside, name])))
        smallest = sizes(aside)[0]
        if smallest >= _LOOKS_LIKE_GROUPS:
            return aside, smallest
    return [], 0
