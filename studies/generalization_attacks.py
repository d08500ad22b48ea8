# SPDX-License-Identifier: Apache-2.0
"""What attackers learn from generalized records: Staab et al., *Vertical Data Minimization*, tables 3, 4, 5 and 6.

Multi-breach reconstruction (A6), linkability (A7), singling out (A8), and reconstruction by networks of three sizes;
``sfumato study 'staab-table-*'`` runs them. ``generalization_attacks_page`` writes
``docs/results/attacks-on-generalizations.md``.

What is less than in the paper is below (`MOST_NETWORK_ROWS`, `WEIGHT_DECAYS`, ``minimization_tasks.MEASURED``) and on
the page. The adversarial minimizer is trained here: the bucket maps of ``neural_gpu`` have no place of birth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from studies.clock import processor_seconds
from studies.runner import Experiment

PAGE = "docs/results/attacks-on-generalizations.md"
SEED = 0
EMPLOYMENT, INCOME, ALL_STATES = "ACSEmployment", "PA", "35 states"
"""The data; Pennsylvania is the state with the most records of ACSIncome 2018 at hand."""

MOST_NETWORK_ROWS = 20_000
"""Training records that the adversarial minimizer sees at most."""

WEIGHT_DECAYS = (1e-4,)
"""L2 penalties of the attacking networks. The paper tunes it."""

LEAVES_OF_TABLE_3 = 20
"""The paper does not say how many leaves the trees of its table 3 have."""

ARCHITECTURES = ("MLP-2", "MLP-3", "MLP-5")


@dataclass(frozen=True)
class Made:
    """A generalization, by the way it is made."""

    minimizer: str
    setting: float
    leaves: int = 0

    @property
    def title(self) -> str:
        """Its name on the page and in the keys of cells."""
        if self.minimizer == "PAT":
            return f"PAT, {self.leaves} leaves, alpha {self.setting:g}"
        return f"Uniform, {self.setting:g} buckets" if self.minimizer == "Uniform" else f"AdvTrain, {self.setting:g}"


def tree(leaves: int, alpha: float) -> Made:
    """Name a privacy-aware tree."""
    return Made("PAT", alpha, leaves)


def uniform(n_buckets: int) -> Made:
    """Name equal buckets for everything."""
    return Made("Uniform", n_buckets)


def adversarial(weight: float) -> Made:
    """Name an adversarially trained generalization; the paper calls the weight of privacy alpha in its tables."""
    return Made("AdvTrain", weight)


@dataclass(frozen=True)
class Row:
    """One number of the paper's tables, or several: what was attacked how, and what the paper found.

    `attack`: A1, A6, A7, A8; in table 6 an architecture, or "classifier" and an architecture.
    """

    table: int
    attack: str
    made: tuple[Made, ...]
    paper: tuple[float, ...] = ()
    data: str = INCOME

    @property
    def key(self) -> str:
        """Its name in the file of results."""
        where = f", {self.data}" if self.data == ALL_STATES else ""
        return f"table {self.table}, {self.attack}, {' + '.join(made.title for made in self.made)}{where}"


_PRIVATE = tree(LEAVES_OF_TABLE_3, 0.7)
#: Error of reconstruction from both breaches, and from either.
TABLE_3 = tuple(
    Row(3, "A6", (other, _PRIVATE), (both, alone, 0.48))
    for other, both, alone in (
        (tree(LEAVES_OF_TABLE_3, 0.1), 0.42, 0.43),
        (tree(LEAVES_OF_TABLE_3, 0.3), 0.45, 0.47),
        (uniform(3), 0.33, 0.37),
        (uniform(4), 0.27, 0.32),
    )
)
SINGLE_BREACHES = tuple(Row(3, "A1", (made,)) for made in (_PRIVATE, *(row.made[0] for row in TABLE_3)))
#: Buckets in all, percentage of entries linked; without the breach the paper links 0.24 percent.
TABLE_4 = tuple(
    Row(4, "A7", (made,), paper)
    for made, paper in (
        (tree(8, 0.3), (21, 0.25)),
        (tree(20, 0.3), (43, 0.30)),
        (tree(50, 0.3), (348, 0.46)),
        (tree(50, 0.9), (200, 0.27)),
        (uniform(3), (30, 0.36)),
        (adversarial(0.0), (33, 0.33)),
    )
)
PAPER_AT_RANDOM = 0.24
#: Beyond the paper, and run after the rows above were known: more people, for narrower intervals.
TABLE_4_ALL_STATES = tuple(replace(row, data=ALL_STATES) for row in TABLE_4)
#: Buckets in all, records of the rarest combination, combinations as rare.
TABLE_5 = tuple(
    Row(5, "A8", (tree(leaves, alpha),), paper, EMPLOYMENT)
    for leaves, alpha, paper in (
        (2, 0.3, (17, 52_000, 1)),
        (4, 0.3, (19, 1_900, 1)),
        (10, 0.3, (25, 1, 1)),
        (20, 0.3, (33, 1, 44)),
        (20, 0.0, (39, 1, 120)),
        (20, 0.8, (33, 1, 10)),
    )
)
#: Of each generalization: error of the classifier and error of the adversary, by architecture.
PAPER_TABLE_6 = {
    uniform(3): ((0.36, 0.36, 0.36), (0.52, 0.52, 0.52)),
    uniform(5): ((0.22, 0.21, 0.21), (0.31, 0.24, 0.24)),
    adversarial(0.0): ((0.17, 0.17, 0.18), (0.39, 0.30, 0.31)),
    adversarial(0.5): ((0.22, 0.22, 0.22), (0.48, 0.50, 0.43)),
    tree(4, 0.7): ((0.20, 0.20, 0.20), (0.47, 0.47, 0.50)),
    tree(10, 0.7): ((0.19, 0.19, 0.19), (0.46, 0.46, 0.47)),
    tree(50, 0.7): ((0.17, 0.18, 0.18), (0.36, 0.36, 0.37)),
}
COUNTS = "counts"
"""The adversary that counts, which the paper does not have: what networks must reach."""
TABLE_6 = tuple(
    Row(6, attack, (made,), paper)
    for place, architecture in enumerate(ARCHITECTURES)
    for made, (errors, risks) in PAPER_TABLE_6.items()
    for attack, paper in (
        *(((COUNTS, ()),) if place == 0 else ()),
        (architecture, (risks[place],)),
        (f"classifier {architecture}", (errors[place],)),
    )
)
NOTHING = {"table 6, nothing generalized, fewer records": True, "table 6, nothing generalized, all records": False}
"""What boosting errs on full records: learned from as few as the networks of table 6 have, or from all."""
#: What is quick comes first, then what claims hang on: a run that stops early has the most to say.
ROWS = (*TABLE_5, *TABLE_4, *SINGLE_BREACHES, *TABLE_3, *TABLE_6, *TABLE_4_ALL_STATES)


# -- data and generalizations --------------------------------------------------------------------------------


@cache
def load(data: str) -> Any:
    """Load records by the name that rows have for them."""
    from studies import datasets
    from studies.minimization_tasks import Task, load_task

    if data == EMPLOYMENT:
        return replace(load_task("acs_employment"), is_limited=_scale["is_limited"])
    bunch = datasets.load_acs_income(state=None if data == ALL_STATES else data)
    categorical = tuple(name for name in bunch.data.columns if name not in ("AGEP", "SCHL", "WKHP"))
    return Task(
        "acs_income_2018", bunch.data, bunch.target.to_numpy(), categorical, categorical,
        is_limited=_scale["is_limited"],
    )  # fmt: skip


@cache
def generalize(data: str, made: Made) -> Any:
    """Make a generalization of all training records, the adversarial one of the first."""
    from sfumato import minimize

    task = load(data)
    rows = task.learned_rows(SEED)
    arguments: dict[str, Any] = {
        "personal": list(task.personal),
        "categorical_features": list(task.categorical),
        "floor": 1,  # as in the paper
        "random_state": SEED,
        "n_jobs": 1,
    }
    if made.minimizer == "PAT":
        minimizer: Any = minimize.PrivacyAwareTree(made.setting, made.leaves, **arguments)
    elif made.minimizer == "Uniform":
        minimizer = minimize.UniformMinimizer(int(made.setting), **arguments)
    else:
        rows = rows[: MOST_NETWORK_ROWS if task.is_limited else None]
        minimizer = minimize.AdversarialMinimizer(made.setting, device="cpu", **arguments)
    return minimizer.fit(*task.records(rows)).generalization_


@cache
def read_samples(data: str) -> Any:
    """Read what the attacker learns from, tunes on, and what is breached."""
    from sfumato.attack.samples import Samples

    task = load(data)
    frames = [task.records(rows)[0] for rows in task.measured_rows(SEED)]
    return Samples(*frames, categorical_features=task.categorical)


# -- attacks -------------------------------------------------------------------------------------------------


def run(row: Row) -> dict[str, Any]:
    """Make and attack the generalizations of one row."""
    made = [generalize(row.data, own) for own in row.made]
    start = processor_seconds()
    found = _ATTACKS[row.attack.split()[0]](row, made)
    return {
        "key": row.key,
        "n_buckets": [sum(own.n_buckets) for own in made],
        **found,
        "seconds": round(processor_seconds() - start, 1),
    }


def family(*adversaries: Any, architecture: Any = "MLP-2") -> Any:
    """Return some members of the family, with networks as the page describes them."""
    from sfumato.attack.reconstruction_adversaries import FamilySettings
    from sfumato.attack.reconstruction_learners import NetworkSettings

    network = NetworkSettings(architecture=architecture, weight_decays=WEIGHT_DECAYS, device="cpu")
    return FamilySettings(adversaries=adversaries, random_state=SEED, n_jobs=1, network=network)


def _reconstruct(row: Row, made: list[Any]) -> dict[str, Any]:
    from sfumato.attack.reconstruction import reconstruct, reconstruct_from_breaches

    if row.attack in ARCHITECTURES:
        settings = family("network", architecture=row.attack)
    else:
        settings = family("table") if row.attack == COUNTS else family("table", "network")
    samples, personal = read_samples(row.data), list(load(row.data).personal)
    if len(made) > 1:
        result = reconstruct_from_breaches(made, samples, personal, settings=settings)
    else:
        result = reconstruct(made[0], samples, personal, settings=settings)
    details = result.to_dict()["details"]
    attributes = {
        name: {"error": round(1 - own["rate"], 6), "adversary": own["adversary"]}
        for name, own in details["attributes"].items()
    }
    return {**_errors(result.rate, result.interval, result.baseline), "attributes": attributes}


def _classify(row: Row, made: list[Any]) -> dict[str, Any]:
    """Predict the class from buckets as an attacker guesses an attribute, with the same networks."""
    import numpy as np

    from sfumato.attack.reconstruction_adversaries import answer
    from sfumato.attack.reconstruction_questions import rate_of
    from sfumato.attack.result import wilson_interval
    from studies.class_networks import question_about_classes

    task, samples = load(row.data), read_samples(row.data)
    y = np.concatenate([task.records(rows)[1] for rows in task.measured_rows(SEED)])
    question = question_about_classes(made, samples, y, task.personal)
    found = answer([question], family("network", architecture=row.attack.split()[1]))[0]
    rate = rate_of(question, found.guesses, question.test, 1.0)
    n_test = question.test.stop - question.test.start
    majority = float((question.values[question.test] == question.majority).mean())
    return _errors(rate, wilson_interval(rate * n_test, n_test), majority)


def classify_full_records(key: str) -> dict[str, Any]:
    """Predict the class by boosting from records that are not generalized: below that, no generalization gets."""
    import numpy as np
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.preprocessing import OrdinalEncoder

    from sfumato.attack.result import wilson_interval

    task, start = load(INCOME), processor_seconds()
    few, _, tested = task.measured_rows(SEED)
    train, test = task.records(few if NOTHING[key] else task.parts(SEED)[0]), task.records(tested)
    names = [*task.categorical, *(name for name in train[0] if name not in task.categorical)]
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    frames = [frame[names].copy() for frame, _ in (train, test)]
    codes.fit(frames[0][list(task.categorical)])
    for frame in frames:
        frame[list(task.categorical)] = codes.transform(frame[list(task.categorical)])
    model = HistGradientBoostingClassifier(random_state=SEED).fit(frames[0].to_numpy(float), train[1])
    right = model.predict(frames[1].to_numpy(float)) == test[1]
    classes, counts = np.unique(train[1], return_counts=True)
    majority = float(np.mean(test[1] == classes[counts.argmax()]))
    return {
        "key": key,
        "n_records": len(train[1]),
        **_errors(float(right.mean()), wilson_interval(int(right.sum()), len(right)), majority),
        "seconds": round(processor_seconds() - start, 1),
    }


def _link(row: Row, made: list[Any]) -> dict[str, Any]:
    from sfumato.attack.generalization_attacks import link_records

    task = load(row.data)
    train, _, test = task.parts(SEED)
    # The first training records were chosen to hold every category; the last are as they come.
    breached, others = task.records(test)[0], task.records(train[-len(test) :])[0]
    result = link_records(made[0], breached, breached, ["POBP"], ["OCCP"], control=others)
    return {**result.to_dict(), "seconds": None}


def _single_out(row: Row, made: list[Any]) -> dict[str, Any]:
    from sfumato.attack.generalization_attacks import single_out

    task = load(row.data)
    result = single_out(made[0], task.records(task.learned_rows(SEED))[0])
    return {**result.to_dict(), "seconds": None}


def _errors(rate: float, interval: tuple[float, float], baseline: float) -> dict[str, Any]:
    low, high = interval
    return {
        "error": round(1 - rate, 6),
        "interval": [round(1 - high, 6), round(1 - low, 6)],
        "naive_error": round(1 - baseline, 6),
    }


_ATTACKS: dict[str, Callable[[Row, list[Any]], dict[str, Any]]] = {
    "A7": _link,
    "A8": _single_out,
    "classifier": _classify,
    **dict.fromkeys(("A1", "A6", COUNTS, *ARCHITECTURES), _reconstruct),
}


# -- for the runner ------------------------------------------------------------------------------------------

_scale = {"is_limited": True}


def run_keys(keys: Sequence[Mapping[str, Any]], paper_scale: bool) -> Iterator[dict[str, Any]]:
    """Run cells by their names."""
    if _scale["is_limited"] == paper_scale:  # what was read at the other scale is of no use
        _scale["is_limited"] = not paper_scale
        for cached in (load, generalize, read_samples):
            cached.cache_clear()
    rows = {row.key: row for row in ROWS}
    for key in keys:
        yield classify_full_records(key["key"]) if key["key"] in NOTHING else run(rows[key["key"]])


def by_key(cells: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return cells by their names."""
    return {cell["key"]: cell for cell in cells}


def _documents(cells: list[dict[str, Any]]) -> dict[str, str]:
    from studies.generalization_attacks_page import page

    return {PAGE: page(by_key(cells))}


def _evidence(cells: list[dict[str, Any]]) -> Any:
    from studies.generalization_attacks_claims import evidence

    return evidence(by_key(cells))


def _table(study: Any, cells: list[dict[str, Any]]) -> Any:
    """Show the section of the page about the paper's table that a study is about."""
    from studies.views import section

    return section(_documents(cells)[PAGE], f"({study.source.lower()})")


EXPERIMENT = Experiment(
    name="generalization_attacks",
    by=("key",),
    keys=tuple({"key": name} for name in (*(row.key for row in ROWS), *NOTHING)),
    run=run_keys,
    needs=lambda key: () if key["key"] in NOTHING else ("torch",),
    views={"section": _table},
    evidence=_evidence,
    documents=_documents,
)
