# SPDX-License-Identifier: Apache-2.0
"""How many records are alone in the population, estimated from the sample.

Each estimator sees how many groups of each size the sample has, or the survey weights, and states what it assumes.
Called by ``measuring``; where the population itself is at hand nothing has to be estimated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_SMALLEST_ALPHA, _LARGEST_ALPHA = 1e-4, 1 - 1e-6
_FEWEST_FOR_SERIES, _N_TERMS = 20, 60  # records of a group from which on so many terms are exact


@dataclass(frozen=True)
class UniquenessEstimate:
    """One estimate of how many records are alone in the population.

    Attributes
    ----------
    estimator : str
    share : float or None
        Share of the table's records that nobody in the population shares the quasi-identifiers with.
    n_records : float or None
        The same as an expected number of records of the table.
    given_sample_unique : float or None
        Chance that a record which is alone in the table is also alone in the population.
    assumption : str
    reference : str
    missing : str
        What a missing quasi-identifier means.
    reason : str or None
        Why there is no number.
    """

    estimator: str
    share: float | None
    n_records: float | None
    given_sample_unique: float | None
    assumption: str
    reference: str
    missing: str
    reason: str | None = None


ZAYATZ = (
    "zayatz",
    "a simple random sample without replacement, and a population whose groups have the sizes that the sample's groups "
    "have; good for large sampling fractions, too high for small ones",
    "Zayatz, L. (1991). Estimation of the percent of unique population elements on a microdata file using the sample.",
)
PITMAN = (
    "pitman",
    "an exchangeable random partition after Pitman's sampling formula, fitted by maximum likelihood; meant for small "
    "sampling fractions",
    "Hoshino, N. (2001). Applying Pitman's sampling formula to microdata disclosure risk assessment.",
)
SHIFTED_NEGATIVE_BINOMIAL = (
    "shifted_negative_binomial",
    "one plus a negative binomial number of records in every group of the population, each of them drawn on its own; "
    "fitted to the groups of one and of two records, with Shlosser's modified estimate of the number of groups; good "
    "for large sampling fractions, while for small ones that number can be far off",
    "Chen, G. and Keller-McNulty, S. (1998). Estimation of identification disclosure risk in microdata.",
)
NEGATIVE_BINOMIAL = (
    "negative_binomial",
    "given f records of a group in the sample, its records in the population follow a negative binomial distribution "
    "with success chance f over the sum of their survey weights; each record is drawn on its own",
    "Benedetti, R. and Franconi, L. (1998). Statistical and technological solutions for controlled data dissemination.",
)


def zayatz(sizes: NDArray[np.int64], n_groups: NDArray[np.int64], population_size: int) -> float | None:
    """Return the chance that a record alone in the sample is alone in the population; None when no record is alone.

    Parameters
    ----------
    sizes, n_groups : ndarray of int64
        Different group sizes of the sample, rising, and how many groups have each.
    population_size : int

    Notes
    -----
    Bayes' rule with the sample's distribution of group sizes as the prior: ``P(F=1 | f=1) = q_1 h(1) / sum_j q_j
    h(j)``, q_j the share of groups of size j, h(j) the hypergeometric chance that a population group of size j shows
    one record in the sample.
    """
    if sizes[0] != 1:
        return None
    n_records = int((sizes * n_groups).sum())
    # h(j) is proportional to j C(N-j, n-1); its share of h(1) is a product that logarithms keep from vanishing.
    log_ways = _log_choose(population_size - sizes, n_records - 1)
    likelihood = sizes * np.exp(log_ways - log_ways[0])
    return float(n_groups[0] * likelihood[0] / (n_groups * likelihood).sum())


def _log_choose(n: NDArray[np.int64], k: int) -> NDArray[np.float64]:
    from scipy.special import gammaln

    possible = n >= k
    n = np.where(possible, n, k)
    ways = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    return np.where(possible, ways, -np.inf)


def fit_pitman(sizes: NDArray[np.int64], n_groups: NDArray[np.int64]) -> tuple[float, float] | None:
    """Return alpha and theta that make the sample's group sizes most likely; None where no maximum exists.

    Notes
    -----
    The likelihood of n records in u groups is ``prod_{i<u} (theta + i alpha) / prod_{i<n} (theta + i) * prod_groups
    prod_{i<size} (i - alpha)`` with 0 < alpha < 1 and theta > -alpha, i from 1. It has no maximum inside when all
    records are alone, or all in one group.
    """
    from scipy.optimize import minimize
    from scipy.special import expit

    u, n = int(n_groups.sum()), int((sizes * n_groups).sum())
    if u in (1, n):
        return None

    def loss(at: NDArray[np.float64]) -> float:
        alpha, theta = _parameters(expit(at[0]), at[1])
        return -pitman_log_likelihood(alpha, theta, sizes, n_groups) / n

    # Two starts, because the likelihood is flat where theta is large.
    starts = [(0.0, np.log(max(1.0, u / 10))), (-2.0, np.log(max(1.0, u / 2)))]
    bounds = [(-9.0, 13.0), (-12.0, 30.0)]
    # Without gradients: the linear algebra behind those starts threads for two numbers.
    options = {"xatol": 1e-6, "fatol": 1e-13, "maxiter": 2000}
    found = [minimize(loss, start, method="Nelder-Mead", bounds=bounds, options=options) for start in starts]
    best = min(found, key=lambda result: float(result.fun))
    if not np.isfinite(best.fun):
        return None
    return _parameters(expit(best.x[0]), best.x[1])


def _parameters(alpha: float, log_shifted: float) -> tuple[float, float]:
    alpha = float(np.clip(alpha, _SMALLEST_ALPHA, _LARGEST_ALPHA))
    return alpha, float(np.exp(log_shifted)) - alpha


def pitman_log_likelihood(alpha: float, theta: float, sizes: NDArray[np.int64], n_groups: NDArray[np.int64]) -> float:
    """Return the logarithm of Pitman's sampling formula, without the part that no parameter changes."""
    from scipy.special import gammaln

    u, n = int(n_groups.sum()), int((sizes * n_groups).sum())
    groups = (u - 1) * np.log(alpha) + gammaln(theta / alpha + u) - gammaln(theta / alpha + 1)
    records = gammaln(theta + n) - gammaln(theta + 1)
    members = (n_groups * (gammaln(sizes - alpha) - gammaln(1 - alpha))).sum()
    return float(groups - records + members)


