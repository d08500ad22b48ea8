# SPDX-License-Identifier: Apache-2.0
"""Add up the promises of several releases of the same people.

Simple sums always hold and are exact for pure epsilon with delta 0. Zero-concentrated differential privacy (zCDP; Bun
and Steinke, TCC 2016) grows with the root of the number of releases and is smaller from some dozens on. Both hold, so
the smaller epsilon is the bound.

Releases may depend on the results of earlier ones, and so may their epsilons: each of the two compositions stops a
sequence at a budget as well as it adds one up (Feldman and Zrnic, NeurIPS 2021; Whitehouse et al., ICML 2023). Where
earlier results decide which of the two applies in the end, their deltas add up: at most twice the delta of the budget.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from sfumato.private.accounting import rho_of_pure, zcdp_epsilon


class Part(NamedTuple):
    """The promise of one of several releases.

    Attributes
    ----------
    epsilon, delta : float
    rho : float or None
        The same promise as rho-zCDP, if all of its noise is Gaussian; several of them add up to less.
    """

    epsilon: float
    delta: float = 0.0
    rho: float | None = None


@dataclass(frozen=True)
class Total:
    """What several releases together promise.

    Attributes
    ----------
    epsilon, delta : float
    by : str
        ``"sum"`` or ``"zCDP"``: the composition whose epsilon is smaller.
    n_releases : int
    """

    epsilon: float
    delta: float
    by: str
    n_releases: int


def compose(parts: Iterable[Part], delta: float = 0.0) -> Total:
    """Return the total of several promises: the composition with the smaller epsilon for a delta.

    Parameters
    ----------
    parts : iterable of Part
        Of releases of the same people; each may depend on the results of those before.
    delta : float, default=0.0
        The delta that all together may have. If the promises' own deltas sum up to more, that sum is the total's.

    Examples
    --------
    >>> from sfumato.private.composition import Part, compose
    >>> compose([Part(0.5), Part(0.5)])
    Total(epsilon=1.0, delta=0.0, by='sum', n_releases=2)
    >>> many = compose([Part(0.1)] * 100, delta=1e-6)
    >>> round(many.epsilon, 2), many.by
    (5.22, 'zCDP')
    """
    each = list(parts)
    summed = math.fsum(part.epsilon for part in each)
    own = math.fsum(part.delta for part in each)
    simple = Total(summed, own, "sum", len(each))
    # Gaussian noise has a rho and no delta of its own. Anything else: (epsilon, d) is d-approximate epsilon^2/2-zCDP.
    rho = math.fsum(rho_of_pure(part.epsilon) if part.rho is None else part.rho for part in each)
    failing = math.fsum(part.delta for part in each if part.rho is None)
    if not each or delta <= failing:
        return simple
    concentrated = zcdp_epsilon(delta - failing, rho)
    # A sum that needs a larger delta than asked for is not within the delta, whatever its epsilon.
    if own <= delta and summed <= concentrated:
        return simple
    return Total(concentrated, delta, "zCDP", len(each))
