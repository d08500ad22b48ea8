# SPDX-License-Identifier: Apache-2.0
"""Gradient descent with differential privacy for linear models on one-hot records.

Every step sums the gradients of all records and adds Gaussian noise. The gradient of a record is its residuals times
its row of ones, so that bounding the residuals bounds the gradient. The number of persons is asked for once, with the
same noise, as one step more.

Sums are exact. Residuals are cut, toward zero, to multiples of the grid that the noise lives on, and added up as 64-bit
integers. So no order of additions and no rounding of doubles takes two neighboring tables further apart than the
sensitivity says. The noise is a discrete Gaussian with at least 2**30 grid steps per standard deviation, accounted for
as a continuous one. Their probabilities differ by a relative 2**-60 or so per draw, which changes no digit of delta
that is shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sfumato.private.accounting import gaussian_mu
from sfumato.private.noise import add_gaussian, add_gaussian_to_steps, whole_steps

Floats = NDArray[np.float64]
Residuals = Callable[[Floats], Floats]
"""Turns the scores of records, one column per output, into residuals; row by row, and of length 1 at most."""

PACE = 1.5  # see `Descent.pace`


@dataclass(frozen=True)
class Descent:
    """Settings of a descent; none of them is learned from the records.

    Attributes
    ----------
    epsilon, delta : float
        Budget of all steps and the count together; without noise if epsilon is infinite.
    n_steps : int
    momentum : float
    learning_rate : float or None
        None: `pace` decides.
    fastest : float
        Highest learning rate, for stability.
    pace : float
        Where `learning_rate` is None, how far noise may carry the score of a record over all steps. Noise of scale
        sigma per step carries it ``rate * sqrt(n_steps) * sigma / n`` on average, which this bounds.
    """

    epsilon: float
    delta: float
    n_steps: int
    momentum: float
    learning_rate: float | None
    fastest: float
    pace: float = PACE

    @property
    def scale(self) -> float:
        """Standard deviation of the noise of one step, for gradients of length 1 at most; 0 without noise."""
        if math.isinf(self.epsilon):
            return 0.0
        return math.sqrt(self.n_steps + 1) / gaussian_mu(self.epsilon, self.delta)

    def rate(self, n_persons: float) -> float:
        """Return the learning rate for a noisy number of persons."""
        if self.learning_rate is not None:
            return self.learning_rate
        if math.isinf(self.epsilon):
            return self.fastest
        reach = self.pace * gaussian_mu(self.epsilon, self.delta) * n_persons
        return min(self.fastest, reach * (1 - self.momentum) / self.n_steps)


def descend(
    rows: sparse.csr_array,
    residuals: Residuals,
    n_outputs: int,
    settings: Descent,
    shares: Floats | None,
    n_persons: int,
) -> Floats:
    """Return the weights after all steps, for rows scaled to length 1.

    Parameters
    ----------
    rows : sparse matrix of shape (n_records, n_cells)
        Zeros and ones, the same number of ones in each row.
    residuals : callable
    n_outputs : int
    settings : Descent
    shares : ndarray of shape (n_records,) or None
        Of each record in its person; None if every record is a person.
    n_persons : int
        Never used without noise.
    """
    length = row_length(rows)
    columns = sparse.csr_array(rows.T).astype(np.int64)
    scale = settings.scale
    noisy_count = max(noisy_sum(np.array([float(n_persons)]), scale)[0], 1.0)
    rate = settings.rate(noisy_count)
    weights = np.zeros((rows.shape[1], n_outputs))
    velocity = np.zeros_like(weights)
    for _ in range(settings.n_steps):
        gradient = noisy_gradient(columns, residuals(rows @ weights / length), length, scale, shares)
        velocity = settings.momentum * velocity - rate * gradient / noisy_count
        weights = weights + velocity
    return weights


def noisy_gradient(
    columns: sparse.csr_array, residuals: Floats, length: float, scale: float, shares: Floats | None = None
) -> Floats:
    """Return the sum of all gradients with noise: the one thing that a step learns from the records.

    Parameters
    ----------
    columns : sparse matrix of shape (n_cells, n_records)
        Zeros and ones.
    residuals : ndarray of shape (n_records, n_outputs)
        They are cut to length 1.
    length : float
        Of every record: the gradients of records are at most 1 long after division by it.
    scale : float
        Standard deviation of the noise, for sums of gradients of length 1 at most.
    shares : ndarray of shape (n_records,), optional
        Of each record in its person.
    """
    bounded = clipped(residuals)
    if shares is not None:
        bounded = bounded * shares[:, None]
    if not scale:
        return np.asarray(columns @ bounded) / length
    steps = whole_steps(bounded, scale * length)
    return add_gaussian_to_steps(columns.astype(np.int64, copy=False) @ steps, scale * length) / length


def noisy_sum(sums: Floats, scale: float) -> Floats:
    """Add Gaussian noise to sums, or nothing where `scale` is 0."""
    return add_gaussian(sums, scale) if scale else sums


def clipped(residuals: Floats) -> Floats:
    """Shorten every row to length 1 at most."""
    lengths = np.sqrt(np.einsum("ij,ij->i", residuals, residuals))
    # A hair below 1, so that rounding in the division never makes a row longer than 1.
    return np.asarray(residuals / np.maximum(lengths * (1 + 2.0**-40), 1.0)[:, None])


def row_length(rows: sparse.csr_array) -> float:
    """Return the length that all rows share."""
    return math.sqrt(int(rows.indptr[1] - rows.indptr[0]))
