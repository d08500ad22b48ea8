# SPDX-License-Identifier: Apache-2.0
"""What the cells of ``generalization_attacks`` say about the paper's sentences on its tables 3 to 6.

One seed: differences have the standard error of the test records, which all comparisons of a table share. That of a
mean error over attributes is half the length of the cell's own interval, from bootstrapping records with all their
attributes. The errors of two attacks on the same records go together, so that the error of their difference is
overstated, not understated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from studies.claims import Evidence
from studies.generalization_attacks import (
    ARCHITECTURES,
    COUNTS,
    PAPER_TABLE_6,
    TABLE_3,
    TABLE_4,
    TABLE_4_ALL_STATES,
    TABLE_5,
    Made,
    Row,
)
from studies.verdicts import Difference, counted, share_error

Cells = Mapping[str, dict[str, Any]]
HALF_INTERVAL = 1.96
"""Standard errors from the middle of an interval of 95% to its end."""
BUCKET = "own bucket"
"""Who guesses an attribute where a network or counting does worse on validation."""


def evidence(cells: Cells) -> dict[str, Evidence]:
    """Return the differences of every claim whose cells are there."""
    found = {
        "two-breaches": _breaches_add_up(cells),
        "finer-links-more": _finer_links_more(cells, TABLE_4),
        "finer-links-more-35-states": _finer_links_more(cells, TABLE_4_ALL_STATES),
        "finer-singles-out": _finer_singles_out(cells),
        "larger-network-helps": _larger_networks(cells, _OTHERS),
        "smallest-network-best": [one.turned() for one in _larger_networks(cells, _TREES)],
        "close-to-best": _close_to_best(cells),
        "classifiers-agree": _classifiers_agree(cells),
    }
    numbers = {
        "finer-links-more": _percents(cells, TABLE_4),
        "finer-links-more-35-states": _percents(cells, TABLE_4_ALL_STATES),
        "finer-singles-out": _alone_in_words(cells),
        **dict.fromkeys(("smallest-network-best", "close-to-best"), _where_the_bucket_guesses(cells, _TREES)),
        "larger-network-helps": (
            f"{_where_the_bucket_guesses(cells, _OTHERS)}; a larger network cannot help there, which works against the "
            "claim"
        ),
    }
    return {name: Evidence(own, numbers.get(name, "")) for name, own in found.items()}


_TREES = tuple(made for made in PAPER_TABLE_6 if made.minimizer == "PAT")
_OTHERS = tuple(made for made in PAPER_TABLE_6 if made.minimizer != "PAT")


def linked_interval(cell: Mapping[str, Any]) -> tuple[float, float]:
    """Return the 95% interval of the paper's way to link."""
    from sfumato.attack.result import wilson_interval

    n_people = cell["details"]["n_people"]
    return wilson_interval(cell["details"]["by_buckets_alone"] * n_people, n_people)


def _apart(where: str, more: float, less: float, n_more: float, n_less: float) -> Difference:
    """Return the difference of two shares of records, each with its own error."""
    error = math.hypot(share_error(more, n_more), share_error(less, n_less))
    return counted(where, more - less, error)


def _fewer(where: str, more: Mapping[str, Any], less: Mapping[str, Any]) -> Difference:
    """Return by how much the error of one cell lies above that of another."""
    halves = [(own["interval"][1] - own["interval"][0]) / 2 for own in (more, less)]
    return counted(where, more["error"] - less["error"], math.hypot(*halves) / HALF_INTERVAL)


def _cell(cells: Cells, made: Made, attack: str, table: int = 6) -> Mapping[str, Any]:
    return cells[Row(table, attack, (made,)).key]


