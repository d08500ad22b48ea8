# SPDX-License-Identifier: Apache-2.0
"""(alpha, k)-anonymity: no small group, and no sensitive value that most of a group share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sfumato.criteria.base import CriterionFacts, Measured
from sfumato.criteria.sensitive_criterion import (
    TOLERANCE,
    Counts,
    Missing,
    OnSensitiveColumn,
    check_number,
    check_whole,
)


@dataclass(frozen=True)
class AlphaKAnonymity(OnSensitiveColumn):
    """Every group has at least k records, and no sensitive value takes more than a share alpha of them.

    Parameters
    ----------
    alpha : float
        Largest share of a group that one sensitive value may have; above 0 and at most 1.
    k : int
        Fewest records of a group; at least 2.
    sensitive : str
        The sensitive column; ``"y"`` for the target when X has no column of that name.
    missing : {"value", "suppress"}, default="value"
        A missing sensitive value is a value of its own, or the record does not count, for alpha and for k.

    Notes
    -----
    *Guarantee.* Someone who finds a person's group cannot tell the person's record from k - 1 others, and who then
    guesses the sensitive value is right with chance alpha at most. All values are guarded alike: the general model
    of the paper. It keeps holding when groups are joined.

    `value` is the largest share that a value has in a group.

    References
    ----------
    Wong, R. C.-W., Li, J., Fu, A. W.-C., Wang, K. (2006). (alpha, k)-anonymity: an enhanced k-anonymity model for
    privacy preserving data publishing.

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.array([[3, 1], [2, 2], [1, 1]])
    >>> AlphaKAnonymity(0.5, 3, "diagnosis").passes(counts, counts.sum(axis=0)).tolist()
    [False, True, False]
    """

    facts = CriterionFacts(
        "alpha-k-anonymity",
        "every group has at least k records, and no value of a sensitive column has a share above alpha",
        (
            Measured(
                "alpha of (alpha, k)-anonymity", "the largest share of one value in a group", {"alpha": 1.0, "k": 2}
            ),
        ),
        example={"alpha": 0.6, "k": 8},
    )

    alpha: float
    k: int
    sensitive: str
    missing: Missing = "value"

    def __post_init__(self) -> None:
        check_number("alpha", self.alpha, above=0, at_most=1, example="0.5: no value takes more than half of a group.")
        check_whole("k", self.k, at_least=2, example="5 to 100 is common.")
        self._check_sensitive()

    @property
    def least_records(self) -> int:
        """As many as k says."""
        return self.k

    def passes(self, counts: Counts, reference: Counts) -> NDArray[np.bool_]:
        """Return which groups have at least k counted records and no value with a share above alpha."""
        sizes = counts.sum(axis=1)
        most = counts.max(axis=1, initial=0)
        # Without a counted record there are fewer than k of them: such a group is not safe.
        return np.asarray((sizes >= self.k) & (most <= self.alpha * sizes * (1 + TOLERANCE)), np.bool_)

    def _each(self, counts: Counts, reference: Counts) -> NDArray[np.float64]:
        return np.asarray(counts.max(axis=1) / counts.sum(axis=1), np.float64)

    def remedy(self, reference: Counts) -> str:
        """Describe the column, with the alpha and k that the whole table meets."""
        counted = np.asarray(reference)
        total = int(counted.sum())
        smallest = np.ceil(int(counted.max(initial=0)) / total * 1000) / 1000 if total else 1.0
        return (
            f"The column {self.sensitive!r} has {int((counted > 0).sum())} different values in {total} records"
            f"{self._which_missing()}; alpha must be at least {smallest:g} and k at most {total}."
        )

    def describe(self) -> str:
        """Return the requirement in one sentence."""
        return (
            f"every group has at least {self.k} records and no value of {self.sensitive!r} has a share above "
            f"{self.alpha:g}{self._which_missing()}"
        )
