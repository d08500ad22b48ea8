# SPDX-License-Identifier: Apache-2.0
"""Measure a Spark DataFrame: group sizes, risks and different sensitive values, as ``sfumato.measure`` counts them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from sfumato.errors import InputError, ParameterError
from sfumato.measurement.result import describe_size_counts, plain
from sfumato.measurement.risks import risk_of
from sfumato.parquet.anonymizing import as_list
from sfumato.spark.session import check_frame, collected, quoted

_MISSING = "value"


def measure(
    frame: Any, quasi_identifiers: str | Sequence[str], sensitive: str | Sequence[str] | None = None
) -> dict[str, Any]:
    """Measure how well people hide in a Spark DataFrame.

    Parameters
    ----------
    frame : pyspark.sql.DataFrame
    quasi_identifiers : str or list of str
    sensitive : str or list of str, optional

    Returns
    -------
    dict
        ``n_records``, ``k``, ``groups`` and ``prosecutor`` as in ``sfumato.measure(...).to_dict()``, ``n_unique``, and
        ``distinct_l``: for each sensitive column the fewest different values of a group. A missing value is a value of
        its own.
    """
    from pyspark.sql import functions as sql

    check_frame(frame)
    names, secret = as_list(quasi_identifiers), as_list(sensitive)
    for parameter, given in (("quasi_identifiers", names), ("sensitive", secret)):
        for name in given:
            if name not in frame.columns:
                raise ParameterError(
                    f"{parameter} names the column {name!r}, which the table does not have: expected one of its "
                    f"{len(frame.columns)} columns. Correct the name."
                )
    for name in secret:
        if name in names:
            raise ParameterError(
                f"the column {name!r} is named in quasi_identifiers and in sensitive: expected one role per column. "
                "Remove it from one of them."
            )
    if not names:
        raise ParameterError(
            "quasi_identifiers names no column: expected at least one. Name the columns that could point at a person."
        )
    types = {field.name: field.dataType.typeName() for field in frame.schema.fields}

    def counted(name: str) -> Any:
        # NaN is what some tables say for missing; Spark tells the two apart.
        column = sql.col(quoted(name))
        return sql.nanvl(column, sql.lit(None).cast("double")) if types[name] in ("double", "float") else column

    keys = [f"key {place}" for place in range(len(names))]
    values = [f"value {place}" for place in range(len(secret))]
    both = [counted(name).alias(key) for name, key in zip([*names, *secret], [*keys, *values], strict=True)]
    different = [
        (sql.countDistinct(quoted(value)) + sql.max(sql.col(quoted(value)).isNull().cast("int"))).alias(value)
        for value in values
    ]
    groups = frame.select(*both).groupBy(*keys).agg(sql.count(sql.lit(1)).alias("size"), *different)
    fewest = [sql.min(quoted(value)).alias(value) for value in values]
    # Few sizes occur, whatever the number of groups: this is all that the driver needs.
    found = collected(groups.groupBy("size").agg(sql.count(sql.lit(1)).alias("groups"), *fewest).orderBy("size"))
    sizes, n_groups = (found[name].to_numpy().astype(np.int64) for name in ("size", "groups"))
    if not len(sizes):
        raise InputError("the table has 0 records: expected some.")
    described = describe_size_counts(sizes, n_groups, sizes * n_groups, missing=_MISSING, smallest_in_persons=None)
    risk = risk_of("prosecutor", 1.0 / sizes, sizes * n_groups, basis="table", missing=_MISSING)
    document: dict[str, Any] = plain(
        {
            "n_records": int((sizes * n_groups).sum()),
            "k": int(sizes.min()),
            "n_unique": int(n_groups[sizes == 1].sum()),
            "groups": asdict(described),
            "prosecutor": asdict(risk),
            "distinct_l": {
                name: int(found[value].to_numpy().min()) for name, value in zip(secret, values, strict=True)
            },
        }
    )
    return document
