# SPDX-License-Identifier: Apache-2.0
"""Tables in Parquet files larger than memory: the same verbs, out of core.

`fit_transform` anonymizes files into a file and gives exactly the groups and values that the same table in memory
would get; `measure` says of files what `sfumato.measure` says of a table; `anatomize` divides them as `Anatomizer`
does; `transform` applies a generalization; `release` promises epsilon.

Examples
--------
>>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
>>> import sfumato
>>> with tempfile.TemporaryDirectory() as folder:
...     pq.write_table(pa.table({"age": [30, 30, 41, 41, 52]}), f"{folder}/people.parquet")
...     sfumato.parquet.measure(f"{folder}/people.parquet").k
1
"""

from sfumato.parquet.anatomizing import ParquetAnatomy, anatomize
from sfumato.parquet.anonymizing import ParquetRelease, fit_transform
from sfumato.parquet.generalizing import transform
from sfumato.parquet.measuring import measure
from sfumato.parquet.private_releasing import release
from sfumato.progress import PrintedProgress

__all__ = [
    "ParquetAnatomy",
    "ParquetRelease",
    "PrintedProgress",
    "anatomize",
    "fit_transform",
    "measure",
    "release",
    "transform",
]
