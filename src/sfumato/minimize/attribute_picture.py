# SPDX-License-Identifier: Apache-2.0
"""The picture of what each attribute costs and is worth: a row per attribute, a panel per measure.

Drawn for ``attribute_steps``. Steps differ in shape as well as in color, for those who do not see the colors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.minimize.attribute_steps import AttributeCosts, AttributeStep, StepName

_ROW, _PANEL, _GAP, _HEAD, _MARGIN = 26, 230, 26, 64, 20
_BUCKETS = 40  # between the names and the first panel
_NAMES, _MOST_NAMES = 110, 250  # room for names, at least and at most
_COLORS: dict[StepName, str] = {"not collected": "#d1495b", "coarser": "#a06a00", "finer": "#1b6ca8"}
_SHAPES: dict[StepName, str] = {
    "not collected": "M-3.5 0a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0Z",
    "coarser": "M-3.2 -3.2H3.2V3.2H-3.2Z",
    "finer": "M0 -4.2L4 3H-4Z",
}
_SPACE_OF_LABEL = 36  # labels of an axis that are closer than this would overlap


@dataclass(frozen=True)
class _Panel:
    """One measure; `value` gives its change by a step, `interval` the ends of a line through the mark."""

    title: str
    value: Callable[[AttributeStep], float]
    interval: Callable[[AttributeStep], tuple[float, ...]]


def picture_of(costs: AttributeCosts) -> str:
    """Return the picture as SVG text."""
    panels = [
        _Panel("error", lambda step: step.error, lambda step: step.error_interval),
        _Panel("risk", lambda step: step.risk, lambda step: ()),
    ]
    if costs.certified is not None:
        panels.append(_Panel("any attacker, at most", lambda step: step.certified or 0.0, lambda step: ()))
    bottom = _HEAD + _ROW * len(costs.rows)
    longest = max((_length(row.attribute) for row in costs.rows), default=0.0)
    left = _MARGIN + round(min(max(longest, _NAMES), _MOST_NAMES)) + _BUCKETS
    width, height = left + len(panels) * (_PANEL + _GAP) - _GAP + _MARGIN, bottom + 44
    shapes = [_legend(left), *_names(costs, left, width)]
    for number, panel in enumerate(panels):
        shapes += _drawn(costs, panel, left + number * (_PANEL + _GAP), bottom)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'role="img" font-family="system-ui, sans-serif" font-size="12"><title>Change of the error and of the risk if '
        "one attribute is not collected, or one step coarser or finer</title>"
        f'<rect width="{width}" height="{height}" fill="#fff"/>{"".join(shapes)}'
        f'<text x="{width - _MARGIN}" y="{height - 8}" text-anchor="end" fill="#555">Left of 0 is better. Lines: 95% '
        "CI</text></svg>"
    )


def _drawn(costs: AttributeCosts, panel: _Panel, left: float, bottom: float) -> list[str]:
    """Return the shapes of one panel."""
    steps = [step for row in costs.rows for step in row.steps]
    values = [100 * end for step in steps for end in (panel.value(step), *panel.interval(step))]
    low, high = min([0.0, *values]), max([0.0, *values])
    span = (high - low) or 1.0
    low, high = low - 0.06 * span, high + 0.06 * span

    def place(points: float) -> float:
        return left + (points - low) / (high - low) * _PANEL

    zero = place(0)
    shapes = [
        f'<text x="{left + _PANEL / 2:.0f}" y="{_HEAD - 12}" text-anchor="middle">{panel.title}, points</text>',
        f'<path d="M{left} {_HEAD}V{bottom}M{left + _PANEL} {_HEAD}V{bottom}" stroke="#ccc" fill="none"/>',
        f'<path d="M{zero:.1f} {_HEAD - 4}V{bottom}" stroke="#666" stroke-dasharray="3 3" fill="none"/>',
        f'<text x="{zero:.1f}" y="{bottom + 16}" text-anchor="middle">0</text>',
    ]
    for end, x, anchor in ((low, left, "start"), (high, left + _PANEL, "end")):
        if abs(x - zero) > _SPACE_OF_LABEL:
            shapes.append(f'<text x="{x:.0f}" y="{bottom + 16}" text-anchor="{anchor}">{end:+.1f}</text>')
    for number, row in enumerate(costs.rows):
        for offset, step in enumerate(row.steps):
            y = _HEAD + _ROW * (number + 0.5) + 7 * (offset - (len(row.steps) - 1) / 2)
            ends = [f"{place(100 * end):.1f}" for end in panel.interval(step)]
            if ends:
                shapes.append(f'<path d="M{ends[0]} {y:.1f}H{ends[1]}" stroke="{_COLORS[step.step]}"/>')
            shapes.append(_mark(step.step, place(100 * panel.value(step)), y))
    return shapes


def _names(costs: AttributeCosts, left: float, width: float) -> list[str]:
    """Return names and numbers of buckets of the attributes, and lines between them."""
    shapes = [
        f'<path d="M{_MARGIN} {_HEAD + _ROW * number}H{width - _MARGIN}" stroke="#eee" fill="none"/>'
        for number in range(len(costs.rows) + 1)
    ]
    shapes.append(f'<text x="{left - 14}" y="{_HEAD - 12}" text-anchor="end" fill="#555">buckets</text>')
    for number, row in enumerate(costs.rows):
        y = _HEAD + _ROW * (number + 0.5) + 4
        name, whole = _shortened(row.attribute), escape(row.attribute)
        buckets = row.n_buckets if row.n_buckets > 1 else "-"
        told = f"<title>{whole}</title>{escape(name)}" if name != row.attribute else whole
        shapes.append(f'<text x="{left - _BUCKETS}" y="{y:.1f}" text-anchor="end">{told}</text>')
        shapes.append(f'<text x="{left - 14}" y="{y:.1f}" text-anchor="end" fill="#555">{buckets}</text>')
    return shapes


def _length(text: str) -> float:
    """Return about how wide a text is; wide fonts are provided for."""
    return sum(9.3 if letter.isupper() or letter in "mw%@" or letter > "\u0500" else 7.5 for letter in text)


def _shortened(name: str) -> str:
    """Return a name that fits."""
    if _length(name) <= _MOST_NAMES:
        return name
    while name and _length(name + "…") > _MOST_NAMES:
        name = name[:-1]
    return name + "…"


def _legend(left: float) -> str:
    shapes, x = [], float(left)
    for name in _COLORS:
        shapes.append(f'{_mark(name, x, 20)}<text x="{x + 9:.0f}" y="24">{name}</text>')
        x += 34 + 7 * len(name)
    return "".join(shapes)


def _mark(step: StepName, x: float, y: float) -> str:
    return f'<path d="{_SHAPES[step]}" transform="translate({x:.1f} {y:.1f})" fill="{_COLORS[step]}"/>'
