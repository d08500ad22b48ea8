# SPDX-License-Identifier: Apache-2.0
"""How a group becomes a training record: LeFevre's bounds against a member of the group, and our default.

Goldsteen et al. replace LeFevre's mapping (the corners of a group's box, two columns for one) by a member, so that raw
test records can be used, and leave the comparison of the two to future work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from studies.beyond_adult import percent, raw_model, split
from studies.charts import Panel, Style, draw
from studies.models import MODELS
from studies.rows import Row, documents, found, how_it_was_run, mean, n_splits, one_by_one, signed, table, where
from studies.runner import Experiment

TREES = {"ours": "the tree guided by probabilities (ours)", "workload_aware": "the tree on true labels (LeFevre)"}
REPRESENTATIVES = {"model": "our default", "member": "member", "median": "median", "bounds": "bounds"}
SHOWN = ("hgb", "lr")
K = (10, 100, 1000)
SEEDS = (0, 1, 2)
REDUCTIONS = (
    f"Adult with 12 quasi-identifiers, splits of 80/20, k = {', '.join(map(str, K))}.",
    "Histogram gradient boosting (ordinal codes) and logistic regression (one-hot categories, scaled numbers); no "
    "network.",
    "Bounds of categories: the first and the last in the order of their names, since Adult declares none. LeFevre et "
    "al. have an order for each; with another order the numbers would be others.",
    "Bounds need test records that went through the same groups. The other three can also be tested on raw records, "
    "which is what the paper does.",
)


def keys() -> Iterator[Row]:
    """List the cells."""
    for seed in SEEDS:
        for model in SHOWN:
            yield {"model": model, "seed": seed, "tree": "raw", "representative": "none", "k": 0}
            for tree in TREES:
                for representative in REPRESENTATIVES:
                    for k in K:
                        yield {"model": model, "seed": seed, "tree": tree, "representative": representative, "k": k}


def run(key: Mapping[str, Any], paper_scale: bool = False) -> Row:
    """Anonymize, train, and test on recoded records and, where the columns are still the same, on raw ones.

    `n_records` in the key, where there is one, limits the records: for trying out.
    """
    from sfumato import ModelGuidedAnonymizer, WorkloadAwareAnonymizer
    from studies.models import make_model

    X_train, X_test, y_train, y_test, quasi_identifiers = split(key["seed"], key.get("n_records"))
    raw = raw_model(key["model"], key["seed"], key.get("n_records"))
    if key["tree"] == "raw":
        return {"accuracy": percent(raw.score(X_test, y_test))}
    make: Any = ModelGuidedAnonymizer if key["tree"] == "ours" else WorkloadAwareAnonymizer
    kind = "tight-bounds" if key["representative"] == "bounds" else key["representative"]  # LeFevre's box of a group
    anonymizer = make(key["k"], quasi_identifiers=quasi_identifiers, representative=kind, n_jobs=1)
    released = anonymizer.fit_transform(X_train, raw.predict_proba(X_train) if key["tree"] == "ours" else y_train)
    model = make_model(key["model"], key["seed"], released).fit(released, y_train)
    found = {"transformed": percent(model.score(anonymizer.transform(X_test), y_test))}
    if key["representative"] != "bounds":
        found["accuracy"] = percent(model.score(X_test, y_test))
    return found


def page(rows: list[Row]) -> str:
    """Write the tables and what they say."""
    lines = [
        "# LeFevre's bounds against a member",
        "",
        "Asked for by Goldsteen et al. (*Anonymizing Machine Learning Models*, section 4.1): a comparison of the "
        "two ways to make features of groups. LeFevre et al. describe a group by its box, the lowest and the "
        "highest value of every quasi-identifier, so that test records have to be recoded, too; the paper takes one "
        "member. Test accuracy on Adult in percent; in brackets the change against the model trained on raw "
        "records.",
        "",
        "![accuracy over k for every representative](beyond-representatives.svg)",
        "",
        "## What was found",
        "",
        *(f"- {sentence}" for sentence in findings(rows)),
        "",
    ]
    for model in SHOWN:
        own = where(rows, model=model)
        raw = mean(own, "accuracy", tree="raw")
        for tree, title in TREES.items():
            lines += [f"## {MODELS[model].capitalize()}, {title}", "", f"Raw: {raw:.2f} ({n_splits(own)})."]
            body = []
            for representative, words in REPRESENTATIVES.items():
                shown = [words]
                for k in K:
                    for measure in ("accuracy", "transformed"):
                        if measure == "accuracy" and representative == "bounds":
                            shown.append("not possible")
                            continue
                        value = mean(own, measure, tree=tree, representative=representative, k=k)
                        shown.append(f"{value:.2f} ({signed(value - raw)})")
                body.append(shown)
            header = ["representative", *(f"k = {k}, {where_}" for k in K for where_ in ("raw test", "recoded test"))]
            lines += table(header, body)
    lines += how_it_was_run(rows, "beyond-representatives", REDUCTIONS)
    return "\n".join(lines) + "\n"


def findings(rows: list[Row]) -> Iterator[str]:
    """Return the conclusions in words."""
    for tree, title in TREES.items():
        for other, measure, words in (
            ("member", "transformed", "a member, both tested on recoded records"),
            ("member", "accuracy", "a member tested on raw records, as the paper does"),
            ("model", "transformed", "our default, both tested on recoded records"),
            ("model", "accuracy", "our default tested on raw records"),
        ):
            ahead = {
                (model, k): mean(rows, "transformed", model=model, tree=tree, representative="bounds", k=k)
                - mean(rows, measure, model=model, tree=tree, representative=other, k=k)
                for model in SHOWN
                for k in K
            }
            best, worst = max(ahead, key=lambda at: ahead[at]), min(ahead, key=lambda at: ahead[at])
            yield (
                f"With {title}, bounds (recoded test) are ahead of {words} in {sum(v > 0 for v in ahead.values())} of "
                f"{len(ahead)} rows, by {signed(sum(ahead.values()) / len(ahead))} points on average (best "
                f"{signed(ahead[best])}: {MODELS[best[0]]}, k = {best[1]}; worst {signed(ahead[worst])}: "
                f"{MODELS[worst[0]]}, k = {worst[1]})."
            )


STYLES = {
    "our default": Style("#d55e00", "circle", 2.6),
    "member": Style("#e69f00", "square", 2.0),
    "median": Style("#56b4e9", "circle"),
    "bounds, recoded test": Style("#0072b2", "diamond", 2.0),
    "our default, recoded test": Style("#d55e00", "triangle", 1.6, "5 3"),
    "raw records": Style("#1f2328", "", 1.2, "6 3"),
}


def charts(rows: list[Row]) -> dict[str, str]:
    """Draw accuracy over k."""
    panels = []
    for tree, title in TREES.items():
        for model in SHOWN:
            own = where(rows, model=model, tree=tree)
            lines = {
                words: [(k, mean(own, "accuracy", representative=representative, k=k)) for k in K]
                for representative, words in REPRESENTATIVES.items()
                if representative != "bounds"
            }
            for representative, words in (("bounds", "bounds, recoded test"), ("model", "our default, recoded test")):
                lines[words] = [(k, mean(own, "transformed", representative=representative, k=k)) for k in K]
            levels = {"raw records": mean(rows, "accuracy", model=model, tree="raw")}
            panels.append(Panel(f"{title}: {MODELS[model].removeprefix('histogram ')}", lines, levels))
    label = "Accuracy in percent over k for every representative"
    return {"beyond-representatives.svg": draw(panels, STYLES, columns=2, label=label)}


KEYS = tuple(keys())
EXPERIMENT = Experiment(
    name="beyond_representatives",
    by=("model", "seed", "tree", "representative", "k"),
    keys=KEYS,
    run=one_by_one(run),
    together=("model", "seed"),
    views={"found": found(KEYS, findings, charts)},
    documents=documents("beyond-representatives", KEYS, page, charts),
)
