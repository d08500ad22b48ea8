# SPDX-License-Identifier: Apache-2.0
"""The page of ``inference_attacks``: the paper's rows beside ours, and what stronger attackers find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from studies.inference_attacks import (
    DELTA,
    LAYERS,
    LEARNING_RATE,
    N_RECORDS,
    N_SHADOWS,
    TABLE_1,
    TABLE_2,
    Row,
)

NAMES = {"adult-12": "Adult", "lending-club-18": "Lending Club", "nursery": "Nursery"}
MODELS = {"rf": "random forest", "nn": "network", "dt": "decision tree"}
STAND_IN = "logistic regression (paper: forest)"
OF_THE_PAPER = ("random_forest", "network")


def page(cells: Mapping[str, dict[str, Any]]) -> str:
    """Return the page from the cells at hand."""
    lines = [
        "# What attackers learn from models",
        "",
        "Goldsteen et al., *Anonymizing Machine Learning Models* (2021), tables 1 and 2: the paper beside ours.",
        "Run with `sfumato study goldsteen-table-1` and `goldsteen-table-2`.",
        "",
        "## Membership (table 1)",
        "",
        "Train and test accuracy of the model; accuracy, precision and recall of the attack. Ours is the better of the",
        "paper's network and a random forest, both trained on the outputs for half of the records, half of them",
        "members. In place of the paper's private forest (Fletcher and Islam) stands a private logistic regression:",
        "the private forests that can be had answer the larger class here. A private network is trained with Opacus,",
        "which grew out of the paper's torch-dp.",
        "",
        *_without_model(cells),
        *_table(
            ["model", "protection", "train", "", "test", "", "attack", "", "precision", "", "recall", ""],
            [_membership_row(row, cells.get(row.key)) for row in TABLE_1],
            ["", "", *["paper", "ours"] * 5],
        ),
        "",
        *_models_beside_the_papers(cells),
        "## What stronger attackers find",
        "",
        f"LiRA and RMIA with {N_SHADOWS['rf']} shadow models, each the whole pipeline on a random half, protection",
        "included; for networks they would take hours. AUC, and the share of members found where 1% and 0.1% of the",
        "others are taken for members, each with its 95% interval.",
        "",
        *_table(
            ["model", "protection", "attack", "accuracy", "AUC", "at 1%", "at 0.1%", "verdict"],
            [line for row in TABLE_1 if row.key in cells for line in _strong_rows(row, cells[row.key])],
        ),
        "",
        "An attack without any power is called stronger in up to 2.5% of the verdicts, so a single such verdict among",
        "dozens is not a finding.",
        "",
        "## An attribute (table 2)",
        "",
        "`social` of Nursery, told apart as problematic or not, guessed from the other attributes, the label and a",
        "decision tree; precision and recall of *problematic*. *Without the model* is the better of the most frequent",
        "value and a forest on the other attributes and the label: an attack below it has found nothing, whatever its",
        "accuracy. *Others* are records the tree was not trained on.",
        "",
        *_table(
            ["protection", "attack", "test", "accuracy", "precision", "recall", "without the model", "others"],
            [line for row in TABLE_2 for line in _attribute_rows(row, cells.get(row.key))],
        ),
        "",
        "## What is different here",
        "",
        f"- {N_RECORDS:,} records of Adult and of Lending Club, drawn at random: the models see fewer than the",
        "  paper's, learn more of them by heart, and k is a larger share of them.",
        "- One split, half for training and half for testing; the paper does not say how it splits. Nursery: the first",
        "  of two, both of which are judged.",
        "- At k forests and trees are made with Algorithm 1 as the paper has it, networks with sfumato's own engine.",
        "- No feature selection.",
        "- Lending Club of 2007 to 2011 stands for 2015, with the columns of the other studies.",
        f"- The network has the paper's layers ({', '.join(map(str, LAYERS))}, tanh, learning rate {LEARNING_RATE:g}).",
        "  The paper does not say how long it trains; ours trains until ten epochs in a row gain nothing, 200 at most,",
        "  as scikit-learn does unless told otherwise; one seed.",
        f"- Private networks have one layer of 64 and sfumato's defaults, delta {DELTA:g}. With the paper's layers and",
        "  learning rate they answer the larger class.",
        "- Private models must be given edges: for Adult round numbers over the published ranges, for Lending Club",
        "  what follows from the meaning of the columns. Loans of 500 to 35,000 at rates up to 36%; instalments",
        "  up to 1,600 and a last payment up to 35,000, which follow from these; credit reports that reach back 120",
        "  months; all 1,000 beginnings of postcodes. Incomes up to 250,000, revolving balances up to 100,000, 50 open",
        "  and 100 accounts in all, 10 delinquencies, inquiries and public records are round numbers; what lies above",
        "  counts as that much.",
        "- The paper's attack on the tree is not described beyond its source; *confidence* and *confusion* are the two",
        "  forms of Fredrikson et al.",
        *_missing(cells),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _missing(cells: Mapping[str, Any]) -> list[str]:
    """Name the rows without a cell, and the forests whose cell has no attack with shadow models."""
    rows = {f"{_title(row)}, {row.protection}": row for row in (*TABLE_1, *TABLE_2)}
    absent = [name for name, row in rows.items() if row.key not in cells]
    weak = [
        name
        for name, row in rows.items()
        if N_SHADOWS[row.model] and row.key in cells and "lira" not in cells[row.key]["membership"]
    ]
    told = (("Not run yet", absent), ("Not run yet with the stronger attackers", weak))
    return [f"- {text}: {'; '.join(names)}." for text, names in told if names]


def _without_model(cells: Mapping[str, Any]) -> list[str]:
    """Return what accuracy costs nothing: a private model that reaches no more has learned nothing."""
    told = {NAMES[row.table]: cells[row.key]["without_model"] for row in TABLE_1 if row.key in cells}
    if not told:
        return []
    shares = ", ".join(f"{share:.2f} on {name}" for name, share in told.items())
    return [
        f"Always answering the larger class is right for {shares}: a model at that accuracy has learned nothing.",
        "",
    ]


def _models_beside_the_papers(cells: Mapping[str, Any]) -> list[str]:
    """Return by how much unprotected models are worse than the paper's, and what was tried about it."""
    from studies import classic_methods, raw_models
    from studies.rows import mean

    below = {
        f"{NAMES[row.table]}, {MODELS[row.model]}": float(row.paper[1] or 0.0) - cells[row.key]["test"]
        for row in TABLE_1
        if not row.k and not row.epsilon and row.key in cells
    }
    tried, networks = raw_models.EXPERIMENT.cells(), classic_methods.EXPERIMENT.cells()
    loans = {name: mean(tried, "test", table="lending-club-18-repaid", model=name) for name in ("rf", "hgb")}
    on_adult = {
        "the smaller network": mean(networks, "accuracy", table="adult-12", model="nn", method="raw"),
        "a forest": mean(tried, "test", table="adult-12", model="rf", leaf=5),
        "boosting": mean(networks, "accuracy", table="adult-12", model="hgb", method="raw"),
    }
    told = "; ".join(f"{name} {gap:.2f}" for name, gap in below.items() if round(gap, 2) > 0)
    reached = ", ".join(f"{name} {value / 100:.3f}" for name, value in on_adult.items())
    return [
        f"Without protection these models are right less often than the paper's: {told}.",
        f"Tried out: on Adult no model here reaches 0.89, not even from 80% of all records: {reached}.",
        "On loans the columns make the difference: with repayment data and 80% of all records a forest reaches",
        f"{loans['rf'] / 100:.3f} and boosting {loans['hgb'] / 100:.3f}.",
        "",
    ]