def pitman_share(alpha: float, theta: float, n: int) -> float:
    """Return the expected share of n records that are alone: ``prod_{i<n} (theta + alpha + i - 1) / (theta + i)``.

    Let a record come first. It stays alone when each later record, of which the i-th joins it with chance
    ``(1 - alpha) / (theta + i)``, goes elsewhere; and every record is as likely to have come first as any other.
    """
    from scipy.special import gammaln

    share = gammaln(theta + alpha + n - 1) - gammaln(theta + alpha) - gammaln(theta + n) + gammaln(theta + 1)
    return float(min(1.0, np.exp(share)))


def estimated_groups(sizes: NDArray[np.int64], n_groups: NDArray[np.int64], fraction: float) -> float:
    """Return how many groups the population has, after Shlosser as modified by Haas and Stokes.

    Notes
    -----
    With s_i groups of i records, u groups in all and a sampling fraction q: ``u + s_1 A / B (C / D)^2``, where
    ``A = sum i q^2 (1 - q^2)^(i-1) s_i`` and ``D = sum i q (1 - q)^(i-1) s_i`` are the groups that a second draw from
    the sample, of the fraction q^2 or q, would show once, ``C = sum (1 - q)^i s_i`` those that it would miss, and
    ``B = sum ((1 - q^2)^i - (1 - q)^i) s_i`` those that q shows and q^2 does not.

    References
    ----------
    Haas, P. and Stokes, L. (1998). Estimating the number of classes in a finite population.
    """
    u, n_alone = float(n_groups.sum()), float(n_groups[0]) if sizes[0] == 1 else 0.0
    if n_alone == 0 or fraction >= 1:
        return u
    q = fraction
    once_in_square = (sizes * q**2 * (1 - q**2) ** (sizes - 1) * n_groups).sum()
    once = (sizes * q * (1 - q) ** (sizes - 1) * n_groups).sum()
    missed = ((1 - q) ** sizes * n_groups).sum()
    gained = (((1 - q**2) ** sizes - (1 - q) ** sizes) * n_groups).sum()
    return float(u + n_alone * once_in_square / gained * (missed / once) ** 2)


