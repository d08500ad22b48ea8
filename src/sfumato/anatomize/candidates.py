# SPDX-License-Identifier: Apache-2.0
"""Who may have which sensitive row: anatomized tables as columns, and candidates as weighted rows to learn from.

Pruning and all learners start from :class:`Candidates`. A record has a candidate in each sensitive table for every row
of its group there. Candidates are equally likely, or weighed by what all groups together show; see :func:`weigh`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.anatomize.coordinates import Coding, CodingName, learn_coding
from sfumato.anatomize.tables import AnatomizedTable, matched_groups
from sfumato.attack.group_guessing import SensitiveGroups
from sfumato.attack.group_learning import Learned, SensitiveRows, learn_tables
from sfumato.backends.memory import code_column
from sfumato.columns import Column
from sfumato.frames import read_table
from sfumato.grouping import group_rows, number_values
from sfumato.threads import run_side_by_side

Weighing = Literal["even", "learned"]
_MAX_BINS = 16  # of identifying numbers, when weights are learned
_N_ITERATIONS = 30


@dataclass(frozen=True, eq=False)
class SensitiveCandidates:
    """The candidates of one sensitive table.

    Attributes
    ----------
    columns : list of Column
    group : ndarray of int64
        The group of each identifying row.
    order, starts : ndarray of int64
        ``order[starts[g] : starts[g + 1]]`` are the sensitive rows of group g.
    """

    columns: list[Column]
    group: NDArray[np.int64]
    order: NDArray[np.int64]
    starts: NDArray[np.int64]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of records of each group."""
        return np.diff(self.starts)


@dataclass(frozen=True, eq=False)
class Candidates:
    """An anatomized table as columns.

    Attributes
    ----------
    identifying : list of Column
    tables : list of SensitiveCandidates
    """

    identifying: list[Column]
    tables: list[SensitiveCandidates]

    @classmethod
    def of(cls, anatomized: AnatomizedTable, categorical: Sequence[Sequence[str]] = ()) -> Candidates:
        """Read the columns of all tables, some numbers as categories: a list of those for each table, if any."""
        frames = [anatomized.identifying, *anatomized.sensitive_tables]
        codes = categorical or [[]] * len(frames)
        tables = [read_table(frame, categorical=list(own)) for frame, own in zip(frames, codes, strict=True)]
        names = [tables[0].names[: 1 - len(tables)], *(table.names[:-1] for table in tables[1:])]
        tasks: list[Callable[[], Any]] = [partial(matched_groups, pair) for pair in anatomized.pairs]
        tasks += [partial(table.column, name) for table, own in zip(tables, names, strict=True) for name in own]
        n_pairs = len(tables) - 1
        done = run_side_by_side(tasks, tables[0].n_records)
        groups, columns = done[:n_pairs], iter(done[n_pairs:])
        identifying, *sensitive = ([next(columns) for _ in own] for own in names)
        parts = [SensitiveCandidates(own, *found) for own, found in zip(sensitive, groups, strict=True)]
        return cls(identifying, parts)

    @property
    def n_records(self) -> int:
        """Number of identifying rows."""
        return len(self.tables[0].group)

    def some(self, rows: NDArray[np.int64]) -> Candidates:
        """Return some identifying rows, with all their candidates."""
        tables = [replace(table, group=table.group[rows]) for table in self.tables]
        columns = [
            replace(own, values=own.values[rows], missing=None if own.missing is None else own.missing[rows])
            for own in self.identifying
        ]
        return Candidates(columns, tables)

    def codings(self, coding: CodingName) -> Coding:
        """Learn the coding of all columns as they are after joining the tables."""
        is_even = all(table.sizes.min() == table.sizes.max() for table in self.tables)
        rows = np.ones(self.n_records)  # of the join, for each record
        for table in self.tables:
            rows = rows * table.sizes[table.group]
        parts = learn_coding(self.identifying, coding, None if is_even else rows).parts
        for table in self.tables:
            weight = None
            if not is_even or len(table.group) < len(table.order):
                of_group = np.bincount(table.group, rows / table.sizes[table.group], minlength=len(table.sizes))
                weight = np.empty(len(table.order))
                weight[table.order] = np.repeat(of_group, table.sizes)
            parts += learn_coding(table.columns, coding, weight).parts
        return Coding(parts)

    def coordinates(self, coding: Coding, records: NDArray[np.int64], rows: Sequence[NDArray[np.int64]]) -> Any:
        """Return a matrix of some records, with a row of each sensitive table for each."""
        n_own = len(self.identifying)
        found = [Coding(coding.parts[:n_own]).coordinates(self.identifying)[records]]
        for table, own in zip(self.tables, rows, strict=True):
            parts = coding.parts[n_own : n_own + len(table.columns)]
            n_own += len(table.columns)
            found.append(Coding(parts).coordinates(table.columns)[own])
        return np.hstack(found)


# -- weights -----------------------------------------------------------------------------------------------------


