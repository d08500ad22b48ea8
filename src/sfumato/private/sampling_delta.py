# SPDX-License-Identifier: Apache-2.0
"""Delta of sampling with a threshold: keep each record with probability b, recode it, drop what is rare.

Records pass a fixed map, and a combination that fewer than k sampled records have is dropped. One person more changes
the number n of records of one combination by one, so its output alone decides. With T_n its distribution, P(T_n = j) =
P(Bin(n, b) = j) for j >= k and P(T_n = 0) = P(Bin(n, b) < k).

`exact_delta` is the largest ``sum_j (P(T_{n+1} = j) - e^epsilon P(T_n = j))_+`` over n. The other direction adds
nothing: for epsilon >= -ln(1 - b) no ratio P(T_n = j) / P(T_{n+1} = j) is above 1 / (1 - b) <= e^epsilon. The ratio
P(T_{n+1} = j) / P(T_n = j) = (n + 1)(1 - b) / (n + 1 - j) rises with j and passes e^epsilon at j = gamma (n + 1). So
the sum runs over the tail from there, or from k.

`theorem_delta` is the bound of Li, Qardaji and Su (ASIACCS 2012, Theorem 5), which is larger.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import binom

from sfumato.arguments import check_integer
from sfumato.errors import ParameterError, named
from sfumato.private.accounting import check_delta, check_epsilon

_AT_ONCE = 4096  # numbers of records whose tails are computed together
_LARGEST_K = 1_000_000
_SMALLEST = float(np.finfo(np.float64).tiny)  # a delta of less has no number; 0 would promise more than there is


def exact_delta(epsilon: float, rate: float, k: int) -> float:
    """Return the smallest delta for which sampling with a threshold is (epsilon, delta)-differentially private.

    Parameters
    ----------
    epsilon : float
        At least -ln(1 - rate).
    rate : float
        Probability of each record to be kept, above 0 and below 1.
    k : int
        Combinations with fewer sampled records are dropped.

    Examples
    --------
    >>> from sfumato.private.sampling_delta import exact_delta, smallest_k
    >>> f"{exact_delta(1.0, 0.1, 10):.1e}"
    '1.0e-08'
    >>> smallest_k(1.0, 1e-6, 0.1)
    8
    """
    gamma = _gamma(epsilon, rate, k)
    grows = math.exp(epsilon)
    largest, first = 0.0, k - 1
    while True:
        n = np.arange(first, first + _AT_ONCE)
        start = np.maximum(k, np.floor((n + 1) * gamma).astype(np.int64) + 1)
        # P(Bin(n+1) >= j) = P(Bin(n) >= j) + b P(Bin(n) = j-1): the difference without its cancellation
        delta = rate * binom.pmf(start - 1, n, rate) - (grows - 1.0) * binom.sf(start - 1, n, rate)
        largest = max(largest, float(delta.max()))
        first += _AT_ONCE
        if _tail_bound(first + 1, gamma, rate) <= largest:
            return max(largest, _SMALLEST)


def theorem_delta(epsilon: float, rate: float, k: int) -> float:
    """Return the delta of the theorem of Li, Qardaji and Su; parameters as in `exact_delta`.

    The largest P(Bin(n, rate) > gamma n) over n >= ceil(k / gamma - 1), with gamma = (e^epsilon - 1 + rate) /
    e^epsilon.
    """
    gamma = _gamma(epsilon, rate, k)
    largest, first = 0.0, math.ceil(k / gamma - 1)
    while True:
        n = np.arange(first, first + _AT_ONCE)
        largest = max(largest, float(binom.sf(np.floor(gamma * n), n, rate).max()))
        first += _AT_ONCE
        if _tail_bound(first, gamma, rate) <= largest:
            return max(largest, _SMALLEST)


def smallest_k(epsilon: float, delta: float, rate: float, *, exact: bool = True) -> int:
    """Return the smallest threshold whose delta is at most `delta`.

    Parameters
    ----------
    epsilon, delta, rate : float
    exact : bool, default=True
        False: by the theorem, which asks for more.

    Raises
    ------
    ParameterError
        If `epsilon` is below -ln(1 - rate): no threshold is enough.
    """
    check_delta(delta)
    of = exact_delta if exact else theorem_delta
    high = 1
    while of(epsilon, rate, high) > delta:
        high *= 2
        if high > _LARGEST_K:
            raise ParameterError(
                f"{named('delta', delta)} with epsilon={epsilon:g} and rate={rate:g}: no k up to {_LARGEST_K:,} "
                "reaches it. Expected a larger delta or epsilon, or a lower rate."
            )
    low = high // 2  # too small, or 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if of(epsilon, rate, middle) <= delta else (middle, high)
    return high


def _gamma(epsilon: float, rate: float, k: int) -> float:
    """Check the parameters and return the share of kept records from which on one person more shows."""
    check_integer("k", k, 1, hint="Combinations with fewer sampled records are dropped.")
    checked_rate(rate)
    check_epsilon(epsilon)
    least = -math.log1p(-rate)
    if epsilon < least:
        raise ParameterError(
            f"{named('epsilon', epsilon)} with rate={rate:g}: expected at least -ln(1 - rate) = {least:.4g}. Raise "
            f"epsilon, or lower {named('rate')}."
        )
    return 1.0 - (1.0 - rate) * math.exp(-epsilon)


def checked_rate(rate: Any) -> float:
    """Return a probability; raise ParameterError unless it is above 0 and below 1."""
    is_number = isinstance(rate, int | float | np.integer | np.floating) and not isinstance(rate, bool)
    if not is_number or not 0 < rate < 1:
        raise ParameterError(
            f"{named('rate', rate)}: expected a number above 0 and below 1, the probability of each record to be kept. "
            "0.1 is a usual choice."
        )
    return float(rate)


def _tail_bound(n: int, gamma: float, rate: float) -> float:
    """Return Chernoff's bound on P(Bin(n, rate) > gamma n): none of the larger n can do better."""
    rest = 1.0 - gamma
    distance = gamma * math.log(gamma / rate) + (rest * math.log(rest / (1.0 - rate)) if rest > 0.0 else 0.0)
    return math.exp(-n * distance)
