# SPDX-License-Identifier: Apache-2.0
"""What a study shows of its cells: tables in Markdown, with the paper's figures beside ours, and drawings.

`pivot` serves most studies; an experiment whose numbers are not means over cells brings views of its own. Called by the
command ``sfumato study`` and by ``papers``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from studies.cells import Cell, matches
from studies.charts import Panel, Style, draw

if TYPE_CHECKING:
    from studies.catalogue import Study

COLOURS = ("#d55e00", "#e69f00", "#009e73", "#0072b2", "#56b4e9", "#cc79a7", "#7a7a7a", "#8c5a2b")
MARKS = ("circle", "square", "triangle", "diamond")
MOST_LINES = len(COLOURS)
DASHES = ("6 3", "2 3")


@dataclass(frozen=True)
class View:
    """Tables and sentences as lines of Markdown, and drawings by the name of their file."""

    lines: list[str]
    charts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Pivot:
    """How cells become a table: ``[table]`` of a study's file.

    Attributes
    ----------
    columns : str
        The entry that runs along the top, and along the axis of the drawing.
    value : str
        What is shown, as the mean over cells.
    lines : list of str
        Entries that make a row and a line of the drawing.
    panels : list of str
        Entries that make a table and a panel of the drawing.
    baseline : mapping
        Cells that do not depend on the columns and lie apart, as a level.
    digits : int
    factor : float
        What values are multiplied with: 100 for percent.
    drawn : bool
        Whether there is a drawing; the columns must be numbers above zero.
    """

    columns: str
    value: str
    lines: list[str]
    panels: list[str] = field(default_factory=list)
    baseline: Mapping[str, Any] = field(default_factory=dict)
    digits: int = 2
    factor: float = 1.0
    drawn: bool = True


def show(study: Study, cells: list[Cell]) -> View:
    """Return what a study shows: its pivot, or the view of its experiment that it names."""
    if not cells:
        return View(["No cells are kept yet."])
    if study.view:
        return study.load_experiment().views[study.view](study, cells)
    assert study.table is not None
    return pivot(study, study.table, cells)


def section(page: str, mark: str) -> View:
    """Return the section of a page whose heading holds a mark, such as ``(table 1)``."""
    lines = page.splitlines()
    starts = [place for place, line in enumerate(lines) if line.startswith("## ")]
    [start] = [place for place in starts if mark in lines[place]]
    end = min((place for place in starts if place > start), default=len(lines))
    return View(lines[start + 1 : end])


def pivot(study: Study, how: Pivot, cells: list[Cell]) -> View:
    """Return means of cells as one table per panel, the published figures in brackets, and the drawing."""
    lines: list[str] = []
    panels: list[Panel] = []
    for panel, of_panel in _grouped(cells, how.panels).items():
        varied = [cell for cell in of_panel if not (how.baseline and matches(cell, how.baseline))]
        columns = list(dict.fromkeys(cell[how.columns] for cell in varied))
        rows = _grouped(varied, how.lines)
        title = study.in_words(panel)
        lines += [f"**{title}**:", ""] if title else []
        lines += [f"| | {' | '.join(f'{how.columns} = {study.in_words((c,))}' for c in columns)} |"]
        lines += [f"| --- |{' ---: |' * len(columns)}"]
        levels: dict[str, float] = {}
        apart = [cell for cell in of_panel if how.baseline and matches(cell, how.baseline)]
        for row, of_row in _grouped(apart, how.lines).items():
            name = study.in_words(row)
            levels[name] = _mean(of_row, how)
            lines.append(f"| {name} |{f' {_text(study, of_row, how)} |' * len(columns)}")
        drawn: dict[str, list[tuple[float, float]]] = {}
        for row, of_row in rows.items():
            texts, points = [], []
            for column in columns:
                own = [cell for cell in of_row if cell[how.columns] == column]
                texts.append(_text(study, own, how))
                if own:
                    points.append((column, _mean(own, how)))
            name = study.in_words(row)
            lines.append(f"| {name} | {' | '.join(texts)} |")
            drawn[name] = points
        lines.append("")
        panels.append(Panel(title or study.title, drawn, levels, how.columns))
    if study.published:
        lines += ["In brackets: what the paper prints.", ""]
    return View(lines, _drawing(study, panels) if how.drawn else {})


def _drawing(study: Study, panels: Sequence[Panel]) -> dict[str, str]:
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    if len(names) > MOST_LINES:
        raise ValueError(f"{study.name} draws {len(names)} lines: expected at most {MOST_LINES}. Set drawn = false.")
    styles = {
        name: Style(COLOURS[place], MARKS[place % len(MARKS)], 2.4 if place == 0 else 1.6)
        for place, name in enumerate(names)
    }
    levels = list(dict.fromkeys(name for panel in panels for name in panel.levels))
    styles |= {name: Style("#1f2328", "", 1.2, DASHES[place % len(DASHES)]) for place, name in enumerate(levels)}
    drawing = draw(panels, styles, columns=min(3, len(panels)), label=study.title)
    return {f"{study.name}.svg": drawing}


def _grouped(cells: Sequence[Cell], names: Sequence[str]) -> dict[tuple[Any, ...], list[Cell]]:
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(tuple(cell[name] for name in names), []).append(cell)
    return groups


def _mean(cells: Sequence[Cell], how: Pivot) -> float:
    return how.factor * sum(cell[how.value] for cell in cells) / len(cells)


def _text(study: Study, cells: Sequence[Cell], how: Pivot) -> str:
    if not cells:
        return ""
    published = [fact for fact in study.published if all(matches(cell, fact["where"]) for cell in cells)]
    beside = "".join(f" ({fact['value']:g})" for fact in published)
    return f"{_mean(cells, how):.{how.digits}f}{beside}"
