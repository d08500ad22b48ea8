# SPDX-License-Identifier: Apache-2.0
"""Theorem 4.1: a bound on the expected error of a pruned linear model above that of the best one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Bound:
    """The bound, or why there is none.

    Attributes
    ----------
    value : float or None
        Bound on the expected error above the best linear model's; None where the theorem does not apply.
    learning : float or None
        The part that any linear model on so many records has.
    pruning : float or None
        The part that pruning adds.
    reason : str
        Why the theorem does not apply; empty where it does.
    observed : float or None
        Error of the pruned model minus that of the model on the original data, where it was measured.
    """

    value: float | None
    learning: float | None = None
    pruning: float | None = None
    reason: str = ""
    observed: float | None = None

    @property
    def is_vacuous(self) -> bool:
        """True if the bound is at least 1, which no error exceeds."""
        return self.value is not None and self.value >= 1

    def __str__(self) -> str:
        """Return the bound in words, with the observed excess."""
        if self.value is None:
            told = f"does not apply: {self.reason}"
        elif self.is_vacuous:
            told = f"vacuous ({self.value:.3g}, and no error is above 1)"
        else:
            told = f"at most {self.value:.3f} above the best linear model"
        return told if self.observed is None else f"{told}; observed {self.observed:+.4f} above the original"


def theorem_bound(n_records: int, n_identifying: int, weights: Any, radius_min: float, radius_max: float) -> Bound:
    """Return ``4 sqrt(((d+2) log(N+1) + log 2) / N) + ||w||^2 (R2max - R2min) / N``.

    Parameters
    ----------
    n_records : int
        N, the records of the pruned training data.
    n_identifying : int
        d, the identifying attributes; with one-hot coding all coordinates but one.
    weights : array-like
        w of the fitted linear model, in the coordinates in which the radii were measured.
    radius_min, radius_max : float
        Squared radii of Figure B.1.

    Examples
    --------
    >>> theorem_bound(1_000_000, 10, [0.1, 0.2], 0.0, 100.0).value < 0.06
    True
    >>> str(theorem_bound(100, 10, [3.0], 0.0, 50.0))
    'vacuous (7.5, and no error is above 1)'
    """
    n = n_records
    learning = 4 * math.sqrt(((n_identifying + 2) * math.log(n + 1) + math.log(2)) / n)
    pruning = float(np.square(np.asarray(weights, np.float64)).sum()) * (radius_max - radius_min) / n
    return Bound(learning + pruning, learning, pruning)


def linear_weights(model: Any) -> NDArray[np.float64] | None:
    """Return w of a fitted linear model of two classes, in the coordinates of its input; None if there is none.

    Steps that center and scale before it are undone; with any other step before it, the model is not linear.
    """
    scale: Any = 1.0
    if hasattr(model, "steps"):
        for _, step in model.steps[:-1]:
            if type(step).__name__ == "StandardScaler":
                if step.scale_ is not None:
                    scale = scale * step.scale_
            elif step != "passthrough":
                return None
        model = model.steps[-1][1]
    weights = getattr(model, "coef_", None) if getattr(model, "kernel", "linear") == "linear" else None
    if weights is None or np.ndim(weights) != 2 or len(weights) != 1:
        return None
    found: NDArray[np.float64] = np.asarray(weights, np.float64)[0] / scale
    return found