class Weights(Protocol):
    """How likely each record has each of its candidates in one sensitive table."""

    def count(self, records: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many candidates records have."""
        ...

    def take(self, records: NDArray[np.int64], places: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Return the sensitive rows of records at places among their candidates, and the weights of those."""
        ...

    def draw(self, records: NDArray[np.int64], uniform: NDArray[np.float64]) -> NDArray[np.int64]:
        """Draw a candidate of each record."""
        ...


@dataclass(frozen=True, eq=False)
class EvenWeights:
    """All candidates of a record are equally likely."""

    table: SensitiveCandidates

    def count(self, records: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many candidates records have."""
        return self.table.sizes[self.table.group[records]]

    def take(self, records: NDArray[np.int64], places: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Return the sensitive rows of records at places among their candidates, and the weights of those."""
        return self.table.order[self.table.starts[self.table.group[records]] + places], 1.0 / self.count(records)

    def draw(self, records: NDArray[np.int64], uniform: NDArray[np.float64]) -> NDArray[np.int64]:
        """Draw a candidate of each record."""
        rows: NDArray[np.int64] = self.take(records, (uniform * self.count(records)).astype(np.int64))[0]
        return rows


class LearnedWeights:
    """Candidates are as likely as all groups together show; equal rows of a large group are one."""

    def __init__(self, learned: Learned, n_records: int) -> None:
        n_candidates = np.zeros(n_records, np.int64)
        for block in learned.blocks:
            n_candidates[block.records] = block.values.shape[1]
        self._starts = np.concatenate(([0], np.cumsum(n_candidates)))
        self._rows = np.empty(self._starts[-1], np.int64)
        self._weights = np.empty(self._starts[-1])
        for block, weight in zip(learned.blocks, learned.weights, strict=True):
            places = self._starts[block.records][:, :, None] + np.arange(block.values.shape[1])
            self._rows[places] = block.slots[:, None, :]
            self._weights[places] = weight
        before = np.concatenate(([0.0], np.cumsum(self._weights)))
        self._before, self._totals = before, np.diff(before[self._starts])

    def count(self, records: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many candidates records have."""
        return np.diff(self._starts)[records]

    def take(self, records: NDArray[np.int64], places: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Return the sensitive rows of records at places among their candidates, and the weights of those."""
        at = self._starts[records] + places
        return self._rows[at], self._weights[at] / self._totals[records]

    def draw(self, records: NDArray[np.int64], uniform: NDArray[np.float64]) -> NDArray[np.int64]:
        """Draw a candidate of each record."""
        first = self._starts[records]
        at = np.searchsorted(self._before, self._before[first] + uniform * self._totals[records], side="right") - 1
        rows: NDArray[np.int64] = self._rows[np.clip(at, first, self._starts[records + 1] - 1)]
        return rows


def weigh(candidates: Candidates, weighing: Weighing) -> list[Weights]:
    """Return the weights of the candidates in each sensitive table.

    Parameters
    ----------
    candidates : Candidates
    weighing : {"even", "learned"}
        Learned: by the relation of identifying and sensitive columns over all groups, as deFinetti's attack learns it.
        It reads nothing but the tables, and no classes: candidates that were weighed by the class would seem to follow
        from it more than they do.
    """
    if weighing == "even":
        return [EvenWeights(table) for table in candidates.tables]
    binned = (code_column(column, max_bins=_MAX_BINS) for column in candidates.identifying)
    codes = [own.codes.astype(np.int64) for own in binned]
    rows = []
    for table in candidates.tables:
        columns = [number_values(column).astype(np.int64) for column in table.columns]
        values = group_rows(columns, len(table.order))
        of_value = [np.zeros(int(values.max()) + 1, np.int64) for _ in columns]
        for found, column in zip(of_value, columns, strict=True):
            found[values] = column
        slot_group = np.empty(len(table.order), np.int64)
        slot_group[table.order] = np.repeat(np.arange(len(table.sizes)), table.sizes)
        nobody = np.zeros(len(table.group), np.int64)
        rows.append(SensitiveRows(SensitiveGroups(table.group, slot_group, values, nobody, len(table.sizes)), of_value))
    n_codes = [int(code.max()) + 1 for code in codes]
    learned = learn_tables(rows, codes, n_codes, _N_ITERATIONS)
    return [LearnedWeights(own, candidates.n_records) for own in learned]


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Candidates as rows to learn from.

    Attributes
    ----------
    records : ndarray of int64
        The identifying row of each.
    rows : list of ndarray of int64
        The row of each sensitive table.
    weight : ndarray of float64
        Weights of a record sum to 1.
    """

    records: NDArray[np.int64]
    rows: list[NDArray[np.int64]]
    weight: NDArray[np.float64]


def weighted_rows(weights: Sequence[Weights], n_records: int, most: int, random: np.random.Generator) -> WeightedRows:
    """Return all candidates of every record, in all tables at once, or draw `most` of them where there are more."""
    everybody = np.arange(n_records)
    counts = np.stack([own.count(everybody) for own in weights], axis=1)
    n_rows = counts.astype(np.float64).prod(axis=1)
    few, many = np.flatnonzero(n_rows <= most), np.flatnonzero(n_rows > most)
    records = np.repeat(few, n_rows[few].astype(np.int64))
    starts = np.cumsum(n_rows[few].astype(np.int64)) - n_rows[few].astype(np.int64)
    number = np.arange(len(records)) - np.repeat(starts, n_rows[few].astype(np.int64))
    drawn = np.repeat(many, most)
    weight, rows = np.ones(len(records)), []
    for place, own in enumerate(weights):
        number, digit = np.divmod(number, counts[records, place])
        found, share = own.take(records, digit)
        weight *= share
        rows.append(np.concatenate([found, own.draw(drawn, random.random(len(drawn)))]))
    return WeightedRows(
        np.concatenate([records, drawn]), rows, np.concatenate([weight, np.full(len(drawn), 1.0 / most)])
    )
