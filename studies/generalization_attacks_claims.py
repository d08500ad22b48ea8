# SPDX-License-Identifier: Apache-2.0
"""The sentences of ``generalization_attacks``: what the paper says about its tables 3 to 6, judged by the cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from studies.claims import HELD, NOT_HELD, UNTESTED, Claim
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

Cells = Mapping[str, dict[str, Any]]
BETTER = 0.02
"""Fall in the error that the paper marks in its table 6."""


def claims(cells: Cells) -> list[Claim]:
    """Judge the paper's statements in its order; those whose cells are missing are untested."""
    judged: list[tuple[str, Sequence[Row], Callable[[Cells], tuple[bool, str]]]] = [
        (
            "Table 3: two breaches together leave a lower error than either alone, in all four cases (by our A6, which "
            "tries more than the paper's)",
            (*TABLE_3, *(Row(3, "A1", (made,)) for row in TABLE_3 for made in row.made)),
            _breaches_add_up,
        ),
        (
            "Table 4: more is linked, significantly, from finer records (held: more with each of 8, 20 and 50 leaves, "
            "and the intervals of the first and the last apart)",
            TABLE_4[:3],
            lambda cells: _finer_links_more(cells, TABLE_4),
        ),
        (
            "The same with the records of 35 states",
            TABLE_4_ALL_STATES[:3],
            lambda cells: _finer_links_more(cells, TABLE_4_ALL_STATES),
        ),
        (
            "Table 4: every generalization links more than picking any occupation (held: the interval lies above)",
            TABLE_4,
            lambda cells: _all_link(cells, TABLE_4),
        ),
        (
            "The same with the records of 35 states",
            TABLE_4_ALL_STATES,
            lambda cells: _all_link(cells, TABLE_4_ALL_STATES),
        ),
        (
            "Table 4: with 50 leaves, alpha 0.9 links less than alpha 0.3 (held: intervals apart)",
            TABLE_4[2:4],
            lambda cells: _private_links_less(cells, TABLE_4),
        ),
        (
            "The same with the records of 35 states",
            TABLE_4_ALL_STATES[2:4],
            lambda cells: _private_links_less(cells, TABLE_4_ALL_STATES),
        ),
        (
            "Table 5: finer generalizations single out more easily (held: from 2 to 20 leaves the rarest combination "
            "never grows, and with 20 leaves more people are alone than with 2)",
            TABLE_5[:4],
            _finer_singles_out,
        ),
        (
            "Table 5: with 10 leaves or more, somebody is alone",
            TABLE_5[2:],
            _somebody_is_alone,
        ),
        (
            "Table 5: with 20 leaves, fewer people are alone the more privacy weighs (alpha 0, 0.3, 0.8)",
            TABLE_5[3:],
            _alpha_hides,
        ),
        (
            f"Table 6: for AdvTrain and Uniform a larger network can help the attacker (held: by {BETTER:g} somewhere)",
            [Row(6, name, (made,)) for made in _OTHERS for name in ARCHITECTURES],
            _larger_helps,
        ),
        (
            "Table 6: for PAT the smallest network is always best (held: no larger one's error is below its interval)",
            [Row(6, name, (made,)) for made in _TREES for name in ARCHITECTURES],
            _smallest_is_best,
        ),
        (
            "Appendix G: for PAT the smallest network is close to the best attack there is (held: no other attack here "
            f"is better by {BETTER:g}; better attacks than those here may exist)",
            [Row(6, name, (made,)) for made in _TREES for name in (*ARCHITECTURES, COUNTS)],
            _close_to_best,
        ),
        (
            "Section 4: generalizations transfer well between classifiers (held: their errors lie within "
            f"{BETTER:g} of each other for every generalization)",
            [Row(6, f"classifier {name}", (made,)) for made in PAPER_TABLE_6 for name in ARCHITECTURES],
            _classifiers_agree,
        ),
    ]
    return [
        *(_judge(text, rows, judge, cells) for text, rows, judge in judged),
        Claim("The numbers themselves", UNTESTED, "California 2014 is not at hand"),
    ]


_TREES = tuple(made for made in PAPER_TABLE_6 if made.minimizer == "PAT")
_OTHERS = tuple(made for made in PAPER_TABLE_6 if made.minimizer != "PAT")


def _judge(text: str, rows: Sequence[Row], judge: Callable[[Cells], tuple[bool, str]], cells: Cells) -> Claim:
    if any(row.key not in cells for row in rows):
        return Claim(text, UNTESTED, "not all of it was run yet")
    is_held, numbers = judge(cells)
    return Claim(text, HELD if is_held else NOT_HELD, numbers)


def linked_interval(cell: Mapping[str, Any]) -> tuple[float, float]:
    """Return the 95% interval of the paper's way to link."""
    from sfumato.attack.result import wilson_interval

    n_people = cell["details"]["n_people"]
    return wilson_interval(cell["details"]["by_buckets_alone"] * n_people, n_people)


