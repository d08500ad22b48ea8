# SPDX-License-Identifier: Apache-2.0
"""Rows of results (what was run and what came out, as one dict each): choose, average, put into a page.

Called by the pages of the experiments beyond the papers and of the papers' smaller figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from studies.views import View

Row = dict[str, Any]


def one_by_one(run: Callable[[Mapping[str, Any], bool], Row]) -> Callable[[Sequence[Row], bool], Iterator[Row]]:
    """Return how the runner runs cells, of how one cell is run."""

    def run_all(keys: Sequence[Row], paper_scale: bool) -> Iterator[Row]:
        for key in keys:
            yield run(key, paper_scale)

    return run_all


def where(rows: Iterable[Row], /, **fixed: Any) -> list[Row]:
    """Return the rows that have these values; of a tuple, any of them."""
    return [
        row
        for row in rows
        if all(row.get(name) in value if isinstance(value, tuple) else row.get(name) == value
               for name, value in fixed.items())
    ]  # fmt: skip


def mean(rows: Iterable[Row], name: str, /, **fixed: Any) -> float:
    """Return the mean of a result over the rows that have these values, such as those of all splits."""
    values = [row[name] for row in where(rows, **fixed)]
    if not values:
        raise KeyError(f"no row with {fixed}: expected one that was run. Run the study.")
    return float(np.mean(values))


def has(rows: Iterable[Row], /, **fixed: Any) -> bool:
    """Return True if anything was run with these values."""
    return bool(where(rows, **fixed))


def n_splits(rows: Iterable[Row], /, **fixed: Any) -> str:
    """Return in words over how many splits these rows go."""
    n = len({row["seed"] for row in where(rows, **fixed)})
    return "one split" if n == 1 else f"{n} splits"


def table(header: Sequence[str], lines: Iterable[Sequence[str]], *, n_words: int = 1) -> list[str]:
    """Return a Markdown table; the first `n_words` columns hold words, the others numbers."""
    rule = ["---"] * n_words + ["---:"] * (len(header) - n_words)
    return ["", *(f"| {' | '.join(line)} |" for line in (header, rule, *lines)), ""]


def signed(value: float) -> str:
    """Return a difference in points, with its sign."""
    return f"{value:+.2f}"


def times(n: int) -> str:
    """Return how often, in words."""
    return "once" if n == 1 else "twice" if n == 2 else f"{n} times"


def how_it_was_run(rows: Sequence[Row], name: str, reductions: Sequence[str], studies: Sequence[str] = ()) -> list[str]:
    """Return the last section of a page: the command, the time, the machine, and what is less than it could be."""
    minutes = sum(row.get("seconds") or 0.0 for row in rows) / 60
    machines = sorted({row["environment"] for row in rows if row.get("environment")})
    commands = " and ".join(f"`sfumato study {study}`" for study in studies or (name,))
    return [
        "## How it was run",
        "",
        f"{commands}; the cells are in `studies/results/{name.replace('-', '_')}.jsonl`. "
        f"{len(rows)} cells took {minutes:.1f} minutes of one core: "
        f"{'; '.join(machines)}.",
        "",
        "Reductions and choices:",
        "",
        f"- Every number is the mean of {n_splits(rows)}." if n_splits(rows) != "one split" else "- One split only.",
        *(f"- {reduction}" for reduction in reductions),
    ]


def complete_splits(rows: Sequence[Row], keys: Iterable[Row]) -> list[Row]:
    """Return the rows of those splits of which every key was run, so that a page never shows half of one."""
    of_split: dict[Any, list[Row]] = {}
    for key in keys:
        of_split.setdefault(key["seed"], []).append(key)
    run = {tuple(row.get(name) for name in key) for row in rows for key in of_split[row["seed"]][:1]}
    whole = {seed for seed, own in of_split.items() if all(tuple(key.values()) in run for key in own)}
    return [row for row in rows if row["seed"] in whole]


def found(
    keys: Sequence[Row],
    findings: Callable[[list[Row]], Iterable[str]],
    charts: Callable[[list[Row]], Mapping[str, str]] = lambda rows: {},
) -> Callable[[Any, list[Row]], View]:
    """Return a view of what was found in these keys, with the drawings of the long page."""

    def view(study: Any, rows: list[Row]) -> View:
        whole = complete_splits(rows, keys)
        if not whole:
            return View(["No split is complete yet.", ""])
        return View([*(f"- {sentence}" for sentence in findings(whole)), ""], charts(whole))

    return view


def documents(
    name: str,
    keys: Sequence[Row],
    page: Callable[[list[Row]], str],
    charts: Callable[[list[Row]], Mapping[str, str]],
) -> Callable[[list[Row]], dict[str, str]]:
    """Return what writes a page and its drawings, by their paths from the repository's root, of complete splits."""

    def write(rows: list[Row]) -> dict[str, str]:
        whole = complete_splits(rows, keys)
        if not whole:
            return {}
        drawn = {f"docs/results/{file}": text for file, text in charts(whole).items()}
        return {f"docs/results/{name}.md": page(whole), **drawn}

    return write
