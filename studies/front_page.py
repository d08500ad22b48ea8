# SPDX-License-Identifier: Apache-2.0
"""The frontier of the front page: every kind of protection of one random forest, on Adult and on four more tables.

All rows come from ``sfumato.frontier``: the same splits, the same attackers. ``front_page_views`` makes the table and
the picture of the README, those of *Choosing a method* and the page with all numbers.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone

from studies.methods import METHODS, workload_mondrian
from studies.runner import Experiment

ADULT, MODEL = "adult-12", "rf"
TABLES = {
    ADULT: "Adult",
    "acs-income": "ACSIncome",
    "lending-club-18": "Lending Club",
    "nursery": "Nursery",
    "census-kdd-14": "Census KDD",
}
K, N_SPLITS, N_SHADOWS, N_TREES = 100, 5, 8, 50
MOST_RECORDS, N_OTHERS = 30_000, 5_000
SECRET = "occupation"
ATTACKS = ("threshold", "lira", "rmia", "attribute", "release_membership", "singling_out", "inference")
QUICK_ATTACKS = ("threshold", "release_membership", "singling_out")
DELTA = 1e-6

CLASSICS = {
    "workload_aware": "workload-aware Mondrian",
    "information_loss": "information-loss Mondrian",
    "mondrian": "median Mondrian",
    "hilbert": "Hilbert curve",
    "rplus_tree": "R+-tree",
}
ROWS = {
    "none": "no protection",
    "model-10": "sfumato, model, k = 10",
    "model-100": f"sfumato, model, k = {K}",
    "table-10": "sfumato, table, k = 10",
    "table-100": f"sfumato, table, k = {K}",
    "paper-100": f"the paper's Algorithm 1, k = {K}",
    **{f"{name}-100": f"{title}, k = {K}" for name, title in CLASSICS.items()},
    "buckets-20": "minimized, 20 leaves",
    "buckets-100": "minimized, 100 leaves",
    "anatomy-3": "anatomized, l = 3",
    "synthetic": "synthetic, no promise",
    "logistic-inf": "logistic regression, no noise",
    "logistic-3": "private logistic, epsilon 3",
    "logistic-1": "private logistic, epsilon 1",
    "logistic-0.5": "private logistic, epsilon 0.5",
    "boosting-1": "private boosting, epsilon 1",
    "counts-1": "counts release, epsilon 1",
    "release-1": "private release, epsilon 1",
}
#: Rows of the tables beside Adult.
FEW = ("none", "model-100", "table-100", "buckets-20", "synthetic", "logistic-1", "counts-1", "release-1")
#: Rows of the README, which are attacked with shadow models.
SHOWN = (
    "none", "model-100", "table-100", "paper-100", "workload_aware-100", "mondrian-100", "buckets-20", "anatomy-3",
    "synthetic", "logistic-1", "counts-1", "release-1",
)  # fmt: skip
NEEDS = {"logistic": ("opendp",), "counts": ("opendp",), "release": ("opendp",), "boosting": ("interpret",)}


class HardPredictions(ClassifierMixin, BaseEstimator):
    """A guide that says classes and no probabilities, as the paper's."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any) -> HardPredictions:
        """Train the model."""
        self.estimator_ = clone(self.estimator).fit(X, y)
        self.classes_ = self.estimator_.classes_
        return self

    def predict(self, X: Any) -> Any:
        """Return the classes."""
        return self.estimator_.predict(X)


@dataclass(frozen=True, eq=False)
class People:
    """The records of a table, and other people of the same population, on whom cells may be fitted."""

    table: str
    X: Any
    y: Any
    others: tuple[Any, Any]


