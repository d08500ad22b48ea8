# SPDX-License-Identifier: Apache-2.0
"""Downcoding: do the ends of published ranges give away exact values of people?

A range that was cut to the values of its group ends where somebody's value is. An attacker takes each end for a value
of a member, and undoes part of the generalization without knowing anything about the people. Called by audits.

References
----------
Cohen, A. (2022). Attacks on Deidentification's Defenses. USENIX Security.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.named_attack import AttackedRelease, AttackFacts, Case, NamedAttack
from sfumato.attack.released_boxes import rows_inside
from sfumato.attack.released_cells import Names, Ranges, ReleasedColumn, ReleasedTable, read_release
from sfumato.attack.result import AttackResult, judge, wilson_interval
from sfumato.errors import InputError, named
from sfumato.frames import read_table
from sfumato.grouping import merge_rows

_FURTHEST_END = 2.0**62  # an end beyond this says that a range is open


def downcode_release(
    original: Any,
    released: Any,
    quasi_identifiers: Names | None = None,
    *,
    control: Any = None,
    is_aligned: bool = True,
    n_groups: int | None = 2000,
    random_state: int = 0,
    confidence: float = 0.95,
) -> AttackResult:
    """Take the ends of published ranges for exact values of members of their groups.

    A guess names a group, a column and an end of the range that was published there. It is right if at least one member
    of the group has exactly this value.

    Parameters
    ----------
    original, released : frame or array
        The people in the release, before and after, with ranges or bounds in some columns.
    quasi_identifiers : list of str or int, optional
        Columns that make the groups; None: all that were released.
    control : frame or array, optional
        Other people of the same population. Without them, the original people show how frequent values are.
    is_aligned : bool, default=True
        Whether the rows of both tables are in the same order. If not, all people who lie inside a published record
        count as members of its group.
    n_groups : int or None, default=2000
        Groups to attack, drawn at random; None: all.
    random_state : int, default=0
    confidence : float, default=0.95

    Returns
    -------
    AttackResult
        `rate` is the share of right guesses. The baseline ignores the ends and names the value of a random person of
        the population who lies in the range. The control is the same attack on other people: how often one of as many
        random people in the range has exactly the value at the end. ``details["by_column"]`` has the rate and the
        baseline of each column.

    Raises
    ------
    InputError
        If no column was released as ranges or bounds.

    Notes
    -----
    Guesses about one group depend on each other, so the interval counts every group as one observation.

    Cohen shows more for trees that cut as long as a safe cut exists: in a group of m >= 2k records every ordered column
    then has a value that at least m - 2k + 2 members share. ``details["share_of_forced_groups"]`` is the share of
    groups that are so large, with the smallest group as k.

    References
    ----------
    Cohen, A. (2022). Attacks on Deidentification's Defenses. USENIX Security.

    Examples
    --------
    >>> import pyarrow as pa
    >>> original = pa.table({"age": [21, 24, 28, 33, 35, 37]})
    >>> tight = pa.table({"age": ["21-28"] * 3 + ["33-37"] * 3})
    >>> decades = pa.table({"age": ["20-29"] * 3 + ["30-39"] * 3})
    >>> downcode_release(original, tight).rate, downcode_release(original, decades).rate
    (1.0, 0.0)
    """
    start = time.perf_counter()
    table = read_release(original, released, quasi_identifiers, control, is_aligned=is_aligned, as_stated=True)
    ranges = [column for column in table.columns if _has_ranges(column)]
    if not ranges:
        raise InputError(
            "no column was released as ranges or bounds: expected some to attack. Leave this attack out, or name other "
            f"columns in {named('quasi_identifiers')}."
        )
    generator = np.random.default_rng([random_state, 19])
    group, person, records = _members(table, is_aligned, n_groups, generator)
    tried = [_guess(column, records[:, table.columns.index(column)], group, person) for column in ranges]
    together = _Guesses.joined(tried)
    rate = float(together.is_right.mean())
    baseline, outside = float(together.by_draw.mean()), None
    if control is not None:
        outside = float(together.by_others.mean())
    interval = _interval_of_groups(together.is_right, together.group, confidence)
    sizes = np.bincount(group, minlength=len(records))
    return AttackResult(
        "downcoding",
        rate,
        interval,
        baseline,
        outside,
        judge(rate, interval, baseline, control=outside),
        time.perf_counter() - start,
        random_state,
        details={
            "n_groups": len(np.unique(together.group)),
            "n_guesses": len(together.group),
            "by_column": {
                column.name: {"rate": float(own.is_right.mean()), "baseline": float(own.by_draw.mean())}
                for column, own in zip(ranges, tried, strict=True)
                if len(own.group)
            },
            "share_of_forced_groups": float((sizes >= 2 * sizes.min()).mean()),
        },
    )


@dataclass(frozen=True, eq=False)
class _Guesses:
    """Guesses about groups: whether each is right, and how likely others would be."""

    group: NDArray[np.int64]
    is_right: NDArray[np.bool_]
    by_draw: NDArray[np.float64]  # that the value of a random person in the range is a member's
    by_others: NDArray[np.float64]  # that one of as many random people in the range has the guessed value

    @classmethod
    def joined(cls, parts: Sequence[_Guesses]) -> _Guesses:
        names = ("group", "is_right", "by_draw", "by_others")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def _has_ranges(column: ReleasedColumn) -> bool:
    if not isinstance(column.cells, Ranges) or not column.is_stated:
        return False
    return bool(_has_two_ends(column.cells)[column.different].any())


def _has_two_ends(cells: Ranges) -> NDArray[np.bool_]:
    """Return which cells are ranges of several values with at least one end."""
    has_end = (np.abs(cells.low) < _FURTHEST_END) | (np.abs(cells.high) < _FURTHEST_END)
    return np.asarray((cells.low < cells.high) & has_end)


def _members(
    table: ReleasedTable, is_aligned: bool, n_groups: int | None, generator: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return groups beside their members, as two arrays of equal length, and the released cells of every group."""
    shown = np.stack([column.shown for column in table.columns], axis=1)
    first, group_of = merge_rows(list(shown.T), [column.n_shown for column in table.columns], len(shown))
    chosen = np.arange(len(first))
    if n_groups is not None and n_groups < len(first):
        chosen = np.sort(generator.choice(len(first), n_groups, replace=False))
    records = shown[first[chosen]]
    if is_aligned:
        place = np.full(len(first), -1)
        place[chosen] = np.arange(len(chosen))
        person = np.flatnonzero(place[group_of] >= 0)
        return place[group_of[person]], person, records
    inside = list(rows_inside(table.columns, records, table.people(table.columns)))
    return np.repeat(np.arange(len(records)), [len(rows) for rows in inside]), np.concatenate(inside), records


