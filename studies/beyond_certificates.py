# SPDX-License-Identifier: Apache-2.0
"""Does the bound on any attacker hold, how close is it, and does every attack stay below it?

Three parts: laws whose best attacker is known, with 2,000 samples each; the bound beside others that are in use; and
attacks on real generalizations beside certificates from people whom neither has seen.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.charts import Panel, Style, draw
from studies.rows import Row, documents, found, how_it_was_run, one_by_one, table, where
from studies.runner import Experiment

RUNS, ERROR = 2_000, 0.05
#: Cells, values of the secret, records, how the cells' masses and the secret's chances are drawn.
LAWS = {
    f"{cells:,} cell{'' if cells == 1 else 's'}, {values} values, {kind}": (cells, values, records, kind)
    for cells, values, records, kind in (
        (1, 2, 300, "fair"), (1, 50, 2_000, "skewed"),
        (2, 2, 300, "fair"), (2, 2, 300, "skewed"), (2, 5, 500, "sure"),
        (10, 2, 500, "fair"), (10, 2, 500, "skewed"), (10, 2, 2_000, "unrelated"), (10, 3, 500, "sure"),
        (10, 5, 1_000, "skewed"), (10, 20, 2_000, "fair"), (10, 50, 5_000, "skewed"),
        (100, 2, 1_000, "fair"), (100, 2, 5_000, "skewed"), (100, 2, 5_000, "unrelated"), (100, 5, 2_000, "sure"),
        (100, 5, 500, "skewed"), (100, 20, 5_000, "unrelated"), (100, 50, 5_000, "fair"),
        (1_000, 2, 1_000, "fair"), (1_000, 2, 5_000, "sure"), (1_000, 5, 5_000, "skewed"),
        (1_000, 20, 2_000, "unrelated"), (1_000, 50, 5_000, "skewed"),
    )
}  # fmt: skip
BOUNDS = ("certificate", "L1", "per cell", "two samples")
MEANINGS = {
    "certificate": "the certificate",
    "L1": "L1 distance (Weissman et al. 2003)",
    "per cell": "Clopper-Pearson per cell, union",
    "two samples": "per cell on one half, mean on the other (FARE's way)",
}
KINDS = {
    "upper": "upper end",
    "advantage": "advantage",
    "balanced": "balanced bound",
    "cells": "bound on every cell",
    "lower": "lower end",
}
GROWTH = (10, 30, 100, 300, 1_000, 3_000, 10_000)
N_GROWTH, TRUTH, N_DRAWS = 100_000, 0.54, 20
TABLES = {
    "Adult": ("sex", "race", "marital-status", "occupation"),
    "ACSEmployment": ("SEX", "RAC1P", "MAR", "DIS"),
}
MADE = {"PAT, 20 leaves, alpha 0.5": ("tree", 20), "Uniform, 3 buckets": ("uniform", 3)}
PARTS = (5_000, 12_000, 5_000, 10_000)
"""Records for the generalization, and for the attacker to learn, tune and attack; the certificate has the rest."""
ATTACKS = ("A1", "A3", "A4", "A5", "A6")
REDUCTIONS = (
    f"Laws: {len(LAWS)}, each with {RUNS:,} samples, at 95% confidence. Each bound may then fail in 5% of the samples.",
    "Competing bounds are at their best: the masses of cells are taken as observed in the union over cells, and its "
    "error is divided by the number of cells alone.",
    "Attackers: counting and gradient boosting, no network. Attributes: four of each table.",
    "A2 counts the surest guesses only, A7 links records and A8 isolates people: none of them is a share of right "
    "guesses over all people, which is what the bound is about.",
)  # fmt: skip


def keys() -> Iterator[Row]:
    """List the cells."""
    for name in LAWS:
        yield {"part": "law", "name": name, "seed": 0}
    for cells in GROWTH:
        yield {"part": "growth", "name": str(cells), "seed": 0}
    for data in TABLES:
        for made in MADE:
            yield {"part": "attacks", "name": f"{data}: {made}", "seed": 0}
    yield {"part": "time", "name": "ACSEmployment", "seed": 0}


def run(key: Mapping[str, Any], paper_scale: bool = False) -> Row:
    """Run one cell; `runs` and `shrink` in the key, where they are given, are for trying out."""
    if key["part"] == "law":
        return simulate(key["name"], key.get("runs", RUNS))
    if key["part"] == "growth":
        return compare_bounds(int(key["name"]), key.get("runs", N_DRAWS))
    if key["part"] == "time":
        return time_many_secrets(key.get("shrink", 1))
    data, made = key["name"].split(": ")
    return attack_and_certify(data, made, key.get("shrink", 1))


# -- laws whose best attacker is known -----------------------------------------------------------------------------


def joint_law(name: str) -> NDArray[np.float64]:
    """Return the chances of every cell and value."""
    cells, values, _, kind = LAWS[name]
    draw = np.random.default_rng([cells, values, len(kind)])
    masses = draw.dirichlet(np.full(cells, 0.3 if kind == "skewed" else 5.0))
    if kind == "unrelated":
        chances = np.tile(draw.dirichlet(np.ones(values)), (cells, 1))
    elif kind == "sure":
        chances = np.full((cells, values), 0.03 / (values - 1))
        chances[np.arange(cells), draw.integers(0, values, cells)] = 0.97
    else:
        chances = draw.dirichlet(np.full(values, 0.3 if kind == "skewed" else 3.0), cells)
    return masses[:, None] * chances


def simulate(name: str, runs: int) -> Row:
    """Count how often each kind of bound fails, and average the bounds."""
    from sfumato.certificates.bounds import count_cells
    from sfumato.certificates.certifying import _bound
    from sfumato.certificates.secret_values import CategorySecret

    law, n = joint_law(name), LAWS[name][2]
    n_cells, n_values = law.shape
    best, most_frequent = law.max(axis=1).sum(), law.sum(axis=0).max()
    of_cell = law.sum(axis=1)
    in_cell = law.max(axis=1) / np.maximum(of_cell, 1e-300)
    draw = np.random.default_rng([n_cells, n_values, n, len(LAWS[name][3])])
    failed, uppers = dict.fromkeys(KINDS, 0), dict.fromkeys(BOUNDS, 0.0)
    for _ in range(runs):
        pairs = draw.permutation(np.repeat(np.arange(law.size), draw.multinomial(n, law.ravel())))
        cells, values = pairs // n_values, pairs % n_values
        bound = _bound(CategorySecret("s", values), cells, n_cells, ERROR, 0.9)
        counts = count_cells(cells, n_cells, values)
        failed["upper"] += bound.upper < best
        failed["lower"] += bound.lower > best
        failed["advantage"] += bound.advantage < best - most_frequent
        failed["cells"] += _some_cell_fails(counts, in_cell)
        seen = counts.of_value > 0
        conditional = law[:, : len(seen)][:, seen] / law[:, : len(seen)][:, seen].sum(axis=0)
        assert bound.balanced is not None
        failed["balanced"] += bound.balanced.upper < conditional.max(axis=1).sum() / seen.sum()
        for other, value in other_bounds(cells, values, n_cells, n_values).items():
            uppers[other] += value / runs
        uppers["certificate"] += bound.upper / runs
    return {
        "truth": _rounded(best), "baseline": _rounded(most_frequent), "n_records": n, "runs": runs,
        "failed": {kind: int(count) for kind, count in failed.items()},
        "bounds": {name: _rounded(value) for name, value in uppers.items()},
    }  # fmt: skip


def _some_cell_fails(counts: Any, in_cell: NDArray[np.float64]) -> bool:
    from sfumato.certificates.bounds import cell_bounds

    return bool((cell_bounds(counts, ERROR) < in_cell[counts.of_cell > 0] - 1e-12).any())


def other_bounds(cells: NDArray[np.int64], values: NDArray[np.int64], n_cells: int, n_values: int) -> dict[str, float]:
    """Return the bounds that are in use elsewhere, of the same sample."""
    from sfumato.certificates.bounds import cell_bounds, count_cells

    n = len(cells)
    counts = count_cells(cells, n_cells, values)
    # P(|p - p'|_1 >= e) <= (2^m - 2) exp(-n e^2 / 2) for m outcomes; half of the distance can be gained.
    m = n_cells * n_values
    distance = math.sqrt(2 * (m * math.log(2) - math.log(ERROR)) / n)
    there = counts.of_cell > 0
    per_cell = float(counts.of_cell[there] @ cell_bounds(counts, ERROR)) / n
    half = n // 2
    first = count_cells(cells[:half], n_cells, values[:half])
    upper = np.ones(n_cells)
    upper[first.of_cell > 0] = cell_bounds(first, ERROR / 2)
    mean = float(upper[cells[half:]].mean()) + math.sqrt(math.log(2 / ERROR) / (2 * (n - half)))
    found = {"L1": counts.hits / n + distance / 2, "per cell": per_cell, "two samples": mean}
    return {name: min(1.0, value) for name, value in found.items()}


def compare_bounds(n_cells: int, draws: int) -> Row:
    """Average the bounds on a secret with two values that is guessed right with 0.54, over many cells."""
    from sfumato.certificates.bounds import best_attacker_upper

    draw = np.random.default_rng(n_cells)
    total = dict.fromkeys(BOUNDS, 0.0)
    for _ in range(draws):
        cells = draw.integers(0, n_cells, N_GROWTH)
        values = ((draw.random(N_GROWTH) < TRUTH) ^ (cells % 2 == 0)).astype(np.int64)
        found = other_bounds(cells, values, n_cells, 2)
        found["certificate"] = best_attacker_upper(cells, n_cells, values, ERROR)
        for name, value in found.items():
            total[name] += value / draws
    return {"n_records": N_GROWTH, "runs": draws, "bounds": {name: _rounded(value) for name, value in total.items()}}


def _rounded(value: float) -> float:
    return round(float(value), 4)


# -- attacks on real generalizations -------------------------------------------------------------------------------


def people(data: str) -> tuple[Any, Any]:
    """Return the records of a table and their classes."""
    if data == "Adult":
        from studies.tables import load

        adult = load("adult-12")
        return adult.X.astype(dict.fromkeys(categories_of(adult.X), str)), adult.y
    from studies.minimization_tasks import load_task

    task = load_task("acs_employment")
    return task.X.astype(dict.fromkeys(task.categorical, str)), task.y


def categories_of(records: Any) -> list[str]:
    """Return the columns that are not numbers."""
    from pandas.api.types import is_numeric_dtype

    return [name for name in records.columns if not is_numeric_dtype(records[name])]


def attack_and_certify(data: str, made: str, shrink: int) -> Row:
    """Attack a generalization, and certify it with people whom neither it nor the attacker has seen."""
    from sfumato import attack, certify
    from sfumato.attack.samples import samples_for

    X, y = people(data)
    y = np.asarray(y)
    order = np.random.default_rng(0).permutation(len(X))
    ends = np.cumsum(PARTS) // shrink
    fitted, *parts, rest = (X.iloc[rows] for rows in np.split(order, ends))
    first = make(made, fitted, y[order[: ends[0]]], TABLES[data])
    second = make("Uniform, 3 buckets", fitted, y[order[: ends[0]]], TABLES[data])
    settings = attack.FamilySettings(adversaries=("table", "boosting"), n_jobs=1)
    found = attack.attack_generalization(
        first, samples_for(first, *parts), list(TABLES[data]),
        attacks=ATTACKS, other_breaches=[second], settings=settings,
    )  # fmt: skip
    others = [name for name in first.names if name not in TABLES[data]]
    rows = []
    for attack_name, result in found.items():
        for place, secret in enumerate(TABLES[data]):
            known = {"A3": others, "A4": [n for n in first.names if n != secret]}.get(attack_name, [])
            known = [*others, *TABLES[data][:place]] if attack_name == "A5" else known
            encoder = both(first, second) if attack_name == "A6" else first
            bound = certify(encoder, rest, secrets=[secret], known=known, confidence=1 - ERROR / len(TABLES[data]))[
                secret
            ]
            own = result.details["attributes"][secret]
            rows.append(
                {
                    "attack": attack_name, "secret": secret, "rate": _rounded(own["rate"]),
                    "interval": [_rounded(end) for end in own["interval"]], "lower": _rounded(bound.lower),
                    "upper": _rounded(bound.upper), "baseline": _rounded(bound.baseline), "cells": bound.n_cells,
                }
            )  # fmt: skip
    return {"n_records": len(rest), "attacked": rows}


def make(made: str, records: Any, y: Any, personal: tuple[str, ...]) -> Any:
    """Learn a generalization."""
    from sfumato import PrivacyAwareTree, UniformMinimizer

    kind, size = MADE[made]
    common: dict[str, Any] = {"personal": list(personal), "categorical_features": categories_of(records), "n_jobs": 1}
    minimizer = PrivacyAwareTree(0.5, size, **common) if kind == "tree" else UniformMinimizer(size, **common)
    return minimizer.fit(records, y).generalization_


def both(first: Any, second: Any) -> Any:
    """Return the encoder of people who were breached under two generalizations."""
    return lambda records: np.hstack([first.codes(records), second.codes(records)])


def time_many_secrets(shrink: int) -> Row:
    """Time the certificate of 14 attributes once the codes of the records exist."""
    from sfumato import certify

    X, y = people("ACSEmployment")
    chosen = np.random.default_rng(0).permutation(len(X))
    n_fitted = PARTS[0] // shrink
    fitted = make("PAT, 20 leaves, alpha 0.5", X.iloc[chosen[:n_fitted]], np.asarray(y)[chosen[:n_fitted]], ("SEX",))
    rest = X.iloc[chosen[n_fitted:] if shrink == 1 else chosen[n_fitted : 10 * n_fitted]]
    codes = fitted.codes(rest)
    secrets = list(X.columns)[-14:]
    certify(lambda _: codes, rest, secrets=secrets)  # compiles and reads once
    started = time.perf_counter()
    certify(lambda _: codes, rest, secrets=secrets)
    return {"n_records": len(rest), "n_secrets": len(secrets), "wall": round(time.perf_counter() - started, 2)}


# -- the page ------------------------------------------------------------------------------------------------------


def page(rows: list[Row]) -> str:
    """Write the tables and what they say."""
    laws = where(rows, part="law")
    lines = [
        "# A bound on any attacker",
        "",
        "[Certificates](../certificates.md) bound how often any attacker guesses a secret right. Three questions: do "
        "the bounds fail as rarely as they say, how close are they, and do attacks stay below them?",
        "",
        "![mean bounds over the number of cells](beyond-certificates.svg)",
        "",
        "## What was found",
        "",
        *(f"- {sentence}" for sentence in findings(rows)),
        "",
        "## Laws with a known best attacker",
        "",
        f"Samples of {RUNS:,} in which a bound failed, in percent; 5 are allowed. *fair*, *skewed*: chances drawn "
        "evenly, or mostly small. *sure*: one value has 97% of each cell. *unrelated*: cells say nothing of "
        "the secret.",
        *table(["law", "records", *KINDS.values()], [_failures(row) for row in laws]),
        "Mean upper ends of the same samples beside the truth.",
        *table(
            ["law", "truth", *MEANINGS.values()],
            [[row["name"], f"{row['truth']:.3f}", *(f"{row['bounds'][name]:.3f}" for name in BOUNDS)] for row in laws],
        ),
        "## Attacks beside certificates",
        "",
        "Rates of attack on 10,000 people, and the certificate of what such an attacker sees, from others.",
    ]
    for row in where(rows, part="attacks"):
        shown = [
            [
                f"{one['attack']}, {one['secret']}", f"{one['cells']:,}", f"{one['baseline']:.3f}",
                f"{one['rate']:.3f} [{one['interval'][0]:.3f}, {one['interval'][1]:.3f}]", f"{one['upper']:.3f}",
            ]
            for one in row["attacked"]
        ]  # fmt: skip
        header = ["attack and secret", "cells", "without cells", "rate, 95% CI", "any attacker, at most"]
        lines += ["", f"**{row['name']}** ({row['n_records']:,} people for the certificate)", *table(header, shown)]
    lines += how_it_was_run(rows, "beyond-certificates", REDUCTIONS)
    return "\n".join(lines) + "\n"


def _failures(row: Row) -> list[str]:
    return [row["name"], f"{row['n_records']:,}", *(f"{100 * row['failed'][kind] / row['runs']:.1f}" for kind in KINDS)]


def findings(rows: list[Row]) -> Iterator[str]:
    """Return the conclusions in words."""
    laws = where(rows, part="law")
    worst = {kind: max(laws, key=lambda row: row["failed"][kind] / row["runs"]) for kind in KINDS}
    limit = ERROR + 2.5 * math.sqrt(ERROR * (1 - ERROR) / RUNS)
    for kind, row in worst.items():
        share = row["failed"][kind] / row["runs"]
        is_within = "within" if share <= limit else "beyond"
        yield (
            f"The {KINDS[kind]} fails most often for {row['name']}: in {share:.1%} of the samples, {is_within} what 5% "
            f"allow ({limit:.1%} for the largest of {len(laws)} laws)."
        )
    wide = where(rows, part="growth")[-3]["bounds"] if len(where(rows, part="growth")) > 2 else None
    if wide is not None:
        said = ", ".join(f"{MEANINGS[name]} {wide[name]:.3f}" for name in BOUNDS)
        cells = int(where(rows, part="growth")[-3]["name"])
        yield f"A coin of {TRUTH} in {cells:,} cells, {N_GROWTH:,} records: {said}."
    closest = sum(min(row["bounds"], key=lambda name: row["bounds"][name]) == "certificate" for row in laws)
    yield f"The certificate is the smallest of the four bounds for {closest} of {len(laws)} laws."
    attacked = [one for row in where(rows, part="attacks") for one in row["attacked"]]
    above = sum(one["interval"][0] > one["upper"] for one in attacked)
    yield f"Of {len(attacked)} attacks on single attributes, {above} lie above their certificate, interval and all."
    near = [one["upper"] - one["rate"] for one in attacked if one["attack"] == "A1"]
    if near:
        yield f"A1 stays {min(near):.3f} to {max(near):.3f} below its certificate."
    for row in where(rows, part="time"):
        yield (
            f"{row['n_secrets']} attributes of {row['n_records']:,} people (ACSEmployment) are certified in "
            f"{row['wall']:.1f} s once their codes exist."
        )


STYLES = {
    "certificate": Style("#d55e00", "circle", 2.6),
    "L1": Style("#0072b2", "square"),
    "per cell": Style("#56b4e9", "triangle"),
    "two samples": Style("#009e73", "diamond"),
    "truth": Style("#1f2328", "", 1.2, "6 3"),
}


def charts(rows: list[Row]) -> dict[str, str]:
    """Draw the bounds over the number of cells."""
    own = where(rows, part="growth")
    lines = {name: [(int(row["name"]), 100 * row["bounds"][name]) for row in own] for name in BOUNDS}
    panel = Panel(
        f"a coin of {TRUTH}, {N_GROWTH:,} records: at most, in percent", lines, {"truth": 100 * TRUTH}, "cells"
    )
    label = "Upper ends in percent over the number of cells, for four bounds"
    return {"beyond-certificates.svg": draw([panel], STYLES, columns=1, label=label)}


KEYS = tuple(keys())
EXPERIMENT = Experiment(
    name="beyond_certificates",
    by=("part", "name", "seed"),
    keys=KEYS,
    run=one_by_one(run),
    together=("part", "name"),
    views={"found": found(KEYS, findings, charts)},
    documents=documents("beyond-certificates", KEYS, page, charts),
)
