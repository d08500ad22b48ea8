# SPDX-License-Identifier: Apache-2.0
"""delta-disclosure privacy: no sensitive value becomes much more or much less likely by knowing a group."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.criteria.base import CriterionFacts, Measured
from sfumato.criteria.sensitive_criterion import TOLERANCE, Counts, Missing, OnSensitiveColumn, check_number, shares
from sfumato.errors import ParameterError, named


@dataclass(frozen=True)
class DeltaDisclosure(OnSensitiveColumn):
    """In every group, ``|ln(q / p)| < delta`` for each value with share q in the group and p in the table.

    Parameters
    ----------
    delta : float
        Bound on the logarithm, natural; above 0. For a bound in bits multiply it by 0.693.
    sensitive : str
        The sensitive column; ``"y"`` for the target when X has no column of that name.
    absent : {"fails", "ignored"}, default="fails"
        A value that a group does not have: its logarithm is infinite, so the group fails, as the definition says.
        ``"ignored"`` looks at the values that occur only, as ARX and pyCANON do. It is meant for measuring beside
        them: what a person does not have can be learned, and joining safe groups can make an unsafe one, so that a
        release may be refused.
    missing : {"value", "suppress"}, default="value"
        A missing sensitive value is a value of its own, or the record does not count.

    Notes
    -----
    *Guarantee.* Finding a person's group multiplies what someone thought likely of each sensitive value, knowing the
    table's distribution, by less than exp(delta) and more than exp(-delta). That is strict: every group must have
    every value. With ``absent="fails"`` it keeps holding when groups are joined.

    `value` is the largest logarithm, which delta must lie above; None when a value is absent from a group.

    References
    ----------
    Brickell, J., Shmatikov, V. (2008). The cost of privacy: destruction of data-mining utility in anonymized data
    publishing.

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.array([[2, 2], [1, 3], [0, 4]])
    >>> DeltaDisclosure(1.0, "diagnosis").passes(counts, counts.sum(axis=0)).tolist()
    [True, True, False]
    """

    facts = CriterionFacts(
        "delta-disclosure",
        "in every group the share of each sensitive value differs from its share in the table by a factor whose "
        "logarithm is below delta",
        (
            Measured(
                "delta-disclosure",
                "delta must lie above this: the largest |ln| of a value's share in a group over its share in the table",
                {"delta": 1.0},
                if_unbounded="a group lacks a value that the table has, so no delta is large enough",
            ),
        ),
        example={"delta": 1.0},
    )

    delta: float
    sensitive: str
    absent: Literal["fails", "ignored"] = "fails"
    missing: Missing = "value"

    def __post_init__(self) -> None:
        check_number("delta", self.delta, above=0, example="0.7 lets a share double or halve.")
        if self.absent not in ("fails", "ignored"):
            raise ParameterError(f"{named('absent', self.absent)}: expected 'fails' or 'ignored'.")
        self._check_sensitive()

    def _passes(self, counts: Counts, reference: Counts) -> NDArray[np.bool_]:
        return self._each(counts, reference) < self.delta - TOLERANCE  # strict: what is at the bound fails

    def _each(self, counts: Counts, reference: Counts) -> NDArray[np.float64]:
        q, p, _ = shares(counts, reference)
        ratio = np.where(q > 0, q, p) / p
        logarithm = np.abs(np.log(ratio))
        if self.absent == "fails":
            logarithm[q == 0] = np.inf
        return np.asarray(logarithm.max(axis=1), np.float64)

    def describe(self) -> str:
        """Return the requirement in one sentence."""
        which = "each value" if self.absent == "fails" else "each occurring value"
        return (
            f"in every group the share of {which} of {self.sensitive!r} differs from its share in the table by a "
            f"factor whose logarithm is below {self.delta:g}{self._which_missing()}"
        )
