# SPDX-License-Identifier: Apache-2.0
"""The result of a sweep: points with utility and risk, and the front they form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.arguments import check_share
from sfumato.errors import ParameterError, named
from sfumato.generalization import Generalization

NOTHING = "nothing generalized"
EVERYTHING = "everything generalized"
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP, _RIGHT = 640, 400, 60, 50, 20, 170
_COLORS = ("#1b6ca8", "#d1495b", "#2e8b57", "#c98a00", "#6a4c93", "#008b8b", "#7f5539", "#444444")


@dataclass(frozen=True, eq=False)
class SweepPoint:
    """One setting of a minimizer, measured.

    Attributes
    ----------
    minimizer : str
        Name of the class, or which limit it is.
    parameters : dict
        The setting.
    generalization : Generalization
    n_buckets : int
        Buckets of all attributes together.
    validation_error, test_error : float
        Share of records whose class is predicted wrongly from buckets.
    validation_risk, test_risk : float
        Share of personal values that the attacker guesses right from buckets.
    certified_risk : float or None
        No attacker guesses more of them right, with 95% confidence: the mean over the personal attributes of bounds
        that hold together, from the test part, which nothing was chosen on. None without personal attributes.
    """

    minimizer: str
    parameters: Mapping[str, Any]
    generalization: Generalization
    n_buckets: int
    validation_error: float
    validation_risk: float
    test_error: float
    test_risk: float
    certified_risk: float | None = None

    @property
    def is_limit(self) -> bool:
        """True if this is one of the two limits of generalization."""
        return self.minimizer in (NOTHING, EVERYTHING)


@dataclass(frozen=True, eq=False)
class MinimizerSweep:
    """All points of a sweep: the two limits first, then minimizer by minimizer.

    Attributes
    ----------
    points : tuple of SweepPoint
    personal : tuple of str
        The attributes whose reconstruction is the risk.
    required : tuple of str
        The attributes that must be collected; other points are not chosen.
    left_out : dict of str to str
        Attributes that were not looked at, and why: forbidden, or screened.
    n_test : int
        Records of the test part.

    Examples
    --------
    >>> from sfumato import UniformMinimizer, sweep_minimizers
    >>> from sfumato.datasets import load_nursery
    >>> X, y = load_nursery(return_X_y=True, as_frame="pyarrow")
    >>> swept = sweep_minimizers(UniformMinimizer(), X.slice(0, 2000), y.slice(0, 2000), grid={"n_buckets": [1, 2]})
    >>> len(swept.points), [point.is_limit for point in swept.points]
    (4, [True, True, False, False])
    """

    points: tuple[SweepPoint, ...]
    personal: tuple[str, ...]
    required: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    n_test: int = 0

    @property
    def minimizers(self) -> tuple[str, ...]:
        """Names of the minimizers."""
        return tuple(dict.fromkeys(point.minimizer for point in self.points if not point.is_limit))

    @property
    def limits(self) -> tuple[SweepPoint, SweepPoint]:
        """Nothing generalized, and everything generalized."""
        return self.points[0], self.points[1]

    def front(self, minimizer: str | None = None) -> list[SweepPoint]:
        """Return the points that no other point beats on validation, from the smallest error to the largest.

        Both limits are always among them.

        Parameters
        ----------
        minimizer : str, optional
            Look at the points of one minimizer and the limits only.
        """
        own = self._points_of(minimizer)
        kept = is_on_front(_costs(own, "validation"))
        found = [point for point, is_kept in zip(own, kept, strict=True) if is_kept or point.is_limit]
        return sorted(found, key=lambda point: (point.validation_error, -point.validation_risk))

    def knee(self, minimizer: str | None = None) -> SweepPoint:
        """Return the point of the front furthest below the line between the limits, on validation."""
        front = self.front(minimizer)
        start, end = _costs(list(self.limits), "validation")
        return front[knee_of(_costs(front, "validation"), start, end)]

    def coarsest(
        self, max_loss: float | None = 0.01, minimizer: str | None = None, *, max_risk: float | None = None
    ) -> SweepPoint:
        """Return the point with the lowest risk that classifies at most `max_loss` more records wrongly.

        Compared with nothing generalized, on validation; among equal risks the one with the fewest buckets. Without a
        limit of the loss, the point with the lowest error whose risk is at most `max_risk`.

        Parameters
        ----------
        max_loss : float or None, default=0.01
            0.01 is one percentage point.
        minimizer : str, optional
        max_risk : float, optional
            Maximum share of personal values that the attacker guesses right, on validation.
        """
        if max_loss is None and max_risk is None:
            raise ParameterError(
                f"neither {named('max_loss')} nor {named('max_risk')}: expected one of them or both. "
                f"{named('max_loss', 0.01)} allows one percentage point."
            )
        points = [point for point in self._points_of(minimizer) if self._has_required(point)]
        if max_loss is not None:
            check_share("max_loss", max_loss, hint="0.01 is one percentage point.")
            limit = self.limits[0].validation_error + max_loss + 1e-12
            points = [point for point in points if point.validation_error <= limit]
        lowest = min((point.validation_risk for point in points), default=None)
        if max_risk is not None:
            check_share("max_risk", max_risk, hint="It is the share of personal values that an attacker guesses right.")
            points = [point for point in points if point.validation_risk <= max_risk + 1e-12]
        if not points:
            reached = "none collects what is required" if lowest is None else f"the lowest risk is {lowest:.1%}"
            allowed = "" if max_loss is None else f" that loses at most {max_loss:.1%}"
            raise ParameterError(
                f"{named('max_risk', max_risk)}: among the settings{allowed}, {reached}. Allow more, or collect less."
            )
        if max_loss is None:
            return min(points, key=lambda point: (point.validation_error, point.validation_risk, point.n_buckets))
        return min(points, key=lambda point: (point.validation_risk, point.n_buckets, point.validation_error))

    def _has_required(self, point: SweepPoint) -> bool:
        return all(point.generalization.attribute(name).is_collected for name in self.required)

    def hypervolume(self, minimizer: str | None = None) -> float:
        """Return the share of the rectangle between the limits that the front beats, on test.

        The front is the one chosen on validation. The rectangle reaches from the error of nothing generalized and the
        risk of everything generalized, which are practical optima, to the other two corners.
        """
        nothing, everything = _costs(list(self.limits), "test")
        ideal = np.array([min(nothing[0], everything[0]), everything[1]])
        worst = np.array([max(nothing[0], everything[0]), nothing[1]])
        return hypervolume(_costs(self.front(minimizer), "test"), ideal, worst)

    def _points_of(self, minimizer: str | None) -> list[SweepPoint]:
        if minimizer is not None and minimizer not in self.minimizers:
            raise ParameterError(
                f"{named('minimizer', minimizer)}: expected one of {', '.join(map(repr, self.minimizers))}."
            )
        return [p for p in self.points if p.is_limit or minimizer in (None, p.minimizer)]

    def to_frame(self, library: Literal["pandas", "polars", "pyarrow"] = "pandas") -> Any:
        """Return the points as a frame, one row each; parameters are JSON text, since minimizers have different ones.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, default="pandas"
        """
        import json

        import pyarrow as pa

        fronts = {name: {id(point) for point in self.front(name)} for name in self.minimizers}
        on_front = [p.is_limit or id(p) in fronts[p.minimizer] for p in self.points]
        table = pa.table(
            {
                "minimizer": [p.minimizer for p in self.points],
                "parameters": [json.dumps(dict(p.parameters), default=str) for p in self.points],
                "n_buckets": [p.n_buckets for p in self.points],
                "validation_error": [p.validation_error for p in self.points],
                "validation_risk": [p.validation_risk for p in self.points],
                "test_error": [p.test_error for p in self.points],
                "test_risk": [p.test_risk for p in self.points],
                "certified_risk": [p.certified_risk for p in self.points],
                "is_on_front": on_front,
            }
        )
        if library == "pandas":
            return table.to_pandas()
        if library == "polars":
            import polars

            return polars.from_arrow(table)
        return table

    def plot(self) -> str:
        """Return a picture as SVG text: error against risk on test, the front of each minimizer, and both limits."""
        return _picture(self)


def _costs(points: list[SweepPoint], part: Literal["validation", "test"]) -> NDArray[np.float64]:
    return np.array([[getattr(point, f"{part}_error"), getattr(point, f"{part}_risk")] for point in points])


def _picture(sweep: MinimizerSweep) -> str:
    costs = _costs(list(sweep.points), "test")
    low, high = costs.min(axis=0), costs.max(axis=0)
    span = np.where(high > low, high - low, 1.0) * 1.08
    low = low - 0.04 * span

    def place(point: SweepPoint) -> tuple[float, float]:
        x, y = (np.array([point.test_error, point.test_risk]) - low) / span
        return _LEFT + x * (_WIDTH - _LEFT - _RIGHT), _HEIGHT - _BOTTOM - y * (_HEIGHT - _BOTTOM - _TOP)

    shapes = [_axes(low, span)]
    for number, name in enumerate(sweep.minimizers):
        color = _COLORS[number % len(_COLORS)]
        front = sweep.front(name)
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in sorted(map(place, front)))
        shapes.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.5"/>')
        for point in sweep.points:
            if point.minimizer == name:
                x, y = place(point)
                filled = color if point in front else "none"
                shapes.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{filled}" stroke="{color}"/>')
        line = _TOP + 12 + 18 * number
        shapes.append(f'<circle cx="{_WIDTH - _RIGHT + 14}" cy="{line - 4}" r="4" fill="{color}"/>')
        shapes.append(f'<text x="{_WIDTH - _RIGHT + 24}" y="{line}">{escape(name)}</text>')
    for limit in sweep.limits:
        x, y = place(limit)
        anchor = "start" if x < _WIDTH / 2 else "end"
        shapes.append(f'<path d="M{x:.1f} {y - 7:.1f}l6 12h-12z" fill="#111"/>')
        halo = 'stroke="#fff" stroke-width="3" paint-order="stroke"'  # lines of fronts end where the words stand
        shapes.append(
            f'<text x="{x:.1f}" y="{y - 10:.1f}" text-anchor="{anchor}" {halo}>{escape(limit.minimizer)}</text>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
        f'height="{_HEIGHT}" role="img" font-family="system-ui, sans-serif" font-size="12">'
        f"<title>Error of a classifier on buckets against what an attacker reconstructs</title>"
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>{"".join(shapes)}</svg>'
    )


def _axes(low: NDArray[np.float64], span: NDArray[np.float64]) -> str:
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    shapes = [f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="#666"/>']
    for value in round_ticks(low[0], low[0] + span[0]):
        x = _LEFT + (value - low[0]) / span[0] * (right - _LEFT)
        shapes.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{value:g}</text>')
    for value in round_ticks(low[1], low[1] + span[1]):
        y = bottom - (value - low[1]) / span[1] * (bottom - _TOP)
        shapes.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    middle = (bottom + _TOP) / 2
    shapes.append(
        f'<text x="{(_LEFT + right) / 2}" y="{bottom + 38}" text-anchor="middle">error of the classifier (test)</text>'
    )
    shapes.append(
        f'<text transform="translate(14 {middle}) rotate(-90)" text-anchor="middle">attacker\'s success (test)</text>'
    )
    return "".join(shapes)


def round_ticks(low: float, high: float) -> list[float]:
    """Return two to seven round numbers between two others.

    Examples
    --------
    >>> round_ticks(0.147, 0.53)
    [0.2, 0.3, 0.4, 0.5]
    """
    power = 10.0 ** np.floor(np.log10(high - low))
    step = next(own for own in (power / 10, power / 5, power / 2, power, 2 * power) if (high - low) / own < 7)
    first, last = int(np.ceil(low / step)), int(np.floor(high / step))
    return [round(float(number * step), 10) for number in range(first, last + 1)]


def is_on_front(costs: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which points no other point beats: at most as costly in both, and less in one. Equal points all count.

    Examples
    --------
    >>> is_on_front(np.array([[0.0, 3.0], [1.0, 1.0], [2.0, 2.0], [3.0, 0.0]])).tolist()
    [True, True, False, True]
    """
    order = np.lexsort((costs[:, 1], costs[:, 0]))
    result = np.zeros(len(costs), np.bool_)
    lowest, at = np.inf, np.nan
    for i in order:
        first, second = costs[i]
        if second < lowest or (second == lowest and first == at):
            result[i] = True
            lowest, at = second, first
    return result


def knee_of(costs: NDArray[np.float64], start: NDArray[np.float64], end: NDArray[np.float64]) -> int:
    """Return the point furthest below the line from one limit point to the other, both costs scaled to 0 to 1.

    The first of them where several are equally far.
    """
    span = np.abs(end - start)
    scaled = (costs - np.minimum(start, end)) / np.where(span > 0, span, 1.0)
    return int(np.argmin(scaled.sum(axis=1)))


def hypervolume(costs: NDArray[np.float64], ideal: NDArray[np.float64], worst: NDArray[np.float64]) -> float:
    """Return the share of the rectangle from `ideal` to `worst` that some point beats.

    Examples
    --------
    >>> hypervolume(np.array([[0.0, 0.5], [0.5, 0.0]]), np.zeros(2), np.ones(2))
    0.75
    """
    span = worst - ideal
    if (span <= 0).any():
        return 0.0
    scaled = np.clip((costs - ideal) / span, 0.0, 1.0)
    area, height = 0.0, 1.0
    for first, second in scaled[np.lexsort((scaled[:, 1], scaled[:, 0]))]:
        if second < height:
            area += (1.0 - first) * (height - second)
            height = second
    return float(area)
