# SPDX-License-Identifier: Apache-2.0
"""The picture of a frontier: a line per protection, its utility on the left and its membership attacks on the right.

Every point has its interval. Wide, both halves stand side by side; narrow, one below the other, for phones. Near one
half the scale of the attacks is stretched, since that is where protections differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.report.charts import picture, round_values, safe, shortened
from sfumato.report.frontier_row import GUESSING, Estimate, FrontierRow

if TYPE_CHECKING:
    from sfumato.report.frontier import Frontier

_CHARACTER = 7.0  # width of a character, a little generous
_MOST_LETTERS = 40
_LINE, _NAME, _TOP, _GAP, _VALUES = 28.0, 14.0, 34.0, 26.0, 42.0
_WIDE, _NARROW = 940.0, 400.0
_TICKS = (0.5, 0.51, 0.52, 0.55, 0.6, 0.7, 0.8, 1.0)
_STRETCH = 0.01  # within so much of one half, the scale of the attacks is nearly even
_STYLE = """
.frontier { --ink: #22252b; --quiet: #5c6370; --line: #dcd8d0; --paper: var(--card, #fdfcfa);
  --of-model: #2f6095; --of-table: #b4541f; }
@media screen and (prefers-color-scheme: dark) { .frontier { --ink: #e7e5e0; --quiet: #a4abb6; --line: #3a3f48;
  --paper: var(--card, #1b1e23); --of-model: #8fb8e3; --of-table: #f0a06a; } }
.frontier text { font: 12.5px system-ui, "Segoe UI", Roboto, sans-serif; fill: var(--ink); }
.frontier text.small { fill: var(--quiet); font-size: 11.5px; }
.frontier text.head { font-weight: 600; }
.frontier text.row { paint-order: stroke; stroke: var(--paper); stroke-width: 4px; }
.frontier .paper { fill: var(--paper); }
.frontier .rule { stroke: var(--line); stroke-width: 1; }
.frontier .reference { stroke: var(--quiet); stroke-width: 1.3; }
.frontier .dashed { stroke-dasharray: 4 3; }
.frontier .limit { stroke: var(--quiet); stroke-width: 3; }
.frontier .model { stroke: var(--of-model); fill: var(--of-model); }
.frontier .table { stroke: var(--of-table); fill: var(--of-table); }
.frontier .span { stroke-width: 2.4; opacity: 0.5; }
.frontier .ring { fill: var(--paper); stroke-width: 2; }
""".strip()


@dataclass(frozen=True)
class _Mark:
    """One point of a line: a number with its interval, whose it is, and its shape."""

    number: Estimate
    owner: str  # "model" or "table"
    shape: str  # "disc", "ring" or "square"


@dataclass(frozen=True)
class _Half:
    """One half of the picture: a scale, its ticks, and the marks of every protection."""

    title: str
    ticks: Sequence[tuple[float, str]]
    at: Callable[[float], float]  # from 0 to 1
    marks: Callable[[FrontierRow], Sequence[_Mark]]
    value: Callable[[FrontierRow], str]
    reference: float | None  # a line to compare with
    limit: Callable[[FrontierRow], float | None]
    legend: Sequence[tuple[str, str, str]]  # shape, owner and words


def wide_picture(frontier: Frontier, *, standalone: bool = False) -> str:
    """Draw both halves side by side; `standalone` gives it a background of its own."""
    left = min(_MOST_LETTERS, max(len(row.name) for row in frontier.rows)) * _CHARACTER + 12
    halves = _halves(frontier)
    plot = (_WIDE - left - _GAP - len(halves) * (_VALUES + 8)) / len(halves)
    parts: list[str] = []
    lowest = 0.0
    for place, half in enumerate(halves):
        start = left + place * (plot + _VALUES + 8 + _GAP)
        drawn, lowest_here = _half(half, frontier.rows, start, _TOP, plot, _LINE)
        parts, lowest = parts + drawn, max(lowest, lowest_here)
    return _picture(frontier, _WIDE, lowest, [*parts, *_names(frontier, _TOP, above=False)], standalone=standalone)


def narrow_picture(frontier: Frontier) -> str:
    """Draw both halves one below the other, with the name of each protection above its line."""
    parts: list[str] = []
    top = _TOP
    for half in _halves(frontier):
        drawn, lowest = _half(half, frontier.rows, 4.0, top, _NARROW - _VALUES - 12, _LINE + _NAME)
        parts += [*drawn, *_names(frontier, top, above=True)]
        top = lowest + _TOP + 10
    return _picture(frontier, _NARROW, top - _TOP, parts, standalone=False)


def _picture(frontier: Frontier, width: float, height: float, parts: Sequence[str], *, standalone: bool) -> str:
    title = "Utility and membership attacks of " + "; ".join(_in_words(frontier, row) for row in frontier.rows)
    paper = [f'<rect class="paper" x="-14" y="-10" width="{width + 28:g}" height="{height + 20:g}" rx="8"/>']
    drawn = picture(width, height, title, [f"<style>{_STYLE}</style>", *(paper if standalone else []), *parts])
    drawn = drawn.replace('class="chart"', 'class="chart frontier"', 1)
    if not standalone:
        return drawn
    wide, tall = width + 28, height + 20
    return drawn.replace(
        f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"',
        f'viewBox="-14 -10 {wide:g} {tall:g}" width="{wide:g}" height="{tall:g}"',
    )


def _in_words(frontier: Frontier, row: FrontierRow) -> str:
    said = [f"{frontier.metric} {row.best.value:.3f}"] if row.best is not None else []
    if row.risk is not None:
        said.append(f"attack {row.risk:.3f}")
    return f"{row.name}: {', '.join(said) or 'not measured'}"


def _halves(frontier: Frontier) -> list[_Half]:
    halves = [_utility(frontier)] if any(row.best is not None for row in frontier.rows) else []
    if any(row.risk is not None for row in frontier.rows):
        halves.append(_attacks(frontier))
    return halves


def _utility(frontier: Frontier) -> _Half:
    def marks(row: FrontierRow) -> list[_Mark]:
        own = [] if row.utility is None else [_Mark(row.utility, row.shares, "disc")]
        return own if row.recoded is None else [*own, _Mark(row.recoded, row.shares, "ring")]

    shown = [mark.number for row in frontier.rows for mark in marks(row)]
    ends = [end for number in shown for end in number.interval or (number.value,)]
    low, high = min(ends), max(ends)
    if low - frontier.blind < (high - low) / 2 and frontier.blind < low:
        low = frontier.blind
    room = max((high - low) * 0.04, 0.002)
    low, high = low - room, high + room
    is_share = frontier.metric == "accuracy"
    ticks = [(value, f"{100 * value:g}" if is_share else label) for value, label in round_values(low, high)]
    raw = next((row.utility for row in frontier.rows if row.name == frontier.reference), None)

    def value(row: FrontierRow) -> str:
        best = row.best
        return "-" if best is None else f"{100 * best.value:.1f}" if is_share else f"{best.value:.3f}"

    legend = [("disc", owner, f"shares a {owner}") for owner in ("model", "table")]
    if any(row.recoded is not None for row in frontier.rows):
        legend.append(("ring", "table", "test records recoded"))
    title = "accuracy on test records, %" if is_share else f"{frontier.metric} on test records"
    return _Half(
        title, ticks, lambda x: (x - low) / (high - low), marks, value, None if raw is None else raw.value,
        lambda row: None, legend,
    )  # fmt: skip


def _attacks(frontier: Frontier) -> _Half:
    def marks(row: FrontierRow) -> list[_Mark]:
        found = [row.strongest("membership", on) for on in ("model", "table")]
        shape = {"model": "disc", "table": "square"}
        return [_Mark(one.rate, one.on, shape[one.on]) for one in found if one is not None]

    def stretched(x: float) -> float:
        return math.copysign(math.log1p(abs(x - GUESSING) / _STRETCH), x - GUESSING)

    low, high = stretched(0.485), stretched(1.0)
    found = {mark.owner: mark.shape for row in frontier.rows for mark in marks(row)}
    legend = [(shape, owner, f"attack on the {owner}") for owner, shape in sorted(found.items())]
    if any(row.limit is not None for row in frontier.rows):
        legend.append(("limit", "", "limit of the promise"))
    return _Half(
        "who was in the data, strongest attack right in %",
        [(tick, f"{100 * tick:g}") for tick in _TICKS],
        lambda x: (min(max(stretched(x), low), high) - low) / (high - low),
        marks,
        lambda row: "-" if row.risk is None else f"{100 * row.risk:.1f}",
        GUESSING,
        lambda row: row.limit,
        legend,
    )


def _half(
    half: _Half, rows: Sequence[FrontierRow], left: float, top: float, plot: float, line: float
) -> tuple[list[str], float]:
    """Draw one half; return its parts, and where it ends."""
    bottom = top + line * len(rows)

    def at(value: float) -> float:
        return left + half.at(value) * plot

    parts = [f'<text class="head" x="{left:.1f}" y="{top - 16:.1f}">{safe(half.title)}</text>']
    for tick, label in half.ticks:
        parts.append(
            f'<line class="rule" x1="{at(tick):.1f}" x2="{at(tick):.1f}" y1="{top - 6:g}" y2="{bottom:g}"/>'
            f'<text class="small" x="{at(tick):.1f}" y="{bottom + 15:g}" text-anchor="middle">{label}</text>'
        )
    if half.reference is not None:
        dashed = "" if half.reference == GUESSING else " dashed"
        x = at(half.reference)
        parts.append(f'<line class="reference{dashed}" x1="{x:.1f}" x2="{x:.1f}" y1="{top - 6:g}" y2="{bottom:g}"/>')
    for place, row in enumerate(rows):
        middle = top + place * line + line - _LINE / 2
        marks = half.marks(row)
        for number, mark in enumerate(marks):
            parts += _drawn(mark, at, middle + (5 * (2 * number - 1) if len(marks) > 1 else 0))
        limit = half.limit(row)
        if limit is not None:
            x = at(limit)
            parts.append(f'<line class="limit" x1="{x:.1f}" x2="{x:.1f}" y1="{middle - 8:.1f}" y2="{middle + 8:.1f}"/>')
        parts.append(
            f'<text class="small" x="{left + plot + _VALUES:.1f}" y="{middle + 4:.1f}" text-anchor="end">'
            f"{half.value(row)}</text>"
        )
    legend, lowest = _legend(half.legend, left, bottom + 38, plot + _VALUES)
    return [*parts, *legend], lowest


def _drawn(mark: _Mark, at: Callable[[float], float], y: float) -> list[str]:
    parts = []
    if mark.number.interval is not None:
        low, high = mark.number.interval
        parts.append(
            f'<line class="span {mark.owner}" x1="{at(low):.1f}" x2="{at(high):.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
    return [*parts, _shape(mark.shape, mark.owner, at(mark.number.value), y)]


def _shape(shape: str, owner: str, x: float, y: float) -> str:
    if shape == "square":
        return f'<rect class="{owner}" x="{x - 4:.1f}" y="{y - 4:.1f}" width="8" height="8"/>'
    ring = " ring" if shape == "ring" else ""
    return f'<circle class="{owner}{ring}" cx="{x:.1f}" cy="{y:.1f}" r="{4 if ring else 4.5:g}"/>'


def _names(frontier: Frontier, top: float, *, above: bool) -> list[str]:
    line = _LINE + _NAME if above else _LINE
    parts = []
    for place, row in enumerate(frontier.rows):
        y = top + place * line + (10 if above else _LINE / 2 + 4)
        parts.append(f'<text class="row" x="0" y="{y:.1f}">{safe(shortened(row.name, _MOST_LETTERS))}</text>')
    return parts


def _legend(entries: Sequence[tuple[str, str, str]], left: float, top: float, width: float) -> tuple[list[str], float]:
    """Draw what the marks mean; return the parts, and where they end."""
    parts, x, y = [], left + 5, top
    for shape, owner, words in entries:
        wide = len(words) * 6.2 + 26
        if x + wide > left + width + 12:
            x, y = left + 5, y + 19
        mark = (
            f'<line class="limit" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 7:.1f}" y2="{y + 7:.1f}"/>'
            if shape == "limit"
            else _shape(shape, owner, x, y)
        )
        parts.append(f'{mark}<text class="small" x="{x + 10:.1f}" y="{y + 4:.1f}">{safe(words)}</text>')
        x += wide
    return parts, y + 12
