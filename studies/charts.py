# SPDX-License-Identifier: Apache-2.0
"""Line charts over k as plain SVG: small panels side by side, one legend. Called by the studies' ``charts``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

PANEL_WIDTH, PANEL_HEIGHT = 340, 250
LEFT, TOP, RIGHT, BOTTOM = 44, 30, 14, 34  # room around the plot inside a panel
LEGEND_ROW, LEGEND_COLUMNS, LEGEND_WIDTH = 20, 4, 170  # at most so many entries in a row, so wide at least
INK, GRID = "#1f2328", "#d8dee4"


@dataclass(frozen=True)
class Style:
    """How one line is drawn; colours that people with colour blindness tell apart, and a mark of its own."""

    colour: str
    mark: str  # circle, square, triangle or diamond
    width: float = 1.6
    dash: str = ""


@dataclass(frozen=True)
class Panel:
    """One plot: lines by name, each a list of (k, value), and level lines by name; `axis` is what k is called."""

    title: str
    lines: Mapping[str, Sequence[tuple[float, float]]]
    levels: Mapping[str, float]
    axis: str = "k"
    is_even: bool = False  # k in even steps, else by its logarithm


def draw(panels: Sequence[Panel], styles: Mapping[str, Style], *, columns: int, label: str) -> str:
    """Return the SVG text of all panels and the legend.

    Parameters
    ----------
    panels : sequence of Panel
    styles : mapping
        Of every line and level that a panel names, in the order of the legend.
    columns : int
        Panels side by side.
    label : str
        What the picture shows, for readers who do not see it.
    """
    rows = math.ceil(len(panels) / columns)
    legend_top = rows * PANEL_HEIGHT + 14
    width = columns * PANEL_WIDTH
    in_a_row = min(LEGEND_COLUMNS, width // LEGEND_WIDTH)
    height = legend_top + LEGEND_ROW * math.ceil(len(styles) / in_a_row) + 6
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="11" fill="{INK}" role="img" aria-label="{escape(label)}">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
    ]
    for i, panel in enumerate(panels):
        x, y = i % columns * PANEL_WIDTH, i // columns * PANEL_HEIGHT
        parts += [f'<g transform="translate({x} {y})">', *_panel(panel, styles), "</g>"]
    for i, (name, style) in enumerate(styles.items()):
        x = 20 + i % in_a_row * (width - 20) // in_a_row
        y = legend_top + i // in_a_row * LEGEND_ROW
        parts += [
            _path([(x, y), (x + 28, y)], style),
            *_marks([(x + 14, y)], style),
            f'<text x="{x + 36}" y="{y + 4}">{escape(name)}</text>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _panel(panel: Panel, styles: Mapping[str, Style]) -> list[str]:
    ticks = nice_ticks([*(v for line in panel.lines.values() for _, v in line), *panel.levels.values()])
    every_k = sorted({k for line in panel.lines.values() for k, _ in line})
    inner_width, inner_height = PANEL_WIDTH - LEFT - RIGHT, PANEL_HEIGHT - TOP - BOTTOM

    def across(k: float) -> float:
        if panel.is_even:
            share = (k - every_k[0]) / ((every_k[-1] - every_k[0]) or 1.0)
        else:
            share = math.log(k / every_k[0]) / (math.log(every_k[-1] / every_k[0]) or 1.0)
        return LEFT + 10 + (inner_width - 20) * share

    def down(value: float) -> float:
        return TOP + inner_height * (ticks[-1] - value) / (ticks[-1] - ticks[0])

    left, right = LEFT, LEFT + inner_width
    parts = [f'<text x="{LEFT}" y="18" font-weight="bold">{escape(panel.title)}</text>']
    for tick in ticks:
        y = down(tick)
        parts.append(f'<path d="M{left} {y:.1f}H{right}" stroke="{GRID}"/>')
        parts.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    bottom = TOP + inner_height
    for k in every_k:
        parts.append(f'<text x="{across(k):.1f}" y="{bottom + 15}" text-anchor="middle">{k:g}</text>')
    middle = (left + right) / 2
    parts.append(f'<text x="{middle:.1f}" y="{bottom + 29}" text-anchor="middle">{escape(panel.axis)}</text>')
    for name, level in panel.levels.items():
        parts.append(_path([(left, down(level)), (right, down(level))], styles[name]))
    for name, line in reversed(panel.lines.items()):  # the first line lies on top
        points = [(across(k), down(value)) for k, value in line]
        parts += [_path(points, styles[name]), *_marks(points, styles[name])]
    return parts


def nice_ticks(values: Sequence[float]) -> list[float]:
    """Return four to seven round numbers that reach around the values."""
    low, high = min(values), max(values)
    for step in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50):
        first, last = math.floor(low / step), math.ceil(high / step)
        if last - first <= 6:
            return [round(i * step, 10) for i in range(first, max(last, first + 1) + 1)]
    raise ValueError(f"values from {low} to {high}: expected a span of at most 300. Draw percentages.")


def _path(points: Sequence[tuple[float, float]], style: Style) -> str:
    way = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dash = f' stroke-dasharray="{style.dash}"' if style.dash else ""
    return f'<path d="M{way}" fill="none" stroke="{style.colour}" stroke-width="{style.width}"{dash}/>'


def _marks(points: Sequence[tuple[float, float]], style: Style) -> list[str]:
    corners = {
        "square": [(-3, -3), (3, -3), (3, 3), (-3, 3)],
        "triangle": [(0, -4), (4, 3), (-4, 3)],
        "diamond": [(0, -4), (4, 0), (0, 4), (-4, 0)],
    }
    if style.mark == "circle":
        return [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{style.colour}"/>' for x, y in points]
    if style.mark not in corners:
        return []
    ways = ["L".join(f"{x + dx:.1f} {y + dy:.1f}" for dx, dy in corners[style.mark]) for x, y in points]
    return [f'<path d="M{way}Z" fill="{style.colour}"/>' for way in ways]
