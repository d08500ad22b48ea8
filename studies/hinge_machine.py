# SPDX-License-Identifier: Apache-2.0
"""The linear support vector machine of LibSVM, fast where there are many records and few coordinates.

LibSVM's linear machine minimizes ||w||^2 / 2 + C sum(hinge losses), with an intercept that is not penalized. On 40,000
records that no plane separates it takes hours. The same minimum is found here by a primal-dual interior-point method,
whose steps cost records x coordinates^2 (Ferris and Munson 2003). ``anatomy_libsvm`` compares both.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

_Vector = NDArray[np.float64]


class HingeMachine(ClassifierMixin, BaseEstimator):
    """Linear support vector machine of two classes with the hinge loss.

    Parameters
    ----------
    C : float, default=1.0
        Weight of the losses, as in LibSVM.
    tol : float, default=1e-6
        Gap between primal and dual at which it stops, as a share of the primal.
    max_iter : int, default=200

    Attributes
    ----------
    coef_, intercept_ : ndarray
    gap_ : float
        The share at which it stopped; above `tol` where nearer steps cannot be told from rounding.
    """

    def __init__(self, C: float = 1.0, tol: float = 1e-6, max_iter: int = 200) -> None:
        self.C = C
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Find the minimum; a weight multiplies C."""
        X = np.ascontiguousarray(X, np.float64)
        self.classes_ = np.unique(y)
        if len(self.classes_) == 1:
            self.coef_, self.intercept_, self.gap_ = np.zeros((1, X.shape[1])), np.ones(1), 0.0
            return self
        sign = np.where(np.asarray(y) == self.classes_[1], 1.0, -1.0)
        weight = np.ones(len(X)) if sample_weight is None else np.asarray(sample_weight, np.float64)
        kept = weight > 0
        w, b, self.gap_ = _minimum(X[kept], sign[kept], self.C * weight[kept], self.tol, self.max_iter)
        self.coef_, self.intercept_ = w[np.newaxis], np.array([b])
        return self

    def decision_function(self, X: Any) -> _Vector:
        """Return on which side of the plane records lie."""
        values: _Vector = np.asarray(X, np.float64) @ self.coef_[0] + self.intercept_[0]
        return values

    def predict(self, X: Any) -> NDArray[Any]:
        """Return classes."""
        place = (self.decision_function(X) > 0).astype(int) if len(self.classes_) > 1 else np.zeros(len(X), int)
        predicted: NDArray[Any] = self.classes_[place]
        return predicted


def _minimum(X: _Vector, sign: _Vector, C: _Vector, tol: float, max_iter: int) -> tuple[_Vector, float, float]:
    """Return the plane and the gap: Mehrotra's predictor and corrector on the dual, 0 <= alpha <= C, sign'alpha = 0."""
    A = X * sign[:, np.newaxis]
    n, d = A.shape
    alpha, low, high, b = C / 2, np.ones(n), np.ones(n), 0.0  # low and high: multipliers of the two bounds
    best: tuple[float, _Vector, float] = (np.inf, np.zeros(d), 0.0)
    for _ in range(max_iter):
        w = A.T @ alpha
        margin = A @ w + b * sign
        primal = w @ w / 2 + C @ np.maximum(0.0, 1 - margin)
        gap = (primal - (alpha.sum() - w @ w / 2)) / max(abs(primal), 1e-12)
        balance = sign @ alpha
        if gap < best[0] and abs(balance) <= tol * C.sum():
            best = gap, w, b
            if gap <= tol:
                break
        room = C - alpha
        dual = 1 - margin + low - high
        target = (alpha @ low + room @ high) / (2 * n)
        D = low / alpha + high / room
        try:
            solve = _solver(A, sign, D)
        except np.linalg.LinAlgError:  # as near to the bounds as numbers can be told apart
            break
        towards: list[_Vector] = []
        for centre in (0.0, None):
            if centre is None:  # the corrector: how much of the way the predictor could go says how much to centre
                d_alpha, d_low, d_high = towards
                step = min(_longest(alpha, d_alpha), _longest(room, -d_alpha), _longest(low, d_low))
                step = min(step, _longest(high, d_high))
                after = ((alpha + step * d_alpha) @ (low + step * d_low)) + (
                    (room - step * d_alpha) @ (high + step * d_high)
                )
                centre = (after / (2 * n) / target) ** 3 * target
                of_low, of_high = centre - d_alpha * d_low, centre + d_alpha * d_high
            else:
                of_low = of_high = np.zeros(n)
            rest = dual + (of_low - alpha * low) / alpha - (of_high - room * high) / room
            d_alpha, d_b = solve(rest, -balance)
            d_low = (of_low - alpha * low - low * d_alpha) / alpha
            d_high = (of_high - room * high + high * d_alpha) / room
            towards = [d_alpha, d_low, d_high]
        step = 0.995 * min(_longest(alpha, d_alpha), _longest(room, -d_alpha))
        step = min(step, 0.995 * _longest(low, d_low), 0.995 * _longest(high, d_high))
        alpha, low, high = alpha + step * d_alpha, low + step * d_low, high + step * d_high
        b += step * d_b
    return best[1], best[2], float(best[0])


def _solver(A: _Vector, sign: _Vector, D: _Vector) -> Any:
    """Return what solves (A A' + D) x + sign b = rest, sign'x = balance, by a system of as many rows as coordinates."""
    scaled = A / D[:, np.newaxis]
    small = np.linalg.cholesky(np.eye(A.shape[1]) + A.T @ scaled)

    def inverse(v: _Vector) -> _Vector:
        inner = np.linalg.solve(small.T, np.linalg.solve(small, scaled.T @ v))
        found: _Vector = v / D - scaled @ inner
        return found

    of_sign = inverse(sign)

    def solve(rest: _Vector, balance: float) -> tuple[_Vector, float]:
        x = inverse(rest)
        b = (sign @ x - balance) / (sign @ of_sign)
        return x - b * of_sign, float(b)

    return solve


def _longest(values: _Vector, change: _Vector) -> float:
    """Return the longest step at which no value falls below 0, 1 at the most."""
    falls = change < 0
    return min(1.0, float((-values[falls] / change[falls]).min())) if falls.any() else 1.0
