# SPDX-License-Identifier: Apache-2.0
"""Fewer rows against coarser columns: what collecting from fewer people, and collecting less of each, costs and spares.

Staab et al. name the interplay of vertical and horizontal data minimization as future work. Here a model is trained on
a share of the people, whose columns are in full or coarsened by the privacy-aware tree. Two breaches are judged: of the
training data, where those who were never asked have nothing to lose, and of the running service, where everybody sends
records as fine as the model wants them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from studies.charts import Panel, Style, draw
from studies.rows import Row, documents, found, how_it_was_run, mean, one_by_one, signed, table, where
from studies.runner import Experiment

TABLES = {
    "acs_employment": "ACSEmployment, Massachusetts 2015-2018",
    "acs_income": "ACSIncome, New York 2024",
}
COLUMNS = {
    "full": "in full",
    "tree 20": "20 leaves, alpha 0.3",
    "tree 8": "8 leaves, alpha 0.6",
    "tree 4": "4 leaves, alpha 0.9",
}
TREES = {"tree 20": (0.3, 20), "tree 8": (0.6, 8), "tree 4": (0.9, 4)}
ROWS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003)
SEEDS = (0, 1, 2)
MOST_TRAINED, MOST_TESTED, LEARNED = 60_000, 10_000, 5_000
REDUCTIONS = (
    f"At most {MOST_TRAINED:,} people who could be asked, {MOST_TESTED:,} test records.",
    f"The generalizations are learned from {LEARNED:,} further records in full, the paper's small and well protected "
    "sample; these people are not counted among the exposed, although they are "
    f"{100 * LEARNED / MOST_TRAINED:.0f}% as many as could be asked, more than the smaller shares in the tables.",
    "Three settings of the privacy-aware tree, chosen before anything was run: fine, middle and coarse.",
    "The attacker counts personal values per combination of buckets, learned from full records of everybody who could "
    "be asked; mean over the personal attributes. From columns in full there is nothing to guess: who was asked is "
    "known.",
    "*Exposed* is how much more of the personal attributes becomes known than by saying the most frequent value, as a "
    "share of what there is to know; in training times the share of people asked.",
)


def keys() -> Iterator[Row]:
    """List the cells."""
    for name in TABLES:
        for seed in SEEDS:
            for columns in COLUMNS:
                for rows in ROWS:
                    yield {"table": name, "seed": seed, "columns": columns, "rows": rows}


def run(key: Mapping[str, Any], paper_scale: bool = False) -> Row:
    """Train on some people's coarse records and test; say what two breaches expose.

    `n_records` in the key, where there is one, limits the people who could be asked: for trying out.
    """
    import numpy as np

    most = key.get("n_records") or (10**9 if paper_scale else MOST_TRAINED)
    of_split = key["table"], key["seed"], key["columns"], most
    (codes, sizes, is_ordered), y, n_trained, learns = _coded(*of_split), *_labels(*of_split)
    n_asked = max(50, round(key["rows"] * n_trained))
    asked = np.r_[0:n_asked, n_trained : len(y)]  # the first of those who could be asked, and the test records
    error = _error([column[asked] for column in codes], sizes, is_ordered, y[asked], n_asked, key["seed"])
    known, blind = learns
    exposed = (known - blind) / (1 - blind)
    return {
        "n_asked": n_asked,
        "accuracy": round(100 * (1 - error), 3),
        "n_buckets": int(sum(sizes)),
        "known": round(100 * known, 3),
        "blind": round(100 * blind, 3),
        "exposed_in_service": round(100 * exposed, 3),
        "exposed_in_training": round(100 * exposed * n_asked / n_trained, 3),
    }


def _error(codes: Any, sizes: Any, is_ordered: Any, y: Any, n_asked: int, seed: int) -> float:
    import numpy as np

    from sfumato.minimize.bucket_utility import Codes, CodesClassifier

    predicted = CodesClassifier(seed=seed).predictions(Codes(codes, sizes, is_ordered), y[:n_asked], slice(0, n_asked))
    return float((np.broadcast_to(predicted, len(y))[n_asked:] != y[n_asked:]).mean())


@lru_cache(1)
def people(name: str, seed: int, most: int) -> tuple[Any, Any, Any]:
    """Return records to learn from, records of those who could be asked, and test records, with their classes."""
    from studies.minimization_tasks import load_task

    task = load_task(name)
    train, _, test = task.parts(seed)
    learned, asked = train[:LEARNED], train[LEARNED : LEARNED + most]
    return task, (task.records(learned), task.records(asked)), task.records(test[:MOST_TESTED])


@lru_cache(1)
def generalized(name: str, seed: int, columns: str, most: int) -> tuple[Any, Any]:
    """Return the samples, and the generalization of them."""
    import numpy as np

    from sfumato import PrivacyAwareTree
    from sfumato.attack.samples import Samples
    from sfumato.generalization import generalization_from_bins

    task, (learned, asked), test = people(name, seed, most)
    samples = Samples(asked[0], learned[0], test[0], categorical_features=task.categorical)
    if columns == "full":
        coded = [samples.column(column) for column in samples.names]
        return samples, generalization_from_bins(coded, [np.arange(column.bins.n_bins) for column in coded], floor=1)
    alpha, n_leaves = TREES[columns]
    tree = PrivacyAwareTree(
        alpha, n_leaves,
        personal=list(task.personal), categorical_features=list(task.categorical), floor=1, random_state=seed,
        n_jobs=1,
    )  # fmt: skip
    return samples, tree.fit(*learned).generalization_


@lru_cache(1)
def _coded(name: str, seed: int, columns: str, most: int) -> tuple[Any, Any, Any]:
    """Return buckets of those who could be asked and of test records, their numbers, and which columns are ordered."""
    import numpy as np

    samples, generalization = generalized(name, seed, columns, most)
    codes, sizes, is_ordered = [], [], []
    for column in samples.names:
        own = samples.column(column)
        buckets = own.codes.astype(np.int64) if columns == "full" else samples.buckets(generalization, column)
        codes.append(np.concatenate([buckets[samples.train], buckets[samples.test]]))
        sizes.append(int(buckets.max()) + 1)
        is_ordered.append(bool(own.bins.is_ordered))
    return codes, sizes, is_ordered


@lru_cache(1)
def _labels(name: str, seed: int, columns: str, most: int) -> tuple[Any, int, tuple[float, float]]:
    """Return classes, how many people could be asked, and what an attacker knows with and without a breach."""
    import numpy as np

    from sfumato.minimize.judge import ReconstructionRisk

    task, (_, asked), test = people(name, seed, most)
    samples, generalization = generalized(name, seed, columns, most)
    majorities = []
    for column in task.personal:
        codes = samples.column(column).codes
        majorities.append(float((codes[samples.test] == np.bincount(codes[samples.train]).argmax()).mean()))
    known = 1.0
    if columns != "full":
        known = ReconstructionRisk(("table",), seed=seed, n_jobs=1)(generalization, samples, task.personal)[1]
    y = np.concatenate([asked[1], test[1]])
    return np.unique(y, return_inverse=True)[1], len(asked[1]), (known, float(np.mean(majorities)))


def page(rows: list[Row]) -> str:
    """Write the tables and what they say."""
    lines = [
        "# Fewer rows against coarser columns",
        "",
        "Asked for by Staab et al. (*From Principle to Practice: Vertical Data Minimization for Machine Learning*,",
        "section 9): the interplay of vertical and horizontal minimization. A model is trained on a share of the",
        "people, asked in full or as coarsely as a privacy-aware tree allows. Accuracy on test records in percent, and",
        "beside it how much of the personal attributes a breach of the training data exposes, in percent of what there",
        "is to know.",
        "",
        "![accuracy over the share of people asked](beyond-rows-or-columns.svg)",
        "",
        "## What was found",
        "",
        *(f"- {sentence}" for sentence in findings(rows)),
        "",
    ]
    for name, title in TABLES.items():
        own = where(rows, table=name)
        lines += [f"## {title}", ""]
        header = ["columns", "buckets", *(f"{100 * share:g}% of rows" for share in ROWS), "exposed in service"]
        body = []
        for columns, words in COLUMNS.items():
            at = {"columns": columns}
            shown = [
                f"{mean(own, 'accuracy', rows=share, **at):.2f} / "
                f"{mean(own, 'exposed_in_training', rows=share, **at):.2f}"
                for share in ROWS
            ]
            service = mean(own, "exposed_in_service", **at)
            body.append([words, f"{mean(own, 'n_buckets', **at):,.0f}", *shown, f"{service:.2f}"])
        lines += table(header, body)
        n_asked = mean(own, "n_asked", rows=1.0)
        lines += [f"100% of rows are {n_asked:,.0f} people. Accuracy / exposed in training.", ""]
    lines += how_it_was_run(rows, "beyond-rows-or-columns", REDUCTIONS)
    return "\n".join(lines) + "\n"


def cheapest(rows: list[Row], name: str, most_lost: float, *, only: str = "") -> tuple[str, float, float, float]:
    """Return the columns and the share of rows that expose least in training and cost at most so many points.

    `only`: "rows" varies the rows alone, "columns" the columns alone.
    """
    own = where(rows, table=name)
    best = mean(own, "accuracy", columns="full", rows=1.0)
    found = []
    for columns in ("full",) if only == "rows" else COLUMNS:
        for share in (1.0,) if only == "columns" else ROWS:
            at = {"columns": columns, "rows": share}
            lost = best - mean(own, "accuracy", **at)
            if lost <= most_lost:
                found.append((mean(own, "exposed_in_training", **at), -share, columns, lost))
    exposed, share, columns, lost = min(found)
    return columns, -share, lost, exposed


def findings(rows: list[Row]) -> Iterator[str]:
    """Return the conclusions in words."""
    for name, title in TABLES.items():
        for most in (1.0, 2.0):
            parts = []
            for only, words in (("rows", "fewer rows alone"), ("columns", "coarser columns alone"), ("", "both")):
                columns, share, lost, exposed = cheapest(rows, name, most, only=only)
                parts.append(
                    f"{words} expose {exposed:.2f}% ({100 * share:g}% of rows, columns {COLUMNS[columns]}, "
                    f"{signed(-lost)} points)"
                )
            yield f"{title}, at most {most:g} point{'s' if most > 1 else ''} of accuracy lost: {'; '.join(parts)}."
        own = where(rows, table=name)
        service = {c: mean(own, "exposed_in_service", columns=c) for c in COLUMNS}
        shown = ", ".join(f"{service[c]:.1f}% (columns {COLUMNS[c]})" for c in COLUMNS)
        yield f"{title}: in service every record sent exposes {shown}, however few people the model learned from."
        few = min(ROWS)
        drop = {
            c: mean(own, "accuracy", columns=c, rows=1.0) - mean(own, "accuracy", columns=c, rows=few) for c in COLUMNS
        }
        shown = ", ".join(f"{drop[c]:.2f} (columns {COLUMNS[c]})" for c in COLUMNS)
        yield f"{title}: going from all rows to {100 * few:g}% costs {shown} points of accuracy."


STYLES = {
    "in full": Style("#1f2328", "circle", 2.0),
    "20 leaves, alpha 0.3": Style("#d55e00", "square", 2.0),
    "8 leaves, alpha 0.6": Style("#0072b2", "triangle", 2.0),
    "4 leaves, alpha 0.9": Style("#009e73", "diamond", 2.0),
}


def charts(rows: list[Row]) -> dict[str, str]:
    """Draw accuracy over the share of people asked."""
    panels = []
    for name, title in TABLES.items():
        own = where(rows, table=name)
        lines = {
            words: [(100 * share, mean(own, "accuracy", columns=columns, rows=share)) for share in ROWS[::-1]]
            for columns, words in COLUMNS.items()
        }
        panels.append(Panel(title, lines, {}, axis="people asked, %"))
    label = "Accuracy over the share of people asked, both in percent, for columns of four granularities"
    return {"beyond-rows-or-columns.svg": draw(panels, STYLES, columns=2, label=label)}


KEYS = tuple(keys())
EXPERIMENT = Experiment(
    name="beyond_rows_or_columns",
    by=("table", "seed", "columns", "rows"),
    keys=KEYS,
    run=one_by_one(run),
    together=("table", "seed"),
    views={"found": found(KEYS, findings, charts)},
    documents=documents("beyond-rows-or-columns", KEYS, page, charts),
)