def expected_small_groups(alpha: float, beta: float, n_groups: float, fraction: float) -> tuple[float, float]:
    """Return how many groups a sample is expected to show with one and with two records.

    Notes
    -----
    A group of the population has j records with chance ``C(j+alpha-2, j-1) beta^alpha (1-beta)^(j-1)``, j from 1. With
    ``x = (1-q)(1-beta)`` the sums over j of ``j q (1-q)^(j-1)`` and ``C(j, 2) q^2 (1-q)^(j-2)`` times that chance are
    derivatives of the geometric-like series ``x (1-x)^-alpha``.
    """
    q, x = fraction, (1 - fraction) * (1 - beta)
    alone = n_groups * q * (beta / (1 - x)) ** alpha * (1 + alpha * x / (1 - x))
    pairs = n_groups * q**2 / 2 * alpha * beta**alpha * (1 - beta) * (2 - (1 - alpha) * x) / (1 - x) ** (alpha + 2)
    return float(alone), float(pairs)


def fit_shifted_negative_binomial(
    n_alone: int, n_pairs: int, n_groups: float, n_records: int, fraction: float
) -> tuple[float, float] | None:
    """Return alpha and beta that explain the groups of one and of two records; None where none are found.

    Notes
    -----
    The two equations can have several solutions. The one is taken whose population is nearest to the known size,
    ``n_groups (1 + alpha (1-beta) / beta)`` records against ``n_records / fraction``.
    """
    from scipy.optimize import root
    from scipy.special import expit, logit

    others_per_group = n_records / fraction / n_groups - 1
    if n_alone == 0 or n_pairs == 0 or others_per_group <= 0:
        return None

    def misses(at: NDArray[np.float64]) -> list[float]:
        alpha, beta = np.exp(np.clip(at[0], -30, 30)), expit(np.clip(at[1], -30, 30))
        alone, pairs = expected_small_groups(alpha, beta, n_groups, fraction)
        return [alone / n_alone - 1, pairs / n_pairs - 1]

    found: list[tuple[float, float, float]] = []
    for start in 10.0 ** np.arange(-3, 3):  # starts on the curve where the population has the known size
        with np.errstate(all="ignore"):  # a start may lead out of the numbers; it is then no solution
            result = root(misses, [np.log(start), logit(start / (start + others_per_group))], options={"xtol": 1e-12})
        if np.abs(misses(result.x)).max() < 1e-6 and np.abs(result.x).max() < 30:
            alpha, beta = float(np.exp(result.x[0])), float(expit(result.x[1]))
            found.append((abs(np.log(alpha * (1 - beta) / beta / others_per_group)), alpha, beta))
    return min(found)[1:] if found else None


