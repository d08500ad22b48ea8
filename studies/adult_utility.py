# SPDX-License-Identifier: Apache-2.0
"""What k-anonymity costs a model on Adult: raw, the paper's method, and ours on raw and on transformed test data.

Goldsteen et al., *Anonymizing Machine Learning Models*, figures 2 and 3, with 80/20 splits. Every finished cell is
kept in ``results/adult_utility.jsonl``, so a run that stops goes on where it was; the table is written to
``docs/results/adult-utility.md``.

    python -m studies.adult_utility [--seeds 5] [--processes 2] [--write-only]
"""

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")  # one thread per process; must be set before numpy is imported

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

HERE = Path(__file__).parent
CELLS = HERE / "results" / "adult_utility.jsonl"
PAGE = HERE.parent / "docs" / "results" / "adult-utility.md"

MODELS = {
    "gb": "gradient boosting",
    "lr": "logistic regression",
    "rf": "random forest",
    "nn": "neural network",
    "hgb": "histogram gradient boosting",
}
WIDE = [(n, k) for n in (12, 10, 8) for k in (10, 100, 200, 500, 1000)]
NARROW = [(12, k) for k in (10, 100, 1000)]
CELLS_OF_MODEL = {"gb": WIDE, "lr": WIDE, "rf": NARROW, "nn": NARROW, "hgb": NARROW}
JUDGED = ("gb", "lr", "rf", "nn")  # the models of the comparison; hgb is an extra, stronger one


@dataclass(frozen=True)
class Cell:
    """Test accuracies (in percent) of one model, seed, set of quasi-identifiers and k."""

    model: str
    seed: int
    n_quasi_identifiers: int
    k: int
    raw: float
    paper: float
    ours: float
    ours_transformed: float
    n_groups: int
    information_loss: float
    seconds: float


def make_model(name: str, seed: int, frame: Any) -> Any:
    """Return the model behind an encoder that suits every frame of this shape."""
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import (
        GradientBoostingClassifier,
        HistGradientBoostingClassifier,
        RandomForestClassifier,
    )
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

    numbers = [c for c in frame if frame[c].dtype.kind in "if"]
    categories = [c for c in frame if c not in numbers]
    if name in ("lr", "nn"):
        one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32)
        encoder = ColumnTransformer([("numbers", StandardScaler(), numbers), ("categories", one_hot, categories)])
    else:  # trees find subsets by themselves
        ordinal = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-2)
        encoder = ColumnTransformer([("numbers", "passthrough", numbers), ("categories", ordinal, categories)])
    models = {
        "gb": lambda: GradientBoostingClassifier(random_state=seed),
        "lr": lambda: LogisticRegression(max_iter=1000),
        "rf": lambda: RandomForestClassifier(100, random_state=seed),
        # The paper's network: one hidden layer of 100, relu, adam, learning rate 0.001.
        "nn": lambda: MLPClassifier((100,), early_stopping=True, max_iter=60, random_state=seed),
        "hgb": lambda: HistGradientBoostingClassifier(random_state=seed),
    }
    return make_pipeline(encoder, models[name]())


def run(name: str, seed: int, todo: list[tuple[int, int]]) -> Iterator[Cell]:
    """Train one model on one split raw, and then for every cell on both anonymized versions."""
    from sklearn.model_selection import train_test_split

    from sfumato import ModelGuidedAnonymizer
    from sfumato.datasets import ADULT_QUASI_IDENTIFIERS, load_adult

    warnings.filterwarnings("ignore")  # non-converged networks and constant columns of small groups
    X, y = load_adult(return_X_y=True, as_frame="pandas")
    X = X[list(ADULT_QUASI_IDENTIFIERS[12])]
    y = (y.astype(str) == ">50K").to_numpy().astype(int)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.2, random_state=seed, stratify=y)
    raw = make_model(name, seed, X).fit(X_train, y_train)
    probabilities = raw.predict_proba(X_train)

    def percent(model: Any, records: Any) -> float:
        return round(100 * float(model.score(records, y_test)), 3)

    for n, k in todo:
        start = time.perf_counter()
        names = list(ADULT_QUASI_IDENTIFIERS[n])
        paper = ModelGuidedAnonymizer(k, quasi_identifiers=names, representative="member", keep_splitting=False)
        ours = ModelGuidedAnonymizer(k, quasi_identifiers=names)
        of_paper = make_model(name, seed, X).fit(paper.fit_transform(X_train, probabilities.argmax(axis=1)), y_train)
        of_ours = make_model(name, seed, X).fit(ours.fit_transform(X_train, probabilities), y_train)
        yield Cell(
            model=name, seed=seed, n_quasi_identifiers=n, k=k,
            raw=percent(raw, X_test), paper=percent(of_paper, X_test), ours=percent(of_ours, X_test),
            ours_transformed=percent(of_ours, ours.transform(X_test)),
            n_groups=ours.n_groups_, information_loss=round(ours.information_loss_, 4),
            seconds=round(time.perf_counter() - start, 2),
        )  # fmt: skip


