# SPDX-License-Identifier: Apache-2.0
"""The guided methods beside the classic ones: Goldsteen et al., *Anonymizing Machine Learning Models*, figures 2-5."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from studies.accuracy import BY, RAW, TITLES, TOGETHER, Cell, Key, as_cells, run
from studies.beyond_recoded_tests import recoded_tests
from studies.charts import Panel, Style, draw
from studies.classic_claims import (
    CLASSICS,
    LONG_K,
    PAPER_NETWORK,
    Found,
    evidence,
    mondrian_beside_the_papers,
    what_else,
)
from studies.methods import METHODS
from studies.models import MODELS, MOST_CATEGORIES
from studies.runner import Experiment
from studies.summaries import Accuracies
from studies.tables import LARGER_CLASS, LENDING_CLUB_OTHERS, PAPER_SPLIT

PAPER_SCALE_SPLITS = 10  # of every table and model
K = (10, 100, 200, 500, 1000)
#: Models and number of splits of every table.
SPLITS = {
    "adult-12": {"hgb": 5, "nn": 3},
    "lending-club-18": {"hgb": 5, "nn": 3},
    "adult-8": {"hgb": 5, "dt": 5, "nn": 3},
    "adult-10": {"hgb": 5, "nn": 3},
    "adult-12-paper-split": {"hgb": 5, "nn": 3},
    "adult-10-paper-split": {"hgb": 3, "nn": 3},
    "adult-8-paper-split": {"hgb": 3, "nn": 3},
    "lending-club-18-repaid": {"nn": 1},
}
#: Tables on which the paper's network, to its 200 epochs, is trained on raw records (``networks``).
RAW_NETWORKS, RAW_SPLITS = ("adult-12-paper-split", "adult-12", "lending-club-18-repaid", "lending-club-18"), 5
#: The same network on releases: the paper's own split and quasi-identifiers, its method and the three it is judged by.
LONG_METHODS, LONG_SPLITS = ("paper", *CLASSICS), 3
#: The figures' own order, for the page.
SHOWN = (
    *(("adult-12", "nn"), ("adult-10", "nn"), ("adult-8", "nn")),
    *(("adult-12", "hgb"), ("adult-10", "hgb"), ("adult-8", "hgb")),
    *(("adult-12-paper-split", "nn"), ("adult-12-paper-split", "hgb"), ("adult-8", "dt")),
    *(("adult-10-paper-split", "nn"), ("adult-10-paper-split", "hgb")),
    *(("adult-8-paper-split", "nn"), ("adult-8-paper-split", "hgb")),
    *(("lending-club-18", "nn"), ("lending-club-18-repaid", "nn"), ("lending-club-18", "hgb")),
)
TRANSFORMED = tuple(place for place in SHOWN if not place[0].endswith(PAPER_SPLIT))
RANKED = (("adult-12", "nn"), ("adult-12", "hgb"), ("lending-club-18", "nn"), ("lending-club-18", "hgb"))
REDUCTIONS = (
    "Splits of 80/20, the tree grown on the records that are released. *Split as in the paper*: the model trained on "
    "40%, which are released, the guided trees grown on another 40%, 20% for testing; the methods without a guide look "
    "at the released 40%. There the paper's AG and workload-aware leave leaves as they are, so that some hold fewer "
    "than k of the released records; ours joins them.",
    "Few splits: five, three with the network, one of them with repayment data; every table above says how many.",
    "No feature selection before anonymizing; the paper selects features for all models but the network.",
    "Histogram gradient boosting stands for XGBoost; no random forest. The decision tree has at least 20 records in a "
    "leaf. The network stops early and sees at most "
    f"{MOST_CATEGORIES} categories of a column, the rarer ones as one.",
    "Lending Club of 2007 to 2011 (42,535 loans) stands for 2015 (421,095), of which no copy was found. The paper does "
    "not list its 43 columns; here the model sees the 18 quasi-identifiers and "
    f"{', '.join(LENDING_CLUB_OTHERS)}. Sums paid back so far and recoveries are left out: they give the target away. "
    "*Repayment data included* adds the interest received so far, as the paper's columns must have: it stays as it is.",
    "Full-domain generalization is not among the methods: the public hierarchies of Adult cover neither relationship "
    "nor education-num nor the capital columns, there are none for Lending Club, and hierarchies made up here would be "
    "what is compared.",
)
STYLES = {
    METHODS["ours"].title: Style("#d55e00", "circle", 2.6),
    METHODS["paper"].title: Style("#e69f00", "square", 2.2),
    METHODS["workload_aware"].title: Style("#009e73", "triangle"),
    METHODS["information_loss"].title: Style("#0072b2", "diamond"),
    METHODS["mondrian"].title: Style("#56b4e9", "circle"),
    METHODS["hilbert"].title: Style("#cc79a7", "square"),
    METHODS["rplus_tree"].title: Style("#7a7a7a", "triangle"),
    "raw records": Style("#1f2328", "", 1.2, "6 3"),
    "always the larger class": Style("#1f2328", "", 1.0, "2 3"),
}

Measure = Callable[[str, str, str, int], Any]


def _keys(n_splits: int | None = None) -> Iterator[Key]:
    """List the cells: as many splits as `SPLITS` says, or so many of each."""
    seeds = range(max(max(own.values()) for own in SPLITS.values()) if n_splits is None else n_splits)
    runs = [(seed, model, table) for seed in seeds for model in ("hgb", "dt", "nn") for table in SPLITS]
    for seed, model, table in runs:
        if model in SPLITS[table] and seed < (n_splits or SPLITS[table][model]):
            yield Key(table, model, seed, RAW, 0)
            yield from (Key(table, model, seed, method, k) for method in METHODS for k in K)
    for table in RAW_NETWORKS:
        yield from (Key(table, "nn-200", seed, RAW, 0) for seed in range(n_splits or RAW_SPLITS))
    for seed in range(n_splits or LONG_SPLITS):
        yield from (Key(*PAPER_NETWORK, seed, method, k) for method in LONG_METHODS for k in LONG_K)


def page(cells: list[Cell]) -> str:
    """Write what was compared, and every number."""
    found = Found(cells, SHOWN, K)
    lines = [
        "# Guided and classic anonymizers",
        "",
        "The comparison of the paper's Figures 2 to 5 (Goldsteen et al., *Anonymizing Machine Learning Models*): a",
        "model is trained on raw records, the records are made k-anonymous, the model is trained again and tested on",
        "raw records that it has not seen. *Ours*: guided by probabilities, a typical member for each group",
        '(`representative="model"`); what today\'s default, phantoms, changes is in [another table](adult-utility.md).',
        "*Paper's AG*: Algorithm 1 as the paper has it, that is one-hot categories, scikit-learn's tree on hard",
        "predictions with at least k",
        "records in a leaf, the member nearest the median. *Workload-aware*: the same tree on the true labels by",
        "entropy, the same member. *Information-loss* and *median Mondrian*, *Hilbert* and *R+-tree* see the",
        "quasi-identifiers alone and publish each group's medians; these four and *ours* are sfumato's own, as they",
        "come. The quasi-identifiers are those of the paper's Table 4; all other columns leave as they are.",
        "",
        "![accuracy over k for every method, table and model](classic-methods.svg)",
        "",
        "What the paper says and what held: [its page](goldsteen.md).",
        "",
        "## Our Mondrian and the paper's",
        "",
        mondrian_beside_the_papers(found),
        "",
        "## What else the numbers say",
        "",
        *(f"- {sentence}" for sentence in what_else(found)),
        "",
        "## Accuracy on raw test records",
        "",
        "Percent, mean over splits; in brackets the change against the model trained on raw records.",
        *_tables(found, SHOWN, found.accuracies.accuracy, found.accuracies.raw),
        "",
        "## Accuracy on transformed test records",
        "",
        "The same models, asked about test records that went through the same groups.",
        *_tables(found, TRANSFORMED, found.accuracies.transformed, found.accuracies.raw),
        "",
        "## Ranking of raw test records",
        "",
        "Area under the ROC curve in percent. On Lending Club accuracy says little: always answering the larger class",
        f"is right in {LARGER_CLASS['lending-club-18']:.2f}% of the cases.",
        "",
        "![area under the ROC curve over k](classic-methods-ranking.svg)",
        *_tables(found, RANKED, found.accuracies.ranking, lambda t, m: found.accuracies.ranking(t, m, RAW, 0)),
        "",
        "## How it was run",
        "",
        "`sfumato study goldsteen-figure-2` to `-5`, with `SFUMATO_DATA` set for Lending Club; `--quick` runs a few",
        "cells again beside the cached results. The cells are in `studies/results/classic_methods.jsonl`, the",
        f"means in `studies/results/classic_methods.json`. {len(cells)} cells took "
        f"{sum(cell.seconds or 0 for cell in cells) / 60:.0f} minutes of one core:",
        f"{'; '.join(sorted({str(cell.environment) for cell in cells}))}.",
        "",
        "Where it is less than the paper's comparison, or another:",
        "",
        *(f"- {reduction}" for reduction in REDUCTIONS),
    ]
    return "\n".join(lines) + "\n"


def _tables(found: Found, places: Any, measure: Measure, raw: Callable[[str, str], Any]) -> Iterator[str]:
    for table, model in places:
        baseline = raw(table, model)
        n_splits = found.accuracies.n_splits(table, model)
        yield ""
        yield (
            f"**{TITLES[table]}, {MODELS[model]}** "
            f"({'one split' if n_splits == 1 else f'{n_splits} splits'}; raw {baseline.mean():.2f}):"
        )
        yield ""
        yield f"| method | {' | '.join(f'k = {k}' for k in K)} |"
        yield f"| --- |{' ---: |' * len(K)}"
        for name, method in METHODS.items():
            values = [measure(table, model, name, k) for k in K]
            shown = [f"{v.mean():.2f} ({(v - baseline).mean():+.2f})" for v in values]
            yield f"| {method.title} | {' | '.join(shown)} |"


def charts(cells: list[Cell]) -> Mapping[str, str]:
    """Draw accuracy everywhere, and the ranking where one class is rare."""
    found = Accuracies(cells)

    def panels(places: Any, measure: Measure, *, with_larger_class: bool) -> list[Panel]:
        drawn = []
        for table, model in places:
            lines = {
                method.title: [(k, float(measure(table, model, name, k).mean())) for k in K]
                for name, method in METHODS.items()
            }
            levels = {"raw records": float(measure(table, model, RAW, 0).mean())}
            if with_larger_class:
                levels["always the larger class"] = LARGER_CLASS[table]
            short = TITLES[table].replace(" quasi-identifiers", " QI").replace(" 2007-2011", "")
            short = short.replace(" data included", " data")
            drawn.append(Panel(f"{short}: {MODELS[model].removeprefix('histogram ')}", lines, levels))
        return drawn

    of_ranking = {name: style for name, style in STYLES.items() if name != "always the larger class"}
    return {
        "classic-methods.svg": draw(
            panels(SHOWN, found.accuracy, with_larger_class=True), STYLES, columns=3,
            label="Accuracy on raw test records in percent over k, for every method, table and model",
        ),
        "classic-methods-ranking.svg": draw(
            panels(RANKED, found.ranking, with_larger_class=False), of_ranking, columns=2,
            label="Area under the ROC curve on raw test records in percent over k",
        ),
    }  # fmt: skip


def summary(cells: list[Cell]) -> list[dict[str, Any]]:
    """Return the means behind the page, one entry for every table, model, method and k."""
    found = Accuracies(cells)
    entries = []
    for table, model in SHOWN:
        for method, k in ((RAW, 0), *((method, k) for method in METHODS for k in K)):
            of_splits = found.cells(table, model, method, k)
            entry: dict[str, Any] = {"table": table, "model": model, "method": method, "k": k, "splits": len(of_splits)}
            for name in ("accuracy", "transformed", "ranking", "n_groups", "information_loss"):
                values = [getattr(cell, name) for cell in of_splits]
                entry[name] = None if None in values else round(float(np.mean(values)), 4)
            entries.append(entry)
    return entries


def documents(cells: list[Cell]) -> dict[str, str]:
    """Return the page, its drawings and the means by their path."""
    return {
        "docs/results/classic-methods.md": page(cells),
        **{f"docs/results/{name}": drawing for name, drawing in charts(cells).items()},
        "studies/results/classic_methods.json": json.dumps(summary(cells), indent=1) + "\n",
    }


EXPERIMENT = Experiment(
    name="classic_methods",
    by=BY,
    keys=tuple(key._asdict() for key in _keys()),
    paper_scale_keys=tuple(key._asdict() for key in _keys(PAPER_SCALE_SPLITS)),
    run=run,
    together=TOGETHER,
    titles=TITLES,
    views={"recoded_tests": recoded_tests},
    evidence=lambda cells: evidence(Found(as_cells(cells), SHOWN, K)),
    documents=lambda cells: documents(as_cells(cells)),
)
