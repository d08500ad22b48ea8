# SPDX-License-Identifier: Apache-2.0
"""delta-presence: that a person is in the table at all stays uncertain."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.criteria.base import Counting, CriterionFacts
from sfumato.criteria.sensitive_criterion import TOLERANCE, Counts
from sfumato.errors import ParameterError, named


@dataclass(frozen=True)
class DeltaPresence:
    """The chance that a member of the population is in the table lies between two bounds, group by group.

    Parameters
    ----------
    delta_min, delta_max : float
        Smallest and largest share of the population of a group that may be in the table; from 0 to 1.
    population : frame or array, optional
        The population the records were taken from: at least the quasi-identifiers, by the same names (for an array,
        the same columns), exact as they were before anonymizing. Needed by the anonymizers.

    Notes
    -----
    *Guarantee.* Someone who knows the quasi-identifiers of everybody in the population, finds a person's group, and
    counts how many of the population belong to it, is between delta_min and delta_max sure that the person is in the
    released table. The population must hold every released record, else the shares mean nothing: a group with more
    records than the population has there is never safe. It keeps holding when groups are joined.

    Members of the population in whose cell no record is released do not lower the share of a group they are joined
    with: the released values do not show their cell, so a reader does not count them. Such a reader knows that they are
    not in the table, and delta_min does not protect them from that; it holds for who counts by the fitted cells.

    `passes` and `value` take two counts per group: its records, and the members of the population whose
    quasi-identifiers lie in its cell. Whose do is known only once the cells are, and the engine counts no records
    beside those it groups; so this is a condition on `release`, which joins groups until all are safe, and a
    measurement, but not a condition while groups are made. `fit_transform`, which joins nothing, refuses it.

    `value` is the largest share of a group.

    References
    ----------
    Nergiz, M. E., Atzori, M., Clifton, C. (2007). Hiding the presence of individuals from shared databases.

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.array([[2, 10], [3, 4]])
    >>> DeltaPresence(0.1, 0.5).passes(counts, counts.sum(axis=0)).tolist()
    [True, False]
    """

    facts = CriterionFacts(
        "delta-presence",
        "between delta_min and delta_max of the population of every group is in the table",
        example={"delta_min": 0.0, "delta_max": 0.6},
    )

    delta_min: float
    delta_max: float
    population: Any = field(default=None, repr=False, compare=False, metadata={"policy": "table file"})

    def __post_init__(self) -> None:
        bounds: tuple[object, object] = (self.delta_min, self.delta_max)
        are_numbers = all(isinstance(b, numbers.Real) and not isinstance(b, bool) for b in bounds)
        if not are_numbers or not 0 <= self.delta_min <= self.delta_max <= 1:
            raise ParameterError(
                f"{named('delta_min', self.delta_min)} and {named('delta_max', self.delta_max)}: expected numbers from "
                "0 to 1, the smaller first, such as 0 and 0.2."
            )

    @property
    def column(self) -> str | None:
        """None: no column of the table is counted."""
        return None

    @property
    def counting(self) -> Counting:
        """Records of the table and of the population."""
        return "presence"

    def passes(self, counts: Counts, reference: Counts) -> NDArray[np.bool_]:
        """Return which groups are safe.

        Parameters
        ----------
        counts : ndarray of int64, shape (m, 2)
            Records of each group, and members of the population in its cell. Nobody in either: no group, and safe.
        reference : ndarray of int64, shape (2,)
            The same for the whole table; not looked at.
        """
        members, population = counts[:, 0], counts[:, 1]
        enough = members >= self.delta_min * population * (1 - TOLERANCE)
        return np.asarray(enough & (members <= self.delta_max * population * (1 + TOLERANCE)), np.bool_)

    def value(self, counts: Counts, reference: Counts) -> float | None:
        """Return the largest share of a group; None where there is no group, or one the population has not."""
        reached = self.each(counts, reference)
        reached = reached[~np.isnan(reached)]
        if not len(reached) or not np.isfinite(reached).all():
            return None
        return float(reached.max())

    def each(self, counts: Counts, reference: Counts) -> NDArray[np.float64]:
        """Return the share of each group; infinity where the population has nobody, NaN for no group at all."""
        members, population = counts[:, 0].astype(np.float64), counts[:, 1]
        without = np.where(members > 0, np.inf, np.nan)
        return np.divide(members, population, out=without, where=population > 0)

    def remedy(self, reference: Counts) -> str:
        """Describe the share of the whole table."""
        members, population = int(reference[0]), int(reference[1])
        if members > population:
            return f"The population has {population} records, fewer than the table's {members}: pass the whole one."
        return (
            f"The table has {members} of the population's {population} records, a share of {members / population:.4g}."
        )

    def describe(self) -> str:
        """Return the requirement in one sentence."""
        return f"between {self.delta_min:g} and {self.delta_max:g} of the population of every group is in the table"