def _breaches_add_up(cells: Cells) -> tuple[bool, str]:
    falls, n_clear = [], 0
    for row in TABLE_3:
        alone = min(cells[Row(3, "A1", (made,)).key]["error"] for made in row.made)
        both = cells[row.key]
        falls.append(alone - both["error"])
        n_clear += both["interval"][1] < alone
    numbers = " / ".join(f"{fall:.3f}" for fall in falls)
    return all(
        fall > 0 for fall in falls
    ), f"falls by {numbers}; beyond the interval in {n_clear} of {len(falls)} cases"


def _rates(cells: Cells, rows: Sequence[Row]) -> list[float]:
    return [cells[row.key]["details"]["by_buckets_alone"] for row in rows]


def _finer_links_more(cells: Cells, rows: Sequence[Row]) -> tuple[bool, str]:
    rates = _rates(cells, rows[:3])
    is_apart = linked_interval(cells[rows[0].key])[1] < linked_interval(cells[rows[2].key])[0]
    return rates[0] < rates[1] < rates[2] and is_apart, _percents(rates)


def _all_link(cells: Cells, rows: Sequence[Row]) -> tuple[bool, str]:
    above = [linked_interval(cells[row.key])[0] > cells[row.key]["details"]["random_value"] for row in rows]
    return all(above), f"{sum(above)} of {len(above)}"


def _private_links_less(cells: Cells, rows: Sequence[Row]) -> tuple[bool, str]:
    open_cell, private_cell = (cells[row.key] for row in rows[2:4])
    is_less = linked_interval(private_cell)[1] < linked_interval(open_cell)[0]
    return is_less, _percents(_rates(cells, rows[2:4]))


def _percents(rates: Sequence[float]) -> str:
    return " / ".join(f"{100 * rate:.2f}%" for rate in rates)


def _n_alone(cells: Cells, rows: Sequence[Row]) -> list[int]:
    return [round(cells[row.key]["rate"] * cells[row.key]["details"]["n_records"]) for row in rows]


def _finer_singles_out(cells: Cells) -> tuple[bool, str]:
    rows = TABLE_5[:4]
    rarest = [cells[row.key]["details"]["rarest"] for row in rows]
    alone = _n_alone(cells, rows)
    is_held = rarest == sorted(rarest, reverse=True) and alone[-1] > alone[0]
    return is_held, f"rarest {_counts(rarest)}; alone {_counts(alone)}"


def _somebody_is_alone(cells: Cells) -> tuple[bool, str]:
    alone = _n_alone(cells, TABLE_5[2:])
    return min(alone) > 0, f"alone: {_counts(alone)}"


def _alpha_hides(cells: Cells) -> tuple[bool, str]:
    alone = _n_alone(cells, [TABLE_5[4], TABLE_5[3], TABLE_5[5]])
    return alone[0] > alone[1] > alone[2], f"alone: {_counts(alone)}"


def _counts(numbers: Sequence[int]) -> str:
    return " / ".join(f"{number:,}" for number in numbers)


def _error(cells: Cells, made: Made, attack: str) -> float:
    return float(cells[Row(6, attack, (made,)).key]["error"])


def _larger_helps(cells: Cells) -> tuple[bool, str]:
    falls = {
        (made, name): _error(cells, made, ARCHITECTURES[0]) - _error(cells, made, name)
        for made in _OTHERS
        for name in ARCHITECTURES[1:]
    }
    made, name = max(falls, key=lambda key: falls[key])
    return falls[made, name] >= BETTER, f"at most by {falls[made, name]:.3f} ({made.title}, {name})"


def _smallest_is_best(cells: Cells) -> tuple[bool, str]:
    lower = [
        (made, name)
        for made in _TREES
        for name in ARCHITECTURES[1:]
        if _error(cells, made, name) < cells[Row(6, ARCHITECTURES[0], (made,)).key]["interval"][0]
    ]
    falls = [
        _error(cells, made, ARCHITECTURES[0]) - _error(cells, made, n) for made in _TREES for n in ARCHITECTURES[1:]
    ]
    return not lower, f"a larger one is better by {max(falls):.3f} at most, worse by {-min(falls):.3f} at most"


def _close_to_best(cells: Cells) -> tuple[bool, str]:
    falls = {
        made: _error(cells, made, ARCHITECTURES[0])
        - min(_error(cells, made, name) for name in (*ARCHITECTURES, COUNTS))
        for made in _TREES
    }
    worst = max(falls, key=lambda made: falls[made])
    return falls[worst] < BETTER, f"at most {falls[worst]:.3f} above the best here ({worst.title})"


def _classifiers_agree(cells: Cells) -> tuple[bool, str]:
    spreads = {}
    for made in PAPER_TABLE_6:
        errors = [_error(cells, made, f"classifier {name}") for name in ARCHITECTURES]
        spreads[made] = max(errors) - min(errors)
    worst = max(spreads, key=lambda made: spreads[made])
    return spreads[worst] <= BETTER, f"at most {spreads[worst]:.3f} apart ({worst.title})"
