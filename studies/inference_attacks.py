# SPDX-License-Identifier: Apache-2.0
"""What attackers learn from models: Goldsteen et al., *Anonymizing Machine Learning Models*, tables 1 and 2.

Membership inference against random forests and networks of Adult and Lending Club, attribute inference against a
decision tree of Nursery, raw, k-anonymous and differentially private. Every finished cell is kept in
``results/inference_attacks.jsonl``, so a run that stops goes on where it was; ``inference_attacks_page`` writes
``docs/results/inference-attacks.md``.

    python -m studies.inference_attacks [--processes 2] [--only TABLE MODEL] [--write-only]

Cells of differential privacy run where diffprivlib imports: ``PYTHONPATH=src .peers/differential_privacy/bin/python -m
studies.inference_attacks``; elsewhere they are left for such a run.
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # one thread per process; must be set before numpy is imported

import argparse
import json
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
CELLS = HERE / "results" / "inference_attacks.jsonl"
PAGE = HERE.parent / "docs" / "results" / "inference-attacks.md"

LEARNED = ("threshold", "random_forest", "network")
WITH_SHADOWS = ("lira", "lira_offline", "rmia")
N_SHADOWS = {"rf": 8, "nn": 0, "dt": 0}
N_RECORDS = 12_000  # of Adult and Lending Club, drawn at random; None takes all
SEED = 0

#: Published ranges of Adult's numbers: known beforehand, as differential privacy asks.
ADULT_BOUNDS = {
    "age": (17, 90),
    "education-num": (1, 16),
    "capital-gain": (0, 99_999),
    "capital-loss": (0, 4_356),
    "hours-per-week": (1, 99),
}


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
        """What protects the model."""
        return f"k={self.k}" if self.k else f"epsilon={self.epsilon:g}" if self.epsilon else "none"


#: Train and test accuracy of the model; accuracy, precision and recall of the attack.
TABLE_1 = (
    Row("adult-12", "rf", paper=(0.98, 0.83, 0.58, 0.56, 0.78)),
    Row("adult-12", "rf", k=50, paper=(0.85, 0.83, 0.51, 0.51, 0.33)),
    Row("adult-12", "rf", k=100, paper=(0.85, 0.81, 0.5, 0.5, 0.76)),
    Row("adult-12", "rf", epsilon=10, paper=(0.82, 0.81, 0.53, 0.52, 0.95)),
    Row("adult-12", "rf", epsilon=1, paper=(0.8, 0.79, 0.5, 0.52, 0.13)),
    Row("lending-club-18", "rf", paper=(1.0, 0.92, 0.67, 0.65, 0.71)),
    Row("lending-club-18", "rf", k=100, paper=(1.0, 0.92, 0.51, 0.51, 0.29)),
    Row("adult-12", "nn", paper=(0.96, 0.89, 0.53, 0.52, 0.6)),
    Row("adult-12", "nn", k=25, paper=(0.84, 0.82, 0.5, 0.5, 0.71)),
    Row("adult-12", "nn", k=50, paper=(0.84, 0.81, 0.5, 0.5, 0.32)),
)
#: Test accuracy of the model; accuracy, precision and recall of the attack on ``social``.
TABLE_2 = (
    Row("nursery", "dt", paper=(None, 0.68, 0.61, 0.41, 0.32)),
    Row("nursery", "dt", k=100, paper=(None, 0.74, 0.56, 0.31, 0.21)),
)
#: Rows of the paper's Table 1 that have no cell here, and why.
LEFT_OUT = (
    "Lending Club with differential privacy: ranges of its columns are not published, and looked up they would leak.",
    "Lending Club with a network, and Adult with a differentially private network: not run.",
)


def run(row: Row, processes: int) -> dict[str, Any]:
    """Fit, measure and attack the model of one row."""
    from sfumato.audit import compare_protections

    X, y, quasi_identifiers, estimator = _setting(row)
    protection = _protected(row, estimator, X, quasi_identifiers)
    attacks = LEARNED + (WITH_SHADOWS if N_SHADOWS[row.model] else ())
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Stochastic Optimizer")  # as many epochs as the page says
        compared = compare_protections(
            X, y, {row.protection: protection},
            attacks=("threshold",) if row.table == "nursery" else attacks,
            n_shadows=N_SHADOWS[row.model] or 2, n_jobs=processes, random_state=SEED, cache=folder,
        )  # fmt: skip
    found = compared.rows[0]
    cell: dict[str, Any] = {
        "key": row.key,
        "train": found.train_utility,
        "test": found.utility,
        "without_model": compared.without_model,
        "n_train": compared.n_train,
        "membership": {name: _plain(result.to_dict()) for name, result in found.membership.items()},
        "n_shadows": N_SHADOWS[row.model],
    }
    if row.table == "nursery":
        cell["attribute"] = _attribute(protection, X, y)
    return {**cell, "seconds": round(time.perf_counter() - start, 1)}


def _plain(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name != "most_exposed"}


def _setting(row: Row) -> tuple[Any, Any, list[str], Any]:
    import numpy as np
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline

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
            make_model("dt", SEED, X).set_params(decisiontreeclassifier__min_samples_leaf=1),
        )
    table = load(row.table)
    rows = np.sort(np.random.default_rng(SEED).permutation(len(table.y))[:N_RECORDS])
    X, y = table.X.iloc[rows].reset_index(drop=True), table.y[rows]
    model = make_model(row.model, SEED, X)
    if row.model == "nn":  # the paper's larger network, meant to be easier to attack
        network = MLPClassifier((1024, 512, 256), activation="tanh", learning_rate_init=1e-4, max_iter=30)
        model = make_pipeline(model[0], network)
    return X, y, table.quasi_identifiers, model


def _protected(row: Row, estimator: Any, X: Any, quasi_identifiers: list[str]) -> Any:
    from sfumato import AnonymizedClassifier
    from sfumato.audit import PrivateForestClassifier

    if row.k:
        return AnonymizedClassifier(estimator, k=row.k, quasi_identifiers=quasi_identifiers)
    if row.epsilon:
        # The types of Adult's columns list the published codes, not what occurs in a sample.
        categories = {name: list(X[name].cat.categories) for name in X if name not in ADULT_BOUNDS}
        return PrivateForestClassifier(row.epsilon, bounds=ADULT_BOUNDS, categories=categories, classes=[0, 1])
    return estimator


def _attribute(protection: Any, X: Any, y: Any) -> dict[str, Any]:
    import numpy as np

    from sfumato.attack import attack_attribute
    from sfumato.attack.shadows import with_seeds

    is_train = np.random.default_rng(7).permutation(len(X)) < len(X) // 2
    model = with_seeds(protection, SEED).fit(X[is_train], y[is_train])
    found = attack_attribute(
        model, X[is_train], y[is_train], "social",
        positive="problematic", control=(X[~is_train], y[~is_train]), random_state=SEED,
    )  # fmt: skip
    return {name: result.to_dict() for name, result in found.items()}


def read_cells() -> dict[str, dict[str, Any]]:
    """Return the cells kept so far."""
    if not CELLS.exists():
        return {}
    cells = [json.loads(line) for line in CELLS.read_text(encoding="utf-8").splitlines()]
    return {cell["key"]: cell for cell in cells}


def main() -> None:
    """Run what is missing and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--processes", type=int, default=2, help="for shadow models, one thread each")
    parser.add_argument("--only", nargs=2, metavar=("TABLE", "MODEL"))
    parser.add_argument("--write-only", action="store_true", help="write the page from the cells at hand")
    options = parser.parse_args()
    from studies.inference_attacks_page import page

    CELLS.parent.mkdir(exist_ok=True)
    for row in () if options.write_only else (*TABLE_2, *TABLE_1):
        if row.key in read_cells() or (options.only and options.only != [row.table, row.model]):
            continue
        try:
            cell = run(row, options.processes)
        except ImportError as error:
            print(f"{row.key}: left for another environment ({error})", flush=True)
            continue
        with CELLS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(cell) + "\n")
        print(f"{row.key}: {cell['seconds']} s", flush=True)
    PAGE.write_text(page(read_cells()), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
