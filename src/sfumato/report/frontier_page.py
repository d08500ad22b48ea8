# SPDX-License-Identifier: Apache-2.0
"""A frontier for people: one table for pages, Markdown and the console, and one HTML page with the picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sfumato.report.charts import safe
from sfumato.report.frontier_chart import narrow_picture, wide_picture
from sfumato.report.frontier_row import FAMILIES, Estimate, FrontierAttack, FrontierRow
from sfumato.report.html_parts import bullets, definitions, section, table, whole_page
from sfumato.report.markdown import cell_text, markdown_table

if TYPE_CHECKING:
    from sfumato.report.frontier import Frontier

ABSENT = "-"
_STYLE = """
.narrow { display: none; }
.scroll { overflow-x: auto; }
.scroll thead th { white-space: normal; vertical-align: bottom; }
@media screen and (max-width: 40rem) { .wide { display: none; } .narrow { display: block; } }
"""  # of this page alone, after the style of all pages


@dataclass(frozen=True)
class Column:
    """A column of the table for people.

    Attributes
    ----------
    title : str
    show : callable
        From a row to the text of its cell.
    about : {"cost", "risk"}
        Under which heading it stands where there are two tables.
    short : str
        Title where there is little room; empty: it is not shown there.
    """

    title: str
    show: Callable[[FrontierRow], str]
    about: str = "cost"
    short: str = ""


def columns_of(frontier: Frontier) -> list[Column]:
    """Return the columns that have something to show."""
    percent = frontier.metric == "accuracy"

    def change(of: str) -> Callable[[FrontierRow], str]:
        return lambda row: shown(frontier.change(row, of), percent=percent or of == "auc", is_change=True)

    def attack(goal: str, on: str | None) -> Callable[[FrontierRow], str]:
        return lambda row: _attack(row.strongest(goal, on))  # type: ignore[arg-type]

    def worst(row: FrontierRow) -> str:
        found = frontier.worst_subgroup(row)
        return ABSENT if found is None else f"{found[0].group}: {shown(found[1], percent=percent, is_change=True)}"

    metric = "accuracy, %" if percent else frontier.metric
    every = [
        Column("protection", lambda row: row.name, short="protection"),
        Column("shares", lambda row: row.shares, short="shares"),
        Column(metric, lambda row: shown(row.utility, percent=percent), short=frontier.metric),
        Column("change, pp" if percent else "change", change("utility"), short="change"),
        Column("AUC, %", lambda row: shown(row.auc, percent=True), short="AUC"),
        Column(f"{metric}, recoded", lambda row: shown(row.recoded, percent=percent)),
        Column("worst subgroup", worst),
        Column("seconds", lambda row: f"{row.seconds:.1f}"),
        Column("membership from the model, %", attack("membership", "model"), "risk", "by model"),
        Column("membership from the table, %", attack("membership", "table"), "risk", "by table"),
        Column("membership at most, %", lambda row: _share(row.limit), "risk", "at most"),
        Column("singling out, %", attack("singling out", "table"), "risk"),
        Column("secret from the model, %", attack("attribute", "model"), "risk"),
        Column("secret from the table, %", attack("attribute", "table"), "risk"),
        Column(
            "secret from cells alone, at most, %",
            lambda row: _share(None if row.certificate is None else row.certificate.upper),
            "risk",
        ),
    ]
    return [column for column in every if any(column.show(row) != ABSENT for row in frontier.rows)]


def shown(number: Estimate | None, *, percent: bool, is_change: bool = False) -> str:
    """Return a number with its interval as text.

    Examples
    --------
    >>> shown(Estimate(0.8561, (0.851, 0.8602), (0.85, 0.86)), percent=True)
    '85.6 [85.1, 86.0]'
    """
    if number is None:
        return ABSENT
    scale, digits = (100.0, 1) if percent else (1.0, 3)
    sign = "+" if is_change else ""
    text = f"{scale * number.value:{sign}.{digits}f}"
    if number.interval is None:
        return text
    low, high = (f"{scale * end:{sign}.{digits}f}" for end in number.interval)
    return f"{text} [{low}, {high}]"


def _attack(attack: FrontierAttack | None) -> str:
    if attack is None:
        return ABSENT
    text = shown(attack.rate, percent=True)
    if attack.goal == "membership":
        return text
    without = max(attack.baseline, attack.control or 0.0)
    return f"{text}, {100 * without:.1f} without"


def _share(share: float | None) -> str:
    return ABSENT if share is None else f"{100 * share:.1f}"


def lead(frontier: Frontier) -> str:
    """Return how it was measured, in one sentence."""
    splits = "one split" if frontier.n_splits == 1 else f"{frontier.n_splits} splits"
    return (
        f"{splits[0].upper()}{splits[1:]}: {frontier.n_train:,} records to train with and {frontier.n_test:,} to test "
        f"on. Intervals: {frontier.intervals}."
    )


def notes(frontier: Frontier) -> list[str]:
    """Return what a reader of the table should know."""
    said = []
    if frontier.metric == "accuracy":
        said.append(f"Always answering the most frequent class is right in {frontier.blind:.1%} of the cases.")
    said.append(
        "Membership: how often the strongest attack, by the model or by the table, says correctly who was among the "
        "training records; guessing is right in half of the cases. At most: the limit that the promise sets to every "
        "attacker."
    )
    if any(row.certificate is not None for row in frontier.rows):
        secret = next(row.certificate.secret for row in frontier.rows if row.certificate is not None)
        said.append(
            f"Secret: the value of {secret!r}, of a person whose other values are known; beside it, how often it is "
            "guessed without what is shared. From cells alone: no attacker who sees a person's cell and nothing else "
            "is right more often."
        )
    said.append("Shares a table: anyone can train models on it. Shares a model: no record leaves, changed or not.")
    said.append("All numbers are computed from raw records, for their owner: they are not private themselves.")
    if not frontier.is_complete:
        said.append("The run was stopped: some protections are missing.")
    return [*said, *frontier.notes]


def reasons(frontier: Frontier) -> list[str]:
    """Return why numbers are missing, one sentence for each protection that failed."""
    return [f"{row.name}: {row.reasons['all']}" for row in frontier.rows if "all" in row.reasons]


def standalone_picture(frontier: Frontier) -> str:
    """Return the picture as a file of its own, legible on light and dark pages."""
    return wide_picture(frontier, standalone=True)


def to_html(frontier: Frontier, title: str) -> str:
    """Return the whole page as text."""
    columns = columns_of(frontier)
    pictures = f'<div class="wide">{wide_picture(frontier)}</div><div class="narrow">{narrow_picture(frontier)}</div>'
    of_risk = [columns[0], *(column for column in columns if column.about == "risk")]
    numbers = (
        _html_table(frontier, "What it costs", [column for column in columns if column.about == "cost"])
        + _html_table(frontier, "What attackers get", of_risk)
        + bullets([*reasons(frontier), *notes(frontier)])
    )
    content = (
        section("Utility and risk", pictures, css_class="long")
        + section("Numbers", numbers, css_class="long")
        + section("What is not measured, and why", _why(frontier), css_class="long")
    )
    footer = "Made by sfumato. This page shows no value of a single record."
    return whole_page(title=title, lead=lead(frontier), content=content, footer=footer, style=_STYLE)


def _html_table(frontier: Frontier, caption: str, columns: Sequence[Column]) -> str:
    if len(columns) < 2:
        return ""
    rows = [[_in_two_lines(column.show(row)) for column in columns] for row in frontier.rows]
    names = [column.title for column in columns]
    return f'<div class="scroll">{table(caption, names, rows, numbers=range(1, len(names)))}</div>'


def _in_two_lines(text: str) -> str:
    """Return a cell as HTML: nothing for what is absent, an interval below its number."""
    number, bracket, rest = text.partition(" [")
    if text == ABSENT or not bracket:
        return "" if text == ABSENT else safe(text)
    return f'{safe(number)}<br><span class="quiet">[{safe(rest)}</span>'


def _why(frontier: Frontier) -> str:
    """Return the list of what each protection does not have, and why."""
    return definitions(
        (row.name, f"{FAMILIES[row.family]}. " + "; ".join(f"{what}: {why}" for what, why in row.reasons.items()))
        for row in frontier.rows
    )


def to_markdown(frontier: Frontier) -> str:
    """Return the table as Markdown, with what a reader should know."""
    columns = columns_of(frontier)
    rows = [[cell_text(column.show(row)) for column in columns] for row in frontier.rows]
    said = "\n".join(f"- {cell_text(sentence)}" for sentence in [*reasons(frontier), *notes(frontier)])
    return "\n\n".join([lead(frontier), markdown_table([column.title for column in columns], rows), said]) + "\n"


def console_table(frontier: Frontier, width: int) -> tuple[list[str], list[list[str]]]:
    """Return names and cells of a table for a terminal: without intervals where they do not fit."""
    is_narrow = width < _WITH_SHARES
    columns = [
        column for column in columns_of(frontier) if column.short and not (is_narrow and column.short == "shares")
    ]
    rows = [[column.show(row) for column in columns] for row in frontier.rows]
    if width < _WITH_INTERVALS:
        rows = [[row[0], *(cell.partition(" [")[0] for cell in row[1:])] for row in rows]
    return [column.short for column in columns], rows


_WITH_SHARES, _WITH_INTERVALS = 90, 140  # columns of a terminal in which these fit
