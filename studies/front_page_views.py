# SPDX-License-Identifier: Apache-2.0
"""What the cells of the front page show: the README's table and picture, five tables side by side, and all numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import Any

from studies.front_page import ADULT, ATTACKS, FEW, N_SHADOWS, N_SPLITS, N_TREES, ROWS, SECRET, SHOWN, TABLES
from studies.views import View

PICTURE, PAGE = "front-page.svg", "frontier.md"
_CONFIDENCE = 0.95
#: How each family is called where tables are compared.
WAYS = {
    "none": "no protection",
    "model-100": "a model, learned from groups of 100",
    "table-100": "a table of groups of 100",
    "buckets-20": "columns collected coarsely",
    "synthetic": "a synthetic table, no promise",
    "logistic-1": "a private model, epsilon 1",
    "counts-1": "a table of noisy counts, epsilon 1",
    "release-1": "a private table, epsilon 1",
}


def frontier_of(cells: Sequence[Mapping[str, Any]], table: str, names: Sequence[str]) -> Any:
    """Return the rows of one table as a `Frontier`; None where some are missing."""
    from sfumato.report.frontier import Frontier
    from sfumato.report.frontier_row import FrontierRow

    own = {cell["protection"]: cell for cell in cells if cell["table"] == table}
    if any(name not in own for name in names):
        return None
    first = own[names[0]]
    rows = tuple(FrontierRow.from_dict(own[name]["row"]) for name in names)
    return Frontier(
        rows, "accuracy", first["blind"], first["n_train"], first["n_test"], N_SPLITS, _CONFIDENCE, 0, ROWS["none"]
    )


def complete(cells: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Yield every table of which all rows are there, with its frontier."""
    for table in TABLES:
        found = frontier_of(cells, table, list(ROWS) if table == ADULT else FEW)
        if found is not None:
            yield table, found


# -- the README ----------------------------------------------------------------------------------------------


