# SPDX-License-Identifier: Apache-2.0
"""Runs studies: what is missing, over processes, with every finished cell kept; then writes the results.

A study declares its cells and writes its page from the cells alone. Called by ``__main__`` and by the tests.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from studies.accuracy import accuracies
from studies.cells import Cell, Key, append_cell, read_cells, write_cells

STUDIES = Path(__file__).parent
PAGES = STUDIES.parent / "docs" / "results"


@dataclass(frozen=True)
class Study:
    """One table or figure.

    Attributes
    ----------
    name : str
        Its module, and the name of its files.
    title : str
    keys : tuple of Key
        All cells, in the order in which they run and are kept.
    quick : tuple of Key
        A few of them that run in minutes.
    page : callable
        From the cells to the text of the page.
    charts : callable, optional
        From the cells to drawings: the name of a file beside the page, and its text.
    summary : callable, optional
        From the cells to what the page says, as data.
    """

    name: str
    title: str
    keys: tuple[Key, ...]
    quick: tuple[Key, ...]
    page: Callable[[list[Cell]], str]
    charts: Callable[[list[Cell]], Mapping[str, str]] | None = None
    summary: Callable[[list[Cell]], Any] | None = None

    @property
    def results(self) -> Path:
        """The file with the cells."""
        return STUDIES / "results" / f"{self.name}.jsonl"

    def cells(self) -> list[Cell]:
        """Return the cells kept so far, in the study's order."""
        kept = read_cells(self.results)
        return [kept[key] for key in self.keys if key in kept]

    def documents(self) -> dict[Path, str]:
        """Return the text of every file that is written from the cells."""
        cells = self.cells()
        written = {PAGES / f"{self.name.replace('_', '-')}.md": self.page(cells)}
        if self.charts is not None:
            written |= {PAGES / name: text for name, text in self.charts(cells).items()}
        if self.summary is not None:
            written[STUDIES / "results" / f"{self.name}.json"] = json.dumps(self.summary(cells), indent=1) + "\n"
        return written


def run(study: Study, *, processes: int = 1, again: Sequence[str] = ()) -> None:
    """Run the cells that are not kept yet, and those of the methods in `again`; keep each as it is finished."""
    study.results.parent.mkdir(exist_ok=True)
    kept = read_cells(study.results)
    todo = [key for key in study.keys if key not in kept or key.method in again]
    _run_all(todo, processes, study.results)
    write_cells(study.results, study.cells())


def run_quick(study: Study, *, processes: int = 1) -> None:
    """Run the quick cells anew and show them beside the kept ones; write nothing."""
    kept = read_cells(study.results)
    for cell in _run_all(study.quick, processes, None):
        before = "nothing" if cell.key not in kept else f"{kept[cell.key].accuracy:.2f}%"
        print(f"{describe(cell)}; kept: {before}")


def write(study: Study) -> None:
    """Write the page, the drawings and the summary from the cells at hand."""
    for path, text in study.documents().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(STUDIES.parent)}")


def describe(cell: Cell) -> str:
    """Return a cell in words, for progress."""
    what = cell.method if cell.k == 0 else f"{cell.method} k={cell.k}"
    seconds = "" if cell.seconds is None else f" in {cell.seconds:.1f} s"
    return f"{cell.table} {cell.model} seed {cell.seed} {what}: {cell.accuracy:.2f}%{seconds}"


def _run_all(keys: Sequence[Key], processes: int, path: Path | None) -> list[Cell]:
    """Run cells; those of one table, model and split together, because they share a raw model."""
    together: dict[tuple[str, str, int], list[Key]] = {}
    for key in keys:
        together.setdefault(key[:3], []).append(key)
    done: list[Cell] = []
    if processes == 1:
        return [cell for group in together.values() for cell in _run_group(group, path)]
    # Spawned, not forked: a copy of a process that has used threads may wait for them for ever.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        tasks = [pool.submit(_run_group, group, path) for group in together.values()]
        for task in as_completed(tasks):
            done += task.result()
            print(f"{len(done)} of {len(keys)} cells are finished", flush=True)
    return done


def _run_group(keys: Sequence[Key], path: Path | None) -> list[Cell]:
    """Run cells in this process and keep each one as soon as it is finished."""
    done = []
    for cell in accuracies(keys):
        if path is not None:
            append_cell(path, cell)
        print(describe(cell), flush=True)
        done.append(cell)
    return done
