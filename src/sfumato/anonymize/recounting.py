# SPDX-License-Identifier: Apache-2.0
"""Recount a finished table apart from the engine that made it: the last thing before it leaves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.criteria.criterion_counts import Counter
from sfumato.errors import GuaranteeError
from sfumato.verification import count_groups, count_values_by_block, label_groups


def verify(
    frame: Any,
    columns: Sequence[str],
    counters: Sequence[Counter],
    rows: NDArray[np.int64] | None,
    *,
    n_threads: int = 1,
) -> int:
    """Recount a finished table apart from the engine (only tables are read alike); raise when a criterion fails.

    Parameters
    ----------
    frame : frame
        The table that is about to leave.
    columns : sequence of str
        Its quasi-identifiers, by the names they leave with.
    counters : sequence of Counter
    rows : ndarray or None
        Which of the counters' records the table has, in its order; None: all.
    n_threads : int

    Returns
    -------
    smallest_group : int
    """
    sizes = count_groups(frame, columns, n_threads=n_threads)
    needs_groups = any(c.population is not None or c.criterion.counting == "values" for c in counters)
    group = label_groups(frame, columns) if needs_groups else None
    for counter in counters:
        n_failed = _count_failed(frame, columns, counter, rows, sizes, group)
        if n_failed:
            raise GuaranteeError(
                f"the rewritten table has {n_failed} of {len(sizes)} groups for which it does not hold that "
                f"{counter.criterion.describe()}: expected none. Nothing is released. Please report this."
            )
    return int(sizes.min())


def _count_failed(
    frame: Any,
    columns: Sequence[str],
    counter: Counter,
    rows: NDArray[np.int64] | None,
    sizes: NDArray[np.int64],
    group: NDArray[np.int64] | None,
) -> int:
    if counter.population is not None:
        assert group is not None
        return int((~counter.passes(_count_presence(group, counter, rows))).sum())
    if counter.value_of_row is None:
        return int((~counter.passes(sizes[:, None])).sum())
    values = counter.value_of_row if rows is None else counter.value_of_row[rows]
    if counter.criterion.counting == "distinct":
        return int((~counter.passes(count_groups(frame, columns, distinct=values)[:, None])).sum())
    assert group is not None
    blocks = count_values_by_block(group, values, counter.n_values)
    return sum(int((~counter.passes(counts)).sum()) for counts in blocks)


def _count_presence(seen: NDArray[np.int64], counter: Counter, rows: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Count records and population by what the table shows: groups with the same values are one group."""
    assert counter.population is not None
    assert counter.group_of_row is not None
    group = counter.group_of_row if rows is None else counter.group_of_row[rows]
    seen_of_group = np.full(int(group.max()) + 2, -1, np.int64)  # the last place serves those in no group
    seen_of_group[group] = seen
    members = seen_of_group[counter.population]
    n_seen = int(seen.max()) + 1
    counts = [np.bincount(part, minlength=n_seen) for part in (seen, members[members >= 0])]
    if not np.array_equal(seen_of_group[group], seen):
        counts[1][:] = 0  # a group that shows different values has no population that could be told apart
    return np.column_stack(counts).astype(np.int64)
