# SPDX-License-Identifier: Apache-2.0
"""Privacy accounting: how much noise a budget needs, and what several mechanisms spend together.

Gaussian steps compose exactly. T queries of L2 sensitivity s with noise of standard deviation sigma are together one
Gaussian query with ``mu = sqrt(T) * s / sigma``, also where a query depends on earlier answers (Dong, Roth, Su, JRSS B
2022), and that query has the exact delta of Balle and Wang (ICML 2018). What is not Gaussian is added up as rho of
zero-concentrated differential privacy (Bun, Steinke, TCC 2016). The bound of Canonne, Kamath and Steinke (NeurIPS 2020)
turns rho into epsilon and delta at the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_ndtr

from sfumato.errors import ParameterError, named

_HALVINGS = 200  # of an interval of floats; it ends long before


def gaussian_delta(epsilon: float, mu: float) -> float:
    """Return the smallest delta for `epsilon` of a Gaussian query whose neighbors are `mu` standard deviations apart.

    Parameters
    ----------
    epsilon : float
        At least 0.
    mu : float
        L2 sensitivity over standard deviation; over T steps, times ``sqrt(T)``.

    Notes
    -----
    ``Phi(mu/2 - epsilon/mu) - exp(epsilon) Phi(-mu/2 - epsilon/mu)``, theorem 8 of Balle and Wang (2018).

    Examples
    --------
    >>> round(gaussian_delta(1.0, 1.0), 4)
    0.1269
    """
    _check("epsilon", epsilon, from_zero=True)
    _check("mu", mu)
    above, below = log_ndtr(mu / 2 - epsilon / mu), epsilon + log_ndtr(-mu / 2 - epsilon / mu)
    # As a factor of the first term: the difference of two nearly equal probabilities would lose its digits.
    return float(max(-np.exp(above) * np.expm1(min(below - above, 0.0)), 0.0))


@lru_cache(maxsize=256)
def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the largest `mu` of Gaussian queries that together keep to `epsilon` and `delta`."""
    _check("epsilon", epsilon, from_zero=True)
    check_delta(delta)
    high = 1.0
    while gaussian_delta(epsilon, high) < delta:
        high *= 2
    low = high
    while gaussian_delta(epsilon, low) > delta:  # for a tiny delta, the search starts at next to nothing
        low /= 2
    return _last_below(lambda mu: gaussian_delta(epsilon, mu) <= delta, low, high)


def gaussian_epsilon(delta: float, mu: float) -> float:
    """Return the smallest epsilon for `delta` of Gaussian queries that are together `mu`."""
    check_delta(delta)
    _check("mu", mu)
    if gaussian_delta(0.0, mu) <= delta:
        return 0.0
    high = 1.0
    while gaussian_delta(high, mu) > delta:
        high *= 2
    kept = _last_below(lambda epsilon: gaussian_delta(epsilon, mu) > delta, 0.0, high)
    return float(np.nextafter(kept, np.inf))


def gaussian_scale(epsilon: float, delta: float, *, sensitivity: float = 1.0, steps: int = 1) -> float:
    """Return the standard deviation of the noise for each of `steps` Gaussian queries.

    Parameters
    ----------
    epsilon, delta : float
        Budget of all steps together.
    sensitivity : float, default=1.0
        L2 distance between the answers for two neighboring tables.
    steps : int, default=1

    Examples
    --------
    >>> round(gaussian_scale(1.0, 1e-5), 3)
    3.731
    >>> round(gaussian_scale(1.0, 1e-6, steps=150), 1)
    51.7
    """
    _check("sensitivity", sensitivity)
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or steps < 1:
        raise ParameterError(f"{named('steps', steps)}: expected an integer from 1 on.")
    return math.sqrt(steps) * sensitivity / gaussian_mu(epsilon, delta)


def rho_of_pure(epsilon: float) -> float:
    """Return rho of a mechanism with pure epsilon-differential privacy: ``epsilon**2 / 2``."""
    _check("epsilon", epsilon, from_zero=True)
    return epsilon * epsilon / 2


