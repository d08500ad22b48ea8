# SPDX-License-Identifier: Apache-2.0
"""What learning from anatomized data costs: Mancuhan and Clifton, *Support vector classification with l-diversity*.

Original, identifying, pruned and anonymized support vector classifiers on Adult, Bank Marketing, FARS 2001 and
Census-Income, l = 2 to 5, 10-fold cross-validation; beside them the learner that weights all candidates.
``anatomy_page`` writes the page, ``anatomy_views`` the tables and drawings of single figures.

The linear machine minimizes what LibSVM's does, on all records (``hinge_machine``; ``anatomy_libsvm`` compares both).
The RBF machine is LibSVM's, equal records merged (``merged_machine``). `most_records` says how many records a model
sees, which the page says, too; at the paper's scale it sees all.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from studies.clock import processor_seconds
from studies.hinge_machine import HingeMachine
from studies.runner import Experiment

BY = ("table", "model", "partner", "l", "fold")
ATTACKED_ROWS = 20_000  # records of each table that are attacked
L = (2, 3, 4, 5)
N_FOLDS = 10
TABLES = {
    "adult-kept": "Adult",
    "adult": "Adult without education-num",
    "census": "Census-Income (for IPUMS)",
    "bank": "Bank Marketing",
    "fars": "FARS 2001",
}
MODELS = {
    "linear": "linear, the paper's coding",
    "linear unordered": "linear, the paper's coding with education unordered",
    "rbf": "RBF, the paper's coding",
    "linear one-hot": "linear, one-hot coding",
}
#: Records that each model sees, a stratified sample where the table has more; None: all of them.
ROWS: dict[str, int | None] = {"linear": None, "rbf": 8_000, "linear one-hot": 10_000, "linear unordered": None}
#: Where it is otherwise: at most so many of the stand-in that decides nothing, and all of the table whose records are
#: so much alike that the RBF machine has time for them.
ROWS_OF: dict[tuple[str, str], int | None] = {("census", "linear"): 50_000, ("bank", "rbf"): None}
#: Models of tables that have not all of them. Adult as in the paper, which leaves out the final weight alone, and
#: without the column that says the same as the sensitive one.
ONLY = {"adult-kept": ("linear", "rbf"), "adult": ("linear", "linear unordered", "linear one-hot")}
CENSUS_EDUCATION = (
    "Children", "Less than 1st grade", "1st 2nd 3rd or 4th grade", "5th or 6th grade", "7th and 8th grade", "9th grade",
    "10th grade", "11th grade", "12th grade no diploma", "High school graduate", "Some college but no degree",
    "Associates degree-occup /vocational", "Associates degree-academic program", "Bachelors degree(BA AB BS)",
    "Masters degree(MA MS MEng MEd MSW MBA)", "Prof school degree (MD DDS DVM LLB JD)", "Doctorate degree(PhD EdD)",
)  # fmt: skip
#: Anonymized machines, by the share of the records that they may be trained without: pruned leaves out what l asks for.
RIVALS = {"anonymized": 0.0, "anonymized, 2% left out": 0.02, "anonymized, 5% left out": 0.05}
N_VALUES = {"adult-kept": 16, "adult": 16, "census": 17, "bank": 10, "fars": 4}  # of the sensitive column


@dataclass(frozen=True)
class Cell:
    """The error (in percent) of one model on one fold.

    Attributes
    ----------
    partner : str
        original, identifying, pruned, one of `RIVALS`, or bucket (all candidates, weighted).
    l : int
        0 for original and identifying, which have none.
    n_suppressed : int
        Training records that l or k left out.
    bound : float or None
        Theorem 4.1; None where it does not apply.
    """

    table: str
    model: str
    partner: str
    l: int  # noqa: E741
    fold: int
    error: float
    n_train: int
    n_suppressed: int
    bound: float | None
    seconds: float


def load(name: str) -> tuple[Any, Any, str]:
    """Return records, labels and the sensitive column, prepared as the paper says in 5.1.1 and C.1."""
    import pandas as pd

    from studies import datasets

    if name in ("adult", "adult-kept"):
        X, y = datasets.load_adult(return_X_y=True, as_frame="pandas")
        known = X.notna().all(axis=1)
        X, y = X[known], y[known]
        order = X.groupby(X["education"].astype(str))["education-num"].min().sort_values().index
        X = X.assign(education=pd.Categorical(X["education"].astype(str), order, ordered=True))
        # education-num says the same as education: beside it in the identifying table it gives the secret away.
        out = ["fnlwgt"] if name == "adult-kept" else ["fnlwgt", "education-num"]
        return X.drop(columns=out), y, "education"
    if name == "bank":
        X, deposit = datasets.load_bank(return_X_y=True, as_frame="pandas")
        X = X[(deposit.astype(str) == "no").to_numpy()]
        ages = pd.cut(X["age"], 10, labels=[f"age group {place}" for place in range(1, 11)])
        return X[["job", "day", "month"]].assign(age=ages), X["housing"], "age"
    if name == "fars":
        X, severity = datasets.load_fars(return_X_y=True, as_frame="pandas")
        severity = severity.astype(str)
        out = ["Injured_Severity_Unknown", "Died_Prior_to_Accident", "Unknown", "Possible_Injury"]
        stays = ~severity.isin(out)
        injured = severity[stays].ne("No_Injury").map({True: "injured", False: "no injury"})
        return X[stays], injured, "POLICE_REPORTED_ALCOHOL_INVOLVEMENT"
    X, y = datasets.load_census_kdd(return_X_y=True, as_frame="pandas")
    names = ["age", "class_of_worker", "education", "marital_stat", "major_occupation_code", "race", "sex",
             "capital_gains", "capital_losses", "country_of_birth_self"]  # fmt: skip
    ordered = pd.Categorical(X["education"].astype(str), CENSUS_EDUCATION, ordered=True)
    return X[names].assign(education=ordered), y, "education"


def make_model(name: str, n_coordinates: int) -> Any:
    """Return the support vector machine of a model's name."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import LinearSVC

    from studies.merged_machine import MergedMachine

    if name == "rbf":
        return make_pipeline(StandardScaler(), MergedMachine(gamma=1 / n_coordinates, cache_size=500))
    if name == "linear":
        return make_pipeline(StandardScaler(), HingeMachine())
    return make_pipeline(StandardScaler(), LinearSVC(dual=False, tol=1e-3))


