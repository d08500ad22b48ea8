# SPDX-License-Identifier: Apache-2.0
"""Row order: does the place of a record in the released file reveal whose record of its group it is?

k-anonymity gives k records the same quasi-identifiers. A file that was sorted, or that grew day by day, and whose order
was kept, lets an attacker tell them apart by their places. Called by audits.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.attack.named_attack import AttackedRelease, AttackFacts, Case, NamedAttack
from sfumato.attack.released_cells import Names, released_names
from sfumato.attack.result import AttackResult, Hits, result_of_counts
from sfumato.columns import Column
from sfumato.errors import InputError, ParameterError
from sfumato.frames import read_table
from sfumato.loss.released_groups import group_released

_LEARNED_FROM = 20_000  # people whose places the attacker knows, at most
_ATTACKED = 20_000  # people, at most
_FEWEST_TO_LEARN_FROM = 50
_TOGETHER = "all columns together"


def match_by_row_order(
    original: Any,
    released: Any,
    quasi_identifiers: Names | None = None,
    *,
    places: ArrayLike | None = None,
    random_state: int = 0,
    confidence: float = 0.95,
) -> AttackResult:
    """Pick a person's record out of its group by its place in the released file.

    The attacker knows the person's original values, knows which group the person is in, and expects the person's
    record at some place: where it would be if the file were sorted by one column, up or down, or where people with
    such values usually are. The record of the group nearest to that place is taken for the person's.

    Parameters
    ----------
    original, released : frame or array
        The same people, row by row.
    quasi_identifiers : list of str or int, optional
        Columns that make the groups; None: all columns of the original that were released.
    places : array-like of int, optional
        The place of every row in the file that is published; None: the rows were published as they stand.
    random_state : int, default=0
    confidence : float, default=0.95

    Returns
    -------
    AttackResult
        `rate` is the share of people whose own record is picked. The baseline picks any record of the group: 1 over
        its size, on average. The control is the same attack after the rows were shuffled.

    Notes
    -----
    Two fifths of the people teach the attacker where people are, a fifth decides by what to expect a place, and the
    other two fifths are attacked. Columns that were not released count too: a file sorted by name gives names a place.

    Examples
    --------
    >>> import pyarrow as pa
    >>> original = pa.table({"age": [20 + i // 10 for i in range(400)], "wage": list(range(400))})
    >>> released = pa.table({"age": [20 + i // 100 * 10 for i in range(400)], "wage": [i // 100 for i in range(400)]})
    >>> match_by_row_order(original, released).rate
    1.0
    >>> shuffled = np.random.default_rng(0).permutation(400)
    >>> match_by_row_order(original, released, places=shuffled).rate < 0.1
    True
    """
    start = time.perf_counter()
    before, after = read_table(original), read_table(released)
    n_people = before.n_records
    if n_people != after.n_records:
        raise InputError(
            f"the original has {n_people} records and the release {after.n_records}: expected the same people row by "
            "row. Remove suppressed records from the original."
        )
    names = released_names(before, after, quasi_identifiers)
    group = group_released(after, names)
    generator = np.random.default_rng([random_state, 11])
    at = np.arange(n_people) if places is None else _checked(places, n_people)
    parts = generator.permutation(n_people)
    learned, chosen, attacked = np.split(parts, [int(0.4 * n_people), int(0.6 * n_people)])
    learned, chosen, attacked = learned[:_LEARNED_FROM], chosen[: _ATTACKED // 2], attacked[:_ATTACKED]
    # Columns released unchanged would reveal more than any place, so this attacker does not use them.
    known = [name for name in before.names if name in names or name not in after.names]
    ranks = {name: _ranks(before.column(name, for_counting=True)) for name in known}

    def find(at: NDArray[np.int64]) -> tuple[NDArray[np.float64], str]:
        """Return the chance to find each of the attacked people, and by what."""
        keys = np.sort(group * n_people + at)
        expected = _expected_places(ranks, at, learned, np.concatenate([chosen, attacked]))
        found = {by: _found(keys, group, at, chosen, place[: len(chosen)]).sum() for by, place in expected.items()}
        by = max(found, key=lambda name: found[name])
        return _found(keys, group, at, attacked, expected[by][len(chosen) :]), by

    is_found, by = find(at)
    outside, _ = find(generator.permutation(n_people))
    by_chance = (1 / np.bincount(group))[group[attacked]]
    return result_of_counts(
        "row order",
        float(is_found.sum()),
        len(attacked),
        baseline=float(by_chance.mean()),
        control=float(outside.sum()) / len(attacked),
        confidence=confidence,
        started=start,
        seed=random_state,
        details={"n_targets": len(attacked), "places_from": by},
        hits=Hits(attacked, is_found, by_chance),
    )


def _checked(places: ArrayLike, n_people: int) -> NDArray[np.int64]:
    at = np.asarray(places)
    if at.shape != (n_people,) or not np.array_equal(np.sort(at), np.arange(n_people)):
        raise ParameterError(f"places: expected each number from 0 to {n_people - 1} once, one per record.")
    return at.astype(np.int64)


def _ranks(column: Column) -> NDArray[np.float64]:
    """Return where each record would be if the file were sorted by a column: the middle of its equals, missing last."""
    values = column.values
    if column.missing is not None:
        codes = np.unique(values, return_inverse=True)[1].astype(np.int64)
        values = np.where(column.missing, codes.max() + 1, codes)
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts + 1) / 2)[place]


def _expected_places(
    ranks: dict[str, NDArray[np.float64]],
    at: NDArray[np.int64],
    learned: NDArray[np.int64],
    people: NDArray[np.int64],
) -> dict[str, NDArray[np.float64]]:
    """Return the expected places of the records of some people, by the source of the expectation."""
    expected = {}
    for name, rank in ranks.items():
        is_up = float(np.cov(rank[learned], at[learned])[0, 1]) >= 0 if len(learned) > 1 else True
        expected[name] = rank[people] if is_up else len(rank) - 1 - rank[people]
    if len(learned) < _FEWEST_TO_LEARN_FROM:
        return expected
    from sklearn.ensemble import HistGradientBoostingRegressor

    seen = np.stack([rank[np.concatenate([learned, people])] for rank in ranks.values()], axis=1)
    model = HistGradientBoostingRegressor(max_iter=60, random_state=0).fit(seen[: len(learned)], at[learned])
    return {**expected, _TOGETHER: model.predict(seen[len(learned) :])}


def _found(
    keys: NDArray[np.int64],
    group: NDArray[np.int64],
    at: NDArray[np.int64],
    people: NDArray[np.int64],
    expected: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return whose own record is the one of their group nearest to its expected place; ties count half.

    `keys` are all places behind their group's number, sorted.
    """
    n = len(at)
    wanted = group[people] * n + np.clip(expected, 0, n - 1)
    above = np.searchsorted(keys, wanted)
    near = np.stack([np.clip(above - 1, 0, n - 1), np.clip(above, 0, n - 1)])
    gap = np.where(keys[near] // n == group[people], np.abs(keys[near] - wanted), np.inf)
    is_nearest = gap == gap.min(axis=0)
    is_nearest[1] &= near[1] != near[0]
    is_own = keys[near] == group[people] * n + at[people]
    return np.asarray((is_nearest & is_own).sum(axis=0) / is_nearest.sum(axis=0))


def _by_row_order(about: AttackedRelease) -> list[Case] | str:
    if not about.is_aligned:
        return "Row order does not apply: the rows are not in the order of the original."

    def run() -> AttackResult:
        return match_by_row_order(
            about.original, about.released, about.known, places=about.places, random_state=about.random_state
        )

    return [Case(ROW_ORDER.facts.title, run)]


ROW_ORDER = NamedAttack(
    AttackFacts(
        "row-order",
        "tell records of a group apart by row order",
        "takes the order of the released records for that of the original",
        "release",
        "singling out",
        result="row order",
        remedy="shuffle",
        knows="the original values and the groups of people, and the places of two fifths of the people",
        sees="the released records, in the order of the file",
    ),
    _by_row_order,
)
