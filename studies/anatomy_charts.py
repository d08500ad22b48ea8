# SPDX-License-Identifier: Apache-2.0
"""Box plots as plain SVG text: one panel per table, one box per classifier. The anatomy page calls this."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

import numpy as np
from numpy.typing import NDArray

from sfumato.minimize.sweep_result import round_ticks

_BOX, _HEIGHT, _TOP, _LEFT, _BOTTOM = 34, 190, 46, 46, 78
_COLOURS = {"o": "#4c72b0", "i": "#8c8c8c", "l": "#dd8452", "a": "#55a868", "k": "#c44e52"}


def box_plots(tables: Mapping[str, Mapping[str, NDArray[np.float64]]], title: str) -> str:
    """Draw the errors over folds: box from the first to the third quartile, a line at the median, dots for folds."""
    widest = max((len(boxes) for boxes in tables.values()), default=1)
    width = _LEFT + widest * _BOX + 20
    height = _TOP + _HEIGHT + _BOTTOM
    panels = [
        _panel(name, boxes, (number % 2) * width, 24 + (number // 2) * height)
        for number, (name, boxes) in enumerate(tables.items())
    ]
    n_rows = max(1, (len(tables) + 1) // 2)
    words = f"Error in percent over folds: {title}"
    full_width = max(min(2, len(tables)) * width, 16 + 7 * len(words))
    size = f'width="{full_width}" height="{24 + n_rows * height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">',
            '<rect width="100%" height="100%" fill="white"/>',
            f'<text x="8" y="18" font-size="14">{escape(words)}</text>',
            *panels,
            "</svg>",
            "",
        ]
    )


def _panel(name: str, boxes: Mapping[str, NDArray[np.float64]], left: float, top: float) -> str:
    every = np.concatenate(list(boxes.values()))
    low, high = float(every.min()), float(every.max())
    margin = 0.05 * (high - low) or 0.5
    low, high = low - margin, high + margin

    def y(value: float) -> float:
        return _TOP + _HEIGHT * (high - value) / (high - low)

    parts = [f'<g transform="translate({left},{top})">', f'<text x="8" y="30" font-weight="bold">{escape(name)}</text>']
    for value in round_ticks(low, high):
        line = f'x1="{_LEFT}" x2="{_LEFT + len(boxes) * _BOX}" y1="{y(value):.1f}" y2="{y(value):.1f}"'
        parts.append(f'<line {line} stroke="#dddddd"/>')
        parts.append(f'<text x="{_LEFT - 4}" y="{y(value) + 4:.1f}" text-anchor="end">{value:g}</text>')
    for place, (label, errors) in enumerate(boxes.items()):
        parts += _box(label, errors, _LEFT + place * _BOX + _BOX / 2, y)
    return "\n".join([*parts, "</g>"])


def _box(label: str, errors: NDArray[np.float64], x: float, y) -> list[str]:  # type: ignore[no-untyped-def]
    first, middle, third = np.percentile(errors, [25, 50, 75])
    colour = _COLOURS[label[0]]
    half = _BOX * 0.32
    dots = [f'<circle cx="{x:.1f}" cy="{y(e):.1f}" r="1.6" fill="black" fill-opacity="0.45"/>' for e in errors]
    middle_line = f'x1="{x - half:.1f}" x2="{x + half:.1f}" y1="{y(middle):.1f}" y2="{y(middle):.1f}"'
    below = _TOP + _HEIGHT + 10
    return [
        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y(errors.min()):.1f}" y2="{y(errors.max()):.1f}" stroke="{colour}"/>',
        f'<rect x="{x - half:.1f}" y="{y(third):.1f}" width="{2 * half:.1f}" height="{y(first) - y(third):.1f}" '
        f'fill="{colour}" fill-opacity="0.5" stroke="{colour}"/>',
        f'<line {middle_line} stroke="black" stroke-width="1.5"/>',
        *dots,
        f'<text x="{x:.1f}" y="{below}" transform="rotate(55 {x:.1f} {below})">{escape(label)}</text>',
    ]
