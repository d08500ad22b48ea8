# SPDX-License-Identifier: Apache-2.0
"""What attackers learn from models: Goldsteen et al., *Anonymizing Machine Learning Models*, tables 1 and 2.

Membership inference against random forests and networks of Adult and Lending Club, attribute inference against a
decision tree of Nursery, raw, k-anonymous and differentially private. ``sfumato study goldsteen-table-1`` and ``-2``
run them; ``inference_attacks_page`` writes ``docs/results/inference-attacks.md``, ``inference_attacks_claims`` judges.

Cells of differential privacy need the extra ``dp``; without it they are left.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from studies.clock import processor_seconds
from studies.public_knowledge import BOUNDS, categories_of
from studies.runner import Experiment

PAGE = "docs/results/inference-attacks.md"
LEARNED = ("threshold", "random_forest", "network")
WITH_SHADOWS = ("lira", "lira_offline", "rmia")
N_SHADOWS = {"rf": 8, "nn": 0, "dt": 0}
N_RECORDS = 12_000  # of Adult and Lending Club, drawn at random; None takes all
SPLITS = {"dt": (0, 3), "rf": (0,), "nn": (0,)}
"""Seeds by model; with others no record of Nursery's rarest class, which has two, may be left for training."""


@dataclass(frozen=True)
class Row:
    """One row of the paper's tables: what was attacked, and what the paper found (None: not in the paper)."""

    table: str
    model: str
    k: int = 0
    epsilon: float = 0.0
    paper: tuple[float | None, ...] = ()

    @property
    def key(self) -> str:
        """Its name in the file of results."""
        return f"{self.table}, {self.model}, {self.protection}"

    @property
    def protection(self) -> str:
        """Return the protection of the model."""
        return f"k={self.k}" if self.k else f"epsilon={self.epsilon:g}" if self.epsilon else "none"


#: Train and test accuracy of the model; accuracy, precision and recall of the attack.
TABLE_1 = (
    Row("adult-12", "rf", paper=(0.98, 0.83, 0.58, 0.56, 0.78)),
    Row("adult-12", "rf", k=50, paper=(0.85, 0.83, 0.51, 0.51, 0.33)),
    Row("adult-12", "rf", k=100, paper=(0.85, 0.81, 0.5, 0.5, 0.76)),
    Row("adult-12", "rf", epsilon=10, paper=(0.82, 0.81, 0.53, 0.52, 0.95)),
    Row("adult-12", "rf", epsilon=1, paper=(0.8, 0.79, 0.5, 0.52, 0.13)),
    Row("adult-12", "nn", paper=(0.96, 0.89, 0.53, 0.52, 0.6)),
    Row("adult-12", "nn", k=25, paper=(0.84, 0.82, 0.5, 0.5, 0.71)),
    Row("adult-12", "nn", k=50, paper=(0.84, 0.81, 0.5, 0.5, 0.32)),
    Row("adult-12", "nn", epsilon=2.11, paper=(0.83, 0.83, 0.5, 0.5, 0.14)),
    Row("lending-club-18", "rf", paper=(1.0, 0.92, 0.67, 0.65, 0.71)),
    Row("lending-club-18", "rf", k=100, paper=(1.0, 0.92, 0.51, 0.51, 0.29)),
    Row("lending-club-18", "rf", epsilon=10, paper=(0.82, 0.81, 0.5, 0.66, 0.0094)),
    Row("lending-club-18", "rf", epsilon=1, paper=(0.82, 0.8, 0.5, 0.5, 0.18)),
    Row("lending-club-18", "nn", paper=(0.95, 0.95, 0.54, 0.53, 0.67)),
    Row("lending-club-18", "nn", k=200, paper=(0.95, 0.92, 0.5, 0.5, 0.46)),
    Row("lending-club-18", "nn", epsilon=3.1, paper=(0.87, 0.87, 0.5, 0.5, 0.47)),
)
#: Test accuracy of the model; accuracy, precision and recall of the attack on ``social``.
TABLE_2 = (
    Row("nursery", "dt", paper=(None, 0.68, 0.61, 0.41, 0.32)),
    Row("nursery", "dt", k=100, paper=(None, 0.74, 0.56, 0.31, 0.21)),
)
#: The paper's larger network, meant to be easier to attack.
LAYERS, LEARNING_RATE = (1024, 512, 256), 1e-4
DELTA = 1e-5


def run(row: Row, seed: int = 0, *, n_records: int | None = N_RECORDS) -> dict[str, Any]:
    """Fit, measure and attack the model of one row."""
    from studies.attacked_halves import attack_on_half

    X, y, quasi_identifiers, estimator = _setting(row, seed, n_records)
    protection = _protected(row, estimator, X, quasi_identifiers)
    attacks = LEARNED + (WITH_SHADOWS if N_SHADOWS[row.model] else ())
    start = processor_seconds()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Stochastic Optimizer")  # as many epochs as the page says
        found = attack_on_half(
            X, y, protection,
            attacks=("threshold",) if row.table == "nursery" else attacks,
            n_shadows=N_SHADOWS[row.model] or 2, seed=seed, cache=folder,
        )  # fmt: skip
    cell: dict[str, Any] = {
        "train": found.train_accuracy,
        "test": found.accuracy,
        "without_model": found.without_model,
        "n_train": found.n_train,
        "membership": {name: _plain(result.to_dict()) for name, result in found.membership.items()},
        "n_shadows": N_SHADOWS[row.model],
    }
    if row.table == "nursery":
        cell["attribute"] = _attribute(protection, X, y, seed)
    return {**cell, "seconds": round(processor_seconds() - start, 1)}


