# SPDX-License-Identifier: Apache-2.0
"""``sfumato apply`` on a Parquet file that is worked through piece by piece, with a partition or a generalization."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato.backends.blocks.pass_through import PassThrough
from sfumato.backends.parquet.reader import ParquetFiles
from sfumato.backends.parquet.rewrite import used_categories
from sfumato.cli.out_of_core import progress_of
from sfumato.files.verified_output import Recount
from sfumato.frames import read_table
from sfumato.frames.arrow_tables import without_metadata
from sfumato.parquet.generalizing import (
    missing_as_nan,
    transform,
    with_compact_dictionaries,
    with_one_kind_of_missing,
    write_piecewise,
)
from sfumato.schema import ExposedColumnError
from sfumato.verification import GroupCounter

if TYPE_CHECKING:
    from sfumato.backends.blocks.table import BlockTable
    from sfumato.cli.console import Console
    from sfumato.generalization.artifact import Output


def check_passing(
    files: BlockTable, check_schema: Callable[..., Any], categorical: Sequence[str], **roles: Any
) -> None:
    """Refuse columns that would pass through and point at persons by themselves, looking at all records.

    Parameters
    ----------
    files : BlockTable
    check_schema : callable
        Builds the schema of a table, given its roles.
    categorical : sequence of str
        Columns of numbers that are codes.
    roles
        As of `build_schema`.
    """
    head = read_table(files.head(1 << 16), categorical=categorical)
    schema = check_schema(head, is_whole=False, **roles)
    watched = PassThrough(schema, head, files.n_records, is_chosen=True, decided=schema.quasi_identifiers)
    for batch in files.batches(watched.names) if watched.names else ():
        watched.add(batch)
    try:
        watched.check()
    except ExposedColumnError as error:
        raise ExposedColumnError(error.column, error.why, instead=["identifiers"]) from None


def minimize_pieces(
    console: Console, generalization: Any, files: BlockTable, output: Path, *, values: Output, drop: Sequence[str]
) -> None:
    """Replace every value by its bucket."""
    transform(generalization, files, output, output=values, drop=drop, progress=progress_of(console))


def recode_pieces(console: Console, partition: Any, files: BlockTable, output: Path, k: int) -> Recount:
    """Give every record the values of the group it falls into, and count the groups of what was written."""
    import pyarrow as pa

    rewritten = [part.name for parts in partition.values.values() for part in parts]
    written = used_categories(partition, {})
    same = [name for name in rewritten if name in files.names]
    as_nan = missing_as_nan(files, [n for n in same if pa.types.is_floating(files.schema.field(n).type)])

    def made(batch: Any) -> Any:
        table = with_one_kind_of_missing(partition.transform(batch), as_nan)
        return without_metadata(with_compact_dictionaries(table, written))

    write_piecewise(files, output, made, rewritten, progress_of(console))
    counter = GroupCounter(rewritten)
    for batch in ParquetFiles(output).batches(rewritten or None):
        counter.add(batch)
    sizes = counter.sizes()
    return Recount(sizes=sizes, n_records=files.n_records, n_records_in_small_groups=int(sizes[sizes < k].sum()), k=k)
