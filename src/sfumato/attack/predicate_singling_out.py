# SPDX-License-Identifier: Apache-2.0
"""Predicate singling out: predicates of small weight, built from a release, that hold for exactly one person.

A predicate that isolates one person of a table proves nothing by itself: of n people one is isolated by luck with
probability n w (1 - w)^(n - 1), where w is the weight of the predicate, the share of the population for whom it holds.
A release fails where predicates built from it isolate people more often than their weights explain. Called by audits.

References
----------
Cohen, A. and Nissim, K. (2020). Towards formalizing the GDPR's notion of singling out. PNAS 117(15).
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
from sfumato.attack.released_cells import Names, ReleasedColumn, ReleasedTable, read_release
from sfumato.attack.result import AttackResult, result_of_counts, wilson_interval
from sfumato.errors import InputError, named
from sfumato.frames import Table, read_table
from sfumato.grouping import group_rows, merge_rows
from sfumato.loss.released_groups import code_values

_FEWEST_OTHERS = 20
_LOOKED_AT = 4  # released records that the attacker weighs, for each one that becomes a predicate


def single_out_by_predicates(
    original: Any,
    released: Any,
    quasi_identifiers: Names | None = None,
    *,
    control: Any,
    unchanged: Names = (),
    is_aligned: bool = True,
    n_attempts: int = 500,
    random_state: int = 0,
    confidence: float = 0.95,
) -> AttackResult:
    """Build predicates of small weight from a release, and compare how many isolate a person with chance.

    A released record is a predicate: a person has its values, or lies inside its ranges and sets. It may be refined by
    a random hash of a person's record that holds for one in m people, where m records were released like it: of the m
    people of a group, exactly one then remains in about 1 of e cases. With `unchanged`, it may be refined by values
    in those columns that exactly one record of the group has.

    Parameters
    ----------
    original, released : frame or array
        The people in the release, before and after.
    quasi_identifiers : list of str or int, optional
        Columns of the predicates; None: all that were released.
    control : frame or array
        Other people of the same population. The attacker weighs released records by one half of them and takes the
        lightest; the other half tells the weight of the predicates.
    unchanged : list of str or int
        Further columns, which were released unchanged. They are used only if the control has them, too.
    is_aligned : bool, default=True
        Whether the rows of both tables are in the same order. Only labels that say neither a range nor a set need it.
    n_attempts : int, default=500
        Predicates of each kind, from different released records. Half of them decide which kind is better, the other
        half is judged.
    random_state : int, default=0
    confidence : float, default=0.95

    Returns
    -------
    AttackResult
        `rate` is the share of predicates that isolate one person, on average over the hashes. The baseline is the
        highest share that chance explains: n w (1 - w)^(n - 1) for the n people, at the upper end of the interval of
        the mean weight w, and 1/e from w = 1/n on. The control is the share of the predicates that isolate one of the
        other people. ``details["weight"]`` and ``details["weight_interval"]`` have the mean weight.

    Notes
    -----
    n w (1 - w)^(n - 1), kept at its highest value from w = 1/n on, is a concave function of w. By Jensen's inequality
    the mean chance of predicates of different weights is not above its value at their mean weight: the baseline is not
    too low if weights differ.

    Ranges that are hulls are much lighter than their groups are large: hashes of their members isolate people, but
    chance does not. Cells of a tree have the weight of their group, m / n: refined by a hash they reach 1/e, as chance
    does.

    References
    ----------
    Cohen, A. and Nissim, K. (2020). Towards formalizing the GDPR's notion of singling out. PNAS 117(15).

    Examples
    --------
    >>> import numpy as np, pyarrow as pa
    >>> points = np.random.default_rng(0).random((2, 400, 3))
    >>> original, others = (pa.table({name: part[:, i] for i, name in enumerate("abc")}) for part in points)
    >>> found = single_out_by_predicates(original, original, control=others)
    >>> found.rate, round(found.baseline, 3)
    (1.0, 0.07)
    """
    start = time.perf_counter()
    before = read_table(original)
    table = read_release(
        original, released, quasi_identifiers, control, unchanged=unchanged, is_aligned=is_aligned, as_stated=True
    )
    if table.n_others < _FEWEST_OTHERS:
        raise InputError(
            f"{table.n_others} people in {named('control')}: expected at least {_FEWEST_OTHERS}, or no weight could be "
            "estimated. Give more."
        )
    generator = np.random.default_rng([random_state, 23])
    halves = np.array_split(generator.permutation(table.n_others), 2)
    kinds = _predicates(table, len(before.resolve(unchanged, "unchanged")), halves[0], n_attempts, generator)
    people = _People.of(before)
    isolated = {kind: people.isolated_by(own, table) for kind, own in kinds.items()}
    # One half decides which kind of predicate is the better one, the other half is judged.
    is_judged = {kind: generator.permutation(len(own)) % 2 == 0 for kind, own in isolated.items()}
    kind = max(kinds, key=lambda name: float(isolated[name][~is_judged[name]].sum()) / len(isolated[name]))
    judged, success = kinds[kind].part(is_judged[kind]), isolated[kind][is_judged[kind]]
    weight, weights = _mean_weight(judged, table, halves[1], confidence)
    n_people = table.n_people
    found = result_of_counts(
        "predicate singling out",
        float(success.sum()),
        len(success),
        baseline=_chance_at_most(weights[1], n_people),
        control=_isolated_others(judged, table, halves[1]),
        confidence=confidence,
        started=start,
        seed=random_state,
        details={
            "predicates_from": kind,
            "n_attempts": len(success),
            "rates": {name: float(isolated[name].mean()) for name in kinds},
            "weight": weight,
            "weight_interval": weights,
            "chance": _chance_at_most(weight, n_people),
            "n_people": n_people,
        },
    )
    # The baseline is a bound on chance and not what a guess reached: to stay below it is not to fail.
    return found.with_verdict("not shown") if found.verdict == "failed attack" else found


@dataclass(frozen=True, eq=False)
class _Predicates:
    """Released records as predicates, each refined by a hash that holds for a share of all people."""

    columns: Sequence[ReleasedColumn]
    records: NDArray[np.int64]
    shares: NDArray[np.float64]  # 1: no hash

    def part(self, mask: NDArray[np.bool_]) -> _Predicates:
        return _Predicates(self.columns, self.records[mask], self.shares[mask])


@dataclass(frozen=True, eq=False)
class _People:
    """The people of the original; a hash tells them apart unless their records are equal in all columns."""

    whole: NDArray[np.int64]
    is_alone: NDArray[np.bool_]

    @classmethod
    def of(cls, before: Table) -> _People:
        codes = [code_values(before.column(name, for_counting=True)) for name in before.names]
        whole = group_rows(codes, before.n_records)
        return cls(whole, np.bincount(whole)[whole] == 1)

    def isolated_by(self, predicates: _Predicates, table: ReleasedTable) -> NDArray[np.float64]:
        """Return how likely each predicate holds for exactly one person, over all hashes."""
        values = table.people(predicates.columns)
        first, group = merge_rows(list(values.T), [column.n_values for column in predicates.columns], len(values))
        kinds = np.unique(group * (int(self.whole.max()) + 1) + self.whole)
        n_kinds = np.bincount(kinds // (int(self.whole.max()) + 1), minlength=len(first))
        n_alone = np.bincount(group[self.is_alone], minlength=len(first))
        inside = rows_inside(predicates.columns, predicates.records, values[first], np.bincount(group))
        counts = np.array([(n_alone[rows].sum(), n_kinds[rows].sum()) for rows in inside], np.float64)
        return _exactly_one(counts[:, 0], counts[:, 1], predicates.shares)


def _exactly_one(
    n_alone: NDArray[np.float64], n_kinds: NDArray[np.float64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return how likely a hash keeps one person who is alone, and nobody else."""
    return np.asarray(n_alone * shares * (1 - shares) ** np.maximum(n_kinds - 1, 0))


