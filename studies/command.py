# SPDX-License-Identifier: Apache-2.0
"""``python -m studies`` and ``sfumato study``: the papers' tables and figures on real data, beside ours."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

import typer

from sfumato.arguments import MOST_THREADS
from sfumato.cli import options
from sfumato.cli.console import Console, exit_codes
from sfumato.errors import ParameterError

HELP = options.help_text(
    "Show a table or figure of the papers on real data, the paper's figures beside ours; without a name, list them.",
    "Finished cells are kept with the studies, so what has been run is shown at once and only what is missing is run. "
    "Most data are found through SFUMATO_DATA. Works in a clone of the repository.",
    examples=[
        "sfumato study",
        "sfumato study goldsteen-figure-2",
        "sfumato study goldsteen-figure-2 --quick",
        "sfumato study 'mancuhan-*' --cells my-cells -o my-results",
    ],
)
_RUNNING = "Running"


def study(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Studies, or patterns such as 'staab-*'.", metavar="[NAME]...", show_default="list them all"
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All studies.", show_default="off")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="A folder for the tables (Markdown), drawings (SVG) and cells (JSON).",
            metavar="FOLDER",
            show_default="shown, not written",
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Run a few cells again and show them beside the kept ones; nothing is kept.",
            rich_help_panel=_RUNNING,
            show_default="off",
        ),
    ] = False,
    paper_scale: Annotated[
        bool,
        typer.Option(
            "--paper-scale",
            help="Run without the reductions that each study names: hours to days.",
            rich_help_panel=_RUNNING,
            show_default="off",
        ),
    ] = False,
    processes: Annotated[
        int | None,
        typer.Option(
            help="Processes at once, one thread each.",
            metavar="N",
            rich_help_panel=_RUNNING,
            show_default="one per core",
        ),
    ] = None,
    cells: Annotated[
        Path | None,
        typer.Option(
            help="Where finished cells are kept. An empty folder runs everything again.",
            metavar="FOLDER",
            rich_help_panel=_RUNNING,
            show_default="studies/results",
        ),
    ] = None,
    kept_only: Annotated[
        bool,
        typer.Option(
            "--kept-only", help="Show what is kept and run nothing.", rich_help_panel=_RUNNING, show_default="off"
        ),
    ] = False,
    pages: Annotated[
        bool,
        typer.Option(
            "--pages",
            help="Write docs/results and the table of the README from the kept cells.",
            rich_help_panel=_RUNNING,
            show_default="off",
        ),
    ] = False,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
    debug: options.Debug = False,
) -> None:
    """Run and show studies; ``HELP`` is what users read."""
    console = Console(quiet=quiet, as_json=as_json)
    with exit_codes(console, debug=debug):
        n_processes = _checked(processes, names, every=every, quick=quick, paper_scale=paper_scale)
        for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            os.environ.setdefault(variable, "1")  # for what this process imports later; the runner limits the rest
        catalogue = importlib.import_module("studies.catalogue")
        if pages:
            _write_pages(console, Path(__file__).parents[1])
            return
        if not names and not every:
            _list(console, catalogue.all_studies())
            return
        chosen = _chosen(catalogue.all_studies(), names, every=every)
        desk = Desk(console, cells, n_processes, paper_scale=paper_scale)
        documents = []
        with desk.keeping():
            if not quick and not kept_only:
                for own in catalogue.as_they_run(chosen):  # all of them before any is shown: claims look at several
                    desk.run(own)
            for own in chosen:
                documents.append(desk.run_quick(own) if quick else desk.show(own, output))
        if as_json:
            console.result({"studies": documents})


class Desk:
    """Runs studies and shows what came out.

    Parameters
    ----------
    console : Console
    folder : Path, optional
        Where cells are kept; None: with the studies.
    processes : int
    paper_scale : bool, default=False
    """

    def __init__(self, console: Console, folder: Path | None, processes: int, *, paper_scale: bool = False) -> None:
        self.console = console
        self.folder = None if folder is None else folder.resolve()
        self.processes, self.paper_scale = processes, paper_scale
        self._runner = importlib.import_module("studies.runner")
        self._reports = importlib.import_module("studies.reports")

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Let experiments that build on another's cells find those of this run, in all its processes."""
        before = os.environ.get(self._runner.CELLS)
        if self.folder is not None:
            os.environ[self._runner.CELLS] = str(self.folder)
        try:
            yield
        finally:
            if self.folder is not None:
                os.environ.pop(self._runner.CELLS)
                os.environ.update({} if before is None else {self._runner.CELLS: before})

    def run(self, study: Any) -> None:
        """Run what is missing of a study, telling how far it is."""
        if not study.can_run:
            return
        keys = study.keys(paper_scale=self.paper_scale)
        n_kept = len(study.kept(self.folder, paper_scale=self.paper_scale))
        if n_kept == len(keys):
            return
        with self.console.step(f"{study.name}: {n_kept:,} of {len(keys):,} cells are kept, running the others"):
            outcome = self._runner.run_missing(
                study.load_experiment(), keys, folder=self.folder, processes=self.processes,
                paper_scale=self.paper_scale, report=self._tell,
            )  # fmt: skip
        self._tell_left(outcome)

    def run_quick(self, study: Any) -> dict[str, Any]:
        """Run a few cells of a study again and show them beside the kept ones."""
        keys = study.quick_keys() if study.can_run else []
        if not keys:
            reason = study.cannot_run or "no cells are quick enough"
            self.console.note(f"{study.name}: {reason}")
            return {"name": study.name, "cannot_run": reason, "cells": []}
        experiment = study.load_experiment()
        with self.console.step(f"{study.name}: running {len(keys)} cells again"):
            outcome = self._runner.run_all(experiment, keys, processes=self.processes, report=self._tell)
        self._tell_left(outcome)
        kept = experiment.kept(self.folder)
        pairs = [(cell, kept.get(tuple(cell[name] for name in experiment.by))) for cell in outcome.cells]
        if not self.console.as_json:
            self.console.heading(f"{study.name}: {study.title}")
            names = [study.table.value] if study.table else None
            self.console.facts([row for cell, before in pairs for row in _compared(experiment, cell, before, names)])
        return {"name": study.name, "cells": [{"now": cell, "kept": before} for cell, before in pairs]}

    def show(self, study: Any, output: Path | None) -> dict[str, Any]:
        """Print a study, and write it into a folder if there is one."""
        from rich.markdown import Markdown

        report = self._reports.report(study, self.folder, paper_scale=self.paper_scale)
        if not self.console.as_json:
            shown = [line for line in report.lines if not line.startswith("![")]
            self.console.out.print(Markdown("\n".join(shown)))
        if output is not None:
            for path in report.write(output, study.name):
                self.console.note(f"wrote {path}")
        document: dict[str, Any] = report.document
        return document

    def _tell(self, progress: Any) -> None:
        left = progress.seconds_left
        about = f"{left / 60:.0f} min" if left >= 60 else f"{left:.0f} s"
        done = f"{progress.n_done} of {progress.n_all} cells, about {about} left"
        if not self.console.quiet:
            self.console.err.print(f"  {done}", style="dim", markup=False, soft_wrap=True)

    def _tell_left(self, outcome: Any) -> None:
        for reason, n_cells in outcome.left.items():
            self.console.note(f"{n_cells} cells were left: {reason}", is_warning=True)