def _plain(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name != "most_exposed"}


def _setting(row: Row, seed: int, n_records: int | None) -> tuple[Any, Any, list[str], Any]:
    import numpy as np
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    from sfumato.datasets import load_nursery
    from studies.models import make_model
    from studies.tables import load

    if row.table == "nursery":
        X, y = load_nursery(return_X_y=True, as_frame="pandas")
        is_problem = X["social"].astype(str) == "problematic"
        X = X.assign(social=np.where(is_problem, "problematic", "other"))
        return (
            X,
            np.asarray(y),
            list(X.columns),
            make_model("dt", seed, X).set_params(decisiontreeclassifier__min_samples_leaf=1),
        )
    table = load(row.table)
    rows = np.sort(np.random.default_rng(seed).permutation(len(table.y))[:n_records])
    X, y = table.X.iloc[rows].reset_index(drop=True), table.y[rows]
    model = make_model(row.model, seed, X)
    if row.model == "nn":
        # The paper does not say how long: until ten epochs in a row gain nothing, 200 at most, as scikit-learn has it.
        network = MLPClassifier(LAYERS, activation="tanh", learning_rate_init=LEARNING_RATE)
        model = make_pipeline(model[0], FunctionTransformer(np.asarray, kw_args={"dtype": np.float32}), network)
    return X, y, table.quasi_identifiers, model


def _protected(row: Row, estimator: Any, X: Any, quasi_identifiers: list[str]) -> Any:
    from sfumato import AnonymizedClassifier
    from sfumato.private import PrivateLogisticRegression, PrivateNetworkClassifier
    from studies.paper_method import PaperClassifier

    if row.k and row.model == "nn":  # minutes each: run with sfumato's own engine, as the page says
        return AnonymizedClassifier(estimator, k=row.k, quasi_identifiers=quasi_identifiers, learn_from="points")
    if row.k:
        return PaperClassifier(estimator, row.k, quasi_identifiers)
    if not row.epsilon:
        return estimator
    public: dict[str, Any] = {
        "bounds": BOUNDS[row.table],
        "categories": categories_of(row.table, X),
        "classes": [0, 1],
    }
    if row.model == "rf":  # no private forest learns anything here; see the page
        return PrivateLogisticRegression(row.epsilon, delta=DELTA, **public)
    # The paper's layers with its learning rate answer the larger class under noise, so it is a smaller network.
    return PrivateNetworkClassifier(row.epsilon, delta=DELTA, **public)


def _attribute(protection: Any, X: Any, y: Any, seed: int) -> dict[str, Any]:
    import numpy as np

    from sfumato.attack import attack_attribute
    from sfumato.attack.shadows import with_seeds

    is_train = np.random.default_rng(7 + seed).permutation(len(X)) < len(X) // 2
    model = with_seeds(protection, seed).fit(X[is_train], y[is_train])
    found = attack_attribute(
        model, X[is_train], y[is_train], "social",
        positive="problematic", control=(X[~is_train], y[~is_train]), random_state=seed,
    )  # fmt: skip
    return {name: result.to_dict() for name, result in found.items()}


# -- for the runner ------------------------------------------------------------------------------------------


def run_keys(keys: Sequence[Mapping[str, Any]], paper_scale: bool) -> Iterator[dict[str, Any]]:
    """Run cells by their names."""
    rows = {row.key: row for row in (*TABLE_2, *TABLE_1)}
    for key in keys:
        yield run(rows[key["key"]], key["seed"], n_records=None if paper_scale else N_RECORDS)


def _needs(key: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what differential privacy needs: the regression one package, the network another."""
    if "epsilon" not in key["key"]:
        return ()
    return ("opendp",) if ", rf, " in key["key"] else ("opacus",)


def by_key(cells: Sequence[dict[str, Any]], seed: int = 0) -> dict[str, dict[str, Any]]:
    """Return the cells of one split by their names."""
    return {cell["key"]: cell for cell in cells if cell["seed"] == seed}


def _documents(cells: list[dict[str, Any]]) -> dict[str, str]:
    from studies.inference_attacks_page import page

    return {PAGE: page(by_key(cells))}


def _evidence(cells: list[dict[str, Any]]) -> Any:
    from studies.inference_attacks_claims import evidence

    return evidence([by_key(cells, seed) for seed in SPLITS["dt"]])


def _table(study: Any, cells: list[dict[str, Any]]) -> Any:
    """Show the section of the page about the paper's table that a study is about."""
    from studies.views import section

    return section(_documents(cells)[PAGE], f"({study.source.lower()})")


EXPERIMENT = Experiment(
    name="inference_attacks",
    by=("key", "seed"),
    keys=tuple({"key": row.key, "seed": seed} for row in (*TABLE_2, *TABLE_1) for seed in SPLITS[row.model]),
    run=run_keys,
    together=("key", "seed"),
    needs=_needs,
    views={"section": _table},
    evidence=_evidence,
    documents=_documents,
)
