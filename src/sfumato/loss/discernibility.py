# SPDX-License-Identifier: Apache-2.0
"""The discernibility metric: how many records each record cannot be told from."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.loss.groups import Names, check_k, check_suppressed, group_released, read_released
from sfumato.loss.result import Loss


def discernibility(
    released: Any, quasi_identifiers: Names | None = None, *, k: int | None = None, n_suppressed: int = 0
) -> Loss:
    """Charge every record the size of its group, and a suppressed one the size of the whole table.

    Parameters
    ----------
    released : frame or array
        The released records.
    quasi_identifiers : names or positions of columns, optional
        The rewritten columns; all unless named.
    k : int, optional
        Groups smaller than this count as suppressed.
    n_suppressed : int, default=0
        Records that were left out.

    Returns
    -------
    Loss
        ``total``: the sum over groups of their squared size, plus suppressed records times all records.
        ``normalized``: divided by the square of the number of records, 1 when all form one group.

    References
    ----------
    Bayardo, R. J. and Agrawal, R. (2005). Data privacy through optimal k-anonymization.

    Examples
    --------
    >>> import pyarrow as pa
    >>> discernibility(pa.table({"age": ["30-39", "30-39", "40-49"]})).total
    5.0
    """
    table, names = read_released(released, quasi_identifiers)
    smallest, left_out = check_k(k), check_suppressed(n_suppressed)
    n_all = table.n_records + left_out

    def charge(group: NDArray[np.int64]) -> float:
        sizes = np.bincount(group)
        paid = sizes if smallest is None else np.where(sizes >= smallest, sizes, n_all)
        return float((sizes * paid).sum() + left_out * n_all)

    total = charge(group_released(table, names))
    columns = {name: charge(group_released(table, [name])) for name in names}
    return Loss("discernibility", total, columns, total / n_all**2)