def _least(cells: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    return min(cells, key=lambda cell: cell["error"])


def _breaches_add_up(cells: Cells) -> list[Difference]:
    return [
        _fewer(
            " and ".join(made.title for made in row.made),
            _least(_cell(cells, made, "A1", 3) for made in row.made),
            cells[row.key],
        )
        for row in TABLE_3
    ]


def _finer_links_more(cells: Cells, rows: Sequence[Row]) -> list[Difference]:
    """Return the steps from 8 to 20 to 50 leaves, and from alpha 0.9 to 0.3, in percentage points."""
    steps = [(rows[0], rows[1]), (rows[1], rows[2]), (rows[3], rows[2])]
    found = []
    for coarse, fine in steps:
        details = [cells[row.key]["details"] for row in (fine, coarse)]
        where = f"{coarse.made[0].title} and {fine.made[0].title}"
        one = _apart(where, *(own["by_buckets_alone"] for own in details), *(own["n_people"] for own in details))
        found.append(counted(where, 100 * one.estimate, 100 * one.error))
    return found


def _percents(cells: Cells, rows: Sequence[Row]) -> str:
    rates = [cells[row.key]["details"]["by_buckets_alone"] for row in rows[:4]]
    return f"linked: {' / '.join(f'{100 * rate:.2f}%' for rate in rates)} (8, 20, 50 leaves; 50 with alpha 0.9)"


def _finer_singles_out(cells: Cells) -> list[Difference]:
    """Return the step of the share of people who are alone, from 2 to 20 leaves, in percentage points."""
    first, last = (cells[TABLE_5[place].key] for place in (0, 3))
    n_first, n_last = (own["details"]["n_records"] for own in (first, last))
    one = _apart("2 and 20 leaves", last["rate"], first["rate"], n_last, n_first)
    return [counted(one.where, 100 * one.estimate, 100 * one.error)]


def _alone_in_words(cells: Cells) -> str:
    counts = [round(cells[row.key]["rate"] * cells[row.key]["details"]["n_records"]) for row in TABLE_5]
    rarest = [cells[row.key]["details"]["rarest"] for row in TABLE_5[:4]]
    told = " / ".join(f"{count:,}" for count in counts)
    return (
        f"alone with 2, 4, 10, 20 leaves, then with alpha 0 and 0.8: {told}; rarest combination "
        f"{' / '.join(f'{count:,}' for count in rarest)}"
    )


def _larger_networks(cells: Cells, generalizations: Sequence[Made]) -> list[Difference]:
    """Return by how much a larger network's error lies below the smallest one's."""
    smallest = ARCHITECTURES[0]
    return [
        _fewer(f"{made.title}, {name}", _cell(cells, made, smallest), _cell(cells, made, name))
        for made in generalizations
        for name in ARCHITECTURES[1:]
    ]


def _where_the_bucket_guesses(cells: Cells, generalizations: Sequence[Made]) -> str:
    """Return how many attributes the bucket guesses for every network, and where all attackers err alike."""
    told = []
    for made in generalizations:
        guessed = [_cell(cells, made, name)["attributes"] for name in ARCHITECTURES]
        n_by_bucket = sum(all(own[name]["adversary"] == BUCKET for own in guessed) for name in guessed[0])
        errors = {_cell(cells, made, name)["error"] for name in (*ARCHITECTURES, COUNTS)}
        alike = " (all attackers err alike)" if len(errors) == 1 else ""
        told.append(f"{made.title}: {n_by_bucket} of {len(guessed[0])}{alike}")
    return f"attributes that the bucket guesses for all three networks: {'; '.join(told)}"


def _close_to_best(cells: Cells) -> list[Difference]:
    """Return by how much the best attack's error lies below the smallest network's, turned."""
    return [
        _fewer(
            made.title,
            _least(_cell(cells, made, name) for name in (*ARCHITECTURES, COUNTS)),
            _cell(cells, made, ARCHITECTURES[0]),
        )
        for made in _TREES
    ]


def _classifiers_agree(cells: Cells) -> list[Difference]:
    smallest = f"classifier {ARCHITECTURES[0]}"
    return [
        _fewer(f"{made.title}, {name}", _cell(cells, made, smallest), _cell(cells, made, f"classifier {name}"))
        for made in PAPER_TABLE_6
        for name in ARCHITECTURES[1:]
    ]
