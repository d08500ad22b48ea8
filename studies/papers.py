# SPDX-License-Identifier: Apache-2.0
"""The pages in ``docs/results``: one per paper, from its studies, an index, and the long pages of experiments.

``sfumato study --pages`` writes them; a test compares them with what the kept cells give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from studies import changes
from studies.catalogue import Study, all_studies
from studies.cells import Cell, identity
from studies.claims import Judged, claim_lines, claim_rows, counted_verdicts
from studies.experiments import NAMES, load_experiment
from studies.readme import choosing_a_method, learning_with_differential_privacy, readme, releases_with_epsilon
from studies.reports import closing, how_long, tables
from studies.verdicts import REFUTED
from studies.views import show

PAGES = "docs/results"
VERDICTS_PAGE = "verdicts.md"


@dataclass(frozen=True)
class Paper:
    """A page: which paper, what its reader should know first, its main claim and its picture."""

    title: str
    about: str
    limits: str
    main_claim: str = ""
    picture: str = ""


PAPERS = {
    "goldsteen": Paper(
        "Anonymizing machine learning models",
        "Goldsteen, Ezov, Shmelkin, Moffie and Farkash, *Anonymizing Machine Learning Models* (2021), and its earlier "
        "version, group records by a tree on a model's predictions (AG), give each group one record's values, and "
        "train the model again.",
        "The curves of the figures are not in the texts that were at hand, so that their words are judged and not "
        "their points, and the Loan table of 2015 is not to be had.",
        "large-k",
        "goldsteen-figure-2.svg",
    ),
    "staab": Paper(
        "Vertical data minimization",
        "Staab, Jovanović, Balunović and Vechev, *From Principle to Practice: Vertical Data Minimization for Machine "
        "Learning* (2024), learn how coarsely each attribute may be collected, and attack what is collected.",
        "The paper's census data (California 2014) are not at hand: other states and years stand in, so that its "
        "numbers cannot be met, only its statements.",
        "tree-best-acs",
        "minimizers-acs_employment.svg",
    ),
    "mancuhan": Paper(
        "Support vector classification with l-diversity",
        "Mancuhan and Clifton, *Support Vector Classification with l-Diversity* (2018), train support vector machines "
        "on anatomized tables, from which they prune one candidate per record.",
        "The figures are box plots without printed numbers: their words are judged, against the best of three "
        "anonymized machines, as the paper does not say how many records its own may leave out; with a linear machine, "
        "and without the column that repeats the sensitive one, pruned is behind the best at l = 2, 3 and 5.",
        "anatomy-beats-generalization",
        "mancuhan-figure-5-linear.svg",
    ),
    "beyond": Paper(
        "Beyond the papers",
        "What the papers' authors leave to future work, on the same data.",
        "",
    ),
}


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
    judged = _judged()
    written[f"{PAGES}/{VERDICTS_PAGE}"] = changes.page(judged, {name: own.title for name, own in PAPERS.items()})
    written[f"{PAGES}/README.md"] = _index(judged)
    written["README.md"] = readme()
    written["docs/choosing-a-method.md"] = choosing_a_method()
    written["docs/releases-with-epsilon.md"] = releases_with_epsilon()
    written["docs/learning-with-differential-privacy.md"] = learning_with_differential_privacy()
    return written


def _page(paper: Paper, studies: Sequence[Study]) -> tuple[str, dict[str, str]]:
    drawings: dict[str, str] = {}
    sections: list[str] = []
    for study in studies:
        sections += [f"## {study.source}: {study.title}", "", study.shows, ""]
        sections += [f"Data: {'; '.join(study.data)}.", ""]
        judged = study.judged()
        said = ["What the paper says:", "", *claim_lines(judged), ""] if judged else []
        if not study.can_run:
            sections += [f"Not run: {study.cannot_run}", "", *said]
            continue
        cells = study.kept()
        view = show(study, cells)
        drawings |= view.charts
        more = [f"More: [{study.page}]({study.page}).", ""] if study.page else []
        sections += [*tables(view), *said, *closing(study, cells, len(study.keys())), *more]
    claims = claims_of(studies)
    lines = [f"# {paper.title}", "", *opening(paper, claims), "", *sections]
    return "\n".join(lines).rstrip("\n") + "\n", drawings


def opening(paper: Paper, claims: Sequence[Judged]) -> list[str]:
    """Return the first sentences of a page, its picture and the table of its claims."""
    if not claims:
        return [paper.about]
    refuted = [one.claim.says for one in claims if one.verdict == REFUTED]
    [main] = [one for one in claims if one.claim.name == paper.main_claim]
    told = [
        paper.about,
        counted_verdicts(claims),
        f"The main claim, *“{main.claim.quote}”* ({main.claim.at}), is judged **{main.verdict}**: {main.interval}, "
        f"splits: {main.splits}.",
        f"Refuted: {'; '.join(says[0].lower() + says[1:].rstrip('.') for says in refuted)}."
        if refuted
        else "No claim is refuted.",
        paper.limits,
    ]
    return [
        " ".join(told),
        "",
        f"![{paper.title}]({paper.picture})",
        "",
        f"[What verdicts mean, and what changed since the first edition]({VERDICTS_PAGE}).",
        "",
        *claim_rows(claims),
    ]


def claims_of(studies: Sequence[Study]) -> list[Judged]:
    """Return the judged claims of studies, in their order."""
    return [judged for study in studies for judged in study.judged()]


def _judged() -> Mapping[str, list[Judged]]:
    return {paper: claims_of([study for study in all_studies() if study.paper == paper]) for paper in PAPERS}


def _index(judged: Mapping[str, Sequence[Judged]]) -> str:
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
        *claim_rows(_main_claims(judged)),
        "",
        f"[What verdicts mean, and what changed since the first edition]({VERDICTS_PAGE}).",
        "",
        "## Pages",
        "",
    ]
    for name, paper in PAPERS.items():
        own = [study for study in all_studies() if study.paper == name]
        if own:
            runnable = [study for study in own if study.can_run]
            counted = f" {counted_verdicts(judged[name])}" if judged[name] else ""
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
    """Return how long all cells took, and those that ``--quick`` runs again."""
    hours = sum(cell.get("seconds") or 0.0 for cell in cells) / 3600
    accelerated = sum(cell.get("accelerator_seconds") or 0.0 for cell in cells) / 60
    quick = [cell for study in all_studies() if study.can_run for cell in _quick_cells(study)]
    minutes = sum(cell.get("seconds") or 0.0 for cell in quick) / 60
    networks = f" and {accelerated:.1f} minutes of an accelerator for networks" if accelerated else ""
    return (
        f"{len(cells):,} cells took {hours:.1f} hours of one core, {hours / 2:.1f} of two{networks}. The networks of "
        "the neural minimizers were trained on an accelerator, too, and are kept. `sfumato study --all --quick` runs "
        f"{len(quick)} of the cells again, which took {minutes:.1f} minutes of one core when they were kept; the start "
        "of processes and a network that was trained on an accelerator come on top."
    )


def _quick_cells(study: Study) -> list[Cell]:
    experiment = study.load_experiment()
    kept = experiment.kept()
    own = [identity(key, experiment.by) for key in study.quick_keys()]
    return [kept[key] for key in own if key in kept]


def _main_claims(judged: Mapping[str, Sequence[Judged]]) -> list[Judged]:
    """Return what every paper promises first of all."""
    wanted = {paper.main_claim for paper in PAPERS.values()}
    return [one for own in judged.values() for one in own if one.claim.name in wanted]