def _predicates(
    table: ReleasedTable,
    n_unchanged: int,
    known: NDArray[np.int64],
    n_attempts: int,
    generator: np.random.Generator,
) -> dict[str, _Predicates]:
    """Return the predicates of each kind: those that are lightest among the people whom the attacker knows."""
    columns = table.columns[: len(table.columns) - n_unchanged]
    shown = np.stack([column.shown for column in columns], axis=1)
    first, group = merge_rows(list(shown.T), [column.n_shown for column in columns], len(shown))
    share = 1 / np.bincount(group)
    kinds = {
        "released records": _Predicates(columns, shown[first], np.ones(len(first))),
        "records and a hash": _Predicates(columns, shown[first], share),
    }
    if n_unchanged and all(column.has_others for column in table.columns):
        own = np.stack([column.shown for column in table.columns], axis=1)
        row, whole = merge_rows(list(own.T), [column.n_shown for column in table.columns], len(own))
        alone = row[np.bincount(whole) == 1]
        one_each = alone[np.unique(group[alone], return_index=True)[1]]
        if len(one_each) > 1:
            kinds["records and unchanged values"] = _Predicates(table.columns, own[one_each], np.ones(len(one_each)))
    return {kind: _lightest(own, table, known, n_attempts, generator) for kind, own in kinds.items()}


