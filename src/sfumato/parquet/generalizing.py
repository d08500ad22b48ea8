# SPDX-License-Identifier: Apache-2.0
"""Apply a generalization to Parquet files out of core, as ``Generalization.transform`` does in memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np

from sfumato.backends.blocks.block_table import BlockTable
from sfumato.backends.parquet.reader import ParquetFiles, as_blocks
from sfumato.documents import unpublished
from sfumato.errors import GuaranteeError, ParameterError, named
from sfumato.frames.arrow_tables import compact_dictionary
from sfumato.generalization import Generalization
from sfumato.generalization.artifact import Output
from sfumato.generalization.attributes import CategoryAttribute
from sfumato.parquet.anonymizing import Paths
from sfumato.progress import Progress, told


def transform(
    generalization: Generalization,
    source: Paths,
    destination: str | os.PathLike[str],
    *,
    output: Output = "codes",
    drop: Iterable[str] = (),
    progress: Progress | None = None,
) -> int:
    """Replace every value of Parquet files by its bucket and write one Parquet file.

    Parameters
    ----------
    generalization : Generalization
    source : path, folder or list of paths
        Columns that are not attributes stay unchanged.
    destination : path
        Appears when all of it was written and read back, or not at all.
    output : {"codes", "labels", "representatives"}, default="codes"
        Numbers of buckets, readable labels, or one value per bucket in the column's own type.
    drop : iterable of str, optional
        Columns to leave out.
    progress : callable, optional
        Called with the step, the records done and their number.

    Returns
    -------
    n_records : int

    Examples
    --------
    >>> import tempfile, pyarrow as pa, pyarrow.parquet as pq
    >>> from sfumato import UniformMinimizer
    >>> from sfumato.parquet import transform
    >>> people = pa.table({"age": [31, 34, 42, 47, 58, 63] * 5, "town": ["Rome"] * 30})
    >>> coarse = UniformMinimizer(2).fit(people, [0, 0, 0, 1, 1, 1] * 5).generalization_
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(people, f"{folder}/people.parquet")
    ...     n_records = transform(coarse, f"{folder}/people.parquet", f"{folder}/coarse.parquet")
    ...     pq.read_table(f"{folder}/coarse.parquet")["age"].to_pylist()[:6]
    [0, 0, 0, 1, 1, 1]
    """
    if output not in get_args(Output):
        raise ParameterError(f"{named('output', output)}: expected one of {', '.join(map(repr, get_args(Output)))}.")
    files = as_blocks(source)
    left_out = list(drop)
    for name in left_out:
        if name not in files.names:
            raise ParameterError(
                f"{named('drop')} names {name!r}, which is not a column of the files. Correct the name."
            )
    touched = [name for name in generalization.names if name in files.names and name not in left_out]
    buckets = {attribute.name: attribute.buckets for attribute in generalization.attributes}
    written = {name: {bucket.representative for bucket in buckets[name]} for name in touched}
    as_nan = {}
    if output == "representatives":
        as_nan = missing_as_nan(files, _that_may_be_missing(generalization, files, left_out))

    def made(batch: Any) -> Any:
        table = generalization.transform(batch.drop_columns(left_out), output)
        return with_compact_dictionaries(with_one_kind_of_missing(table, as_nan), written)

    write_piecewise(files, Path(destination), made, touched, progress)
    return files.n_records


def write_piecewise(
    files: BlockTable, path: Path, made: Callable[[Any], Any], touched: Iterable[str], progress: Progress | None
) -> None:
    """Write the results of a function for every block, count the records that were written, and publish the file.

    `touched` are the columns whose values are new: they may have missing values where the old ones had none.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if any(path.exists() and path.samefile(own) for own in files.paths):
        raise ParameterError(f"the destination {path.name!r} is one of the files read: expected another name.")
    nullable = set(touched)
    with unpublished(path) as temporary:
        writer = None
        try:
            batches = ((batch.num_rows, batch) for batch in files.batches())
            for batch in told(batches, progress, "writing", files.n_records):
                piece = made(batch)
                if writer is None:
                    fields = [field.with_nullable(field.nullable or field.name in nullable) for field in piece.schema]
                    schema = pa.schema(fields, metadata=piece.schema.metadata)
                    writer = pq.ParquetWriter(temporary, schema, compression="zstd")
                writer.write_table(pa.table(piece.columns, names=piece.column_names).cast(writer.schema))
        finally:
            if writer is not None:
                writer.close()
        n_read = sum(batch.num_rows for batch in ParquetFiles(temporary).batches())
        if n_read != files.n_records:
            raise GuaranteeError(
                f"{n_read} records were written instead of {files.n_records}. Nothing is published; please report this."
            )


def _that_may_be_missing(generalization: Generalization, files: BlockTable, left_out: list[str]) -> list[str]:
    """Return the real attributes of which a bucket is written as missing."""
    import pyarrow as pa

    return [
        attribute.name
        for attribute in generalization.attributes
        if attribute.name in files.names
        and attribute.name not in left_out
        and not isinstance(attribute, CategoryAttribute)
        and pa.types.is_floating(files.schema.field(attribute.name).type)
        and any(bucket.representative is None for bucket in attribute.buckets)
    ]


def missing_as_nan(files: BlockTable, names: Sequence[str]) -> dict[str, bool]:
    """Return for each column of reals whether it marks missing values by NaN alone.

    The type of a column does not show it, and a block may differ from the whole.
    """
    import pyarrow.compute as pc

    has_null, has_nan = dict.fromkeys(names, False), dict.fromkeys(names, False)
    for batch in files.batches(names) if names else ():
        for name in names:
            has_null[name] |= batch.column(name).null_count > 0
            has_nan[name] |= bool(pc.any(pc.is_nan(batch.column(name))).as_py())
    return {name: has_nan[name] and not has_null[name] for name in names}


def with_one_kind_of_missing(table: Any, as_nan: Mapping[str, bool]) -> Any:
    """Return a block that marks missing values as the whole column does."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name, is_nan in as_nan.items():
        place = table.schema.get_field_index(name)
        column = table.column(place)
        kind = column.type
        if is_nan:
            column = pc.fill_null(column, pa.scalar(np.nan, kind))
        else:
            column = pc.if_else(pc.is_nan(column), pa.scalar(None, kind), column)
        table = table.set_column(place, pa.field(name, kind), column)
    return table


def with_compact_dictionaries(table: Any, written: Mapping[str, Collection[Any]]) -> Any:
    """Return a block without unused values in its dictionaries.

    Ordered dictionaries must be equal in all blocks, to keep the order. A rewritten column then lists all values that
    may be written to it, and an unchanged one keeps its dictionary.

    Parameters
    ----------
    table : pyarrow.Table
    written : mapping of str to collection
        What may be written to each rewritten column.
    """
    for place, field in enumerate(table.schema):
        column = table.column(place)
        if not getattr(field.type, "ordered", False):
            column = compact_dictionary(column)
        elif field.name in written:
            column = compact_dictionary(column, keep=written[field.name])
        table = table.set_column(place, field, column)
    return table
