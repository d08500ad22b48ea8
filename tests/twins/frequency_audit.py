# SPDX-License-Identifier: Apache-2.0
"""How private a mechanism is at most, by counting: run it on two neighboring tables and tell the two apart.

An event that is likely for one table and unlikely for the other bounds epsilon from below, whatever the mechanism
claims (Jagielski, Ullman, Oprea, NeurIPS 2020). Events are thresholds on one number per run, chosen on half of the runs
and counted on the other half.
"""

import math

import numpy as np
from scipy import stats


def epsilon_at_least(first, second, delta=0.0, confidence=0.999):
    """Return a lower bound on epsilon that is wrong with probability 1 - `confidence` at most.

    `first` and `second` are one number per run on either table; large ones should speak for `second`.
    """
    half = len(first) // 2
    threshold = max(_thresholds(first[:half], second[:half], delta), key=lambda found: found[0])[1]
    n_first, n_second = len(first) - half, len(second) - half
    hits, misses = (second[half:] >= threshold).sum(), (first[half:] >= threshold).sum()
    error = (1 - confidence) / 2
    likely = stats.beta.ppf(error, hits, n_second - hits + 1) if hits else 0.0
    unlikely = stats.beta.ppf(1 - error, misses + 1, n_first - misses) if misses < n_first else 1.0
    return math.log((likely - delta) / unlikely) if likely > delta else -math.inf


def _thresholds(first, second, delta):
    for place in np.linspace(0.01, 0.999, 200):
        threshold = np.quantile(second, place)
        likely, unlikely = (second >= threshold).mean(), (first >= threshold).mean()
        # Three standard errors off, so that a tail with a handful of runs is not taken for strong evidence.
        low = likely - 3 * math.sqrt(likely * (1 - likely) / len(second)) - delta
        high = unlikely + 3 * math.sqrt((unlikely + 1 / len(first)) / len(first))
        yield (math.log(low / high) if low > 0 else -math.inf, threshold)