def _lightest(
    predicates: _Predicates,
    table: ReleasedTable,
    known: NDArray[np.int64],
    n_attempts: int,
    generator: np.random.Generator,
) -> _Predicates:
    """Return the predicates that hold for the fewest known people for the size of their group, in random order."""
    drawn = generator.permutation(len(predicates.records))[: _LOOKED_AT * n_attempts]
    looked_at = _Predicates(predicates.columns, predicates.records[drawn], predicates.shares[drawn])
    weights = _n_met(looked_at, table, known) * looked_at.shares
    wanted = max(2, min(n_attempts, len(drawn) // 2))
    chosen = np.argsort(weights, kind="stable")[:wanted]
    return _Predicates(predicates.columns, looked_at.records[chosen], looked_at.shares[chosen])


def _n_met(predicates: _Predicates, table: ReleasedTable, who: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many of some other people lie inside each released record."""
    inside = rows_inside(predicates.columns, predicates.records, table.others(predicates.columns)[who])
    return np.array([len(rows) for rows in inside], np.int64)


def _mean_weight(
    predicates: _Predicates, table: ReleasedTable, who: NDArray[np.int64], confidence: float
) -> tuple[float, tuple[float, float]]:
    """Return the mean weight of predicates, and its interval over people."""
    met = np.zeros(len(who))
    inside = rows_inside(predicates.columns, predicates.records, table.others(predicates.columns)[who])
    for rows, share in zip(inside, predicates.shares, strict=True):
        met[rows] += share / len(predicates.shares)
    # A mean of numbers from 0 to `most` varies at most as much as that of zeros and such numbers.
    most = max(float(met.max()), float(predicates.shares.max()) / len(predicates.shares))
    low, high = wilson_interval(min(float(met.sum()) / most, len(who)), len(who), confidence)
    return float(met.mean()), (most * low, most * high)


def _isolated_others(predicates: _Predicates, table: ReleasedTable, who: NDArray[np.int64]) -> float:
    """Return the share of predicates that isolate one of the other people, at most as many as were released."""
    n_met = _n_met(predicates, table, who[: table.n_people]).astype(np.float64)
    return float(_exactly_one(n_met, n_met, predicates.shares).mean())


def _chance_at_most(weight: float, n_people: int) -> float:
    """Return how likely a predicate of at most this weight isolates one of so many people by luck."""
    most = min(weight, 1 / n_people)
    return float(n_people * most * (1 - most) ** (n_people - 1))


def _cases(about: AttackedRelease) -> list[Case] | str:
    if about.control is None:
        return "Singling out by small predicates does not apply: no holdout records were given to weigh them."

    def run() -> AttackResult:
        return single_out_by_predicates(about.original, about.released, about.known, **about.who)

    return [Case(PREDICATE_SINGLING_OUT.facts.title, run)]


PREDICATE_SINGLING_OUT = NamedAttack(
    AttackFacts(
        "predicate-singling-out",
        "single out by predicates of small weight",
        "refines released records to predicates that hold for one person where chance would isolate nobody",
        "release",
        "singling out",
        result="predicate singling out",
        remedy="representative",
        knows="a sample of other people",
    ),
    _cases,
)
