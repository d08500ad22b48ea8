# SPDX-License-Identifier: Apache-2.0
"""What a measure of loss says: one number per column and one in total."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Loss:
    """What was given up, by one measure.

    Attributes
    ----------
    measure : str
        Its name.
    total : float
        For all columns together.
    columns : dict of str to float
        For each column by itself, as if it were the only one that was released.
    normalized : float or None
        The total on a scale from 0 (nothing is lost) to 1 (everything), where the measure has one.
    """

    measure: str
    total: float
    columns: dict[str, float]
    normalized: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain names and numbers."""
        return {
            "measure": self.measure,
            "total": self.total,
            "normalized": self.normalized,
            "columns": dict(self.columns),
        }
