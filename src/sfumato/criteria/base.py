# SPDX-License-Identifier: Apache-2.0
"""What a criterion is: a vectorised test on the counts of groups.

Neither the engine nor a criterion knows the other: the anonymizers hand the engine a criterion's ``passes``.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Counting = Literal["records", "values", "distinct", "presence"]


@runtime_checkable
class Criterion(Protocol):
    """A condition that every released group meets.

    Attributes
    ----------
    column : str or None
        The column whose values are counted; None counts records.
    counting : {"records", "values", "distinct", "presence"}
        What the counts handed to `passes` are: records of the group, shape (m, 1); how often each value of
        `column` occurs, shape (m, values); how many different values occur, shape (m, 1); or the records of the
        group and the members of a population in its cell, shape (m, 2).

    Notes
    -----
    A criterion may have more. ``missing``: ``"suppress"`` leaves records without a value of `column` out of the
    counts, which are otherwise those of a value of its own, the last. ``for_values(values)``: return the criterion
    for counts whose columns are these values. ``remedy(reference)``: say which bound the whole table would meet,
    when it does not meet this one.
    """

    @property
    def column(self) -> str | None:  # noqa: D102 - described above
        ...

    @property
    def counting(self) -> Counting:  # noqa: D102 - described above
        ...

    def passes(self, counts: NDArray[np.int64], reference: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Say which of m groups are safe; `reference` has the same counts for the whole table."""
        ...

    def value(self, counts: NDArray[np.int64], reference: NDArray[np.int64]) -> Any:
        """Return what the groups reach, as one number for a report."""
        ...

    def describe(self) -> str:
        """Say in one sentence what is required."""
        ...
