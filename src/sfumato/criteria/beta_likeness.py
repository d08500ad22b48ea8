# SPDX-License-Identifier: Apache-2.0
"""beta-likeness: no sensitive value becomes much more likely by knowing a person's group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.criteria.base import CriterionFacts, Measured
from sfumato.criteria.sensitive_criterion import TOLERANCE, Counts, Missing, OnSensitiveColumn, check_number, shares
from sfumato.errors import ParameterError, named


@dataclass(frozen=True)
class BetaLikeness(OnSensitiveColumn):
    """No sensitive value's share in a group exceeds its share in the table by more than beta times that share.

    Parameters
    ----------
    beta : float
        Largest relative gain ``(q - p) / p`` of a value with share p in the table and q in a group; above 0.
    sensitive : str
        The sensitive column; ``"y"`` for the target when X has no column of that name.
    kind : {"basic", "enhanced"}, default="basic"
        Enhanced: the gain is at most ``min(beta, -ln(p))``, so that frequent values, which basic beta-likeness
        leaves nearly free, are bounded too.
    missing : {"value", "suppress"}, default="value"
        A missing sensitive value is a value of its own, or the record does not count.

    Notes
    -----
    *Guarantee.* Someone who knew how the sensitive values are distributed in the table becomes at most 1 + beta times
    as sure of any one of them by finding a person's group. A value that becomes less likely is not bounded: that a
    group does not have it can be learned. It keeps holding when groups are joined.

    `value` is the smallest beta that all groups meet; for ``"enhanced"`` None when a value gains more than
    ``-ln(p)``, which no beta allows.

    References
    ----------
    Cao, J., Karras, P. (2012). Publishing microdata with a robust privacy guarantee.

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.array([[2, 2], [1, 5]])
    >>> BetaLikeness(0.5, "diagnosis").passes(counts, counts.sum(axis=0)).tolist()
    [False, True]
    >>> round(BetaLikeness(0.5, "diagnosis").value(counts, counts.sum(axis=0)), 3)
    0.667
    """

    facts = CriterionFacts(
        "beta-likeness",
        "in every group the share of each sensitive value exceeds its share in the table by at most beta times that "
        "share",
        (
            Measured(
                "basic beta-likeness",
                "the largest gain of a value's share in a group over its share in the table, relative to the latter",
                {"beta": 1.0},
            ),
            Measured(
                "enhanced beta-likeness",
                "the smallest beta that bounds every gain together with -ln of the value's share in the table",
                {"beta": 1.0, "kind": "enhanced"},
                if_unbounded="a value gains more than -ln of its share in the table, which no beta allows",
            ),
        ),
        example={"beta": 0.8},
    )

    beta: float
    sensitive: str
    kind: Literal["basic", "enhanced"] = "basic"
    missing: Missing = "value"

    def __post_init__(self) -> None:
        check_number("beta", self.beta, above=0, example="1 lets a share double.")
        if self.kind not in ("basic", "enhanced"):
            raise ParameterError(f"{named('kind', self.kind)}: expected 'basic' or 'enhanced'.")
        self._check_sensitive()

    def _passes(self, counts: Counts, reference: Counts) -> NDArray[np.bool_]:
        gains, p = _gains(counts, reference)
        bound = np.full(len(p), float(self.beta)) if self.kind == "basic" else np.minimum(self.beta, -np.log(p))
        return np.asarray((gains <= bound + TOLERANCE).all(axis=1), np.bool_)

    def _each(self, counts: Counts, reference: Counts) -> NDArray[np.float64]:
        gains, p = _gains(counts, reference)
        reached = np.maximum(gains.max(axis=1), 0.0)
        if self.kind == "basic":
            return np.asarray(reached, np.float64)
        return np.where(np.any(gains > -np.log(p) + TOLERANCE, axis=1), np.inf, reached)

    def describe(self) -> str:
        """Return the requirement in one sentence."""
        bound = f"{self.beta:g}" if self.kind == "basic" else f"min({self.beta:g}, -ln(its share))"
        return (
            f"in every group the share of each value of {self.sensitive!r} exceeds its share in the table by at most "
            f"{bound} times that share{self._which_missing()}"
        )


def _gains(counts: Counts, reference: Counts) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    q, p, _ = shares(counts, reference)
    return (q - p) / p, p
