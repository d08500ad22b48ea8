# SPDX-License-Identifier: Apache-2.0
"""Apply a generalization to a Spark DataFrame, as Spark SQL."""

from __future__ import annotations

import secrets
from typing import Any

from sfumato.errors import InputError
from sfumato.generalization import Generalization
from sfumato.generalization.export.sql import SqlOutput
from sfumato.spark.session import check_frame, quoted, selected


def transform(generalization: Generalization, frame: Any, *, output: SqlOutput = "labels") -> Any:
    """Return a frame with the buckets of a generalization in place of its columns.

    Parameters
    ----------
    generalization : Generalization
    frame : pyspark.sql.DataFrame
        Columns that the generalization does not know are left as they are.
    output : {"labels", "codes"}, default="labels"

    Returns
    -------
    pyspark.sql.DataFrame
        Computed by Spark when it is used; nothing of sfumato runs then.
    """
    check_frame(frame)
    absent = [name for name in generalization.names if name not in frame.columns]
    if absent:
        raise InputError(
            f"the table lacks the columns {', '.join(map(repr, absent))}: expected all that the generalization has. "
            "Add them, or make the generalization without them."
        )
    others = [quoted(name) for name in frame.columns if name not in generalization.names]
    listed = generalization.to_sql("spark", output=output)
    view = f"sfumato_{secrets.token_hex(8)}"
    frame.createOrReplaceTempView(view)
    try:
        made = frame.sparkSession.sql(f"SELECT {', '.join([listed, *others])} FROM {view}")
    finally:
        frame.sparkSession.catalog.dropTempView(view)
    return selected(made, frame.columns)
