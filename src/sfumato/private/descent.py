# SPDX-License-Identifier: Apache-2.0
"""Gradient descent with differential privacy for linear models on one-hot records.

Every step sums the gradients of all records and adds Gaussian noise. The gradient of a record is its residuals times
its row of ones, so that bounding the residuals bounds the gradient. The number of persons is asked for once, with the
same noise, as one step more.

Neighboring intervals of a number may have features in common (`PublicEncoding.smoothing`). Smooth curves then stand out
from the noise, and records stay as long as they were.

Sums are exact. Residuals are cut, toward zero, to multiples of the grid that the noise lives on, and added up as 64-bit
integers. So no order of additions takes two neighboring tables further apart than the sensitivity says. Features of the
sums are rounded to the grid once, which the scale of the noise accounts for. The noise is a discrete Gaussian with at
least 2**30 grid steps per standard deviation, accounted for as a continuous one. Their probabilities differ by a
relative 2**-60 or so per draw, which changes no digit of delta that is shown.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from sfumato.errors import ParameterError, named
from sfumato.private.accounting import gaussian_mu
from sfumato.private.noise import add_gaussian, grid_of, whole_steps

Floats = NDArray[np.float64]
Residuals = Callable[[Floats], Floats]
"""Turns the scores of records, one column per output, into residuals; row by row, and of length 1 at most."""

PACE = 2.0  # see `Descent.pace`; chosen, as the other settings, on five public tables that no study tests on
_ROUNDED = 2 * 2.0**-30  # standard deviations that rounding, and errors of doubles before it, may move a number
_MOST_ROUNDED = 0.5  # of a gradient; beyond it more noise means so much more rounding that the account does not close


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
    clip : float
        Longest residual of a record; 1 without noise.
    """

    epsilon: float
    delta: float
    n_steps: int
    momentum: float
    learning_rate: float | None
    fastest: float
    pace: float = PACE
    clip: float = 1.0

    def scale(self, n_numbers: int) -> float:
        """Return the standard deviation of a step's noise, for gradients of length 1 and so many numbers.

        Rounding moves each number a little, and so two neighboring gradients apart. 0 without noise.
        """
        if math.isinf(self.epsilon):
            return 0.0
        exact = math.sqrt(self.n_steps + 1) / gaussian_mu(self.epsilon, self.delta)
        rounded = _ROUNDED * math.sqrt(n_numbers) * exact
        if rounded > _MOST_ROUNDED:
            raise ParameterError(
                f"{named('epsilon', self.epsilon)} with delta={self.delta:g}: expected more, since noise is then so "
                "large that whole gradients are lost in its rounding, which it could not cover. Raise epsilon, or take "
                "fewer steps."
            )
        return exact * (1 + rounded)

    def rate(self, n_persons: float) -> float:
        """Return the learning rate for a noisy number of persons."""
        if self.learning_rate is not None:
            return self.learning_rate
        if math.isinf(self.epsilon):
            return self.fastest
        reach = self.pace * gaussian_mu(self.epsilon, self.delta) * n_persons / self.clip
        return min(self.fastest, reach * (1 - self.momentum) / self.n_steps)


def descend(
    rows: sparse.csr_array,
    residuals: Residuals,
    n_outputs: int,
    settings: Descent,
    shares: Floats | None,
    n_persons: int,
    smoothing: sparse.csr_array | None = None,
) -> Floats:
    """Return the weights of cells after all steps, for rows scaled to length 1.

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
    smoothing : sparse matrix of shape (n_cells, n_cells), optional
        The features of cells, which are learned in place of them. Symmetric, with rows of length 1 at most.
    """
    length = row_length(rows)
    columns = sparse.csr_array(rows.T).astype(np.int64)
    features = sparse.csr_array(sparse.eye_array(rows.shape[1])) if smoothing is None else smoothing
    scale = settings.scale(rows.shape[1] * n_outputs)
    clip = settings.clip if scale else 1.0
    noisy_count = max(noisy_sum(np.array([float(n_persons)]), scale)[0], 1.0)
    rate = settings.rate(noisy_count) * clip / noisy_count
    learned = np.zeros((rows.shape[1], n_outputs))
    velocity = np.zeros_like(learned)
    for _ in range(settings.n_steps):
        residual = residuals(rows @ (features @ learned) / length) / clip
        velocity = settings.momentum * velocity - rate * noisy_gradient(
            columns, residual, length, scale, shares, features
        )
        learned = learned + velocity
    return np.asarray(features @ learned)


def noisy_gradient(
    columns: sparse.csr_array,
    residuals: Floats,
    length: float,
    scale: float,
    shares: Floats | None = None,
    features: sparse.csr_array | None = None,
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
    features : sparse matrix of shape (n_cells, n_cells), optional
        Of every cell; None: each cell is its own.
    """
    bounded = clipped(residuals)
    if shares is not None:
        bounded = bounded * shares[:, None]
    if scale:
        grid = grid_of(scale * length)
        sums = (columns.astype(np.int64, copy=False) @ whole_steps(bounded, scale * length)) * grid
    else:
        sums = columns @ bounded
    return noisy_sum(sums if features is None else features @ sums, scale * length) / length


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
