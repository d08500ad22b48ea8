# SPDX-License-Identifier: Apache-2.0
"""What the cells of ``inference_attacks`` say about the paper's sentences on its tables 1 and 2."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from studies.claims import Evidence
from studies.inference_attacks import TABLE_1, TABLE_2, Row
from studies.verdicts import Difference, counted, paired, share_error

Cells = Mapping[str, dict[str, Any]]
OF_THE_PAPER = ("random_forest", "network")
FORMS = ("confidence", "confusion")
OF_THE_METHOD = "rf"
"""The model whose records are made with Algorithm 1; networks have sfumato's own engine, of which no paper speaks."""
OVERLAP = 1.0
"""Test records per training record: splits in halves."""
ADULT = "adult-12"
"""The table that is judged: on loans no model goes beyond always answering the larger class."""


def evidence(splits: Sequence[Cells]) -> dict[str, Evidence]:
    """Return the differences of every claim, from the cells of every split by their names.

    A claim is judged on the splits that have all rows of its table.
    """
    nursery = [cells for cells in splits if all(row.key in cells for row in TABLE_2)]
    splits = [cells for cells in splits if all(row.key in cells for row in TABLE_1)]
    protected = [row for row in TABLE_1 if row.table == ADULT and row.k]
    judged = [row for row in protected if row.model == OF_THE_METHOD]
    cost = {row: _change(row) for row in protected}
    private = {told: pair for told, pair in _rivals(ADULT).items() if pair[0].model == OF_THE_METHOD}
    return {
        "attack-prevented-adult": _attacks(splits, protected, judged),
        "accuracy-cost": Evidence(
            [
                _over(
                    splits,
                    _title(row),
                    lambda cells, row=row: _test(cells, row) - _test(cells, Row(row.table, row.model)) - cost[row],
                    _error_of_tests(row, Row(row.table, row.model)),
                )
                for row in judged
            ],
            "; ".join(
                f"{_title(row)}{_whose(row)} "
                f"{_mean(splits, lambda c, r=row: _test(c, r) - _test(c, Row(r.table, r.model))):+.3f} "
                f"(the paper {cost[row]:+.2f})"
                for row in protected
            ),
        ),
        "private-comparable": Evidence(
            [
                _over(
                    splits,
                    told,
                    lambda cells, pair=pair: _test(cells, pair[0]) - _test(cells, pair[1]),
                    _error_of_tests(*pair),
                )
                for told, pair in private.items()
            ],
            _in_favour(splits, private),
        ),
        "attribute-attack-weaker": _attribute(nursery),
    }


def best_attack(cell: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the better of the attacks that the paper has."""
    return max((cell["membership"][name] for name in OF_THE_PAPER), key=lambda found: found["rate"])


def rate_of(cell: Mapping[str, Any]) -> float:
    """Return the accuracy of the better attack."""
    return float(best_attack(cell)["rate"])


def _title(row: Row) -> str:
    return f"{row.table.split('-')[0].title()}, {row.model}, {row.protection}"


def _test(cells: Cells, row: Row) -> float:
    return float(cells[row.key]["test"])


def _over(splits: Sequence[Cells], told: str, value: Any, error: Any) -> Difference:
    """Return a difference over splits; of one split, its records counted."""
    if len(splits) == 1:
        return counted(told, value(splits[0]), error(splits[0]))
    return paired(told, [value(cells) for cells in splits], overlap=OVERLAP)


def _error_of_tests(*rows: Row) -> Any:
    """Return the standard error of a difference of two test accuracies, too large as both have the same records."""

    def error(cells: Cells) -> float:
        return math.hypot(*(share_error(_test(cells, row), cells[row.key]["n_train"]) for row in rows))

    return error


def _error_of_attack(row: Row) -> Any:
    def error(cells: Cells) -> float:
        found = best_attack(cells[row.key])
        return share_error(found["rate"], found["details"]["n_members"] + found["details"]["n_others"])

    return error


def _mean(splits: Sequence[Cells], value: Any) -> float:
    return sum(value(cells) for cells in splits) / len(splits)


def _whose(row: Row) -> str:
    return "" if row.model == OF_THE_METHOD else " (sfumato's own engine, not judged)"


def _attacks(splits: Sequence[Cells], rows: Sequence[Row], judged: Sequence[Row]) -> Evidence:
    """Return by how much the paper's attack accuracy lies above ours, at every listed k."""
    found = [
        _over(splits, _title(row), lambda cells, row=row: row.paper[2] - rate_of(cells[row.key]), _error_of_attack(row))
        for row in judged
    ]
    told = []
    for row in rows:
        own, bare = (_mean(splits, lambda c, r=r: rate_of(c[r.key])) for r in (row, Row(row.table, row.model)))
        told.append(
            f"{_title(row)}{_whose(row)} {own:.3f} (without protection {bare:.3f}; the paper {row.paper[2]:.2f})"
        )
    return Evidence(found, "; ".join(told))


def _change(row: Row) -> float:
    """Return the change of test accuracy that the paper prints."""
    [bare] = [own.paper[1] for own in TABLE_1 if own.key == Row(row.table, row.model).key]
    after = row.paper[1]
    assert after is not None and bare is not None
    return after - bare


def _rivals(table: str) -> dict[str, tuple[Row, Row]]:
    """Return every k-anonymous row of the paper's beside every private one of the same model."""
    return {
        f"{own.model}, {own.protection} against {private.protection}": (own, private)
        for private in TABLE_1
        for own in TABLE_1
        if own.k and private.epsilon and own.table == table
        if (own.table, own.model) == (private.table, private.model)
    }


def _in_favour(splits: Sequence[Cells], pairs: Mapping[str, tuple[Row, Row]]) -> str:
    """Return which side is more accurate in how many pairs, and what the attack says of both."""
    apart = [_mean(splits, lambda c, p=pair: _test(c, p[0]) - _test(c, p[1])) for pair in pairs.values()]
    n_behind = sum(one < 0 for one in apart)
    ahead = "all" if n_behind == len(apart) else str(n_behind)
    rates = {row: _mean(splits, lambda c, r=row: rate_of(c[r.key])) for pair in pairs.values() for row in pair}
    return (
        f"differential privacy is ahead in {ahead} of {len(apart)} pairs: "
        f"{', '.join(f'{told} {one:+.3f}' for told, one in zip(pairs, apart, strict=True))}; accuracy of the model "
        "alone is judged, that of the attack is: "
        f"{', '.join(f'{row.protection} {rate:.3f}' for row, rate in rates.items())}"
    )


def _attribute(splits: Sequence[Cells]) -> Evidence:
    raw, protected = TABLE_2

    def rate(cells: Cells, row: Row, form: str) -> float:
        return float(cells[row.key]["attribute"][form]["rate"])

    found = [
        paired(form, [rate(cells, raw, form) - rate(cells, protected, form) for cells in splits], overlap=OVERLAP)
        for form in FORMS
    ]
    told = "; ".join(
        f"{form} {_mean(splits, lambda c, f=form: rate(c, raw, f)):.3f} to "
        f"{_mean(splits, lambda c, f=form: rate(c, protected, f)):.3f}"
        for form in FORMS
    )
    bare = _mean(splits, lambda c: c[protected.key]["attribute"][FORMS[0]]["baseline"])
    alike = "; both forms guess alike, so that this is one comparison" if found[0].values == found[1].values else ""
    return Evidence(found, f"{told}; without the model {bare:.3f}; the paper 0.61 to 0.56{alike}")
