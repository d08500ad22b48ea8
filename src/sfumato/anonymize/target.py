# SPDX-License-Identifier: Apache-2.0
"""Read the target where a criterion protects it: it is no column of the table, yet it leaves beside it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from sfumato.columns import Column
from sfumato.criteria import TARGET, Criterion
from sfumato.errors import InputError, ParameterError
from sfumato.frames import Table, read_table


def names_target(criterion: Criterion, table: Table, target: Any) -> bool:
    """Say whether a criterion is on the target: by its name ``"y"`` or its own, when no column is called that."""
    name = criterion.column
    if criterion.counting != "values" or name is None or name in table.names:
        return False
    return name in (TARGET, getattr(target, "name", None))


def target_column(criteria: Iterable[Criterion], table: Table, target: Any) -> Column | None:
    """Return the target as a column, or None when no criterion is on it.

    Raises
    ------
    ParameterError
        When a criterion is on the target and there is none.
    InputError
        When the target is not one value per record.
    """
    names = [c.column for c in criteria if names_target(c, table, target)]
    if not names:
        return None
    if target is None:
        raise ParameterError(
            f"sensitive={names[0]!r} names the target, and none was passed: expected the target of the records. Pass "
            "it as y or target, or name a column of X."
        )
    n_records = len(target)
    if n_records != table.n_records:
        raise InputError(
            f"the target has {n_records} values for {table.n_records} records: expected one each. Pass the target of "
            "the same records."
        )
    if hasattr(target, "to_frame") and not hasattr(target, "columns"):  # a series, which keeps its type this way
        return _only_column(target.to_frame(name="y"))
    if getattr(target, "column_names", None) or hasattr(target, "columns"):
        return _only_column(target)
    if hasattr(target, "to_pylist"):
        import pyarrow as pa

        return _only_column(pa.table({"y": target}))
    array = np.asarray(target)
    return _only_column(array[:, None] if array.ndim == 1 else array)


def _only_column(frame: Any) -> Column:
    table = read_table(frame)
    if len(table.names) != 1:
        raise InputError(
            f"the target has {len(table.names)} columns and a criterion protects it: expected one value per record, "
            "not probabilities. Pass the labels as target, and what guides as y."
        )
    return table.column(table.names[0])
