# SPDX-License-Identifier: Apache-2.0
"""What a private result guarantees, as data: epsilon, delta, for whom, and what the guarantee rests on."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from sfumato.private.accounting import membership_limit


@dataclass(frozen=True)
class PrivacyGuarantee:
    """Differential privacy of one released result.

    Attributes
    ----------
    epsilon, delta : float
        The result's probabilities for two neighboring tables differ by a factor of at most ``exp(epsilon)``, up to
        `delta`. An infinite epsilon means that no noise was added.
    adjacency : str
        Which tables are neighbors.
    unit : str or None
        The column that names a person; None if every record is one person's only record.
    mechanism : str
        How the noise is added.
    rests_on : tuple of str
        What has to be true for the guarantee to hold.

    Examples
    --------
    >>> guarantee = PrivacyGuarantee(1.0, 1e-6, "adding or removing one record", None, "Gaussian noise", ())
    >>> round(guarantee.membership_limit, 3)
    0.731
    """

    epsilon: float
    delta: float
    adjacency: str
    unit: str | None
    mechanism: str
    rests_on: tuple[str, ...]

    @property
    def membership_limit(self) -> float:
        """Highest accuracy of any membership attack on a person who is in the table with probability one half."""
        return 1.0 if math.isinf(self.epsilon) else membership_limit(self.epsilon, self.delta)

    def describe(self) -> str:
        """Return the guarantee in words."""
        if math.isinf(self.epsilon):
            return "No differential privacy: no noise was added."
        budget = f"epsilon {self.epsilon:g}" + (f", delta {self.delta:g}" if self.delta else "")
        return (
            f"Differential privacy with {budget}, for {self.adjacency}, by {self.mechanism}. About a person who is as "
            f"likely in the table as not, no membership attack by this result alone is right more often than "
            f"{self.membership_limit:.1%}. Results about the same people add up. "
            "It rests on: " + "; ".join(self.rests_on) + "."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        plain = asdict(self) | {"rests_on": list(self.rests_on), "membership_limit": self.membership_limit}
        return plain | ({"epsilon": None} if math.isinf(self.epsilon) else {})


def neighbors(unit: str | None) -> str:
    """Return which tables are neighbors, in words."""
    return "adding or removing one record" if unit is None else "adding or removing all records of one person"
