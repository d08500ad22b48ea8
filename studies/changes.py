# SPDX-License-Identifier: Apache-2.0
"""The page of verdicts: every verdict of the first edition beside today's, with interval, splits and reason.

``first_edition.toml`` has what was said then; the verdicts of today are judged from kept cells. Called by ``papers``.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from studies.claims import HELD, REFUTED, UNTESTED, VERDICTS, Judged, rule_lines

FILE = Path(__file__).parent / "first_edition.toml"
NOT_HELD = "did not hold"
SAME = {HELD: HELD, NOT_HELD: REFUTED, UNTESTED: UNTESTED}
"""What a verdict of the first edition is called now."""


@dataclass(frozen=True)
class FirstVerdict:
    """A verdict of the first edition, and the claims that took its place; none: it was withdrawn."""

    paper: str
    text: str
    was: str
    became: list[str] = field(default_factory=list)
    because: str = ""


def first_edition() -> list[FirstVerdict]:
    """Read the verdicts of the first edition."""
    with FILE.open("rb") as file:
        return [FirstVerdict(**entry) for entry in tomllib.load(file)["verdicts"]]


def page(judged: Mapping[str, Sequence[Judged]], titles: Mapping[str, str]) -> str:
    """Write the page, from the judged claims and the title of every paper."""
    today = {one.claim.name: one for own in judged.values() for one in own}
    before = first_edition()
    lines = [
        "# Verdicts, and what changed",
        "",
        *rule_lines(),
        "",
        "## How many",
        "",
        *_counts(judged, before, titles),
        "",
        "## What changed since the first edition",
        "",
        "The first edition called a claim *did not hold* when any mean had the wrong sign. Most means were of one to",
        "three splits, and some were measured on other data than the paper's. *Withdrawn*: the paper does not say it.",
        "*New*: a sentence of the paper that the first edition did not judge.",
        "",
    ]
    for paper in judged:
        own = [entry for entry in before if entry.paper == paper]
        if own:
            named = {name for entry in before for name in entry.became}
            new = [one for one in judged[paper] if one.claim.name not in named]
            lines += [f"### {titles[paper]}", "", *_table(own, today), *map(_new_row, new), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _counts(
    judged: Mapping[str, Sequence[Judged]], before: Sequence[FirstVerdict], titles: Mapping[str, str]
) -> list[str]:
    lines = [
        f"| paper | first edition | claims now | {' | '.join(VERDICTS)} |",
        f"| --- | --- | ---: |{' ---: |' * len(VERDICTS)}",
    ]
    for paper, own in judged.items():
        if own:
            then = Counter(entry.was for entry in before if entry.paper == paper)
            now = Counter(one.verdict for one in own)
            told = ", ".join(f"{then[verdict]} {verdict}" for verdict in SAME if then[verdict])
            shown = " | ".join(str(now[verdict]) for verdict in VERDICTS)
            lines.append(f"| [{titles[paper]}]({paper}.md) | {told} | {len(own)} | {shown} |")
    return lines


def _table(before: Sequence[FirstVerdict], today: Mapping[str, Judged]) -> list[str]:
    return [
        "| first edition | verdict then | verdict now | difference, 95% CI | splits | why it differs |",
        "| --- | --- | --- | --- | ---: | --- |",
        *(row for entry in before for row in _rows(entry, today)),
    ]


def _new_row(one: Judged) -> str:
    return f"| *new* | | {one.verdict}: {one.claim.says} | {one.interval} | {one.splits} | {one.reason} |"


def _rows(entry: FirstVerdict, today: Mapping[str, Judged]) -> Iterator[str]:
    if not entry.became:
        yield f"| {entry.text} | {entry.was} | *withdrawn* | | | {entry.because} |"
    for place, name in enumerate(entry.became):
        text, was = (entry.text, entry.was) if place == 0 else ("", "")
        one = today.get(name)
        if one is None:
            yield f"| {text} | {was} | *not all of it is run* | | | |"
            continue
        now = one.verdict if len(entry.became) == 1 else f"{one.verdict}: {one.claim.says}"
        differs = SAME[entry.was] != one.verdict
        why = "; ".join(part for part in (entry.because, one.reason) if part) if differs else ""
        yield f"| {text} | {was} | {now} | {one.interval} | {one.splits} | {why} |"
