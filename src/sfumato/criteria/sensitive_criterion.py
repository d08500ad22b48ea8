# SPDX-License-Identifier: Apache-2.0
"""The shared part of criteria on a sensitive column: its name, the meaning of missing values, shares from counts.

Each criterion says in ``_each`` what a group reaches and in ``_passes`` which groups are safe; here groups without a
counted record are left out, and values that the whole table does not have.
"""

from __future__ import annotations

import copy
import numbers
from collections.abc import Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sfumato.criteria.base import Counting
from sfumato.errors import ParameterError, named

Missing = Literal["value", "suppress"]
Counts = NDArray[np.int64]

TARGET = "y"
"""Name of the target for a criterion on it, where the target was handed over without a name of its own."""

TOLERANCE = 1e-9
"""Distance from a bound that is put down to rounding: far below what one record changes, far above float error."""


@runtime_checkable
class KnowsValues(Protocol):
    """A criterion that must know which value each column of the counts is for, to order them or to find them."""

    def for_values(self, values: Sequence[Any]) -> Any:
        """Return the criterion for counts whose columns are these values, None being missing."""
        ...


class OnSensitiveColumn:
    """Base of the criteria that count the values of a sensitive column; subclasses are frozen dataclasses."""

    sensitive: str
    missing: Missing

    def _check_sensitive(self) -> None:
        name: object = self.sensitive
        if not isinstance(name, str):
            raise ParameterError(
                f"{named('sensitive', name)}: expected the name of one column. For several, give one criterion each."
            )
        if self.missing not in ("value", "suppress"):
            raise ParameterError(
                f"{named('missing', self.missing)}: expected 'value' (a missing value is a value of its own) or "
                "'suppress' (the record does not count)."
            )

    @property
    def column(self) -> str | None:
        """The sensitive column."""
        return self.sensitive

    @property
    def counting(self) -> Counting:
        """How often each value occurs in a group."""
        return "values"

    def passes(self, counts: Counts, reference: Counts) -> NDArray[np.bool_]:
        """Return which groups are safe.

        Parameters
        ----------
        counts : ndarray of int64, shape (m, values)
            How often each value occurs in each of m groups. A group without any counted record discloses no value,
            and is safe.
        reference : ndarray of int64, shape (values,)
            How often each value occurs in the whole table.

        Returns
        -------
        safe : ndarray of bool, shape (m,)
        """
        safe = np.ones(len(counts), np.bool_)
        has_records = counts.sum(axis=1) > 0
        safe[has_records] = self._passes(counts[has_records], np.asarray(reference))
        return safe

    def value(self, counts: Counts, reference: Counts) -> float | None:
        """Return what the groups reach, the worst of them; None where there is none."""
        return self.worst(self.each(counts, reference))

    def worst(self, reached: NDArray[np.float64]) -> float | None:
        """Return the worst of what groups reach, as `each` says it; None where no bound would do, or no group is."""
        reached = reached[~np.isnan(reached)]
        worst = float(self._worst(reached)) if len(reached) else np.nan
        return worst if np.isfinite(worst) else None

    def each(self, counts: Counts, reference: Counts) -> NDArray[np.float64]:
        """Return what each group reaches; infinity where no bound would do, NaN without a counted record."""
        reached = np.full(len(counts), np.nan)
        has_records = counts.sum(axis=1) > 0
        reached[has_records] = self._each(counts[has_records], np.asarray(reference))
        return reached

    def _passes(self, counts: Counts, reference: Counts) -> NDArray[np.bool_]:
        raise NotImplementedError

    def _each(self, counts: Counts, reference: Counts) -> NDArray[np.float64]:
        raise NotImplementedError

    def _worst(self, reached: NDArray[np.float64]) -> Any:
        return reached.max()

    def remedy(self, reference: Counts) -> str:
        """Describe the column, with the bound that the whole table meets."""
        return f"The column {self.sensitive!r} has {_n_values(reference)} different values."

    def _which_missing(self) -> str:
        return "" if self.missing == "value" else ", records without a value left out"


def check_number(name: str, value: object, *, above: float, at_most: float | None = None, example: str) -> None:
    """Raise unless the value is a number in a range that starts above a bound."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    given = float(value) if is_number else np.nan  # type: ignore[arg-type]
    if np.isfinite(given) and given > above and (at_most is None or given <= at_most):
        return
    upper = "" if at_most is None else f" and at most {at_most:g}"
    raise ParameterError(f"{named(name, value)}: expected a number above {above:g}{upper}. {example}")


def check_whole(name: str, value: object, *, at_least: int, example: str) -> None:
    """Raise unless the value is an integer of at least a bound."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < at_least:
        raise ParameterError(f"{named(name, value)}: expected a whole number of at least {at_least}. {example}")


def shares(counts: Counts, reference: Counts) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
    """Return the shares of the values in each group, in the whole table, and which values the table has.

    The first two cover the values the table has: a value nobody has is no part of the distribution.
    """
    known = reference > 0
    if counts[:, ~known].any():
        raise ParameterError(
            "counts of values that the reference has none of: expected the counts of the whole table as reference. "
            "Pass the sum of the counts of all groups."
        )
    own = counts[:, known]
    return own / own.sum(axis=1, keepdims=True), reference[known] / reference.sum(), known


def _n_values(reference: Counts) -> int:
    return int((np.asarray(reference) > 0).sum())


def copied(criterion: Any, **hidden: Any) -> Any:
    """Return a copy of a frozen criterion with attributes beside its parameters."""
    made: Any = copy.copy(criterion)
    for name, value in hidden.items():
        object.__setattr__(made, name, value)
    return made