def most_records(table: str, model: str) -> int | None:
    """Return how many records a model sees of a table; None: all of them."""
    return ROWS_OF.get((table, model), ROWS[model])


def todo() -> Iterator[tuple[str, str, list[tuple[str, int]]]]:
    """List what is run of every table and model: the cheap models first, so that a run that stops has all tables."""
    for model in MODELS:
        for table in TABLES if model != "linear unordered" else ("adult", "census"):
            if model not in ONLY.get(table, (model,)):
                continue
            lengths = [length for length in L if length <= N_VALUES[table]]
            partners = [("original", 0), ("identifying", 0), *(("pruned", length) for length in lengths)]
            if model == "linear one-hot" or (model == "linear" and table in ("adult", "bank")):
                partners += [("bucket", length) for length in lengths]
            if table.startswith("adult"):
                partners += [(rival, length) for rival in RIVALS for length in lengths]
            yield table, model, partners


def sample(X: Any, y: Any, n_rows: int | None) -> tuple[Any, Any]:
    """Return a stratified sample, the same each time, or everything."""
    from sklearn.model_selection import train_test_split

    labels = y.astype(str).to_numpy()
    if n_rows is None or n_rows >= len(X):
        return X.reset_index(drop=True), labels
    X, _, labels, _ = train_test_split(X, labels, train_size=n_rows, stratify=labels, random_state=0)
    return X.reset_index(drop=True), labels


