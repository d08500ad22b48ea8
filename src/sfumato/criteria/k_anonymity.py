# SPDX-License-Identifier: Apache-2.0
"""k-anonymity: no group is smaller than k."""

from __future__ import annotations

import numbers
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.criteria.base import Counting, CriterionFacts
from sfumato.errors import ParameterError, named


@dataclass(frozen=True)
class KAnonymity:
    """Every record shares its quasi-identifiers with at least k - 1 others.

    Parameters
    ----------
    k : int
        Fewest records of a group, or fewest persons when `unit` is given; at least 2.
    unit : str, optional
        Column that says which person a record belongs to. A person with many records then counts once.

    Notes
    -----
    *Guarantee.* Someone who knows a person's quasi-identifiers cannot tell which of at least k records (or persons)
    is theirs. It does not stop them from learning what all records of the group have in common.

    References
    ----------
    Sweeney, L. (2002). k-anonymity: a model for protecting privacy.

    Examples
    --------
    >>> import numpy as np
    >>> KAnonymity(3).passes(np.array([[2], [3]]), np.array([5])).tolist()
    [False, True]
    """

    facts = CriterionFacts("k-anonymity", "every group has at least k records, or k persons", example={"k": 10})

    k: int
    unit: str | None = None

    def __post_init__(self) -> None:
        given: object = self.k
        if isinstance(given, bool) or not isinstance(given, numbers.Integral) or given < 2:
            raise ParameterError(
                f"{named('k', self.k)}: expected an integer of at least 2. With k=1 every record may stand alone; "
                "5 to 100 is common."
            )
        column: object = self.unit
        if column is not None and not isinstance(column, str):
            raise ParameterError(
                f"{named('unit', column)}: expected the name of one column. Records that belong to one person share "
                "its value."
            )

    @property
    def column(self) -> str | None:
        """The column that tells persons apart, if any."""
        return self.unit

    @property
    def counting(self) -> Counting:
        """Records, or persons when a unit is given."""
        return "records" if self.unit is None else "distinct"

    @property
    def least_records(self) -> int:
        """A group of k persons has at least k records."""
        return self.k

    @property
    def asks_records_alone(self) -> bool:
        """True where records are counted."""
        return self.unit is None

    def fails_in_parts(self, *, leaves_out_missing: bool) -> bool:
        """True: no part has more records or persons than the whole."""
        return True

    def passes(self, counts: NDArray[np.int64], reference: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which groups have at least k records or persons."""
        return counts[:, 0] >= self.k

    def value(self, counts: NDArray[np.int64], reference: NDArray[np.int64]) -> int:
        """Return the size of the smallest group."""
        return int(counts[:, 0].min())

    def describe(self) -> str:
        """Return the requirement in one sentence."""
        return f"every group has at least {self.k} {'records' if self.unit is None else 'different persons'}"
