# SPDX-License-Identifier: Apache-2.0
"""The pages in ``docs/results``: one per paper, from its studies, an index, and the long pages of experiments.

``sfumato study --pages`` writes them; a test compares them with what the kept cells give.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from studies.catalogue import Study, all_studies
from studies.cells import Cell
from studies.claims import HELD, NOT_HELD, UNTESTED, Claim, claim_rows
from studies.experiments import NAMES, load_experiment
from studies.readme import choosing_a_method, readme
from studies.reports import closing, how_long, tables
from studies.views import show

PAGES = "docs/results"


@dataclass(frozen=True)
class Paper:
    """A page: which paper, and what its reader should know first."""

    title: str
    opening: str


PAPERS = {
    "goldsteen": Paper(
        "Anonymizing machine learning models",
        "Goldsteen, Ezov, Shmelkin, Moffie and Farkash, *Anonymizing Machine Learning Models* (2021), and its earlier "
        "version. The curves of the figures are not in the texts that were at hand: their words are judged, not their "
        "points. *Ours* is `ModelGuidedAnonymizer` as it comes, *paper's AG* the paper's method.",
    ),
    "staab": Paper(
        "Vertical data minimization",
        "Staab, Jovanović, Balunović and Vechev, *From Principle to Practice: Vertical Data Minimization for Machine "
        "Learning* (2024). The paper's census data (California 2014) and Heritage Health are not at hand; other states "
        "and years stand in, so its numbers cannot be met, only its statements.",
    ),
    "mancuhan": Paper(
        "Support vector classification with l-diversity",
        "Mancuhan and Clifton, *Support Vector Classification with l-Diversity* (2018): learning from anatomized data. "
        "The figures are box plots without printed numbers: their words are judged.",
    ),
    "beyond": Paper(
        "Beyond the papers",
        "What the papers' authors leave to future work, on the same data.",
    ),
}
#: What the papers promise first of all, by patterns of the claims' texts.
MAIN_CLAIMS = (
    "Guided beats unguided*",
    "Table 1: at the listed k*",
    "PAT has the best tradeoff on every*",
    "Anatomy beats generalization*",
)


def pages() -> dict[str, str]:
    """Return the text of every file under ``docs/results``, and others that experiments write, by path."""
    written: dict[str, str] = {}
    for name in NAMES:
        experiment = load_experiment(name)
        if experiment.documents is not None:
            written |= experiment.documents(experiment.cells())
    for paper in PAPERS:
        own = [study for study in all_studies() if study.paper == paper]
        if own:
            text, drawings = _page(PAPERS[paper], own)
            written |= {f"{PAGES}/{name}": drawing for name, drawing in drawings.items()}
            written[f"{PAGES}/{paper}.md"] = text
    written[f"{PAGES}/README.md"] = _index()
    written["README.md"] = readme()
    written["docs/choosing-a-method.md"] = choosing_a_method()
    return written


def _page(paper: Paper, studies: Sequence[Study]) -> tuple[str, dict[str, str]]:
    drawings: dict[str, str] = {}
    sections: list[str] = []
    for study in studies:
        sections += [f"## {study.source}: {study.title}", "", study.shows, ""]
        sections += [f"Data: {'; '.join(study.data)}.", ""]
        if not study.can_run:
            sections += [f"Not run: {study.cannot_run}", ""]
            continue
        cells = study.kept()
        view = show(study, cells)
        drawings |= view.charts
        more = [f"More: [{study.page}]({study.page}).", ""] if study.page else []
        sections += [*tables(view), *closing(study, cells, len(study.keys())), *more]
    claims = list(_claims(studies))
    told = ["## What it claims, and what held", "", _counted(claims), "", *claim_rows(claims), ""] if claims else []
    lines = [f"# {paper.title}", "", paper.opening, "", *told, *sections]
    return "\n".join(lines).rstrip("\n") + "\n", drawings


def _claims(studies: Sequence[Study]) -> Iterator[Claim]:
    """Return every claim once, in the order of the studies."""
    seen: set[tuple[str, str]] = set()
    for study in studies:
        for claim in study.judged() if study.can_run else ():
            if (claim.text, claim.numbers) not in seen:
                seen.add((claim.text, claim.numbers))
                yield claim


def _counted(claims: Sequence[Claim]) -> str:
    n_held, n_not, n_open = (
        sum(claim.verdict == verdict for claim in claims) for verdict in (HELD, NOT_HELD, UNTESTED)
    )
    return f"Of {len(claims)} claims {n_held} held, {n_not} did not hold, and {n_open} cannot be tested here."


def _index() -> str:
    lines = [
        "# Results on real data",
        "",
        "Every table and figure of the papers that can be run here, with the paper's figures beside ours, and what",
        "their authors left to future work. `sfumato study` lists them, `sfumato study NAME` shows one and runs what",
        "is missing of it, `--quick` runs a few of its cells again. Every number comes from a kept cell in",
        "`studies/results`; a test compares these pages with them. Cells stay as they were run: where a later version",
        "draws groups in another order, a cell that is run again can differ by chance.",
        "",
        "## What the papers promise first of all",
        "",
        *claim_rows(_main_claims()),
        "",
        "## Pages",
        "",
    ]
    for name, paper in PAPERS.items():
        own = [study for study in all_studies() if study.paper == name]
        if own:
            runnable = [study for study in own if study.can_run]
            claims = list(_claims(own))
            counted = f" {_counted(claims)}" if claims else ""
            lines.append(f"- [{paper.title}]({name}.md): {len(runnable)} of {len(own)} tables and figures.{counted}")
    lines += ["", "The long comparisons behind them:", ""]
    for name in NAMES:
        experiment = load_experiment(name)
        if experiment.documents is not None:
            cells = experiment.cells()
            for path, text in experiment.documents(cells).items():
                if path.endswith(".md"):
                    title = text.partition("\n")[0].removeprefix("# ")
                    file = path.removeprefix(f"{PAGES}/")
                    lines.append(f"- [{title}]({file}): {how_long(cells, len(experiment.keys))}")
    everything = [cell for name in NAMES for cell in load_experiment(name).cells()]
    lines += ["", f"All in all {_total(everything)}"]
    return "\n".join(lines) + "\n"


def _total(cells: Sequence[Cell]) -> str:
    hours = sum(cell.get("seconds") or 0.0 for cell in cells) / 3600
    return f"{len(cells):,} cells and {hours:.1f} hours of one core."


def _main_claims() -> list[Claim]:
    found = list(_claims(all_studies()))
    return [claim for pattern in MAIN_CLAIMS for claim in found if fnmatchcase(claim.text, pattern)]
