# SPDX-License-Identifier: Apache-2.0
"""A Parquet file as a table whose columns are read on demand.

The command line hands one to an anonymizer in place of a pyarrow table; ``table`` reads it like one.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any


class ParquetColumns:
    """The parts of a pyarrow table that protection needs; the file stays open, so that it stays the same.

    Parameters
    ----------
    path : Path
        A Parquet file with distinct names of columns.

    Attributes
    ----------
    schema : pyarrow.Schema
    column_names : list of str
    shape : tuple of int
        Records and columns.
    num_rows : int

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow as pa
    >>> import pyarrow.parquet as pq
    >>> from sfumato.frames import read_table
    >>> with tempfile.NamedTemporaryFile(suffix=".parquet") as file:
    ...     pq.write_table(pa.table({"age": [31, 42], "city": ["Bari", "Rome"]}), file.name)
    ...     table = read_table(ParquetColumns(Path(file.name)))
    ...     table.names, table.column("age").values.tolist()
    (('age', 'city'), [31, 42])
    """

    def __init__(self, path: Path) -> None:
        """Open the file and read its metadata."""
        import pyarrow.parquet as pq

        # Not a dataset: that would take hive=style parts of the folder's name for columns.
        self._file = pq.ParquetFile(path)
        self._lock = threading.Lock()  # a reader is not for several threads at a time
        self.schema = without_views(self._file.schema_arrow)
        self.column_names: list[str] = self.schema.names
        self.num_rows: int = self._file.metadata.num_rows
        self.shape = (self.num_rows, len(self.column_names))

    def read(self) -> Any:
        """Read all columns into a pyarrow table."""
        with self._lock:
            return self._file.read().cast(self.schema)

    def column(self, position: int) -> Any:
        """Read one column of all records."""
        name = self.column_names[position]
        with self._lock:
            # A name with a point in it may bring others along, which the file takes for parts of it.
            column = self._file.read(columns=[name]).column(name)
        return column.cast(self.schema.types[position])


def without_views(schema: Any) -> Any:
    """Return a schema with plain text instead of string views, which Arrow can neither take nor compare.

    The file has the same type for both.
    """
    import pyarrow as pa

    views = [at for at, kind in enumerate(schema.types) if pa.types.is_string_view(kind)]
    for at in views:
        schema = schema.set(at, schema.field(at).with_type(pa.large_string()))
    return schema