def people(name: str, n_records: int | None = None) -> People:
    """Draw the people of a table: all of Adult, at most so many of the others."""
    from studies.public_knowledge import load_known

    X, y = load_known(name)
    classes, counts = np.unique(y, return_counts=True)
    rows = np.random.default_rng(0).permutation(np.flatnonzero(np.isin(y, classes[counts >= 10])))
    n_others = min(N_OTHERS, len(rows) // 5)
    most = n_records or (len(rows) if name == ADULT else MOST_RECORDS)
    others, own = rows[:n_others], rows[n_others : n_others + most]
    taken = [(X.iloc[part].reset_index(drop=True), y[part]) for part in (own, others)]
    return People(name, *taken[0], taken[1])


def forest(X: Any) -> Any:
    """Return the unfitted model of all rows."""
    from studies.models import make_model

    return make_model(MODEL, 0, X).set_params(randomforestclassifier__n_estimators=N_TREES)


def protection(name: str, given: People) -> Any:
    """Return the object or the short form of a row."""
    from sfumato import Anatomizer, AnonymizedClassifier, ModelGuidedAnonymizer, PrivacyAwareTree, PrivateAnonymizer
    from sfumato.private import PrivateBoostingClassifier, PrivateLogisticRegression
    from studies.paper_method import PaperAnonymizer
    from studies.public_knowledge import BOUNDS, categories_of
    from studies.synthesizer import TreeSynthesizer

    model, columns = forest(given.X), list(given.X.columns)
    kind, _, number = name.rpartition("-")
    public: dict[str, Any] = {
        "bounds": BOUNDS[given.table],
        "categories": categories_of(given.table, given.X),
        "delta": DELTA,
    }
    labels = np.unique(given.y).tolist()
    if name == "none":
        return None
    if name == "synthetic":
        return TreeSynthesizer()
    if kind == "model":
        return AnonymizedClassifier(model, k=int(number))
    if kind == "table":
        return ModelGuidedAnonymizer(int(number), n_jobs=1)
    if kind == "paper":
        anonymizer = PaperAnonymizer(int(number), columns)
        return AnonymizedClassifier(model, anonymizer=anonymizer, guide_estimator=HardPredictions(model))
    if kind in CLASSICS:
        make = workload_mondrian if kind == "workload_aware" else METHODS[kind].make
        return make(int(number), columns).set_params(representative="phantom")
    if kind == "buckets":
        return PrivacyAwareTree(max_leaves=int(number), n_jobs=1)
    if kind == "anatomy":
        return Anatomizer(int(number), sensitive=SECRET, suppression_limit=0.01)
    if kind == "logistic":
        return PrivateLogisticRegression(math.inf if number == "inf" else float(number), classes=labels, **public)
    if kind == "boosting":
        return PrivateBoostingClassifier(float(number), classes=labels, **public)
    if kind == "release":
        return PrivateAnonymizer(float(number), labels=labels, n_jobs=1, **public)
    return [float(number)]  # noisy counts in cells of other people


def run(keys: Sequence[Mapping[str, Any]], paper_scale: bool) -> Iterator[dict[str, Any]]:
    """Measure and attack one protection after the other.

    `n_records` in a key, where there is one, limits the records of the table: for trying out.
    """
    from sfumato.auditing.attacks import Effort
    from sfumato.auditing.frontier import setting_of
    from sfumato.auditing.frontier_rows import measured_rows
    from sfumato.auditing.protection_families import protections_of
    from sfumato.auditing.protections import Scope
    from sfumato.documents import plain
    from sfumato.progress import QuietReporter

    for key in keys:
        given = people(key["table"], key.get("n_records"))
        is_adult, model = given.table == ADULT, forest(given.X)
        is_shown = is_adult and key["protection"] in SHOWN
        setting = setting_of(
            given.X, given.y, model,
            quasi_identifiers=None, sensitive=None, secrets=[SECRET] if is_adult else None,
            subgroups=["sex", "race"] if is_adult else None, n_splits=N_SPLITS, test_fraction=0.5, groups=None,
            random_state=0, attacks=ATTACKS if is_shown else QUICK_ATTACKS, effort=Effort(N_SHADOWS, 1),
            n_attacked=1, n_jobs=1,
        )  # fmt: skip
        scope = Scope(
            model, setting.table.names, setting.quasi_identifiers, [], setting.classes, others=given.others, n_jobs=1
        )
        found = protection(key["protection"], given)
        name = "counts" if isinstance(found, list) else ROWS[key["protection"]]
        chosen, _ = protections_of({name: found}, scope, setting.n_train)
        own = replace(chosen[-1], name=ROWS[key["protection"]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that there is no noise, or that real records are shown: as measured here
            [row] = measured_rows(setting, [own], QuietReporter())
        shared = setting.frontier([row])
        yield {
            "row": _rounded(plain(row)),
            "blind": round(shared.blind, 5),
            "n_train": shared.n_train,
            "n_test": shared.n_test,
            "n_others": len(given.others[1]),
        }


def _rounded(value: Any) -> Any:
    """Return plain data with five digits, which is more than the intervals allow."""
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    return round(value, 5) if isinstance(value, float) else value


def keys() -> Iterator[dict[str, Any]]:
    """List the cells: all rows of Adult, and a few of the other tables."""
    for table in TABLES:
        for name in ROWS if table == ADULT else FEW:
            yield {"table": table, "protection": name}


def _views() -> Any:
    from studies import front_page_views

    return front_page_views


EXPERIMENT = Experiment(
    name="front_page",
    by=("table", "protection"),
    keys=tuple(keys()),
    run=run,
    together=("table", "protection"),
    needs=lambda key: NEEDS.get(key["protection"].partition("-")[0], ()),
    titles=ROWS,
    views={"front_page": lambda study, cells: _views().view(cells)},
    documents=lambda cells: _views().documents(cells),
)
