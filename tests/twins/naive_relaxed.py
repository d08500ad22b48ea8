# SPDX-License-Identifier: Apache-2.0
"""Slow twin of relaxed Mondrian, for the tests: plain Python, written from the definition."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sfumato.partition.records import Layout
from sfumato.partition.taxonomy import NO_TAXONOMY, Taxonomy
from twins.naive_splitting import hierarchy_labels, width

Rows = list[int]


def relaxed_mondrian(
    codes: Any,
    layout: Layout,
    k: int,
    *,
    taxonomy: Taxonomy = NO_TAXONOMY,
    is_safe: Callable[[Rows], bool] = lambda rows: True,
) -> list[Rows]:
    """Return the groups: the widest column first, cut where most nearly half of its sorted records lie left."""
    groups: list[Rows] = []
    waiting = [list(range(len(codes)))]
    while waiting:
        rows = waiting.pop()
        cut = _halve(codes, rows, layout, k, taxonomy, is_safe)
        if cut is None:
            groups.append(sorted(rows))
        else:
            waiting += cut
    return sorted(groups)


def _halve(
    codes: Any, rows: Rows, layout: Layout, k: int, taxonomy: Taxonomy, is_safe: Callable[[Rows], bool]
) -> list[Rows] | None:
    records = {row: tuple(int(code) for code in codes[row][: layout.n_columns]) for row in rows}
    present = [{records[row][j] for row in rows} for j in range(layout.n_columns)]
    widths = [float(width(own, layout, j, taxonomy)) for j, own in enumerate(present)]
    for column in sorted(range(layout.n_columns), key=lambda j: (-widths[j], j)):
        if len(present[column]) < 2:
            continue
        number = _classes(present[column], layout, column, taxonomy)
        ranked = sorted(rows, key=lambda row: (number[records[row][column]], records[row]))
        places = [
            place
            for place in range(k, len(rows) - k + 1)
            if 0 < place < len(rows) and records[ranked[place - 1]] != records[ranked[place]]
        ]
        if not places:
            continue
        best = min(places, key=lambda place: (abs(2 * place - len(rows)), place))
        sides = [ranked[:best], ranked[best:]]
        if all(is_safe(side) for side in sides):
            return sides
    return None


def _classes(present: set[int], layout: Layout, column: int, taxonomy: Taxonomy) -> dict[int, int]:
    """Number the codes of a column; those below one child of the common label have one number."""
    labels = hierarchy_labels(taxonomy, layout, column)
    ordered = sorted(present)
    if labels is None:
        return {code: place for place, code in enumerate(ordered)}
    level = 0
    while len({labels[code][level] for code in ordered}) > 1:
        level += 1
    children: Sequence[int] = list(dict.fromkeys(labels[code][level - 1] for code in ordered))
    return {code: children.index(labels[code][level - 1]) for code in ordered}
