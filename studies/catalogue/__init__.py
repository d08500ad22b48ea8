# SPDX-License-Identifier: Apache-2.0
"""The catalogue: one small file per table or figure. What may stand in a file is in the docstring of ``runner``.

Read by the command ``sfumato study``, by ``papers``, and by the tests.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any

from studies.cells import Cell, Key, identity, matches
from studies.claims import Claim, Evidence, Judged, RuleChange
from studies.experiments import NAMES, load_experiment
from studies.runner import Experiment
from studies.views import Pivot

FOLDER = Path(__file__).parent
PAPERS = ("goldsteen", "staab", "mancuhan", "beyond", "front-page")


@dataclass(frozen=True)
class Study:
    """One table or figure.

    Attributes
    ----------
    name : str
        Of its file.
    title, shows : str
    paper : str
        One of `PAPERS`.
    source : str
        Where it is in the paper.
    data : list of str
        What it runs on, and what that stands in for.
    experiment : str
        Empty where it cannot be run; `cannot_run` says why.
    cells, quick : mapping
        Which of the experiment's keys; of these, which are run again in a minute.
    view : str
        Of the experiment; empty: `table`.
    reductions : list of str
        Where it is less than in the paper.
    published : list of mapping
        What the paper prints, as ``where`` and ``value``.
    claims : tuple of Claim
        What the paper says about it, with the rules of the verdicts.
    rule_history : tuple of RuleChange
        Rules that were changed after cells had been seen.
    page : str
        A page in ``docs/results`` with more, if there is one.
    """

    name: str
    title: str
    paper: str
    source: str
    shows: str
    data: list[str]
    experiment: str = ""
    cannot_run: str = ""
    cells: Mapping[str, Any] = field(default_factory=dict)
    quick: Mapping[str, Any] = field(default_factory=dict)
    view: str = ""
    table: Pivot | None = None
    reductions: list[str] = field(default_factory=list)
    published: list[Mapping[str, Any]] = field(default_factory=list)
    claims: tuple[Claim, ...] = ()
    rule_history: tuple[RuleChange, ...] = ()
    page: str = ""

    @property
    def can_run(self) -> bool:
        """Return True if there is an experiment for it."""
        return bool(self.experiment)

    def load_experiment(self) -> Experiment:
        """Return its experiment."""
        return load_experiment(self.experiment)

    def keys(self, *, paper_scale: bool = False) -> list[Key]:
        """Return the keys of its cells."""
        return [key for key in self.load_experiment().all_keys(paper_scale) if matches(key, self.cells)]

    def quick_keys(self) -> list[Key]:
        """Return the keys of the few cells that are run again with ``--quick``."""
        return [key for key in self.keys() if self.quick and matches(key, self.quick)]

    def kept(self, folder: Path | None = None, *, paper_scale: bool = False) -> list[Cell]:
        """Return its cells that are kept, in the order of its keys."""
        experiment = self.load_experiment()
        found = experiment.kept(folder, paper_scale=paper_scale)
        own = [identity(key, experiment.by) for key in self.keys(paper_scale=paper_scale)]
        return [found[key] for key in own if key in found]

    def judged(self, folder: Path | None = None) -> list[Judged]:
        """Return the claims of the paper about it, judged by the kept cells of its whole experiment.

        Before all cells are there, only what cannot be tested is judged.
        """
        is_ready = self.can_run and self.load_experiment().is_complete(folder)
        found = self._evidence(folder) if is_ready and any(claim.rule for claim in self.claims) else {}
        return [claim.judged(found.get(claim.name)) for claim in self.claims if is_ready or claim.cannot_test]

    def _evidence(self, folder: Path | None) -> Mapping[str, Evidence]:
        experiment = self.load_experiment()
        if experiment.evidence is None:
            raise ValueError(f"{self.name} has claims: expected an experiment with evidence.")
        return experiment.evidence(experiment.cells(folder))

    def in_words(self, entries: Sequence[Any]) -> str:
        """Return entries of a key in words; those without words of their own are shown as they are."""
        titles = self.load_experiment().titles
        return ", ".join(str(titles.get(entry, entry)) for entry in entries)


def names() -> list[str]:
    """Return the names of all studies, in the order of `all_studies`."""
    return [study.name for study in all_studies()]


def all_studies() -> list[Study]:
    """Return all studies, those of a paper together; figures before tables before others, 2 before 10."""
    found = [load(path.stem) for path in FOLDER.glob("*.toml")]
    return sorted(found, key=lambda study: (PAPERS.index(study.paper), _places(study.name)))


def as_they_run(studies: Sequence[Study]) -> list[Study]:
    """Return studies in the order of their experiments: some build on the cells of one before."""
    return sorted(studies, key=lambda study: NAMES.index(study.experiment) if study.can_run else -1)


@cache
def load(name: str) -> Study:
    """Read one file of the catalogue."""
    path = FOLDER / f"{name}.toml"
    with path.open("rb") as file:
        document = tomllib.load(file)
    unknown = set(document) - {entry.name for entry in fields(Study)}
    if unknown:
        raise ValueError(f"{path.name} has {sorted(unknown)}: expected what Study has. Correct the file.")
    if document["paper"] not in PAPERS:
        raise ValueError(f"{path.name} has paper {document['paper']!r}: expected one of {', '.join(PAPERS)}.")
    if bool(document.get("experiment")) == bool(document.get("cannot_run")):
        raise ValueError(f"{path.name}: expected either experiment or cannot_run.")
    document["claims"] = tuple(Claim(**own) for own in document.get("claims", ()))
    document["rule_history"] = tuple(
        RuleChange(**(own | {"date": str(own["date"])})) for own in document.get("rule_history", ())
    )
    if "table" in document:
        document["table"] = Pivot(**document["table"])
    if document.get("experiment") and not (document.get("view") or "table" in document):
        raise ValueError(f"{path.name}: expected [table], or view with the name of a view of the experiment.")
    return Study(name=name, **document)


def _places(name: str) -> list[tuple[int, int | str]]:
    """Sort figures before tables and tables before the rest, and numbers in names as numbers."""
    ranks = {"figure": 1, "table": 2}
    return [(0, int(part)) if part.isdigit() else (ranks.get(part, 3), part) for part in name.split("-")]