def _guess(
    column: ReleasedColumn, cells: NDArray[np.int64], group: NDArray[np.int64], person: NDArray[np.int64]
) -> _Guesses:
    """Guess the ends of the ranges of a column."""
    assert isinstance(column.cells, Ranges)
    low, high = column.cells.low[cells], column.cells.high[cells]
    is_value = ~np.isnan(column.cells.values)
    values = column.cells.values[is_value]  # rising, as codes of values do
    place_of = np.where(is_value, np.cumsum(is_value) - 1, len(values))  # missing last
    population = place_of[column.other_codes if len(column.other_codes) else column.codes]
    n_of = np.bincount(population, minlength=len(values) + 1)[: len(values)]
    below = np.concatenate([[0], np.cumsum(n_of)])
    first, after = np.searchsorted(values, low, "left"), np.searchsorted(values, high, "right")
    n_inside = (below[after] - below[first]).astype(float)
    places = place_of[column.codes[person]]
    is_inside = (places >= first[group]) & (places < after[group])
    held = np.unique(group[is_inside] * len(values) + places[is_inside])
    by_draw = np.bincount(held // len(values), weights=n_of[held % len(values)], minlength=len(cells))
    sizes = np.bincount(group[places < len(values)], minlength=len(cells))
    several = _has_two_ends(column.cells)[cells]
    parts = []
    for end in (low, high):
        tried = np.flatnonzero(several & (np.abs(end) < _FURTHEST_END) & (sizes > 0))
        place = np.minimum(np.searchsorted(values, end[tried]), len(values) - 1)
        exists = values[place] == end[tried]
        is_right = exists & np.isin(tried * len(values) + place, held)
        n_drawn = np.maximum(n_inside[tried], 1)
        share = np.where(exists, n_of[place], 0) / n_drawn
        parts.append(_Guesses(tried, is_right, by_draw[tried] / n_drawn, 1 - (1 - share) ** sizes[tried]))
    return _Guesses.joined(parts)


def _interval_of_groups(
    is_right: NDArray[np.bool_], group: NDArray[np.int64], confidence: float
) -> tuple[float, float]:
    """Return Wilson's interval of a rate with every group as one observation."""
    n_groups = len(np.unique(group))
    return wilson_interval(float(is_right.mean()) * n_groups, n_groups, confidence)


def _cases(about: AttackedRelease) -> list[Case] | str:
    if not _publishes_ranges(about):
        return "Reading values off the ends of ranges does not apply: no column was released as ranges or bounds."

    def run() -> AttackResult:
        return downcode_release(about.original, about.released, about.known, **about.who)

    return [Case(DOWNCODING.facts.title, run)]


def _publishes_ranges(about: AttackedRelease) -> bool:
    """Return True if some column was released as ranges or bounds, or cannot be read: the attack then says why."""
    before, after = read_table(about.original), read_table(about.released)
    ordered = [name for name in about.known if before.kind(name) != "category"]
    rewritten = [name for name in ordered if name not in after.names or after.kind(name) == "category"]
    if not rewritten:
        return False
    try:
        table = read_release(
            about.original, about.released, rewritten, None, is_aligned=about.is_aligned, as_stated=True
        )
    except InputError:
        return True
    return any(_has_ranges(column) for column in table.columns)


DOWNCODING = NamedAttack(
    AttackFacts(
        "downcoding",
        "read exact values off the ends of ranges",
        "takes the ends of a published range for values of members of its group",
        "release",
        "inference",
        result="downcoding",
        remedy="representative",
        knows="nothing but the release",
    ),
    _cases,
)
