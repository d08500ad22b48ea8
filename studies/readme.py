# SPDX-License-Identifier: Apache-2.0
"""Tables of results in the README and on the page about methods, from kept cells. Called by ``papers``."""

from __future__ import annotations

from textwrap import wrap

from studies import adult_utility, beyond_private_learners, beyond_private_releases, front_page, front_page_views
from studies.accuracy import as_cells
from studies.models import MODELS
from studies.runner import REPOSITORY
from studies.summaries import interval

NEW_LINE = "\n"


def readme() -> str:
    """Return the README with both tables as the kept cells give them."""
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    text = between(text, "results", what_it_costs(adult_utility.Rows(as_cells(adult_utility.EXPERIMENT.cells()))))
    cells = front_page.EXPERIMENT.cells()
    shown = [*front_page_views.introduction(cells), "", *front_page_views.table_lines(cells)]
    return between(text, "protections", shown)


def choosing_a_method() -> str:
    """Return the page on choosing a method with the numbers of all tables as the kept cells give them."""
    text = (REPOSITORY / "docs" / "choosing-a-method.md").read_text(encoding="utf-8")
    return between(text, "tables", front_page_views.tables_side_by_side(front_page.EXPERIMENT.cells()))


def releases_with_epsilon() -> str:
    """Return the page on private releases with what the kept cells say of their cost and of their budget."""
    text = (REPOSITORY / "docs" / "releases-with-epsilon.md").read_text(encoding="utf-8")
    cells = beyond_private_releases.EXPERIMENT.cells()
    text = between(text, "division", beyond_private_releases.division_lines(cells))
    return between(text, "costs", beyond_private_releases.costs(cells))


def learning_with_differential_privacy() -> str:
    """Return the page on private learners with what the kept cells say of the first of them, and of attacks."""
    text = (REPOSITORY / "docs" / "learning-with-differential-privacy.md").read_text(encoding="utf-8")
    cells = beyond_private_learners.EXPERIMENT.cells()
    text = between(text, "adult", wrap(beyond_private_learners.on_adult(cells), 128))
    return between(text, "attacks", wrap(beyond_private_learners.on_attacks(cells), 128))


def between(text: str, mark: str, lines: list[str]) -> str:
    """Return a text with new lines between ``<!-- mark -->`` and ``<!-- /mark -->``.

    Examples
    --------
    >>> between("a <!-- x -->old<!-- /x --> b", "x", ["new"])
    'a <!-- x -->\\nnew\\n<!-- /x --> b'
    """
    start, end = f"<!-- {mark} -->", f"<!-- /{mark} -->"
    before, found, rest = text.partition(start)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"no {start} ... {end} on the page: expected one. Put both back where the table belongs.")
    return f"{before}{start}\n{NEW_LINE.join(lines)}\n{end}{after}"


def what_it_costs(rows: adult_utility.Rows) -> list[str]:
    """Return what k-anonymity costs five models on Adult: one line each, and what is said about the strongest."""
    lines = [
        "What a released table costs on Adult by default (12 quasi-identifiers, test accuracy in percent, mean of "
        f"{adult_utility.N_SPLITS} splits; change against raw in brackets):",
        "",
        "| model | raw | k = 10 | k = 100 | k = 100, test records recoded too | the paper's Algorithm 1, k = 100 |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    columns = ((10, "default"), (100, "default"), (100, "default_transformed"), (100, "paper"))
    for model in (*adult_utility.JUDGED, "hgb"):
        raw = rows.values(model, 12, 100, "raw")
        shown = [
            f"{rows.values(model, 12, k, name).mean():.2f} ({rows.change(model, k, name):+.2f})" for k, name in columns
        ]
        lines.append(f"| {MODELS[model]} | {raw.mean():.2f} | {' | '.join(shown)} |")
    judged = adult_utility.JUDGED
    as_it_is = sum(rows.change(model, 100, "default") for model in judged) / len(judged)
    instead = sum(rows.change("hgb" if model == "gb" else model, 100, "default") for model in judged) / len(judged)
    beside = rows.ahead("hgb", 12, 1000, *adult_utility.AS_IT_COMES)
    low, high = interval(beside)
    return [
        *lines,
        "",
        "Histogram gradient boosting, which the command line and the demo call `gradient-boosting`, pays most: with "
        "it in the place of",
        f"gradient boosting, the first four lines' average at k = 100 would be {instead:.2f} instead of "
        f"{as_it_is:.2f}. At k = 1000 it is {beside.mean():+.2f} points from Algorithm 1",
        f"(95% CI [{low:+.2f}, {high:+.2f}]). The whole table, with intervals, k up to 1000 and a real member per "
        "group beside it",
        '(`representative="model"`): [what k-anonymity costs a model](docs/results/adult-utility.md).',
    ]
