# SPDX-License-Identifier: Apache-2.0
"""Shares of candidates for whom an attacker is right, added up over splits."""

from __future__ import annotations

from math import hypot
from typing import NamedTuple


class Rate(NamedTuple):
    """A share of candidates, with its interval."""

    rate: float
    low: float
    high: float

    @classmethod
    def of(cls, parts: list[tuple[float, int]]) -> Rate:
        """Add up shares of so many candidates each."""
        from sfumato.attack.result import wilson_interval

        n_right, n = sum(round(rate * n) for rate, n in parts), sum(n for _, n in parts)
        return cls(n_right / n, *wilson_interval(n_right, n, 0.95))

    def __str__(self) -> str:
        return f"{100 * self.rate:.1f} [{100 * self.low:.1f}, {100 * self.high:.1f}]"


class Gap(NamedTuple):
    """By how much one share is above another, in percentage points, with Newcombe's interval."""

    points: float
    low: float
    high: float

    @classmethod
    def between(cls, one: Rate, other: Rate) -> Gap:
        """Subtract the second of two rates, taking the candidates of both as independent."""
        gap = one.rate - other.rate
        low = gap - hypot(one.rate - one.low, other.high - other.rate)
        high = gap + hypot(one.high - one.rate, other.rate - other.low)
        return cls(100 * gap, 100 * low, 100 * high)

    def __str__(self) -> str:
        return f"{self.points:+.1f} [{self.low:+.1f}, {self.high:+.1f}]"
