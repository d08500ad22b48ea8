# SPDX-License-Identifier: Apache-2.0
"""The page of ``beyond_sensitive_tables``: tables, drawings, and what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from studies.charts import Panel, Style, draw
from studies.rows import Row, has, how_it_was_run, mean, signed, table, where
from studies.summaries import interval

TABLES = {"adult": "Adult", "census": "Census-Income"}
MODELS = {"logistic": "logistic regression"}
LEARNERS = {
    ("separate", "pruned"): "separate, pruned",
    ("separate", "even"): "separate, even",
    ("separate", "learned"): "separate, learned",
    ("joint", "pruned"): "joint, pruned",
    ("joint", "even"): "joint, even",
    ("joint", "learned"): "joint, learned",
    ("sliced", "rows"): "sliced",
    ("diverse", "groups"): "guided l-diverse groups",
}
ATTACKS = {
    "definetti": "deFinetti",
    "definetti, 100 known": "deFinetti, 100 people known",
    "intersection": "intersection of tables",
    "matching": "matching of slices",
    "one value known": "one other value known",
}
PLACES = {"memory": "memory", "files": "Parquet files", "duckdb": "DuckDB", "spark": "Spark"}
N_SENSITIVE, L = (3, 4), (2, 3)
REDUCTIONS = (
    "Adult with education, occupation, marital-status and workclass, Census-Income with education, major occupation, "
    "marital status and class of worker: the first three, or all four. All other columns and the class leave as they "
    "are.",
    "Suppression: all 45,222 and 199,523 records. *Minimum*: the linear program over all combinations of values, which "
    "no design can undercut. *Greedy*: values that are too frequent lose records at random, column after column.",
    "Memory, files, DuckDB and Spark: all records of Adult, one split. What Spark's own processes took is not counted.",
    "Attacks: 12,000 records of each table. deFinetti learns all tables at once; with 100 people known it also knows "
    "all their values. *Intersection*: pairs of sensitive values are known from the other half of the people. *One "
    "other value known*: the worst of the other columns. Of sliced tables the true bucket is known to deFinetti.",
    "Learning: two splits, 4,800 training and 10,000 raw test records; one-hot coding. C of the logistic regression "
    "(0.03, 0.3, 3) is chosen by 3 folds inside what the learner may see: raw records, identifying columns, sliced "
    "rows, or anatomized tables. Other models, with one sensitive column: [here](beyond-anatomy.md).",
    "*Guided l-diverse groups*: k = 10 and entropy l-diversity of each sensitive column, groups guided by the model "
    "trained on raw records; the other columns are generalized, the sensitive ones stay. l = 2 only.",
    "*Even* and *learned* train on all candidates, at most 9 drawn per record, weighted evenly or by what all groups "
    "show.",
)


def page(rows: list[Row]) -> str:
    """Write the tables and what they say."""
    lines = [
        "# Several sensitive columns: a table each, one for all, or slices",
        "",
        "Mancuhan and Clifton leave several sensitive attributes to future work. *Separate*: a sensitive table with",
        "its own groups for every column. *Joint*: one table, one row per record. *Sliced*: column groups shuffled",
        "within buckets (Li et al. 2012), every sensitive column a group of its own.",
        "",
        "![attacks and errors](beyond-sensitive-tables.svg)",
        "",
        "## What was found",
        "",
        *(
            f"- {sentence}"
            for part in ("suppression", "places", "attacks", "learning")
            for sentence in findings_on(part)(rows)
        ),
        "",
        "## What is suppressed",
        *_suppressed(where(rows, part="suppression")),
        "## What attackers guess",
        "",
        "Mean share of records over the sensitive columns whose value is guessed right, in %; in brackets the lowest",
        "and the highest column. The group alone gives 1 in l.",
        *_attacked(where(rows, part="attacks")),
        "### Column by column",
        "",
        "Share of right guesses in % with its 95% CI (of the first seed), baseline and control.",
        *_attacked_columns([row for row in where(rows, part="attacks") if row["seed"] == 0]),
        "## What is learned",
        "",
        "Error in % on raw test records; in brackets the change against raw training records.",
        *_learned(where(rows, part="learning")),
    ]
    studies = (
        "beyond-several-sensitive-columns",
        "beyond-attacks-on-all-tables",
        "beyond-learning-from-tables",
    )
    lines += how_it_was_run(rows, "beyond-sensitive-tables", REDUCTIONS, studies)
    return "\n".join(lines) + "\n"


def _suppressed(rows: list[Row]) -> list[str]:
    body = []
    for name, title in TABLES.items():
        for n in N_SENSITIVE:
            for length in L:
                own = where(rows, table=name, n_sensitive=n, l=length)
                n_records = mean(own, "n_records")
                shares = [100 * mean(own, what) / n_records for what in ("n_minimum", "n_greedy")]
                ours = 100 * (1 - mean(own, "n_kept") / n_records)
                joint = where(own, design="joint")
                n_groups, most = mean_of(joint, "n_groups"), mean(joint, "n_kept") // length
                body.append([
                    title, str(n), str(length), *(f"{share:.2f}" for share in (shares[0], ours, shares[1])),
                    f"{mean(own, 'n_kept', design='separate') // length:,.0f}", f"{n_groups:,.0f} of {most:,.0f}",
                    f"{mean(joint, 'largest_group'):,.0f}",
                ])  # fmt: skip
    header = ["table", "columns", "l", "minimum, %", "suppressed, %", "greedy, %", "groups of each column",
              "joint groups", "largest joint group"]  # fmt: skip
    return table(header, body, n_words=1)


def _errors(rows: list[Row], n: int, length: int) -> dict[str, float | None]:
    """Return the errors of all learners; None where one was not run."""
    found: dict[str, float | None] = {}
    for (design, learner), words in LEARNERS.items():
        at = {"n_sensitive": n, "l": length, "design": design, "learner": learner}
        found[words] = mean(rows, "error", **at) if has(rows, **at) else None
    return found


def mean_of(rows: list[Row], name: str) -> float:
    """Return the mean of a result that has an entry per sensitive table."""
    return float(np.mean([np.mean(row[name]) for row in rows]))


def _rates(rows: list[Row], attack: str) -> list[float]:
    """Return the mean rate of an attack on each column, over splits; empty where it was not run."""
    names = [name for name in rows[0]["attacks"] if attack in rows[0]["attacks"][name]] if rows else []
    return [float(np.mean([row["attacks"][name][attack]["rate"] for row in rows])) for name in names]


def _attacked(rows: list[Row]) -> list[str]:
    body = []
    for name, title in TABLES.items():
        for n in N_SENSITIVE:
            for length in L:
                for design in ("separate", "joint", "sliced"):
                    own = where(rows, table=name, n_sensitive=n, l=length, design=design)
                    shown = []
                    for attack in ATTACKS:
                        rates = [100 * rate for rate in _rates(own, attack)]
                        shown.append(f"{np.mean(rates):.1f} ({min(rates):.0f} to {max(rates):.0f})" if rates else "")
                    body.append([title, str(n), str(length), design, *shown])
    return table(["table", "columns", "l", "design", *ATTACKS.values()], body, n_words=4)


def _attacked_columns(rows: list[Row]) -> list[str]:
    body = []
    for row in rows:
        for column, attacks in row["attacks"].items():
            for attack, told in attacks.items():
                low, high = (100 * end for end in told["interval"])
                body.append([
                    TABLES[row["table"]], str(row["n_sensitive"]), str(row["l"]), row["design"], column,
                    ATTACKS[attack], f"{100 * told['rate']:.1f} [{low:.1f}, {high:.1f}]",
                    f"{100 * told['baseline']:.1f}", f"{100 * told['control']:.1f}",
                ])  # fmt: skip
    header = ["table", "columns", "l", "design", "column", "attack", "guessed right", "baseline", "control"]
    return table(header, body, n_words=6)


def _learned(rows: list[Row]) -> list[str]:
    body = []
    for name, title in TABLES.items():
        for model, words in MODELS.items():
            own = where(rows, table=name, model=model)
            raw = mean(own, "error", learner="original")
            for n in N_SENSITIVE:
                without = mean(own, "error", learner="identifying", n_sensitive=n)
                for length in L:
                    errors = _errors(own, n, length).values()
                    body.append([
                        title, words, str(n), str(length), f"{raw:.2f}",
                        *("" if e is None else f"{e:.2f} ({signed(e - raw)})" for e in (without, *errors)),
                    ])  # fmt: skip
    header = ["table", "classifier", "columns", "l", "raw", "without them", *LEARNERS.values()]
    return table(header, body, n_words=4)


# -- in words ----------------------------------------------------------------------------------------------------------


def findings_on(part: str) -> Callable[[list[Row]], Iterator[str]]:
    """Return what says the conclusions of a part in words."""

    def findings(rows: list[Row]) -> Iterator[str]:
        own = where(rows, part=part)
        if own:
            yield from {"suppression": _on_suppression, "places": _on_places, "attacks": _on_attacks,
                        "learning": _on_learning}[part](own)  # fmt: skip

    return findings


def _on_suppression(rows: list[Row]) -> Iterator[str]:
    beyond = max(row["n_records"] - row["n_kept"] - row["n_minimum"] for row in rows)
    yield (
        f"Both designs suppress the minimum, up to rounding: at most {beyond:.1f} records more. The greedy rule "
        f"suppresses up to {100 * max((r['n_greedy'] - r['n_minimum']) / r['n_records'] for r in rows):.1f}% more."
    )
    four = where(rows, table="adult", n_sensitive=4, l=3)
    if four:
        share = 100 * (1 - mean(four, "n_kept") / mean(four, "n_records"))
        yield (
            f"Adult, four columns, l = 3: {share:.1f}% suppressed, minimum "
            f"{100 * mean(four, 'n_minimum') / mean(four, 'n_records'):.1f}%, greedy "
            f"{100 * mean(four, 'n_greedy') / mean(four, 'n_records'):.1f}%."
        )
    joint = where(rows, design="joint")
    shares = [sum(row["n_groups"]) / (row["n_kept"] // row["l"]) for row in joint]
    largest = max(row["largest_group"] / row["n_kept"] for row in joint)
    yield (
        f"Joint groups: {100 * min(shares):.0f} to {100 * max(shares):.0f}% of the most that l allows; the largest has "
        f"{100 * largest:.1f}% of the records."
    )
    reached = min(value - row["l"] for row in rows for value in row["diversity"].values())
    yield f"l holds in every column of all {len(rows)} releases (least l beyond what was asked for: {reached:g})."


def _on_places(rows: list[Row]) -> Iterator[str]:
    parts = []
    for place, words in PLACES.items():
        own = where(rows, learner=place)
        if own:
            least = min(value for row in own for value in row["diversity"].values())
            kept = {row["n_kept"] for row in own}
            parts.append(f"{words} {least:g} ({', '.join(f'{n:,}' for n in sorted(kept))} records)")
    yield f"Least l of any column, four columns of Adult with l = 3, separate and joint: {'; '.join(parts)}."


def _on_attacks(rows: list[Row]) -> Iterator[str]:
    for attack, words in ATTACKS.items():
        parts = []
        for design in ("separate", "joint", "sliced"):
            gains = [
                100 * (told[attack]["rate"] - told[attack]["baseline"])
                for row in where(rows, design=design)
                for told in row["attacks"].values()
                if attack in told
            ]
            if gains:
                parts.append(f"{design} {np.mean(gains):+.1f} (most {max(gains):+.1f})")
        yield f"{words[0].upper()}{words[1:]}, mean points above the baseline: {', '.join(parts)}."
    worst = [
        told["matching"]["worst_chance"] * row["l"]
        for row in where(rows, design="sliced")
        for told in row["attacks"].values()
    ]
    if worst:
        yield (
            f"l-diverse slicing by its definition, person by person: the highest chance of a value is {max(worst):.3f} "
            "times 1/l in all sliced tables."
        )


def _on_learning(rows: list[Row]) -> Iterator[str]:
    costs: dict[str, list[float]] = {}
    better: dict[str, list[bool]] = {}
    for name in TABLES:
        for model in MODELS:
            own = where(rows, table=name, model=model)
            raw = mean(own, "error", learner="original")
            for n in N_SENSITIVE:
                without = mean(own, "error", learner="identifying", n_sensitive=n)
                costs.setdefault("without the sensitive columns", []).append(without - raw)
                for length in L:
                    for words, error in _errors(own, n, length).items():
                        if error is None:
                            continue
                        costs.setdefault(words, []).append(error - raw)
                        better.setdefault(words, []).append(error < without)
    for words, values in costs.items():
        note = ""
        if words in better:
            note = f"; better than without the sensitive columns in {sum(better[words])} of {len(values)} rows"
        yield (
            f"Error, {words}: {signed(float(np.mean(values)))} points against raw records on average (from "
            f"{signed(min(values))} to {signed(max(values))}){note}."
        )
    for design in ("separate", "joint"):
        for learner in ("even", "learned"):
            beside = np.array(costs[f"{design}, {learner}"]) - np.array(costs[f"{design}, pruned"])
            low, high = interval(beside)
            yield (
                f"Beside pruning, {design} tables, {learner} weights: {signed(float(beside.mean()))} points of error, "
                f"95% CI over the {len(beside)} rows [{signed(low)}, {signed(high)}]."
            )


# -- drawings ----------------------------------------------------------------------------------------------------------

STYLES = {
    "separate, learned": Style("#0072b2", "square", 2.2),
    "joint, learned": Style("#d55e00", "circle", 2.2),
    "separate, pruned": Style("#0072b2", "square", 1.2, "2 3"),
    "joint, pruned": Style("#d55e00", "circle", 1.2, "2 3"),
    "sliced": Style("#009e73", "diamond", 1.6),
    "raw records": Style("#1f2328", "", 1.2, "6 3"),
    "without the sensitive columns": Style("#7a7a7a", "", 1.2, "2 3"),
}


def charts(rows: list[Row]) -> dict[str, str]:
    """Draw the errors of both tables over l."""
    own = where(rows, part="learning")
    if not own:
        return {}
    panels = []
    for name, title in TABLES.items():
        for n in N_SENSITIVE:
            for model, words in MODELS.items():
                of_model = where(own, table=name, model=model)
                lines: dict[str, Any] = {
                    words_of: [
                        (length, mean(of_model, "error", n_sensitive=n, l=length, design=design, learner=learner))
                        for length in L
                    ]
                    for (design, learner), words_of in LEARNERS.items()
                    if words_of in STYLES
                }
                levels = {
                    "raw records": mean(of_model, "error", learner="original"),
                    "without the sensitive columns": mean(of_model, "error", learner="identifying", n_sensitive=n),
                }
                panels.append(Panel(f"{title}, {n} columns: {words}", lines, levels, axis="l"))
    label = "Error in percent over l for every design and learner"
    return {"beyond-sensitive-tables.svg": draw(panels, STYLES, columns=4, label=label)}
