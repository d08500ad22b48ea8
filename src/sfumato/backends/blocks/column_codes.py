# SPDX-License-Identifier: Apache-2.0
"""Write the columns of a table that is read in blocks, and those of a population, as codes in working files.

The table is read twice: to number the values, and to write the numbers, a few bytes per value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arguments import thread_count
from sfumato.backends.blocks.value_codes import ValueCodes, read_for_counting
from sfumato.backends.blocks.working_files import ColumnFile, WorkingFiles, cannot_write
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
    """The codes of one column whose values memory lists."""

    def __init__(self, files: WorkingFiles, values: ValueCodes) -> None:
        self._values, self._codes = values, files.new_column(values.dtype)
        self.n_codes = values.n_codes

    def add(self, column: Column) -> None:
        self._codes.append(self._values.encode(column))

    def finish(self) -> ColumnFile:
        return self._codes


@contextmanager
def _written() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise cannot_write(error) from None


class ManyValues:
    """The codes of one text column with more distinct values than memory should list: names, addresses, keys.

    Values are written to private files by their hash, so that equal values share a file, and numbered there, one file
    after the other.

    Parameters
    ----------
    files : WorkingFiles
    n_records : int
        Of the whole table: the more, the more files, each of which is read at once.
    at_once : int
        Records that may be read at once.
    """

    def __init__(self, files: WorkingFiles, n_records: int, at_once: int) -> None:
        import pyarrow as pa

        self._schema = pa.schema({"row": pa.int64(), "value": pa.large_string()})
        self._codes = files.new_column(np.uint32)
        folder = files.path / f"values-{id(self)}"
        self._paths = [folder / str(place) for place in range(min(256, max(1, 2 * n_records // at_once)))]
        with _written():
            folder.mkdir(mode=0o700)
            self._writers = [pa.ipc.new_file(path, self._schema) for path in self._paths]
        self._n_records = 0
        self.n_codes = 1

    def add(self, column: Column) -> None:
        """Write the values of a block to the files."""
        import pyarrow as pa

        assert column.categories is not None
        n_files = len(self._writers)
        values = pa.array(column.categories.tolist(), pa.large_string())
        # Python's hash of text has a new key in every process: no input can send all values to one file.
        of_value = np.array([hash(value) % n_files for value in column.categories.tolist()], np.int64)
        present = np.arange(column.n_records) if column.missing is None else np.flatnonzero(~column.missing)
        of_row = of_value[column.values[present]]
        with _written():
            for place, writer in enumerate(self._writers):
                rows = present[of_row == place]
                own = values.take(pa.array(column.values[rows]))
                writer.write_batch(pa.record_batch([pa.array(rows + self._n_records), own], schema=self._schema))
        self._codes.append(np.zeros(column.n_records, np.uint32))
        self._n_records += column.n_records

    def finish(self) -> ColumnFile:
        """Number the values and return the codes of all records."""
        import pyarrow as pa

        with _written():
            for writer in self._writers:
                writer.close()
        for path in self._paths:
            with pa.OSFile(str(path)) as file:
                read = pa.ipc.open_file(file).read_all()
            path.unlink()
            encoded = read["value"].combine_chunks().dictionary_encode()
            if isinstance(encoded, pa.ChunkedArray):
                encoded = encoded.combine_chunks()
            self._write(read["row"].to_numpy(), encoded.indices.to_numpy().astype(np.uint32) + np.uint32(self.n_codes))
            self.n_codes += len(encoded.dictionary)
        return self._codes

    def _write(self, rows: NDArray[np.int64], codes: NDArray[Any]) -> None:
        """Write codes to increasing places, one chunk of the column at a time."""
        step = 1 << 20
        for low in range(0, self._n_records, step):
            first, stop = np.searchsorted(rows, [low, low + step])
            if first == stop:
                continue
            run = self._codes.read(low, min(step, self._n_records - low))
            run[rows[first:stop] - low] = codes[first:stop]
            self._codes.write(low, run)


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
