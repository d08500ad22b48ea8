# SPDX-License-Identifier: Apache-2.0
"""Apply a generalization to a Spark DataFrame: what ``Generalization.transform`` makes of the table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

from sfumato.backends.spark.session import check_frame, example_of, pieces, quoted
from sfumato.errors import ParameterError
from sfumato.generalization import Generalization
from sfumato.generalization.artifact import Output
from sfumato.generalization.attributes import OrderedAttribute
from sfumato.generalization.export.sql import case_expressions


def transform(generalization: Generalization, frame: Any, *, output: Output = "codes") -> Any:
    """Return a frame with the buckets of a generalization in place of its columns.

    Parameters
    ----------
    generalization : Generalization
    frame : pyspark.sql.DataFrame
        Columns that are no attributes pass through untouched.
    output : {"codes", "labels", "representatives"}, default="codes"
        Numbers of buckets, readable labels, or one value per bucket in the column's own type.

    Returns
    -------
    pyspark.sql.DataFrame
        Computed by Spark when it is used. Codes and labels are Spark SQL, that of ``generalization.to_sql("spark")``,
        and nothing of sfumato runs then; representatives are written by workers that have sfumato.
    """
    from pyspark.sql import functions as sql

    check_frame(frame)
    if output not in get_args(Output):
        raise ParameterError(f"output={output!r}: expected one of {', '.join(map(repr, get_args(Output)))}.")
    _check_columns(generalization, frame)
    if output == "representatives":

        def work(batches: Iterator[Any]) -> Iterator[Any]:
            for piece in pieces(batches):
                yield from generalization.transform(piece, output="representatives").combine_chunks().to_batches()

        return frame.mapInArrow(work, frame.schema)
    present = [attribute for attribute in generalization.attributes if attribute.name in frame.columns]
    written = case_expressions(present, "spark", output=output)
    return frame.select(
        *[sql.expr(written[name]).alias(name) if name in written else sql.col(quoted(name)) for name in frame.columns]
    )


def _check_columns(generalization: Generalization, frame: Any) -> None:
    """Refuse columns that are absent or of another kind, as for tables in memory; SQL would convert the latter."""
    table = generalization._read(example_of(frame))
    for attribute in generalization.attributes:
        if not attribute.is_collected:
            continue
        column = table.column(attribute.name)
        if isinstance(attribute, OrderedAttribute) or column.kind != "category":
            attribute.encode(replace(column, missing=None))
