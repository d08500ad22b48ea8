# SPDX-License-Identifier: Apache-2.0
"""Small charts as SVG text: no scripts, no fonts, colours from the page's own style sheet.

Every chart has a title that says in words what it shows, for readers who hear the page. ``page`` puts them in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

_CHARACTER = 7.4  # width of a character of the charts' text, a little generous
_WIDTH = 400.0  # of every chart: letters stay readable when it is scaled down to a phone
_MOST_LETTERS = 50  # of a label that stands above its line
_TURN_DIRECTION = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def picture(width: float, height: float, title: str, parts: Sequence[str], *, css_class: str = "chart") -> str:
    """Wrap shapes into an SVG picture that scales down with the page and never up."""
    return (
        f'<svg class="{css_class}" role="img" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" xmlns="http://www.w3.org/2000/svg"><title>{safe(title)}</title>'
        f"{''.join(parts)}</svg>"
    )


def before_and_after(before: Sequence[float], after: Sequence[float], title: str) -> str:
    """Draw two distributions over the same classes: bars for before, a stepped line for after."""
    width, height, base = 180.0, 44.0, 42.0
    if not before:
        return ""
    highest = max([*before, *after, 1e-9])
    step = width / len(before)
    parts = []
    for place, share in enumerate(before):
        tall = share / highest * 38
        parts.append(
            f'<rect class="before" x="{place * step + 0.5:.1f}" y="{base - tall:.1f}" '
            f'width="{max(step - 1, 0.8):.1f}" height="{tall:.1f}"/>'
        )
    if after:
        corners = []
        for place, share in enumerate(after):
            y = base - share / highest * 38
            corners += [f"{place * step:.1f},{y:.1f}", f"{(place + 1) * step:.1f},{y:.1f}"]
        parts.append(f'<polyline class="after" points="{" ".join(corners)}"/>')
    parts.append(f'<line class="axis" x1="0" x2="{width:g}" y1="{base + 0.5:g}" y2="{base + 0.5:g}"/>')
    return picture(width, height, title, parts, css_class="spark")


def bars(labels: Sequence[str], values: Sequence[float], title: str, *, axis: str) -> str:
    """Draw lying bars, one below the other, with their labels on the left and their shares on the right."""
    line, top = 24.0, 26.0
    left = max([len(label) for label in labels] + [4]) * _CHARACTER + 8
    plot = _WIDTH - left - 56
    highest = max([*values, 1e-9])
    bottom = top + line * len(values)
    parts = [f'<text class="quiet" x="0" y="14">{safe(axis)}</text>']
    for place, (label, value) in enumerate(zip(labels, values, strict=True)):
        y = top + place * line
        wide = value / highest * plot
        parts.append(
            f'<text x="{left - 8:.1f}" y="{y + 15:.1f}" text-anchor="end">{safe(label)}</text>'
            f'<rect class="bar" x="{left:.1f}" y="{y + 3:.1f}" width="{wide:.1f}" height="{line - 8:.1f}" rx="2"/>'
            f'<text class="value" x="{left + wide + 6:.1f}" y="{y + 15:.1f}">{_percent(value)}</text>'
        )
    parts.append(f'<line class="axis" x1="{left:g}" x2="{left:g}" y1="{top:g}" y2="{bottom:g}"/>')
    return picture(_WIDTH, bottom + 6, title, parts)


def rates(rows: Sequence[tuple[str, float, tuple[float, float], float, bool]], title: str) -> str:
    """Draw attacks on one scale from 0 to 1: a dot with its interval, and a tick where the baseline is.

    Parameters
    ----------
    rows : sequence of (label, rate, interval, baseline, is_stronger)
    title : str
    """
    line, top, left, right = 44.0, 4.0, 10.0, 14.0
    bottom = top + line * len(rows)

    def at(value: float) -> float:
        return left + min(1.0, max(0.0, value)) * (_WIDTH - left - right)

    parts = []
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(
            f'<line class="grid" x1="{at(tick):.1f}" x2="{at(tick):.1f}" y1="{top:g}" y2="{bottom:g}"/>'
            f'<text class="quiet" x="{at(tick):.1f}" y="{bottom + 16:g}" text-anchor="middle">{tick:g}</text>'
        )
    for place, (label, rate, (low, high), baseline, is_stronger) in enumerate(rows):
        y = top + place * line + 30
        kind = "strong" if is_stronger else "weak"
        parts.append(
            f'<text x="0" y="{y - 14:.1f}">{safe(shortened(label, _MOST_LETTERS))}</text>'
            f'<line class="baseline" x1="{at(baseline):.1f}" x2="{at(baseline):.1f}" y1="{y - 9:.1f}" '
            f'y2="{y + 9:.1f}"/>'
            f'<line class="interval {kind}" x1="{at(low):.1f}" x2="{at(high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<circle class="dot {kind}" cx="{at(rate):.1f}" cy="{y:.1f}" r="5"/>'
        )
    return picture(_WIDTH, bottom + 22, title, parts)


def changes(rows: Sequence[tuple[str, float, tuple[float, float]]], title: str) -> str:
    """Draw gains and losses around zero, one row each: a dot with its interval.

    Parameters
    ----------
    rows : sequence of (label, change, interval)
        Changes are written times 100: as points.
    title : str
    """
    line, top, left, right = 42.0, 4.0, 8.0, 52.0
    bottom = top + line * len(rows)
    reach = max([abs(end) for _, _, interval in rows for end in interval] + [0.001])

    def at(value: float) -> float:
        return left + (value / reach + 1) / 2 * (_WIDTH - left - right)

    parts = []
    for place, (label, change, (low, high)) in enumerate(rows):
        y = top + place * line + 28
        kind = "strong" if high < 0 else "weak"
        parts.append(
            f'<line class="axis" x1="{at(0):.1f}" x2="{at(0):.1f}" y1="{y - 8:.1f}" y2="{y + 8:.1f}"/>'
            f'<text x="0" y="{y - 13:.1f}">{safe(shortened(label, _MOST_LETTERS))}</text>'
            f'<line class="interval {kind}" x1="{at(low):.1f}" x2="{at(high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<circle class="dot {kind}" cx="{at(change):.1f}" cy="{y:.1f}" r="4.5"/>'
            f'<text class="value" x="{_WIDTH - 4:.1f}" y="{y + 4:.1f}" text-anchor="end">{100 * change:+.1f}</text>'
        )
    return picture(_WIDTH, bottom + 6, title, parts)


def curve(
    lines: dict[str, list[tuple[float, float]]],
    title: str,
    *,
    x_axis: str,
    y_axis: str,
    is_logarithmic: bool = True,
    x_values: Sequence[float] = (),
    numbers: dict[str, int] | None = None,
    least_span: float = 0.02,
    around: float | None = None,
) -> str:
    """Draw lines over an axis, with their names below; one point becomes a level to compare with.

    Parameters
    ----------
    lines : dict of str to list of (float, float)
    title, x_axis, y_axis : str
    is_logarithmic : bool
    x_values : sequence of float
        What the level axis shows in any case, so that the pictures of a page can be laid over each other.
    numbers : dict of str to int, optional
        Which colour a line has, so that it is the same in every picture of a page.
    least_span : float
        The upright axis spans this much at least: chance must not look like a trend.
    around : float, optional
        A value that the upright axis shows in any case.
    """
    left, top, tall, right = 44.0, 20.0, 200.0, 12.0
    wide = _WIDTH - left - right
    scaled = math.log10 if is_logarithmic else float
    xs_of_all = [*x_values, *(x for points in lines.values() for x, _ in points)]
    xs = [scaled(x) for x in xs_of_all]
    ys = [y for points in lines.values() for _, y in points]
    low_x, high_x = min(xs), max(xs)
    seen = ys if around is None else [*ys, around]
    low_y, high_y = min(seen), max(seen)
    room = max((high_y - low_y) * 0.08, (least_span - (high_y - low_y)) / 2)
    low_y, high_y = low_y - room, high_y + room

    def place(x: float, y: float) -> tuple[float, float]:
        across = 0.5 if high_x == low_x else (scaled(x) - low_x) / (high_x - low_x)
        return left + across * wide, top + (1 - (y - low_y) / (high_y - low_y)) * tall

    parts = []
    for value, label in round_values(low_y, high_y):
        _, y = place(xs_of_all[0], value)
        parts.append(
            f'<line class="grid" x1="{left:g}" x2="{left + wide:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
            f'<text class="quiet" x="{left - 6:g}" y="{y + 4:.1f}" text-anchor="end">{label}</text>'
        )
    beyond = -math.inf  # where the label before ends
    for x in sorted(set(xs_of_all)):
        at, _ = place(x, low_y)
        label = f"{x:.3g}" if x < 1000 else f"{x:,.0f}"
        half = len(label) * _CHARACTER / 2
        if at - half > beyond + 4:  # labels must not lie on each other
            parts.append(
                f'<text class="quiet" x="{at:.1f}" y="{top + tall + 16:g}" text-anchor="middle">{label}</text>'
            )
            beyond = at + half
    below = top + tall + 54
    for place_in_legend, (name, points) in enumerate(lines.items()):
        colour = f"line-{(list(lines).index(name) if numbers is None else numbers[name]) % 6}"
        corners = [place(x, y) for x, y in sorted(points)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
        legend = below + 18 * place_in_legend
        if len(corners) > 1:
            parts.append(f'<polyline class="line {colour}" points="{path}"/>')
        else:
            x, y = corners[0]
            parts.append(f'<line class="level {colour}" x1="{x:.1f}" x2="{left + wide:g}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts += [f'<circle class="point {colour}" cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in corners]
        parts.append(
            f'<line class="line {colour}" x1="0" x2="18" y1="{legend - 4:.1f}" y2="{legend - 4:.1f}"/>'
            f'<text class="name {colour}" x="26" y="{legend:.1f}">{safe(shortened(name, _MOST_LETTERS - 4))}</text>'
        )
    parts.append(
        f'<text class="quiet" x="{left + wide / 2:g}" y="{top + tall + 34:g}" text-anchor="middle">'
        f"{safe(x_axis)}</text>"
        f'<text class="quiet" x="0" y="{top - 8:g}">{safe(y_axis)}</text>'
    )
    return picture(_WIDTH, below + 18 * len(lines) - 8, title, parts)


def round_values(low: float, high: float) -> list[tuple[float, str]]:
    """Return four to nine values between two others that are easily read, with their labels.

    Examples
    --------
    >>> [label for _, label in round_values(0.451, 0.551)]
    ['0.46', '0.48', '0.50', '0.52', '0.54']
    """
    power = math.floor(math.log10((high - low) / 4))
    step = next(
        step for step in (10**power, 2 * 10**power, 5 * 10**power, 10 ** (power + 1)) if (high - low) / step < 6
    )
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    first = math.ceil(low / step - 1e-9)
    return [(n * step, f"{n * step:.{decimals}f}") for n in range(first, math.floor(high / step + 1e-9) + 1)]


def _percent(share: float) -> str:
    return f"{share:.0%}" if share == 0 or share >= 0.095 else f"{share:.1%}"


def shortened(text: str, most: int) -> str:
    """Return text of at most so many letters."""
    return text if len(text) <= most else text[: most - 1] + "…"


def safe(text: str) -> str:
    """Return text for HTML; characters that turn the direction of writing show as replaced, control ones as blanks.

    Examples
    --------
    >>> safe("<b>")
    '&lt;b&gt;'
    """
    return escape("".join(_visible(character) for character in text))


def _visible(character: str) -> str:
    if character in _TURN_DIRECTION:
        return "\ufffd"
    return character if character >= " " and character != "\x7f" else " "
