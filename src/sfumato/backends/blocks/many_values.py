# SPDX-License-Identifier: Apache-2.0
"""Number text with more different values than memory should list: names, addresses, keys.

Values are written to private files by their hash, so that equal ones come into the same file, and numbered there, one
file after the other. Called by ``column_codes``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.backends.blocks.working_files import ColumnFile, WorkingFiles, cannot_write
from sfumato.columns import Column


@contextmanager
def _written() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise cannot_write(error) from None


class ManyValues:
    """One column of text on its way to numbers.

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
        """Write the values of a piece away."""
        import pyarrow as pa

        assert column.categories is not None
        n_files = len(self._writers)
        values = pa.array(column.categories.tolist(), pa.large_string())
        # Python's hash of text is keyed anew in every process: nobody can make values that all meet in one file.
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
        """Number the values and return the numbers of all records."""
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
        """Write numbers to rising places, a run of the column at a time."""
        step = 1 << 20
        for low in range(0, self._n_records, step):
            first, stop = np.searchsorted(rows, [low, low + step])
            if first == stop:
                continue
            run = self._codes.read(low, min(step, self._n_records - low))
            run[rows[first:stop] - low] = codes[first:stop]
            self._codes.write(low, run)
