# SPDX-License-Identifier: Apache-2.0
"""A study as a reader gets it: Markdown with the tables, the claims and how it was run; drawings; one JSON document.

Called by the command ``sfumato study`` and, for the sections of its pages, by ``papers``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from studies.catalogue import Study
from studies.cells import Cell
from studies.claims import Judged, claim_lines, counted_verdicts
from studies.views import View, show


@dataclass(frozen=True)
class Report:
    """Report of a study: text, drawings by the name of their file, and everything as data."""

    lines: list[str]
    charts: Mapping[str, str]
    document: dict[str, Any]

    def write(self, folder: Path, name: str) -> list[Path]:
        """Write the text, the drawings and the data into a folder, and return the files."""
        import json

        texts = {
            f"{name}.md": "\n".join(self.lines) + "\n",
            **self.charts,
            f"{name}.json": json.dumps(self.document, indent=1, ensure_ascii=False) + "\n",
        }
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in texts.items():
            (folder / file).write_text(text, encoding="utf-8")
        return [folder / file for file in texts]


def report(study: Study, folder: Path | None = None, *, paper_scale: bool = False) -> Report:
    """Put together what is kept of a study."""
    if not study.can_run:
        return Report([*_opening(study), f"Cannot be run: {study.cannot_run}", ""], {}, _document(study, [], [], 0))
    cells = study.kept(folder, paper_scale=paper_scale)
    n_needed = len(study.keys(paper_scale=paper_scale))
    view = show(study, cells)
    claims = [] if paper_scale else study.judged(folder)
    lines = [
        *_opening(study),
        *tables(view),
        *(["## What the paper says", "", counted_verdicts(claims), "", *claim_lines(claims), ""] if claims else []),
        *closing(study, cells, n_needed),
    ]
    return Report(lines, view.charts, _document(study, cells, claims, n_needed))


def tables(view: View) -> list[str]:
    """Return the tables of a view and its drawings as lines of Markdown."""
    drawings = [line for name in view.charts for line in (f"![{name.removesuffix('.svg')}]({name})", "")]
    lines = view.lines if not view.lines or view.lines[0] else view.lines[1:]
    return [*lines, *([] if lines and not lines[-1] else [""]), *drawings]


def closing(study: Study, cells: Sequence[Cell], n_needed: int) -> list[str]:
    """Return what is less than in the paper, which rules were changed, how to run it, how long it took and where."""
    changed = [f"- {own.date}: before, {own.was}. Changed because {own.because}." for own in study.rule_history]
    return [
        *(["Less than in the paper, or other:", "", *(f"- {own}" for own in study.reductions), ""]
          if study.reductions else []),
        *(["Rules of verdicts that were changed after cells had been seen:", "", *changed, ""] if changed else []),
        f"`sfumato study {study.name}`: {how_long(cells, n_needed)}",
        "",
    ]  # fmt: skip


def how_long(cells: Sequence[Cell], n_needed: int) -> str:
    """Return how many cells there are, and how long they took where."""
    minutes = sum(cell.get("seconds") or 0.0 for cell in cells) / 60
    machines = sorted({cell["environment"] for cell in cells if cell.get("environment")})
    kept = f"{len(cells):,} cells" if len(cells) == n_needed else f"{len(cells):,} of {n_needed:,} cells"
    where = f" ({'; '.join(machines)})" if machines else ""
    return f"{kept}, {minutes:.1f} minutes of one core{where}."


def _opening(study: Study) -> list[str]:
    return [
        f"# {study.title}",
        "",
        f"{study.source}. {study.shows}",
        "",
        f"Data: {'; '.join(study.data)}.",
        "",
    ]


def _document(study: Study, cells: Sequence[Cell], claims: Sequence[Judged], n_needed: int) -> dict[str, Any]:
    return {
        "name": study.name,
        "title": study.title,
        "paper": study.paper,
        "source": study.source,
        "shows": study.shows,
        "data": study.data,
        "cannot_run": study.cannot_run or None,
        "reductions": study.reductions,
        "published": study.published,
        "claims": [claim.to_dict() for claim in claims],
        "n_cells_needed": n_needed,
        "cells": list(cells),
    }