def _checked(processes: int | None, names: Sequence[str] | None, *, every: bool, quick: bool, paper_scale: bool) -> int:
    if names and every:
        raise ParameterError(f"{' '.join(names)} and --all: expected one of both. Leave out the names or --all.")
    if quick and paper_scale:
        raise ParameterError("--quick and --paper-scale: expected one of both. Leave out one of them.")
    if processes is None:
        return os.cpu_count() or 1
    if not 1 <= processes <= MOST_THREADS:
        raise ParameterError(
            f"--processes {processes}: expected an integer from 1 to {MOST_THREADS:,}. Leave it out for one per core."
        )
    return processes


def _chosen(studies: Sequence[Any], names: Sequence[str] | None, *, every: bool) -> list[Any]:
    if every:
        return list(studies)
    found: list[Any] = []
    for name in names or ():
        own = [study for study in studies if fnmatchcase(study.name, name)]
        if not own:
            known = ", ".join(study.name for study in studies)
            raise ParameterError(
                f"study {name!r}: expected one of {known}, or a pattern with * that fits some of them."
            )
        found += [study for study in own if study not in found]
    return found


def _list(console: Console, studies: Sequence[Any]) -> None:
    rows = []
    for study in studies:
        cells, n_needed = (study.kept(), len(study.keys())) if study.can_run else ([], 0)
        seconds = sum(cell.get("seconds") or 0.0 for cell in cells)
        rows.append({
            "name": study.name, "paper": study.paper, "source": study.source, "title": study.title,
            "n_cells": len(cells), "n_cells_needed": n_needed, "minutes": round(seconds / 60, 1),
            "cannot_run": study.cannot_run or None,
        })  # fmt: skip
    if console.as_json:
        console.result({"studies": rows})
        return
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    table.add_column("study", no_wrap=True, header_style="dim")
    table.add_column("what", header_style="dim")
    table.add_column("cells kept", justify="right", no_wrap=True, header_style="dim")
    table.add_column("minutes", justify="right", no_wrap=True, header_style="dim")
    for row in rows:
        shown = f"{row['n_cells']:,} of {row['n_cells_needed']:,}" if row["cannot_run"] is None else "not run"
        minutes = f"{row['minutes']:.1f}" if row["cannot_run"] is None else ""
        table.add_row(*map(_plain, (row["name"], row["title"], shown, minutes)))
    console.out.print(table)
    console.text("Minutes are those of one core for the cells that are kept. sfumato study NAME shows one.")


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _compared(
    experiment: Any, cell: dict[str, Any], before: dict[str, Any] | None, names: Sequence[str] | None
) -> list[tuple[str, ...]]:
    """Return what a cell holds, each entry beside the kept one; without names all that it has."""
    what = ", ".join(str(experiment.titles.get(cell[name], cell[name])) for name in experiment.by)
    rows: list[tuple[str, ...]] = []
    for name, value in cell.items():
        if name in (*experiment.by, "seconds", "environment") or (names and name not in names):
            continue
        kept = None if before is None else before.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            beside = "kept: nothing" if kept is None else f"kept: {kept:,.6g}"
            rows.append((f"{what}: {name}", f"{value:,.6g}", beside))
        elif isinstance(value, list | dict):
            beside = "kept: nothing" if kept is None else "as kept" if value == kept else "other than kept"
            rows.append((f"{what}: {name}", f"{len(value)} entries", beside))
    return rows or [(what, "run", "kept: nothing" if before is None else "kept, too")]


def _write_pages(console: Console, root: Path) -> None:
    papers = importlib.import_module("studies.papers")
    with console.step("writing docs/results and the table of the README"):
        written = [path for path, text in papers.pages().items() if _write_if_other(root / path, text)]
    console.text(
        f"{len(written)} files were written again." if written else "All pages are as the kept cells give them."
    )
    for path in written:
        console.text(f"  {path}")


def _write_if_other(path: Path, text: str) -> bool:
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return True
