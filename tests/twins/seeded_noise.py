# SPDX-License-Identifier: Apache-2.0
"""The noise of `sfumato.private.noise` from a seed, by numpy: fast, repeatable, and therefore for tests only."""

from importlib.util import find_spec

import numpy as np

from sfumato.private import network, noise
from sfumato.private.noise import grid_of


class SeededNoise:
    """Draws like `SecureNoise`, from a generator that anybody can repeat."""

    def __init__(self, seed=0):
        self._generator = np.random.default_rng(seed)

    def geometric(self, epsilon, size):
        # The difference of two geometric draws is two-sided geometric.
        first, second = self._generator.geometric(-np.expm1(-epsilon), (2, size))
        return (first - second).astype(np.int64)

    def gaussian(self, scale, size):
        grid = grid_of(scale)
        return np.rint(self._generator.normal(0.0, scale / grid, size)) * grid


class NoNoise:
    """Draws zeros: what a private algorithm computes without its noise."""

    def geometric(self, epsilon, size):
        return np.zeros(size, np.int64)

    def gaussian(self, scale, size):
        return np.zeros(size)


class RecordedNoise(NoNoise):
    """Draws zeros, and keeps what was asked for: pairs of epsilon and size, and of scale and size."""

    def __init__(self):
        self.geometric_asked, self.gaussian_asked = [], []

    def geometric(self, epsilon, size):
        self.geometric_asked.append((epsilon, size))
        return super().geometric(epsilon, size)

    def gaussian(self, scale, size):
        self.gaussian_asked.append((scale, size))
        return super().gaussian(scale, size)


def seed_private(monkeypatch, seed=0):
    """Let private algorithms draw everything from a seed, so that a test of what they learn cannot fail by chance.

    Noise, records drawn from noisy counts, batches and noise of networks, and interpret-core's own noise.
    """
    monkeypatch.setattr(noise, "_source", SeededNoise(seed))
    generator = np.random.default_rng
    monkeypatch.setattr(np.random, "default_rng", lambda given=seed: generator(given))
    drawn = generator(seed)
    monkeypatch.setattr(network, "_secret_seed", lambda: int(drawn.integers(2**62)))
    monkeypatch.setattr(network, "_batch", lambda n, rate: np.flatnonzero(drawn.random(n) < rate))
    if find_spec("interpret") is not None:
        from interpret.glassbox._ebm import _ebm

        monkeypatch.setattr(_ebm, "normalize_seed", lambda given: seed)