def _title(row: Row) -> str:
    is_stand_in = row.model == "rf" and row.epsilon
    return f"{NAMES[row.table]}, {STAND_IN if is_stand_in else MODELS[row.model]}"


def _membership_row(row: Row, cell: dict[str, Any] | None) -> list[str]:
    if cell is None:
        ours: list[Any] = [None] * 5
    else:
        attack = max((cell["membership"][name] for name in OF_THE_PAPER), key=lambda result: result["rate"])
        details = attack["details"]
        ours = [cell["train"], cell["test"], attack["rate"], details["precision"], details["recall"]]
    numbers = [_number(value) for pair in zip(row.paper, ours, strict=True) for value in pair]
    return [_title(row), row.protection, *numbers]


def _strong_rows(row: Row, cell: dict[str, Any]) -> list[list[str]]:
    lines = []
    for name, result in cell["membership"].items():
        details = result["details"]
        if "true_positives_at" not in details:
            continue
        low, high = details["auc_interval"]
        found = details["true_positives_at"]
        lines.append(
            [
                _title(row),
                row.protection,
                name.replace("_", " "),
                _number(result["rate"]),
                f"{details['auc']:.3f} ({low:.3f} to {high:.3f})",
                *(_with_interval(found[share]) for share in ("0.01", "0.001")),
                result["verdict"],
            ]
        )
    return lines


def _with_interval(found: Mapping[str, Any]) -> str:
    low, high = found["interval"]
    return f"{found['rate']:.3f} ({low:.3f} to {high:.3f})"


def _attribute_rows(row: Row, cell: dict[str, Any] | None) -> list[list[str]]:
    _, test, *attack = row.paper
    lines = [[row.protection, "paper", _number(test), *map(_number, attack), "", ""]]
    for name, result in (cell or {"attribute": {}})["attribute"].items():
        details = result["details"]
        numbers = [cell["test"] if cell else None, result["rate"], details["precision"], details["recall"]]
        lines.append([row.protection, name, *map(_number, [*numbers, result["baseline"], result["control"]])])
    return lines


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]], below: Sequence[str] | None = None) -> list[str]:
    lines = [heads, ["---"] * len(heads), *([below] if below else []), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
