# SPDX-License-Identifier: Apache-2.0
"""Noise for differential privacy: two-sided geometric for counts, Gaussian for sums of numbers.

The samplers are OpenDP's (extra ``dp``). They draw from the operating system's secure source, are exact on whole
numbers, and take no seed: anyone who knows a seed can subtract the noise. Code asks `noise_source` and hands its result
down; no parameter of a learner or a release leads here.

Doubles are not real numbers, and the last bits of a sum of a double and its noise can tell the double (Mironov, CCS
2012). So Gaussian noise lives on a grid of multiples of a power of two, and `add_gaussian` rounds its values to it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.errors import MissingExtraError, ParameterError, named

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

_GRID_BITS = 30  # steps of the grid per standard deviation, as a power of two
_WIDEST = 2.0**60  # what is rounded to the grid must stay a 64-bit integer
_EXACT = 2.0**53  # integers up to here are doubles
_SMALLEST_EPSILON = 2.0**-40  # draws of less could leave the range of 64-bit integers, and would be moved to its end


class Noise(Protocol):
    """A source of noise."""

    def geometric(self, epsilon: float, size: int) -> Integers:
        """Draw whole numbers x with probability proportional to ``exp(-epsilon |x|)``."""
        ...

    def gaussian(self, scale: float, size: int) -> Floats:
        """Draw multiples of ``grid_of(scale)`` from a discrete Gaussian with standard deviation `scale`."""
        ...


class SecureNoise:
    """Noise of OpenDP's samplers, from the operating system's secure source.

    Examples
    --------
    >>> from sfumato.private.noise import noise_source
    >>> counts = [120, 0, 31]
    >>> noisy = counts + noise_source().geometric(epsilon=1.0, size=3)
    >>> noisy.dtype
    dtype('int64')
    """

    def geometric(self, epsilon: float, size: int) -> Integers:
        """Draw two-sided geometric noise: P(x) proportional to ``exp(-epsilon |x|)``.

        Parameters
        ----------
        epsilon : float
            Privacy budget per unit of change: 1 / scale of the discrete Laplace distribution.
        size : int
        """
        if _positive("epsilon", epsilon) < _SMALLEST_EPSILON:
            raise ParameterError(
                f"{named('epsilon', epsilon)}: expected at least {_SMALLEST_EPSILON:.0e}, below which noise does not "
                "fit into 64-bit integers. Raise it."
            )
        measurement = _geometric(float(epsilon))
        return np.asarray(measurement([0] * size), np.int64)

    def gaussian(self, scale: float, size: int) -> Floats:
        """Draw discrete Gaussian noise on a grid of ``grid_of(scale)``.

        Parameters
        ----------
        scale : float
            Standard deviation.
        size : int
        """
        grid = grid_of(_positive("scale", scale))
        steps = _gaussian(scale / grid)([0] * size)
        return np.asarray(steps, np.float64) * grid


_source: Noise = SecureNoise()


def noise_source() -> Noise:
    """Return the source of noise of this process: the secure one."""
    return _source


def add_gaussian(values: ArrayLike, scale: float, noise: Noise | None = None) -> Floats:
    """Round values to the grid of `scale` and add Gaussian noise, one draw for each value.

    Rounding moves each value by at most half of ``grid_of(scale)``. Two neighboring inputs with `d` values come apart
    by at most ``sqrt(d) * grid_of(scale)`` more than before, which an accountant has to add to their distance.

    Parameters
    ----------
    values : array of float
    scale : float
        Standard deviation.
    noise : Noise, optional
        The secure source by default.

    Raises
    ------
    ParameterError
        If a value is not finite, or more than 2**30 standard deviations large; if the values are integers and the scale
        is so large that the grid has not all of them.
    """
    if np.asarray(values).dtype.kind in "iu" and grid_of(_positive("scale", scale)) > 1.0:
        raise ParameterError(
            f"{named('scale', scale)}: expected less for counts, since one record is less than the noise is rounded "
            "to. Lower it, or raise epsilon."
        )
    steps = np.rint(np.asarray(values, np.float64) / grid_of(_positive("scale", scale)))
    if not (np.abs(steps) < _WIDEST).all():
        raise _too_large(scale)
    source = noise_source() if noise is None else noise
    drawn = np.rint(source.gaussian(scale, steps.size) / grid_of(scale)).astype(np.int64)
    # Whole numbers are added before anything is rounded again, so the result depends on their sum alone.
    return np.asarray((steps.astype(np.int64) + drawn.reshape(steps.shape)) * grid_of(scale), np.float64)


def whole_steps(values: Floats, scale: float) -> Integers:
    """Return values as whole numbers of steps of ``grid_of(scale)``, rounded toward zero.

    Their sums are exact, as 64-bit integers and as doubles.

    Raises
    ------
    ParameterError
        If a value is not finite, or all together are more than 2**22 standard deviations large.
    """
    steps = np.trunc(values / grid_of(scale))
    if not np.abs(steps).sum() < _EXACT:
        raise _too_large(scale)
    return steps.astype(np.int64)


def _too_large(scale: float) -> ParameterError:
    return ParameterError(
        f"{named('scale', scale)}: the values to protect are not finite, or too many times as large. Expected "
        "noise of their order. Bound the values, or raise the scale."
    )


def grid_of(scale: float) -> float:
    """Return the step of the grid for Gaussian noise of a standard deviation: a power of two, at most 2**-30 of it."""
    return float(2.0 ** (np.floor(np.log2(scale)) - _GRID_BITS))


def require_opendp() -> Any:
    """Return OpenDP's prelude.

    Raises
    ------
    MissingExtraError
        If OpenDP is not installed.
    """
    try:
        import opendp.prelude
    except ImportError as error:
        raise MissingExtraError(
            "opendp is not installed: noise for differential privacy comes from it. Install it with pip install "
            "'sfumato[dp]'."
        ) from error
    opendp.prelude.enable_features("contrib")
    return opendp.prelude


@lru_cache(maxsize=64)
def _geometric(epsilon: float) -> Callable[[list[int]], list[int]]:
    dp = require_opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    scale = 1.0 / epsilon
    measurement = dp.m.make_laplace(*space, scale=scale)
    while measurement.map(1) > epsilon:  # 1 / epsilon was rounded down
        scale = float(np.nextafter(scale, np.inf))
        measurement = dp.m.make_laplace(*space, scale=scale)
    return measurement  # type: ignore[no-any-return]


@lru_cache(maxsize=64)
def _gaussian(scale: float) -> Callable[[list[int]], list[int]]:
    dp = require_opendp()
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    return dp.m.make_gaussian(*space, scale=scale)  # type: ignore[no-any-return]


def _positive(name: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ParameterError(f"{named(name, value)}: expected a number above 0.")
    if not 0 < value < np.inf:
        raise ParameterError(f"{named(name, value)}: expected a finite number above 0.")
    return float(value)
