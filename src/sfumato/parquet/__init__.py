# SPDX-License-Identifier: Apache-2.0
"""Tables in Parquet files larger than memory: the same verbs, out of core.

`fit_transform` anonymizes files into a file and gives exactly the groups and values that the same table in memory
would get; `measure` says of files what `sfumato.measure` says of a table; `anatomize` divides them as `Anatomizer`
does; `transform` applies a generalization; `release` promises epsilon.
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
