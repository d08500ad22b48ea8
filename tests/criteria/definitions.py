# SPDX-License-Identifier: Apache-2.0
"""The criteria once more, as their papers define them, in plain Python and exact numbers where there are some.

Each function takes the counts of one group and of the whole table, value by value, as lists. Nothing here is shared
with what it judges; the earth mover's distance is solved as the transport problem it is defined to be.
"""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
from scipy.optimize import linprog


def exact(number):
    """A number as it was written: 0.1 is a tenth."""
    return Fraction(str(number))


def is_distinct_l_diverse(group, l):  # noqa: E741 - the literature's own letter
    return sum(n > 0 for n in group) >= l


def is_entropy_l_diverse(group, l):  # noqa: E741
    # -sum(n/N log(n/N)) >= log(l), taken to powers: N^N >= l^N * product of n^n. No logarithm, no rounding.
    total = sum(group)
    return total**total >= exact(l) ** total * math.prod(n**n for n in group)


def entropy_l(group):
    total = sum(group)
    return math.exp(-math.fsum(n / total * math.log(n / total) for n in group if n))


def is_recursive_c_l_diverse(group, c, l):  # noqa: E741
    r = sorted(group, reverse=True)
    return r[0] < exact(c) * sum(r[l - 1 :])


def largest_share(group):
    return Fraction(max(group), sum(group))


def is_alpha_k_anonymous(group, alpha, k):
    return sum(group) >= k and largest_share(group) <= exact(alpha)


def gains(group, table):
    return [
        (Fraction(q, sum(group)) - Fraction(p, sum(table))) / Fraction(p, sum(table))
        for q, p in zip(group, table, strict=True)
        if p
    ]


def is_beta_like(group, table, beta):
    return all(gain <= exact(beta) for gain in gains(group, table))


def is_enhanced_beta_like(group, table, beta):
    bounds = [min(beta, -math.log(p / sum(table))) for p in table if p]
    return all(gain <= bound + 1e-12 for gain, bound in zip(gains(group, table), bounds, strict=True))


def largest_logarithm(group, table):
    ratios = [gain + 1 for gain in gains(group, table)]
    return math.inf if 0 in ratios else max(abs(math.log(ratio)) for ratio in ratios)


def equal_distances(n_values):
    return [[float(i != j) for j in range(n_values)] for i in range(n_values)]


def ordered_distances(n_values):
    return [[abs(i - j) / max(1, n_values - 1) for j in range(n_values)] for i in range(n_values)]


def with_missing_beside_the_middle(distances):
    """Ordered distances and one value more: beside the middle of the order, half the range away from it."""
    n_values = len(distances)
    own = [0.5 + abs(i / max(1, n_values - 1) - 0.5) for i in range(n_values)]
    return [[*row, far] for row, far in zip(distances, own, strict=True)] + [[*own, 0.0]]


def earth_movers_distance(group, table, distances):
    """Solve the transport problem: move one distribution to the other over the least distance."""
    n = len(group)
    supply = [q / sum(group) for q in group]
    demand = [p / sum(table) for p in table]
    leaves = np.kron(np.eye(n), np.ones(n))
    arrives = np.kron(np.ones(n), np.eye(n))
    solved = linprog(np.ravel(distances), A_eq=np.vstack([leaves, arrives])[:-1], b_eq=(supply + demand)[:-1])
    assert solved.success
    return solved.fun


def count_by_group(rows, values):
    """Count the values of every group of equal rows: a list per group in a fixed order of the values, and the order."""
    order = sorted(set(values), key=str)
    groups = {}
    for row, value in zip(rows, values, strict=True):
        groups.setdefault(row, Counter())[value] += 1
    return [[counts[value] for value in order] for counts in groups.values()], order
