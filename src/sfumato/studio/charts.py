# SPDX-License-Identifier: Apache-2.0
"""Curves over the stops of a slider, as SVG without a style of its own.

The outer picture is in pixels and percent, and an inner one that stretches holds lines and bands. So text never scales,
and one drawing serves every width. The mark at the chosen stop is moved by the page's script, from data attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal


@dataclass(frozen=True)
class Line:
    """One line of a chart.

    Attributes
    ----------
    values : sequence of float or None
        One for each stop; None: not measured yet.
    intervals : sequence of (float, float) or None
        The band around it.
    said : sequence of str
        Beside the mark, at each stop.
    name : str
        Beside the line, where there are several.
    """

    values: Sequence[float | None]
    intervals: Sequence[tuple[float, float] | None]
    said: Sequence[str]
    name: str = ""


def scale(values: Sequence[float], least: float, floor: float = 0.0, top: float = 1.0) -> tuple[float, float, float]:
    """Return the ends of an axis that holds the values and spans at least so much, and the step of its ticks.

    Examples
    --------
    >>> scale([0.841, 0.876], 0.02)
    (0.835, 0.88, 0.01)
    """
    low, high = min(values), max(values)
    span = max(high - low, least) * 1.15
    step = next(step for step in (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if span / step <= 5)
    middle = (low + high) / 2
    unit = step / 2
    start = max(floor, int((middle - span / 2) / unit) * unit)
    end = start
    while end < max(high, start + span) - 1e-9:
        end += unit
    return round(start, 4), round(min(max(end, start + least), max(top, high)), 4), step


def chart(
    lines: Sequence[Line],
    *,
    at: int,
    kind: Literal["keep", "risk"],
    title: str,
    base: float | None,
    least: float,
    number: Callable[[float], str],
    height: int = 160,
) -> str:
    """Draw lines over stops at equal steps, with bands, a baseline and the mark.

    Parameters
    ----------
    lines : sequence of Line
    at : int
        The stop of the mark.
    kind : {"keep", "risk"}
        What the model keeps, or what attackers reach.
    title : str
        All values in words.
    base : float, optional
        A value to compare with.
    least : float
        The smallest span of the axis.
    number : callable
        Formats the ticks.
    height : int
    """
    n_stops = len(lines[0].values)
    known = [value for line in lines for value in line.values if value is not None]
    known += [end for line in lines for ends in line.intervals if ends is not None for end in ends]
    known += [] if base is None else [base]
    if not known:
        known = [0.5]
    low, high, step = scale(known, least)

    def x(stop: int) -> float:
        return 100 * stop / max(n_stops - 1, 1)

    def y(value: float) -> float:
        return 100 * (high - value) / (high - low)

    parts = [f'<svg class="plot" role="img" aria-label="{escape(title)}" height="{height}">']
    tick = low
    while tick <= high + 1e-9:
        if abs(tick / step - round(tick / step)) < 1e-6:
            parts.append(
                f'<line class="rule" x2="100%" y1="{y(tick):.1f}%" y2="{y(tick):.1f}%"/>'
                f'<text class="tick ty" y="{y(tick):.1f}%">{number(tick)}</text>'
            )
        tick += step / 2
    parts.append('<svg viewBox="0 0 100 100" preserveAspectRatio="none" width="100%" height="100%">')
    for line in lines:
        ends = [(x(stop), own) for stop, own in enumerate(line.intervals) if own is not None]
        if len(ends) > 1:
            upper = [f"{place:.1f},{y(own[1]):.1f}" for place, own in ends]
            lower = [f"{place:.1f},{y(own[0]):.1f}" for place, own in reversed(ends)]
            parts.append(f'<polygon class="band fill{kind}" points="{" ".join([*upper, *lower])}"/>')
        dots = [(x(stop), y(value)) for stop, value in enumerate(line.values) if value is not None]
        corners = " ".join(f"{place:.1f},{tall:.1f}" for place, tall in dots)
        parts.append(f'<polyline class="line {kind}" points="{corners}"/>')
    parts.append("</svg>")
    if base is not None:  # named beside the title: inside, some mark would lie on the name
        parts.append(f'<line class="base" x2="100%" y1="{y(base):.1f}%" y2="{y(base):.1f}%"/>')
    parts.append(f'<line class="mark" data-markline x1="{x(at):.1f}%" x2="{x(at):.1f}%" y1="-6" y2="100%"/>')
    for row, line in enumerate(lines):
        parts += _dots(line, at, kind, x, y, is_upper=row == 0)
    return "".join([*parts, "</svg>"])


def _dots(
    line: Line, at: int, kind: str, x: Callable[[int], float], y: Callable[[float], float], *, is_upper: bool
) -> list[str]:
    """Return the dots of a line, hollow ones for what is to come, and the large one at the mark."""
    parts = []
    for stop, value in enumerate(line.values):
        if value is None:
            parts.append(f'<circle class="ghost" cx="{x(stop):.1f}%" cy="100%" r="4"/>')
        else:
            parts.append(f'<circle class="fill{kind} dotring" cx="{x(stop):.1f}%" cy="{y(value):.1f}%" r="4"/>')
    heights = "|".join("" if value is None else f"{y(value):.1f}" for value in line.values)
    said, own = "|".join(text.replace("|", "/") for text in line.said), line.values[at]
    place, is_left = x(at), x(at) > 70
    tall, hidden = (100.0, " hidden") if own is None else (y(own), "")
    anchor = f'dx="{-10 if is_left else 10}" text-anchor="{"end" if is_left else "start"}"'
    parts.append(
        f'<g data-mark="{heights}" data-text="{escape(said)}"{hidden}>'
        f'<circle class="fill{kind} dotring" cx="{place:.1f}%" cy="{tall:.1f}%" r="6.5"/>'
        f'<text class="marktext halo" x="{place:.1f}%" y="{tall:.1f}%" {anchor} dy="{-11 if is_upper else 22}">'
        f"{escape(line.said[at])}</text></g>"
    )
    return parts


def axis(names: Sequence[str]) -> str:
    """Draw the names of the stops under the charts."""
    parts = [
        f'<text class="tick" x="{100 * stop / max(len(names) - 1, 1):.1f}%" y="11" text-anchor="middle">'
        f"{escape(name)}</text>"
        for stop, name in enumerate(names)
    ]
    return f'<svg class="plot ax" height="16" aria-hidden="true">{"".join(parts)}</svg>'


def shape(shares: Sequence[float]) -> str:
    """Draw how the values of a column are spread, without the values."""
    if not shares:
        return ""
    step, highest = 96 / len(shares), max([*shares, 1e-9])
    corners, last = ["M0 26"], 26.0
    for share in shares:
        top = 25 - 24 * share / highest
        corners.append(f"v{top - last:.1f}h{step:.1f}")
        last = top
    return f'<svg class="shape" width="96" height="26" aria-hidden="true"><path d="{"".join(corners)}V26z"/></svg>'


def meter(share: float, css_class: str = "base2") -> str:
    """Draw a share as a bar."""
    wide = 100 * min(max(share, 0.0), 1.0)
    bar = f'<line class="{css_class}" x2="{wide:.1f}%"/>' if wide > 0 else ""
    return f'<svg class="meter" aria-hidden="true"><line class="track" x2="100%"/>{bar}</svg>'
