# SPDX-License-Identifier: Apache-2.0
"""Mechanisms that make a private release of counts: noise, a cap per person, and sampling with a threshold.

Arrays in, arrays out; what they are counts of is the caller's knowledge. All that is random comes from the operating
system's secure source and has no seed: anyone who knows a seed can subtract the noise.
"""

from __future__ import annotations

import math
import secrets

import numpy as np
from numpy.typing import NDArray

from sfumato.arguments import check_integer
from sfumato.private.accounting import check_epsilon
from sfumato.private.noise import Noise, noise_source
from sfumato.private.sampling_delta import checked_rate

Integers = NDArray[np.int64]


def noisy_counts(
    counts: NDArray[np.integer], epsilon: float, *, most_per_person: int = 1, noise: Noise | None = None
) -> Integers:
    """Add two-sided geometric noise to every count and set negative results to 0.

    Parameters
    ----------
    counts : ndarray of int
        Records of every cell, the empty ones included. The list of cells must not depend on the records.
    epsilon : float
        The promise for one person.
    most_per_person : int, default=1
        Records that a person may have in all counts together; `cap_records` sees to it.
    noise : Noise, optional
        The secure source by default.

    Returns
    -------
    ndarray of int64

    Notes
    -----
    *Guarantee.* Pure epsilon-differential privacy when one person is added or removed. P(x) is proportional to
    exp(-epsilon |x| / m) for m records per person (Ghosh, Roughgarden and Sundararajan, STOC 2009): one person moves
    the counts by at most m altogether. Clipping looks at nothing but the noisy counts.
    """
    check_integer("most_per_person", most_per_person, 1)
    check_epsilon(epsilon)
    source = noise_source() if noise is None else noise
    drawn = source.geometric(_share(float(epsilon), most_per_person), counts.size)
    noisy: Integers = np.maximum(counts.astype(np.int64) + drawn.reshape(counts.shape), 0)
    return noisy


def _share(epsilon: float, n_parts: int) -> float:
    """Return epsilon of one of several equal parts, rounded down, so that they do not add up to more."""
    share = epsilon / n_parts
    return share if share * n_parts <= epsilon else math.nextafter(share, 0.0)


def cap_records(person: NDArray[np.integer], most: int, order: NDArray[np.integer]) -> Integers:
    """Return the rows of at most `most` records per person, in rising order.

    Which records of a person are kept depends on nobody else: the first ones in a random order of all rows.

    Parameters
    ----------
    person : ndarray of int
        The number of each record's person.
    most : int
    order : ndarray of int
        All row numbers in a random order.
    """
    shuffled = person[order]
    by_person = np.argsort(shuffled, kind="stable")
    sizes = np.bincount(shuffled)
    start = np.repeat(np.cumsum(sizes) - sizes, sizes)
    is_kept = np.arange(len(person)) - start < most
    return np.sort(order[by_person[is_kept]]).astype(np.int64)


def sample_rows(n_records: int, rate: float) -> Integers:
    """Return the rows of a sample that has each record with probability `rate`, from the secure source.

    The probability is rounded down to a multiple of 2**-64.
    """
    limit = min(int(math.ldexp(checked_rate(rate), 64)), 2**64 - 1)
    drawn = np.frombuffer(secrets.token_bytes(8 * n_records), np.uint64)
    return np.flatnonzero(drawn < np.uint64(limit)).astype(np.int64)


def without_rare(counts: NDArray[np.integer], k: int) -> Integers:
    """Return counts with 0 for those below k."""
    check_integer("k", k, 1)
    return np.where(counts >= k, counts, 0).astype(np.int64)
