# SPDX-License-Identifier: Apache-2.0
"""The sentences of ``inference_attacks``: what the paper says about its tables 1 and 2, judged by the cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from studies.claims import HELD, NOT_HELD, UNTESTED, Claim
from studies.inference_attacks import TABLE_1, TABLE_2, Row

Cells = Mapping[str, dict[str, Any]]
OF_THE_PAPER = ("random_forest", "network")
FORMS = ("confidence", "confusion")
MOST = 0.52
"""Attack accuracy, rounded as in the paper, that its k-anonymous models do not exceed."""
COMPARABLE = 0.04


def claims(cells: Cells) -> Iterator[Claim]:
    """Judge the paper's statements in its order; those whose cells are missing are untested."""
    for table, name in (("adult-12", "Adult"), ("lending-club-18", "Lending Club")):
        yield _falls(cells, table, name)
    yield _cost(cells)
    yield from _beside_privacy(cells)
    yield _attribute(cells)
    yield Claim(
        "Section 4.2: with Purchase-100 (600 columns) anonymization keeps 24% accuracy at k = 2, DP up to 42%",
        UNTESTED,
        "the data are not at hand",
    )


def rate_of(cell: Mapping[str, Any]) -> float:
    """Return the accuracy of the better of the attacks that the paper has."""
    return float(max(cell["membership"][name]["rate"] for name in OF_THE_PAPER))


def _title(row: Row) -> str:
    model = "regression for rf" if row.model == "rf" and row.epsilon else row.model
    return f"{model} {row.protection}"


def _falls(cells: Cells, table: str, name: str) -> Claim:
    text = f"Table 1: at the listed k the attack on {name} falls to {MOST:.2f} or less (the paper: 0.50 to 0.51)"
    listed = [row for row in TABLE_1 if row.table == table and row.k]
    found = [(row, cells[row.key]) for row in listed if row.key in cells]
    if not found:
        return Claim(text, UNTESTED, "not run")
    raw = {row.model: cells[row.key] for row in TABLE_1 if row.table == table and not row.k and not row.epsilon
           and row.key in cells}  # fmt: skip
    told = [f"{_title(row)} {rate_of(cell):.2f}{_from(raw.get(row.model))}" for row, cell in found]
    missing = [_title(row) for row in listed if row.key not in cells]
    holds = all(round(rate_of(cell), 2) <= MOST for _, cell in found)
    left = f"; not run: {', '.join(missing)}" if missing else ""
    return Claim(text, HELD if holds else NOT_HELD, f"{'; '.join(told)}{left}")


def _from(raw: Mapping[str, Any] | None) -> str:
    return "" if raw is None else f" (without protection {rate_of(raw):.2f})"


def _cost(cells: Cells) -> Claim:
    told = []
    for row in TABLE_1:
        bare = Row(row.table, row.model)
        if row.k and row.key in cells and bare.key in cells:
            change = cells[row.key]["test"] - cells[bare.key]["test"]
            paper = next(own.paper[1] for own in TABLE_1 if own.key == bare.key)
            told.append(f"{row.table} {_title(row)} {change:+.3f} (the paper {row.paper[1] - paper:+.2f})")
    return Claim(
        "Table 1: the attack is mostly prevented with a very low accuracy cost",
        UNTESTED,
        f"very low is not a number; change of the test accuracy: {'; '.join(told) or 'not run'}",
    )


def _beside_privacy(cells: Cells) -> Iterator[Claim]:
    for table, text, holds in (
        (
            "adult-12",
            f"Table 1: on Adult differentially private models are about as accurate (here: at most {COMPARABLE} apart, "
            "the largest distance in the paper's own rows)",
            lambda margins: max(map(abs, margins)) <= COMPARABLE,
        ),
        (
            "lending-club-18",
            "Table 1: on Loan k-anonymous models are 5 to 11 points more accurate than differentially private ones "
            "(held: at least 5)",
            lambda margins: min(margins) >= 0.05,
        ),
    ):
        told, margins = [], []
        for private in (row for row in TABLE_1 if row.epsilon and row.table == table and row.key in cells):
            rivals = [row for row in TABLE_1 if row.k and row.key in cells
                      and (row.table, row.model) == (private.table, private.model)]  # fmt: skip
            if rivals:
                best = max(rivals, key=lambda row: cells[row.key]["test"])
                margins.append(cells[best.key]["test"] - cells[private.key]["test"])
                told.append(f"{_title(private)} {-margins[-1]:+.3f} against {best.protection}")
        if margins:
            yield Claim(text, HELD if holds(margins) else NOT_HELD, f"test accuracy: {'; '.join(told)}")
        else:
            yield Claim(text, UNTESTED, "not run")


def _attribute(cells: Cells) -> Claim:
    text = (
        "Table 2: anonymization at k = 100 weakens the attack on an attribute of Nursery (the paper: 0.61 to 0.56; "
        "judged by both forms of its attack)"
    )
    if any(row.key not in cells for row in TABLE_2):
        return Claim(text, UNTESTED, "not run")
    raw, protected = (cells[row.key]["attribute"] for row in TABLE_2)
    told = "; ".join(
        f"{name} {before['rate']:.2f} to {protected[name]['rate']:.2f}, without the model {before['baseline']:.2f}"
        for name, before in raw.items()
    )
    holds = all(protected[name]["rate"] < raw[name]["rate"] for name in FORMS)
    return Claim(text, HELD if holds else NOT_HELD, told)
