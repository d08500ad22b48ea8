# SPDX-License-Identifier: Apache-2.0
"""Read the published files as they are: Parquet, CSV in its dialects, and KEEL's format.

The catalogue binds each dataset to one of these readers; pyarrow does the parsing, so pandas is not needed.
"""

from __future__ import annotations

import gzip
import itertools
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa


def read_parquet(paths: Sequence[Path]) -> pa.Table:
    """Read one Parquet file, or several with the same columns below each other."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    return pa.concat_tables([pq.read_table(path) for path in paths])


def read_csv(
    paths: Sequence[Path],
    *,
    separator: str = ",",
    missing: Sequence[str] = (),
    as_text: bool = False,
) -> pa.Table:
    """Read one delimited file with a header; ``as_text`` keeps every column as it is written."""
    import pyarrow as pa

    (path,) = paths
    types = dict.fromkeys(_header(path, separator), pa.string()) if as_text else None
    return parse_csv(path, separator=separator, missing=missing, types=types)


def read_communities(paths: Sequence[Path]) -> pa.Table:
    """Read ``communities.data``, whose column names are in ``communities.names``."""
    table_path, names_path = paths
    names = re.findall(r"^@attribute (\S+)", names_path.read_text(encoding="latin1"), re.MULTILINE)
    return parse_csv(table_path, names=names, missing=["?"])


def read_keel(paths: Sequence[Path]) -> pa.Table:
    """Read a gzipped file of the KEEL repository: attributes after ``@``, then lines of values."""
    (path,) = paths
    with gzip.open(path, "rt", encoding="ascii") as file:
        header = list(itertools.takewhile(lambda line: not line.startswith("@data"), file))
    names = [line.split()[1] for line in header if line.startswith("@attribute")]
    return parse_csv(path, names=names, skip=len(header) + 1)


def read_location(paths: Sequence[Path]) -> pa.Table:
    """Read the Location table: the class, then one 0/1 column for each place or kind of place."""
    import pyarrow as pa

    (path,) = paths
    names = ["class", *(f"visited_{position}" for position in range(1, 447))]
    return parse_csv(path, names=names, types=dict.fromkeys(names, pa.int8()))


def read_lending_club(paths: Sequence[Path]) -> pa.Table:
    """Read the loans and add ``bad``: 1 when the loan was charged off, whatever the credit policy."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = read_parquet(paths)
    is_bad = pc.match_substring(table.column("loan_status"), "Charged Off")
    return table.append_column("bad", is_bad.cast(pa.int8()))


def read_census_kdd(paths: Sequence[Path]) -> pa.Table:
    """Read the census files and store their ``?`` as missing, as in Adult."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table = read_parquet(paths)
    for position, field in enumerate(table.schema):
        if pa.types.is_large_string(field.type) or pa.types.is_string(field.type):
            column = table.column(position)
            known = pc.if_else(pc.equal(column, "?"), pa.scalar(None, field.type), column)
            table = table.set_column(position, field.name, known)
    return table


def read_hierarchy(path: Path) -> list[tuple[str, ...]]:
    """Read a generalization hierarchy: a value and its ever coarser forms in each line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [tuple(line.split(";")) for line in lines if line]


def parse_csv(
    path: Path,
    *,
    separator: str = ",",
    names: Sequence[str] | None = None,
    skip: int = 0,
    missing: Sequence[str] = (),
    types: dict[str, Any] | None = None,
) -> pa.Table:
    """Read a delimited file (plain or gzipped); `names` when it has no header, `missing` for its null marks."""
    import pyarrow.csv as csv

    return csv.read_csv(
        path,
        read_options=csv.ReadOptions(column_names=names, skip_rows=skip),
        parse_options=csv.ParseOptions(delimiter=separator),
        convert_options=csv.ConvertOptions(
            column_types=types,
            # Only what the publisher calls missing is missing: "NA" or "None" in a text column is a value.
            null_values=list(missing),
            strings_can_be_null=bool(missing),
        ),
    )


def _header(path: Path, separator: str) -> list[str]:
    with path.open(encoding="utf-8") as file:
        return file.readline().rstrip("\r\n").split(separator)
