# SPDX-License-Identifier: Apache-2.0
"""Noise that runs through all its values, to work out the output distribution of a mechanism exactly."""

import itertools

import numpy as np


class EveryNoise:
    """All noise vectors of some cells up to a reach, and the probability of each at the epsilon it was asked for.

    The lowest value stands for everything below it, too: it is clipped with the counts of the tables tested here.
    """

    def __init__(self, n_cells, reach):
        self.reach = reach
        self.vectors = np.array(list(itertools.product(range(-reach, reach + 1), repeat=n_cells)))
        self.probability = None

    def geometric(self, epsilon, size):
        assert size == self.vectors.size
        values = np.arange(-self.reach, self.reach + 1)
        base = np.exp(-epsilon)
        mass = (1 - base) / (1 + base) * base ** np.abs(values)
        mass[0] = base**self.reach / (1 + base)  # P(x <= -reach)
        self.probability = mass[self.vectors + self.reach].prod(axis=1)
        return self.vectors.ravel()
