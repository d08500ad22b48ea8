# SPDX-License-Identifier: Apache-2.0
"""Equation 2 of the paper in plain Python, on lists of labels and values; shares nothing with the engine."""

from collections import Counter
from fractions import Fraction


def gini(values):
    """1 minus the sum of squared shares, written as in the paper."""
    n = len(values)
    return sum(Fraction(count, n) * (1 - Fraction(count, n)) for count in Counter(values).values())


def pgini(labels, personal, n_classes, n_values, alpha, shares):
    """Return PGini of some records.

    `personal` has one list of values per personal attribute, `n_values` how many values each has in the whole table,
    and `shares` how much each counts (1/|P| in the paper).
    """
    utility = gini(labels) * (Fraction(n_classes, n_classes - 1) if n_classes > 1 else 0)
    privacy = Fraction(1)
    for values, v, share in zip(personal, n_values, shares, strict=True):
        if v > 1:
            privacy -= Fraction(share) * Fraction(v, v - 1) * gini(values)
    return (1 - Fraction(alpha)) * utility + Fraction(alpha) * privacy


def fall(is_left, labels, personal, *arguments):
    """Return by how much PGini falls, times the number of records, when a node is split."""
    n = len(labels)

    def part(side):
        rows = [i for i in range(n) if is_left[i] == side]
        chosen = pgini([labels[i] for i in rows], [[values[i] for i in rows] for values in personal], *arguments)
        return len(rows) * chosen

    return n * pgini(labels, personal, *arguments) - part(True) - part(False)