def run_and_keep(name: str, seed: int, todo: list[tuple[int, int]]) -> str:
    """Run one model on one split and append each finished cell to the file."""
    for cell in run(name, seed, todo):
        with CELLS.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(cell)) + "\n")
    return f"{MODELS[name]}, seed {seed}: {len(todo)} cells"


def finished() -> list[Cell]:
    """Return the cells kept so far, in a fixed order."""
    if not CELLS.exists():
        return []
    cells = [Cell(**json.loads(line)) for line in CELLS.read_text(encoding="utf-8").splitlines()]
    return sorted(cells, key=lambda c: (list(MODELS).index(c.model), -c.n_quasi_identifiers, c.k, c.seed))


def interval(differences: np.ndarray) -> tuple[float, float]:
    """95% interval of a mean over seeds (Student's t)."""
    if len(differences) < 2 or differences.std() == 0:
        return float(differences.mean()), float(differences.mean())
    half = stats.t.ppf(0.975, len(differences) - 1) * differences.std(ddof=1) / np.sqrt(len(differences))
    return float(differences.mean() - half), float(differences.mean() + half)


def page(cells: list[Cell]) -> str:
    """Write the table and the sentences the numbers support."""
    groups: dict[tuple[str, int, int], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.model, cell.n_quasi_identifiers, cell.k), []).append(cell)
    n_seeds = max(len(group) for group in groups.values())
    lines = [
        "# What k-anonymity costs a model on Adult",
        "",
        f"Test accuracy in percent, mean of {n_seeds} splits (80/20) of the 48,842 records; in brackets the change",
        "against the model trained on raw records. *Paper's method*: hard predictions, a tree that stops at pure",
        "nodes, the member nearest the median. *Ours*: the defaults (probabilities, splitting on, a typical member",
        "with nearly the mean prediction), tested on raw records and on records passed through the same partition. The",
        "quasi-identifiers are those of the paper's Table 4. The last column is ours (raw test data) minus the",
        "paper's method, paired over splits, with its 95% interval.",
        "",
        "| model | QI | k | raw | paper's method | ours | ours, test transformed | groups | ours - paper |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (model, n, k), group in groups.items():
        raw, paper, ours, moved = (
            np.array([getattr(c, name) for c in group]) for name in ("raw", "paper", "ours", "ours_transformed")
        )
        low, high = interval(ours - paper)
        shown = [f"{a.mean():.2f} ({(a - raw).mean():+.2f})" for a in (paper, ours, moved)]
        n_groups = np.mean([c.n_groups for c in group])
        lines.append(
            f"| {MODELS[model]} | {n} | {k} | {raw.mean():.2f} | {' | '.join(shown)} | {n_groups:,.0f} | "
            f"{(ours - paper).mean():+.2f} [{low:+.2f}, {high:+.2f}] |"
        )
    lines += ["", "## What the table says", ""]
    lines += [f"- {sentence}" for sentence in verdicts(groups)]
    lines += [
        "",
        "Run with `python -m studies.adult_utility`; the cells are in `studies/results/adult_utility.jsonl`.",
        "Linear model and network get one-hot categories and scaled numbers, the tree models ordinal codes; the",
        "network stops early. All other settings are scikit-learn's defaults.",
    ]
    return "\n".join(lines) + "\n"


def verdicts(groups: dict[tuple[str, int, int], list[Cell]]) -> Iterator[str]:
    """Judge the numbers against what was asked of them."""

    def change(model: str, k: int, name: str) -> float:
        return float(np.mean([getattr(c, name) - c.raw for c in groups[(model, 12, k)]]))

    for k, name, where, most in (
        (10, "ours", "raw test data", 0.5),
        (100, "ours", "raw test data", 1.2),
        (100, "ours_transformed", "transformed test data", 0.3),
    ):
        mean = np.mean([change(model, k, name) for model in JUDGED])
        yield (
            f"12 quasi-identifiers, k={k}, {where}: {mean:+.2f} points, averaged over {len(JUDGED)} models "
            f"(asked for: a loss of at most {most}; {'held' if mean >= -most else 'not held'})."
        )
    worst = min(JUDGED, key=lambda model: change(model, 100, "ours"))
    worst_change = change(worst, 100, "ours")
    yield (
        f"The model that loses most at k=100 on raw test data: {MODELS[worst]}, {worst_change:+.2f} "
        f"(asked for: at most 1.5; {'held' if worst_change >= -1.5 else 'not held'})."
    )
    judged = {key: group for key, group in groups.items() if key[0] in JUDGED}
    differences = [np.array([c.ours - c.paper for c in group]) for group in judged.values()]
    mean = np.mean([d.mean() for d in differences])
    n_below = sum(interval(d)[1] < -0.2 for d in differences)
    yield (
        f"Against the paper's method: {mean:+.2f} points on average over {len(differences)} cells (asked for: at least "
        f"0; {'held' if mean >= 0 else 'not held'}); {n_below} cells lie wholly below -0.2 (asked for: none; "
        f"{'held' if n_below == 0 else 'not held'}){_unjudged_cells_below(groups)}."
    )
    if ("hgb", 12, 100) in groups:
        yield (
            "Histogram gradient boosting, the strongest model here and not part of the averages, pays more: "
            f"{change('hgb', 10, 'ours'):+.2f} at k=10 and {change('hgb', 100, 'ours'):+.2f} at k=100 on raw test "
            f"data, {change('hgb', 100, 'ours_transformed'):+.2f} at k=100 with transformed test data."
        )
        yield from _verdicts_on_histogram_boosting(change)


def _unjudged_cells_below(groups: dict[tuple[str, int, int], list[Cell]]) -> str:
    """List the cells of models that are not judged and that lie wholly below the paper's method."""
    below = []
    for (model, n, k), group in groups.items():
        difference = np.array([c.ours - c.paper for c in group])
        low, high = interval(difference)
        if model not in JUDGED and high < -0.2:
            shown = f"{difference.mean():+.2f} [{low:+.2f}, {high:+.2f}]"
            below.append(f"{MODELS[model]} with {n} quasi-identifiers at k={k}, {shown}")
    return f"; not judged and wholly below: {'; '.join(below)}" if below else ""


def _verdicts_on_histogram_boosting(change: Callable[[str, int, str], float]) -> Iterator[str]:
    """Say what the judgement would be with the model that the command line calls gradient-boosting."""
    yield (
        "It is the model that the command line and the demo call gradient-boosting. It is not among the judged ones "
        "because what was asked for named gradient boosting, logistic regression, random forest and neural network, "
        "and the first was taken to be scikit-learn's GradientBoostingClassifier; this one was added as an extra."
    )
    instead = [model for model in JUDGED if model != "gb"] + ["hgb"]
    raw, moved = (np.mean([change(m, 100, name) for m in instead]) for name in ("ours", "ours_transformed"))
    yield (
        f"Were it judged in the place of gradient boosting, the averages at k=100 would be {raw:+.2f} on raw test data "
        f"({'held' if raw >= -1.2 else 'not held'}) and {moved:+.2f} on transformed test data "
        f"({'held' if moved >= -0.3 else 'not held'}), and the largest loss {change('hgb', 100, 'ours'):+.2f} "
        f"({'held' if change('hgb', 100, 'ours') >= -1.5 else 'not held'})."
    )


def main() -> None:
    """Run what is missing and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--write-only", action="store_true", help="write the page from the cells at hand")
    arguments = parser.parse_args()
    CELLS.parent.mkdir(exist_ok=True)
    if not arguments.write_only:
        done = {(c.model, c.seed, c.n_quasi_identifiers, c.k) for c in finished()}
        with ProcessPoolExecutor(arguments.processes) as pool:
            tasks = []
            for seed in range(arguments.seeds):
                for name, cells in CELLS_OF_MODEL.items():
                    todo = [(n, k) for n, k in cells if (name, seed, n, k) not in done]
                    if todo:
                        tasks.append(pool.submit(run_and_keep, name, seed, todo))
            for number, task in enumerate(as_completed(tasks), start=1):
                print(f"[{number}/{len(tasks)}] {task.result()}", flush=True)
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(finished()), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(HERE.parent)}")


if __name__ == "__main__":
    main()