def introduction(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is said over the table of the README."""
    shown = frontier_of(cells, ADULT, SHOWN)
    if shown is None:
        return ["Not run yet."]
    n_attacks = len({"threshold", "lira", "rmia"}.intersection(ATTACKS))
    said = (
        f"A random forest on Adult: 12 columns, all quasi-identifiers, {shown.n_train:,} records to train with and "
        f"{shown.n_test:,} to test on; mean of {shown.n_splits} splits with 95% CI. *Member*: how often an attacker "
        f"says correctly who was in the data, from the model (strongest of {n_attacks} attacks, {N_SHADOWS} shadow "
        "models) or from the table that is shared, if one is; guessing is right in 50% of the cases. *Singled out*: "
        "how many of the descriptions that one can read off the table fit exactly one person. *At most* holds for "
        "every attacker: about who was in the data, by differential privacy (delta 1e-6), or about a person's "
        "occupation, by a [certificate](docs/certificates.md) for those who see the cell alone. Models for raw records "
        "learn from tables of groups as they are, and from tables with epsilon by regions. Always answering the larger "
        f"class is right in {shown.blind:.1%} of the cases."
    )
    return [*wrap(said, 128), "", f"![accuracy and attacks of every protection](docs/results/{PICTURE})"]


def table_lines(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the table of the README: one line per protection."""
    found = frontier_of(cells, ADULT, SHOWN)
    if found is None:
        return []
    lines = [
        "| protection | accuracy, % | AUC, % | member, by the model, % | member, by the table, % | singled out, % | "
        "any attacker at most, % |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in found.rows:
        cells_of = [row.name, _accuracy(row), _mean(row.auc)]
        cells_of += [_member(row, on) for on in ("model", "table")]
        lines.append(f"| {' | '.join([*cells_of, _rate(row.strongest('singling out')), _at_most(row)])} |")
    return lines


def _accuracy(row: Any) -> str:
    recoded = "" if row.recoded is None else f"; recoded {100 * row.recoded.value:.1f}"
    return f"{_with_interval(row.utility)}{recoded}"


def _with_interval(number: Any) -> str:
    if number is None:
        return ""
    low, high = number.interval
    return f"{100 * number.value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def _mean(number: Any) -> str:
    return "" if number is None else f"{100 * number.value:.1f}"


def _rate(attack: Any) -> str:
    return "" if attack is None else f"{100 * attack.rate.value:.1f}"


def _member(row: Any, on: str) -> str:
    """Return how often the best attack is right, which need not be the one that is furthest above its control."""
    rates = [one.rate.value for one in row.attacks if (one.goal, one.on) == ("membership", on)]
    return f"{100 * max(rates):.1f}" if rates else ""


def _at_most(row: Any) -> str:
    if row.limit is not None:
        return f"{100 * row.limit:.1f}"
    return "" if row.certificate is None else f"{row.certificate.secret} {100 * row.certificate.upper:.1f}"


# -- five tables ---------------------------------------------------------------------------------------------


def tables_side_by_side(cells: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what every way to protect costs on every table: the change of accuracy and of the area under the curve."""
    found = {table: frontier_of(cells, table, FEW) for table in TABLES}
    shown = {table: one for table, one in found.items() if one is not None}
    lines = [
        f"| what is shared | {' | '.join(TABLES[table] for table in shown)} |",
        f"| --- |{' ---: |' * len(shown)}",
    ]
    for name, words in WAYS.items():
        parts = []
        for one in shown.values():
            row = one[ROWS[name]]
            if name == "none":
                parts.append(f"{_mean(row.utility)} / {_mean(row.auc)}")
                continue
            best = "recoded" if row.recoded is not None and row.recoded.value > row.utility.value else "utility"
            area = "recoded_auc" if best == "recoded" else "auc"
            change, of_area = one.change(row, best), one.change(row, area)
            half = (change.interval[1] - change.interval[0]) / 2
            parts.append(f"{100 * change.value:+.1f} ± {100 * half:.1f} / {100 * of_area.value:+.1f}")
        lines.append(f"| {words} | {' | '.join(parts)} |")
    blind = [f"{100 * one.blind:.1f} / 50.0" for one in shown.values()]
    return [
        *lines,
        f"| *always the most frequent class* | {' | '.join(blind)} |",
        "",
        "Attacks on the same rows, strongest on the model / on the table, in percent (50: guessing):",
        "",
        *_attack_lines(shown),
    ]


def _attack_lines(shown: Mapping[str, Any]) -> list[str]:
    lines = [
        f"| what is shared | {' | '.join(TABLES[table] for table in shown)} | at most |",
        f"| --- |{' ---: |' * (len(shown) + 1)}",
    ]
    for name, words in WAYS.items():
        parts, limit = [], ""
        for one in shown.values():
            row = one[ROWS[name]]
            rates = [_member(row, on) or "-" for on in ("model", "table")]
            parts.append(" / ".join(rates))
            limit = "" if row.limit is None else f"{100 * row.limit:.1f}"
        lines.append(f"| {words} | {' | '.join(parts)} | {limit} |")
    return lines


# -- the page with all numbers -------------------------------------------------------------------------------


def page(cells: Sequence[Mapping[str, Any]]) -> str:
    """Write all numbers of all tables."""
    from sfumato.report.frontier_page import to_markdown
    from studies.rows import how_it_was_run

    lines = [
        "# Protections compared",
        "",
        "Every row is one thing that can be shared: a model, or a table that anyone can train models on. All come from",
        "[`sfumato.frontier`](../how-to/compare-protections.md): the same random forest, splits and attackers.",
        "[Choosing a method](../choosing-a-method.md) says when to use which.",
        "",
    ]
    for table, found in complete(cells):
        lines += [f"## {TABLES[table]}", "", f"![accuracy and attacks]({_picture_of(table)})", ""]
        lines += [to_markdown(found).rstrip("\n"), ""]
    said = [
        f"Random forests of {N_TREES} trees. {N_SPLITS} splits in halves; attacks on the first one.",
        "All columns are quasi-identifiers. At most 30,000 records, for all but Adult; 5,000 more (Nursery: 2,591) are "
        "other people, for noisy counts alone.",
        f"Adult: LiRA and RMIA with {N_SHADOWS} shadow models, and a guess of `{SECRET}`, in the rows of the README; "
        "the others are attacked by the loss.",
        "Groups and tables of sfumato and of the classic methods show phantoms, the default. *Algorithm 1* shows real "
        "records, as the paper says.",
        "*Minimized*: `PrivacyAwareTree`, alpha 0.5. *Anatomized*: `PrunedClassifier`, sensitive `occupation`, up to "
        "1% of the records suppressed.",
        "*Synthetic*: a chain of decision trees with leaves of five records, as in R's synthpop; no promise.",
        "*Private logistic*, *private boosting*, *counts release* (cells of other people) and *private release* "
        "(`PrivateAnonymizer`) have delta 1e-6 or none; edges and categories are public. *Recoded*: releases with one "
        "set of values per cell, and test records recoded by it; counts with noise of their own.",
        "Models for raw records learn from releases with epsilon by regions: "
        "`AnonymizedClassifier(model).fit_partition(release.partition)`, from the noisy counts alone. Regions of other "
        "people say how values go with labels inside a cell, those of drawn records what the private guide says of it. "
        "A table of groups without its regions has its rows; with them, it is the row *model* of the same k. Seconds "
        "of both rows are of the processor.",
    ]
    run = how_it_was_run([{**cell, "seed": 0} for cell in cells], "front-page", said)
    return "\n".join([*lines, *(line for line in run if line != "- One split only.")]) + "\n"


def _picture_of(table: str) -> str:
    return PICTURE if table == ADULT else f"frontier-{table}.svg"


def charts(cells: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Draw the README's rows, and all rows of the other tables."""
    drawn = {}
    for table, found in complete(cells):
        shown = frontier_of(cells, ADULT, SHOWN) if table == ADULT else found
        drawn[_picture_of(table)] = shown.plot() + "\n"
    return drawn


def view(cells: Sequence[Mapping[str, Any]]) -> View:
    """Show the README's table and picture."""
    drawn = {name: text for name, text in charts(cells).items() if name == PICTURE}
    return View([*introduction(cells)[:-2], "", *table_lines(cells), ""], drawn)


def documents(cells: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the page and its pictures, by their paths from the repository's root."""
    if not any(True for _ in complete(cells)):
        return {}
    drawn = {f"docs/results/{name}": text for name, text in charts(cells).items()}
    return {f"docs/results/{PAGE}": page(cells), **drawn}