def rho_of_gaussian(mu: float) -> float:
    """Return rho of Gaussian queries, discrete ones included: ``mu**2 / 2``."""
    _check("mu", mu)
    return mu * mu / 2


def zcdp_delta(epsilon: float, rho: float) -> float:
    """Return a delta for `epsilon` of any mechanisms whose rho add up to `rho`.

    Notes
    -----
    The least over alpha > 1 of ``exp((alpha - 1)(alpha rho - epsilon)) / (alpha - 1) * (1 - 1/alpha)**alpha``,
    proposition 7 of Canonne, Kamath and Steinke (2020).

    Examples
    --------
    >>> zcdp_delta(1.0, 0.02) < 1e-5
    True
    """
    _check("epsilon", epsilon, from_zero=True)
    _check("rho", rho)

    def log_delta(log_above_one: float) -> float:
        above_one = math.exp(log_above_one)
        alpha = 1 + above_one
        return above_one * (alpha * rho - epsilon) - log_above_one + alpha * math.log1p(-1 / alpha)

    # Any alpha gives a valid delta, so the search needs no proof that it found the least.
    start = math.log(max((epsilon + rho) / (2 * rho) - 1, 1e-6))
    found = minimize_scalar(log_delta, bounds=(start - 3, start + 3), method="bounded", options={"xatol": 1e-9})
    return float(min(math.exp(min(found.fun, 0.0)), 1.0))


def zcdp_epsilon(delta: float, rho: float) -> float:
    """Return an epsilon for `delta` of any mechanisms whose rho add up to `rho`."""
    check_delta(delta)
    high = 1.0
    while zcdp_delta(high, rho) > delta:
        high *= 2
    return _first_above(lambda epsilon: zcdp_delta(epsilon, rho) <= delta, 0.0, high)


def zcdp_rho(epsilon: float, delta: float) -> float:
    """Return the largest rho that keeps to `epsilon` and `delta`."""
    _check("epsilon", epsilon)
    check_delta(delta)
    high = 1.0
    while zcdp_delta(epsilon, high) < delta:
        high *= 2
    low = high
    while zcdp_delta(epsilon, low) > delta:
        low /= 2
    return _last_below(lambda rho: zcdp_delta(epsilon, rho) <= delta, low, high)


def membership_limit(epsilon: float, delta: float = 0.0) -> float:
    """Return the highest accuracy of any membership attack on one record: ``(e^eps + delta) / (1 + e^eps)``.

    For a record that is in the table with probability one half (Kairouz, Oh, Viswanath, ICML 2015).

    Examples
    --------
    >>> [round(membership_limit(epsilon), 3) for epsilon in (0.1, 0.5, 1.0)]
    [0.525, 0.622, 0.731]
    """
    _check("epsilon", epsilon, from_zero=True)
    return float(min((1 + delta * math.exp(-epsilon)) / (1 + math.exp(-epsilon)), 1.0))


def check_delta(delta: float) -> None:
    """Raise ParameterError unless `delta` is a probability strictly between 0 and 1."""
    if isinstance(delta, bool) or not isinstance(delta, int | float | np.floating) or not 0 < delta < 1:
        raise ParameterError(
            f"{named('delta', delta)}: expected a number between 0 and 1, well below 1 over the number of persons."
        )


def check_epsilon(epsilon: float) -> None:
    """Raise ParameterError unless `epsilon` is a finite number above 0."""
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float | np.integer | np.floating):
        raise ParameterError(f"{named('epsilon', epsilon)}: expected a number above 0. Smaller protects more.")
    if not 0 < epsilon < math.inf:
        raise ParameterError(f"{named('epsilon', epsilon)}: expected a finite number above 0. Smaller protects more.")


def _check(name: str, value: float, *, from_zero: bool = False) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ParameterError(f"{named(name, value)}: expected a number.")
    if not (value >= 0 if from_zero else value > 0) or not value < math.inf:
        raise ParameterError(
            f"{named(name, value)}: expected a finite number {'from 0 on' if from_zero else 'above 0'}."
        )


def _last_below(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the largest number for which a condition still holds; it holds at `low` and for all below the result."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _first_above(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return the smallest number for which a condition holds; it holds at `high` and for all above the result."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
