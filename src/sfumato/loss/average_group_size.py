# SPDX-License-Identifier: Apache-2.0
"""The average group size, as it is or over the smallest that would do."""

from __future__ import annotations

from typing import Any

from sfumato.loss.groups import Names, check_k, group_released, read_released
from sfumato.loss.result import Loss


def average_group_size(released: Any, quasi_identifiers: Names | None = None, *, k: int | None = None) -> Loss:
    """Divide the records by the groups, and by k if given: C_avg, 1 when every group has exactly k records.

    Parameters
    ----------
    released : frame or array
        The released records, without suppressed ones.
    quasi_identifiers : names or positions of columns, optional
        The rewritten columns; all unless named.
    k : int, optional
        What was asked for.

    Returns
    -------
    Loss
        ``normalized`` is None: the measure has no upper end.

    References
    ----------
    LeFevre, K., DeWitt, D. J. and Ramakrishnan, R. (2006). Mondrian multidimensional k-anonymity.

    Examples
    --------
    >>> import pyarrow as pa
    >>> average_group_size(pa.table({"age": ["30-39", "30-39", "40-49"]})).total
    1.5
    """
    table, names = read_released(released, quasi_identifiers)
    smallest = check_k(k) or 1

    def average(columns: tuple[str, ...]) -> float:
        return table.n_records / (int(group_released(table, columns).max()) + 1) / smallest

    return Loss("average group size", average(names), {name: average((name,)) for name in names})
