# SPDX-License-Identifier: Apache-2.0
"""Minimized data trained with differential privacy: does collecting less help a private model?

Staab et al. expect that minimized data suit differentially private training, and leave it to future work. Private
logistic regressions and boosted models learn from columns in full and from columns that a privacy-aware tree coarsened,
with privacy budgets from 0.1 to none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from studies.beyond_rows_or_columns import LEARNED, MOST_TESTED, generalized, people
from studies.charts import Panel, Style, draw
from studies.rows import Row, documents, found, how_it_was_run, mean, one_by_one, signed, table, where
from studies.runner import Experiment

TABLES = {
    "acs_employment": "ACSEmployment, Massachusetts 2015-2018",
    "acs_income": "ACSIncome, New York 2024",
}
MODELS = {"logistic": "private logistic regression", "boosting": "private boosting"}
COLUMNS = {"full": "in full", "tree 20": "20 leaves, alpha 0.3", "tree 8": "8 leaves, alpha 0.6"}
NO_NOISE = 100.0
EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0, NO_NOISE)
SEEDS = (0, 1, 2)
MOST_TRAINED = 20_000
NUMBERS = {"AGEP": (0, 99), "SCHL": (0, 24), "WKHP": (0, 99)}
"""Columns in full that are numbers, and their bounds, from the code book; all others are lists of codes."""

REDUCTIONS = (
    f"{MOST_TRAINED:,} training and {MOST_TESTED:,} test records, splits with noise of their own; "
    "our private logistic regression and interpret-core's private boosting with their defaults, no network.",
    f"The generalizations are learned from {LEARNED:,} further records in full, whose privacy the budget does not "
    "cover: the paper's small and well protected sample.",
    "Lists of categories are those that occur in the whole table, as a code book would have them. A column with one "
    "bucket is not collected, so it takes no part; that shortens the records, for which the noise is made.",
    f"*No noise*: the same models with a budget of {NO_NOISE:,.0f}.",
)


def keys() -> Iterator[Row]:
    """List the cells."""
    for name in TABLES:
        for seed in SEEDS:
            for columns in COLUMNS:
                for model in MODELS:
                    for epsilon in EPSILONS:
                        yield {"table": name, "seed": seed, "columns": columns, "model": model, "epsilon": epsilon}


def run(key: Mapping[str, Any], paper_scale: bool = False) -> Row:
    """Train one private model and test it.

    `n_records` in the key, where there is one, limits the training records: for trying out.
    """
    from sfumato.private import PrivateBoostingClassifier, PrivateLogisticRegression

    most = key.get("n_records") or (10**9 if paper_scale else MOST_TRAINED)
    X_train, y_train, X_test, y_test, bounds, categories = _tables(key["table"], key["seed"], key["columns"], most)
    make: Any = PrivateLogisticRegression if key["model"] == "logistic" else PrivateBoostingClassifier
    model = make(key["epsilon"], bounds=bounds, categories=categories, classes=[0, 1])
    model.fit(X_train, y_train)
    return {
        "accuracy": round(100 * float((model.predict(X_test) == y_test).mean()), 3),
        "blind": round(100 * float(max((y_test == 0).mean(), (y_test == 1).mean())), 3),
        "n_columns": X_train.shape[1],
        "n_values": len(bounds) + sum(map(len, categories.values())),
    }


@lru_cache(1)
def _tables(name: str, seed: int, columns: str, most: int) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Return training and test records with what is known about their columns beforehand."""
    import pandas as pd

    task, (_, asked), test = people(name, seed, most)
    if columns == "full":
        bounds = {column: own for column, own in NUMBERS.items() if column in task.X.columns}
        categories = {
            column: sorted(task.X[column].unique().tolist()) for column in task.X.columns if column not in bounds
        }
        frames = [frame.astype({column: str(frame[column].dtype) for column in frame}) for frame in (asked[0], test[0])]
        return frames[0], asked[1], frames[1], test[1], bounds, categories
    samples, generalization = generalized(name, seed, columns, most)
    buckets = {column: samples.buckets(generalization, column) for column in samples.names}
    sizes = dict(zip(generalization.names, generalization.n_buckets, strict=True))
    kept = {column: codes for column, codes in buckets.items() if sizes[column] > 1}
    frame = pd.DataFrame(kept)
    categories = {column: list(range(sizes[column])) for column in kept}
    return frame[samples.train], asked[1], frame[samples.test], test[1], {}, categories


