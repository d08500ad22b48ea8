# SPDX-License-Identifier: Apache-2.0
"""Iyengar's classification metric: how many records differ from their group's majority in the label."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import InputError
from sfumato.frames import read_table
from sfumato.loss.groups import Names, check_suppressed, code_values, group_released, read_released
from sfumato.loss.result import Loss


def classification_metric(
    released: Any, labels: Any, quasi_identifiers: Names | None = None, *, n_suppressed: int = 0
) -> Loss:
    """Return the share of records that are suppressed or whose label is not the most frequent one of their group.

    Parameters
    ----------
    released : frame or array
        The released records.
    labels : str, int or array-like of shape (n_records,)
        The column of `released` that is to be predicted, or its values.
    quasi_identifiers : names or positions of columns, optional
        The rewritten columns; all but the label unless named.
    n_suppressed : int, default=0
        Records that were left out; each counts 1.

    Returns
    -------
    Loss
        From 0 (every group has one label) to 1.

    References
    ----------
    Iyengar, V. S. (2002). Transforming data to satisfy privacy constraints.

    Examples
    --------
    >>> import pyarrow as pa
    >>> classification_metric(pa.table({"age": ["30-39", "30-39", "30-39", "40-49"]}), ["a", "a", "b", "b"]).total
    0.25
    """
    table, names = read_released(released, quasi_identifiers)
    left_out = check_suppressed(n_suppressed)
    if isinstance(labels, str | int):
        [label_name] = table.resolve(labels, "labels")
        codes = code_values(table.column(label_name))
        if quasi_identifiers is None:
            names = tuple(name for name in names if name != label_name)
    else:
        as_column = np.asarray(labels, dtype=object).reshape(-1, 1)
        codes = code_values(read_table(as_column).column("x0"))
    if len(codes) != table.n_records:
        raise InputError(
            f"labels has {len(codes)} values and the release {table.n_records} records: expected one label per record."
        )
    n_all = table.n_records + left_out

    def penalty(group: NDArray[np.int64]) -> float:
        counts = np.zeros((int(group.max()) + 1, int(codes.max()) + 1), np.int64)
        np.add.at(counts, (group, codes), 1)
        return float((table.n_records - counts.max(axis=1).sum() + left_out) / n_all)

    total = penalty(group_released(table, names))
    columns = {name: penalty(group_released(table, [name])) for name in names}
    return Loss("classification metric", total, columns, total)