def run_cell(
    table: str,
    model: str,
    partner: str,
    length: int,
    fold: int,
    train: tuple[Any, Any],
    test: tuple[Any, Any],
) -> Cell:
    """Train one partner and count its errors."""
    from sfumato.anatomize import BucketClassifier
    from studies.anatomy_partners import train_partners

    start = processor_seconds()
    if model == "linear unordered":
        train, test = ((X.assign(education=X["education"].astype(str)), y) for X, y in (train, test))
    sensitive = {"bank": "age", "fars": "POLICE_REPORTED_ALCOHOL_INVOLVEMENT"}.get(table, "education")
    coding = "one-hot" if model.endswith("one-hot") else "paper"
    n_columns = train[0].shape[1] - (partner == "identifying")
    estimator = make_model(model, n_columns)
    bound = None
    if partner == "bucket":
        fitted: Any = BucketClassifier(
            estimator, length, sensitive=sensitive, coding=coding, weights="even", suppression_limit=1.0,
            random_state=fold,
        ).fit(*train)  # fmt: skip
        error, n_suppressed = 1 - fitted.score(*test), fitted.n_suppressed_
    else:
        name = "anonymized" if partner in RIVALS else partner
        partners = train_partners(
            estimator, *train, l=max(length, 2), sensitive=sensitive, coding=coding, partners=[name],
            hierarchies=hierarchies() if partner in RIVALS else None, most_left_out=RIVALS.get(partner, 0.0),
            random_state=fold,
        )  # fmt: skip
        error, n_suppressed = partners.errors(*test)[name], partners.n_suppressed + partners.n_left_out
        if partner == "pruned":
            bound = partners.models["pruned"].bound().value
    return Cell(
        table, model, partner, length, fold, round(100 * error, 3), len(train[1]), n_suppressed,
        bound, round(processor_seconds() - start, 2),
    )  # fmt: skip


def hierarchies() -> dict[str, Any]:
    """Return ARX's hierarchies of Adult, and intervals for the hours, which ARX's cut does not have."""
    from sfumato import Hierarchy
    from studies import datasets

    rows = datasets.load_adult_arx().hierarchies
    found: dict[str, Any] = {name: Hierarchy(rows[name]) for name in rows if name not in ("education", "salary-class")}
    return found | {"hours-per-week": Hierarchy.from_intervals(range(100), [5, 10, 20])}


def folds(table: str, model: str, *, paper_scale: bool = False) -> Iterator[tuple[Any, Any]]:
    """Yield the records to train on and to test on, with their labels, fold by fold."""
    from sklearn.model_selection import StratifiedKFold

    X, y, _ = load(table)
    X, y = sample(X, y, None if paper_scale else most_records(table, model))
    for rows in StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(X, y):
        yield tuple((X.iloc[own], y[own]) for own in rows)


def run(keys: Sequence[Mapping[str, Any]], paper_scale: bool) -> Iterator[dict[str, Any]]:
    """Run the cells of one table and model."""
    warnings.filterwarnings("ignore")  # machines that stop at their most iterations, constant columns of a fold
    table, model = keys[0]["table"], keys[0]["model"]
    dealt = list(folds(table, model, paper_scale=paper_scale))
    for key in keys:
        cell = run_cell(table, model, key["partner"], key["l"], key["fold"], *dealt[key["fold"]])
        yield {name: value for name, value in asdict(cell).items() if name not in BY}


def as_cells(kept: Sequence[Mapping[str, Any]]) -> list[Cell]:
    """Read kept cells."""
    names = [entry.name for entry in fields(Cell)]
    return [Cell(**{name: cell[name] for name in names}) for cell in kept]


def _evidence(kept: list[dict[str, Any]]) -> Any:
    from studies.anatomy_evidence import evidence

    return evidence(as_cells(kept))


def _documents(kept: list[dict[str, Any]]) -> dict[str, str]:
    from studies.anatomy_page import documents
    from studies.experiments import load_experiment

    libsvm, attacks = (load_experiment(name).cells() for name in ("anatomy_libsvm", "anatomy_attacks"))
    return documents(as_cells(kept), libsvm, attacks)


def _view(name: str) -> Any:
    def view(study: Any, kept: list[dict[str, Any]]) -> Any:
        from studies import anatomy_views

        return getattr(anatomy_views, name)(study, as_cells(kept))

    return view


EXPERIMENT = Experiment(
    name="anatomy",
    by=BY,
    keys=tuple(
        dict(zip(BY, (table, model, *partner, fold), strict=True))
        for table, model, partners in todo()
        for fold in range(N_FOLDS)
        for partner in partners
    ),
    run=run,
    together=BY[:2],
    titles={**TABLES, **MODELS},
    views={name: _view(name) for name in ("boxes", "tests")},
    evidence=_evidence,
    documents=_documents,
)
