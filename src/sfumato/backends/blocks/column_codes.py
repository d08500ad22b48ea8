# SPDX-License-Identifier: Apache-2.0
"""The columns of a table that is read in blocks as codes in working files, and those of a population alike.

Two readings: number the values, then write the numbers, a few bytes per value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arguments import thread_count
from sfumato.backends.blocks.many_values import ManyValues
from sfumato.backends.blocks.value_codes import ValueCodes, read_for_counting
from sfumato.backends.blocks.working_files import ColumnFile, WorkingFiles
from sfumato.columns import Column
from sfumato.frames import Table
from sfumato.progress import Progress, told


@dataclass(frozen=True, eq=False)
class Blocks:
    """Records that are read in blocks.

    Attributes
    ----------
    n_records : int
    batches : callable
        Takes names of columns and yields Arrow tables.
    """

    n_records: int
    batches: Callable[[Sequence[str]], Iterator[Any]]


class _ListedValues:
    """One column on its way to codes, whose values are listed in memory."""

    def __init__(self, files: WorkingFiles, values: ValueCodes) -> None:
        self._values, self._codes = values, files.new_column(values.dtype)
        self.n_codes = values.n_codes

    def add(self, column: Column) -> None:
        self._codes.append(self._values.encode(column))

    def finish(self) -> ColumnFile:
        return self._codes


class ColumnCodes:
    """Codes of the columns of a table, and of the key columns of a population.

    Parameters
    ----------
    files : WorkingFiles
    table : Blocks
    names : sequence of str
        Columns of the table.
    people : Blocks, optional
        A population.
    keys : sequence of str
        Columns of the population.
    categorical : sequence of str
        Columns of numbers that are codes.
    most_held : int
        Records that are held in memory at once.
    progress : callable or None

    Attributes
    ----------
    columns, theirs : dict of str to ColumnFile
        Of the table and of the population; equal values have equal codes in both.
    values : dict of str to ValueCodes
    n_codes, n_own_codes : dict of str to int
        Codes of a column are below this, in both tables and in the table alone.
    """

    def __init__(
        self,
        files: WorkingFiles,
        table: Blocks,
        names: Sequence[str],
        *,
        people: Blocks | None = None,
        keys: Sequence[str] = (),
        categorical: Sequence[str],
        most_held: int,
        progress: Progress | None,
    ) -> None:
        self._categorical, self._progress = categorical, progress
        self.values = {name: ValueCodes(name) for name in names}
        self._each(table, names, lambda name, column: self.values[name].add(column), "counting values")
        for values in self.values.values():
            values.note_own()
        if people is not None:
            self._each(people, keys, lambda name, column: self.values[name].add(column, is_other=True))
            for name in keys:
                self.values[name].close()
        n_people = 0 if people is None else people.n_records
        written = {
            name: ManyValues(files, table.n_records + n_people, most_held)
            if values.is_on_disk
            else _ListedValues(files, values)
            for name, values in self.values.items()
        }
        self._each(table, names, lambda name, column: written[name].add(column), "coding")
        if people is not None:
            self._each(people, keys, lambda name, column: written[name].add(column))
        both = {name: own.finish() for name, own in written.items()}
        self.columns = {name: own.part(0, table.n_records) for name, own in both.items()}
        self.theirs = {name: both[name].part(table.n_records, n_people) for name in keys}
        self.n_codes = {name: own.n_codes for name, own in written.items()}
        self.n_own_codes = {
            name: self.n_codes[name] if values.is_on_disk else values.n_own_codes
            for name, values in self.values.items()
        }

    def _each(
        self, blocks: Blocks, names: Sequence[str], work: Callable[[str, Column], None], what: str | None = None
    ) -> None:
        """Call a function with the columns of every block, several columns at a time."""
        batches = ((batch.num_rows, batch) for batch in blocks.batches(names))
        progress = self._progress if what is not None else None
        with ThreadPoolExecutor(thread_count(-1)) as pool:
            for batch in told(batches, progress, what or "", blocks.n_records):
                table = read_for_counting(batch, self._categorical)
                list(pool.map(partial(_work_on_column, work, table), names))

    def count_values(self, name: str) -> NDArray[np.int64]:
        """Return how often each code of a column occurs in the table."""
        counts = np.zeros(self.n_codes[name], np.int64)
        for codes in self.columns[name].chunks():
            counts += np.bincount(codes, minlength=len(counts))
        return counts


def _work_on_column(work: Callable[[str, Column], None], table: Table, name: str) -> None:
    work(name, table.column(name, for_counting=True))