def expected_inverse(counts: NDArray[np.int64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the expected value of one over the population size of each group, given its sum of survey weights.

    Notes
    -----
    For the negative binomial model ``E[1/F | f] = (p / f) 2F1(1, 1; f + 1; 1 - p)`` with ``p = f / sum of weights``;
    for f = 1 that is ``p log(1/p) / (1 - p)``. Weights that sum to less than f count as f: a person in the sample is
    in the population.

    References
    ----------
    Franconi, L. and Polettini, S. (2004). Individual risk estimation in mu-Argus: a review.
    """
    from scipy.special import hyp2f1

    chance = np.minimum(1.0, counts / weights)
    function = np.ones(len(chance))
    is_small = np.asarray(counts) < _FEWEST_FOR_SERIES
    function[is_small] = hyp2f1(1.0, 1.0, counts[is_small] + 1.0, 1.0 - chance[is_small])
    # scipy overflows for large counts, where the series itself converges within a few terms.
    size, other, term = counts[~is_small] + 1.0, 1.0 - chance[~is_small], np.ones(int((~is_small).sum()))
    for n in range(1, _N_TERMS):
        term = term * (n / (size + n - 1) * other)
        function[~is_small] += term
    return np.asarray(chance / counts * function, np.float64)


def estimates_from_sizes(
    sizes: NDArray[np.int64],
    population_size: int | None,
    *,
    missing: str,
    reason: str | None,
    n_groups: NDArray[np.int64] | None = None,
) -> list[UniquenessEstimate]:
    """Return what the estimators that look at group sizes say.

    Parameters
    ----------
    sizes : ndarray of int64
        Records of each group of the sample.
    population_size : int or None
    missing : str
    reason : str or None
        Why nothing can be estimated, if so.
    n_groups : ndarray of int64, optional
        How many groups there are of each of the sizes; one, where not given.
    """
    if reason is not None or population_size is None:
        return [_without_number(about, missing, reason or "") for about in (ZAYATZ, PITMAN, SHIFTED_NEGATIVE_BINOMIAL)]
    different, place = np.unique(sizes, return_inverse=True)
    n_groups = np.bincount(place, weights=n_groups).astype(np.int64)
    n_records = int((different * n_groups).sum())
    n_alone = int(n_groups[0]) if different[0] == 1 else 0
    chance = zayatz(different, n_groups, population_size)
    found = [_estimate(ZAYATZ, (chance or 0.0) * n_alone / n_records, n_records, n_alone, missing)]
    fitted = fit_pitman(different, n_groups)
    if fitted is None:
        why = "the likelihood has no maximum: all records are alone, or all are in one group"
        found.append(_without_number(PITMAN, missing, why))
    else:
        share = pitman_share(*fitted, population_size)
        found.append(_estimate(PITMAN, min(share, n_alone / n_records), n_records, n_alone, missing))
    found.append(_shifted_negative_binomial(different, n_groups, n_records, population_size, missing))
    return found


def _shifted_negative_binomial(
    sizes: NDArray[np.int64], n_groups: NDArray[np.int64], n_records: int, population_size: int, missing: str
) -> UniquenessEstimate:
    of_size = dict(zip(sizes.tolist(), n_groups.tolist(), strict=True))
    n_alone = of_size.get(1, 0)
    if n_records >= population_size:  # nothing is left to estimate
        return _estimate(SHIFTED_NEGATIVE_BINOMIAL, n_alone / n_records, n_records, n_alone, missing)
    fraction = n_records / population_size
    in_population = estimated_groups(sizes, n_groups, fraction)
    fitted = fit_shifted_negative_binomial(n_alone, of_size.get(2, 0), in_population, n_records, fraction)
    if fitted is None:
        why = "no parameters of the model explain the numbers of groups with one and with two records"
        return _without_number(SHIFTED_NEGATIVE_BINOMIAL, missing, why)
    alpha, beta = fitted
    share = in_population * beta**alpha / population_size
    share = min(share, n_alone / n_records)
    return _estimate(SHIFTED_NEGATIVE_BINOMIAL, share, n_records, n_alone, missing)


def estimate_from_weights(
    expected: float, n_records: int, n_alone: int, *, missing: str, reason: str | None
) -> UniquenessEstimate:
    """Return the estimate from weights, given the expected number of sample uniques that are population uniques."""
    if reason is not None:
        return _without_number(NEGATIVE_BINOMIAL, missing, reason)
    return _estimate(NEGATIVE_BINOMIAL, expected / n_records, n_records, n_alone, missing)


def _estimate(
    about: tuple[str, str, str], share: float, n_records: int, n_alone: int, missing: str
) -> UniquenessEstimate:
    name, assumption, reference = about
    given = share * n_records / n_alone if n_alone else None
    return UniquenessEstimate(name, share, share * n_records, given, assumption, reference, missing)


def _without_number(about: tuple[str, str, str], missing: str, reason: str) -> UniquenessEstimate:
    name, assumption, reference = about
    return UniquenessEstimate(name, None, None, None, assumption, reference, missing, reason)
