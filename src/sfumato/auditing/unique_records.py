# SPDX-License-Identifier: Apache-2.0
"""How many released records are unique by columns that no group protects.

k-anonymity speaks of the quasi-identifiers alone. An attacker who knows a person's values in the columns that were
released unchanged needs no quasi-identifier to find a record that no other equals there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sfumato.frames import read_table
from sfumato.report.data import Uniqueness
from sfumato.verification import count_groups

_MOST_LEFT_OUT = 20  # columns, each left out once to see what it does


def measure_uniqueness(
    released: Any, quasi_identifiers: Sequence[str], *, target: str | None = None, smallest_shown: int
) -> tuple[Uniqueness, dict[str, float]]:
    """Count unique records; return what may be shown, and the shares that a gate judges.

    Parameters
    ----------
    released : frame
    quasi_identifiers : sequence of str
        The rewritten columns as they are called in the release.
    target : str, optional
    smallest_shown : int
        A smaller number of unique records is judged, and not told.

    Examples
    --------
    >>> import pyarrow as pa
    >>> table = pa.table({"age": [30] * 4, "wage": [1, 2, 3, 3], "ill": ["yes", "no", "no", "no"]})
    >>> found, judged = measure_uniqueness(table, ["age"], target="ill", smallest_shown=1)
    >>> found.columns, judged
    (('wage', 'ill'), {'max_unique': 0.5, 'max_unique_target': 0.25})
    """
    table = read_table(released)
    n_records = max(1, table.n_records)
    unchanged = [name for name in table.names if name not in quasi_identifiers]

    def count(names: Sequence[str]) -> int:
        return int((count_groups(released, names) == 1).sum()) if names else 0

    def shown(n_unique: int) -> float | None:
        return None if 0 < n_unique < smallest_shown else n_unique / n_records

    n_unique, n_of_target = count(unchanged), count([target] if target is not None else [])
    without: dict[str, float | None] = {}
    if n_unique >= smallest_shown and 1 < len(unchanged) <= _MOST_LEFT_OUT:
        without = {name: shown(count([other for other in unchanged if other != name])) for name in unchanged}
    alone = {}
    if n_unique >= smallest_shown:
        alone = {name: share for name in unchanged if (share := shown(count([name])))}
    found = Uniqueness(
        columns=tuple(unchanged),
        share=shown(n_unique),
        share_by_all=shown(count(table.names)),
        target=None if target is None else shown(n_of_target),
        without=without,
        alone=alone,
        rounded_target=_rounded(table, target) if target is not None and 2 * n_of_target > n_records else {},
    )
    judged = {"max_unique": n_unique / n_records}
    if target is not None:
        judged["max_unique_target"] = n_of_target / n_records
    return found, judged


def _rounded(table: Any, target: str) -> dict[str, float]:
    """Return the share of unique numbers after rounding to 3, 2 and 1 significant digits; nothing for other kinds."""
    column = table.column(target)
    values = column.values if column.missing is None else column.values[~column.missing]
    if column.kind != "number" or not len(values):
        return {}
    size = np.floor(np.log10(np.maximum(np.abs(values.astype(float)), 1e-300)))
    shares = {}
    for digits in (3, 2, 1):
        scale = 10.0 ** (size - digits + 1)
        counts = np.unique(np.round(values / scale) * scale, return_counts=True)[1]
        shares[str(digits)] = float((counts == 1).sum() / len(values))
    return shares