def page(rows: list[Row]) -> str:
    """Write the tables and what they say."""
    lines = [
        "# Minimized data trained with differential privacy",
        "",
        "Asked for by Staab et al. (*From Principle to Practice: Vertical Data Minimization for Machine Learning*,",
        "section 9), who expect minimized data to suit private training. Test accuracy in percent of differentially",
        "private models, trained on columns in full and on columns that a privacy-aware tree coarsened, with the same",
        "budget; in brackets the change against columns in full.",
        "",
        "![accuracy over epsilon for every granularity](beyond-private-training.svg)",
        "",
        "## What was found",
        "",
        *(f"- {sentence}" for sentence in findings(rows)),
        "",
    ]
    for name, title in TABLES.items():
        for model, words in MODELS.items():
            own = where(rows, table=name, model=model)
            lines += [f"## {title}, {words}", "", f"Always the larger class: {mean(own, 'blind'):.2f}."]
            body = []
            for columns, coarse in COLUMNS.items():
                shown = [coarse, f"{mean(own, 'n_columns', columns=columns):.0f}"]
                for epsilon in EPSILONS:
                    value = mean(own, "accuracy", columns=columns, epsilon=epsilon)
                    change = value - mean(own, "accuracy", columns="full", epsilon=epsilon)
                    shown.append(f"{value:.2f}" + ("" if columns == "full" else f" ({signed(change)})"))
                body.append(shown)
            header = ["columns", "of them"]
            lines += table([*header, *("no noise" if e == NO_NOISE else f"epsilon = {e:g}" for e in EPSILONS)], body)
    lines += how_it_was_run(rows, "beyond-private-training", REDUCTIONS)
    return "\n".join(lines) + "\n"


def findings(rows: list[Row]) -> Iterator[str]:
    """Return the conclusions in words."""
    for model, words in MODELS.items():
        for columns in ("tree 20", "tree 8"):
            parts = []
            for name, title in TABLES.items():
                own = where(rows, table=name, model=model)
                ahead = {
                    e: mean(own, "accuracy", columns=columns, epsilon=e)
                    - mean(own, "accuracy", columns="full", epsilon=e)
                    for e in EPSILONS
                }
                better = [f"{e:g}" for e in EPSILONS if ahead[e] > 0 and e != NO_NOISE]
                noisy = [ahead[e] for e in EPSILONS if e != NO_NOISE]
                parts.append(
                    f"{title.split(',')[0]} {signed(sum(noisy) / len(noisy))} points on average over epsilon, "
                    f"{'better at epsilon = ' + ', '.join(better) if better else 'better at no epsilon'}, "
                    f"{signed(ahead[NO_NOISE])} without noise"
                )
            yield f"{words.capitalize()}, columns with {COLUMNS[columns]} beside columns in full: {'; '.join(parts)}."
    for name, title in TABLES.items():
        parts = []
        for columns, coarse in COLUMNS.items():
            own = where(rows, table=name, columns=columns)
            model, epsilon, value = max(
                ((m, e, mean(own, "accuracy", model=m, epsilon=e)) for m in MODELS for e in EPSILONS if e <= 1),
                key=lambda found: found[2],
            )
            parts.append(f"{value:.2f} with columns {coarse} ({MODELS[model]}, epsilon = {epsilon:g})")
        yield f"{title}, the best private model with a budget of at most 1: {'; '.join(parts)}."


STYLES = {
    "in full": Style("#1f2328", "circle", 2.0),
    "20 leaves, alpha 0.3": Style("#d55e00", "square", 2.0),
    "8 leaves, alpha 0.6": Style("#0072b2", "triangle", 2.0),
    "always the larger class": Style("#7a7a7a", "", 1.0, "2 3"),
}


def charts(rows: list[Row]) -> dict[str, str]:
    """Draw accuracy over epsilon."""
    panels = []
    for name, title in TABLES.items():
        for model, words in MODELS.items():
            own = where(rows, table=name, model=model)
            lines = {
                coarse: [(e, mean(own, "accuracy", columns=c, epsilon=e)) for e in EPSILONS if e != NO_NOISE]
                for c, coarse in COLUMNS.items()
            }
            levels = {"always the larger class": mean(own, "blind")}
            panels.append(Panel(f"{title.split(',')[0]}: {words}", lines, levels, axis="epsilon"))
    label = "Accuracy of private models in percent over epsilon"
    return {"beyond-private-training.svg": draw(panels, STYLES, columns=2, label=label)}


KEYS = tuple(keys())
EXPERIMENT = Experiment(
    name="beyond_private_training",
    by=("table", "seed", "columns", "model", "epsilon"),
    keys=KEYS,
    run=one_by_one(run),
    together=("table", "seed"),
    needs=lambda key: ("opendp",) if key["model"] == "logistic" else ("interpret",),
    views={"found": found(KEYS, findings, charts)},
    documents=documents("beyond-private-training", KEYS, page, charts),
)
