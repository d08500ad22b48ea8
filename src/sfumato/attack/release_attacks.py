# SPDX-License-Identifier: Apache-2.0
"""Singling out, linkability and inference on released tables: the three risks of the EU's Opinion 05/2014.

Works on any release whose rows still stand beside the original ones: with ranges, sets, bounds or representative
values in place of the exact ones. The attacker compares what is known of a person with the released records and keeps
the nearest. Bucket numbers are not values; a generalization is attacked as a release by its labels. Called by
audits.

References
----------
Article 29 Data Protection Working Party (2014). Opinion 05/2014 on Anonymisation Techniques, section 2.2.2.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from sfumato.attack.named_attack import AttackedRelease, AttackFacts, Case, NamedAttack
from sfumato.attack.released_boxes import rows_inside
from sfumato.attack.released_cells import (
    Exact,
    Names,
    ReleasedColumn,
    ReleasedTable,
    distances_by_block,
    read_release,
)
from sfumato.attack.result import AttackResult, Hits, result_of_counts
from sfumato.errors import ParameterError
from sfumato.frames import read_table
from sfumato.grouping import merge_rows

_COMPARED_AT_ONCE = 1 << 23  # pairs of people and released records


def single_out_of_release(
    original: Any,
    released: Any,
    quasi_identifiers: Names | None = None,
    *,
    unchanged: Names = (),
    control: Any = None,
    is_aligned: bool = True,
    n_attempts: int | None = 1000,
    random_state: int = 0,
    confidence: float = 0.95,
) -> AttackResult:
    """Make predicates from a release, and count those that hold for exactly one person of the original table.

    A predicate says of every quasi-identifier that it lies in a released range or set, or equals a released value:
    those of one released record, or of several put together. With `unchanged`, it may also name the values of a
    released record in those columns, alone or beside its quasi-identifiers. Whichever isolates most often is judged.

    Parameters
    ----------
    original, released : frame or array
        The same people in the same order, before and after.
    quasi_identifiers : list of str or int, optional
        Columns that an attacker may know; None: all.
    unchanged : list of str or int
        Further columns, which were released unchanged.
    control : frame or array, optional
        As many other people: predicates that isolate them, too, tell of the population and not of the table. They may
        lack columns that are `unchanged`; predicates on those have no control then.
    is_aligned : bool, default=True
        Whether the rows of both tables are in the same order. If not, labels must say what they stand for.
    n_attempts : int or None, default=1000
        Predicates of either kind, from different released records drawn at random; None: all records. Half of them
        decide which kind is better, the other half is judged.
    random_state : int, default=0
    confidence : float, default=0.95

    Returns
    -------
    AttackResult
        `rate` is the share of predicates that isolate a person. The baseline knows the ranges, sets and values of each
        column, but neither their frequencies nor their combinations. The control applies the same predicates to other
        people.

    Examples
    --------
    >>> import pyarrow as pa
    >>> original = pa.table({"age": list(range(20, 60)), "job": ["nurse", "smith"] * 20})
    >>> as_it_is = single_out_of_release(original, original)
    >>> decades = original.set_column(0, "age", pa.array([f"{age // 10}0-{age // 10}9" for age in range(20, 60)]))
    >>> as_it_is.rate, single_out_of_release(original, decades).rate
    (1.0, 0.0)
    """
    start = time.perf_counter()
    table = read_release(original, released, quasi_identifiers, control, unchanged=unchanged, is_aligned=is_aligned)
    generator = np.random.default_rng(random_state)
    kinds = _predicates(table, n_attempts, generator)
    # Half of the attempts decide which kind of predicate is the better one, the other half is judged.
    is_judged = {
        kind: generator.permutation(len(tried)) % 2 == 1 if len(tried) > 1 else np.ones(1, bool)
        for kind, (_, tried) in kinds.items()
    }
    isolates = {kind: _n_met(columns, tried, table.people(columns)) == 1 for kind, (columns, tried) in kinds.items()}
    seen = {kind: isolates[kind][~is_judged[kind]] for kind in kinds}
    kind = max(kinds, key=lambda name: float(seen[name].mean()) if len(seen[name]) else 0.0)
    columns, tried = kinds[kind]
    isolated = isolates[kind][is_judged[kind]]
    blind = np.stack([generator.choice(column.different, len(tried)) for column in columns], axis=1)
    baseline = float((_n_met(columns, blind, table.people(columns)) == 1).mean())
    outside = None
    if control is not None and all(column.has_others for column in columns):
        outside = float((_n_met(columns, tried[is_judged[kind]], table.others(columns)) == 1).mean())
    return result_of_counts(
        "singling out of a release",
        int(isolated.sum()),
        len(isolated),
        baseline,
        control=outside,
        confidence=confidence,
        started=start,
        seed=random_state,
        details={
            "predicates_from": kind,
            "n_attempts": len(isolated),
            "n_isolated": int(isolated.sum()),
            "rates": {name: float(isolates[name].mean()) for name in kinds},
            "n_people": table.n_people,
        },
    )


def _predicates(
    table: ReleasedTable, n_attempts: int | None, generator: np.random.Generator
) -> dict[str, tuple[Sequence[ReleasedColumn], NDArray[np.int64]]]:
    """Return each kind of predicate: the columns that it names, and released cells per attempt."""
    exact = [column for column in table.columns if isinstance(column.cells, Exact)]
    rewritten = [column for column in table.columns if not isinstance(column.cells, Exact)]
    kinds: dict[str, tuple[Sequence[ReleasedColumn], NDArray[np.int64]]] = {}
    if rewritten:
        different = table.shown(rewritten)
        records = different[_drawn(len(different), n_attempts, generator)]
        recombined = np.stack([generator.choice(column.shown, len(records)) for column in rewritten], axis=1)
        kinds = {"whole records": (rewritten, records), "recombined records": (rewritten, recombined)}
    if exact:
        # Of people and not of different records: the rate is the share of people who can be isolated.
        rows = _drawn(len(exact[0].shown), n_attempts, generator)
        for kind, columns in {"unchanged columns": exact, "all released columns": table.columns}.items():
            kinds[kind] = columns, np.stack([column.shown[rows] for column in columns], axis=1)
    return kinds


def link_through_release(
    original: Any,
    released: Any,
    left: Names,
    right: Names,
    *,
    control: Any = None,
    is_aligned: bool = True,
    n_targets: int | None = 500,
    random_state: int = 0,
    confidence: float = 0.95,
) -> AttackResult:
    """Link two partial lists of the same people through the released records that fit both.

    Parameters
    ----------
    original, released : frame or array
        The same people in the same order, before and after.
    left, right : list of str or int
        Columns of the two lists, known in full resolution; none in both.
    control : frame or array, optional
        Other people, who are not in the release.
    is_aligned : bool, default=True
        Whether the rows of both tables are in the same order. If not, labels must say what they stand for.
    n_targets : int or None, default=500
        People on the lists, drawn at random; None: all.
    random_state : int, default=0
    confidence : float, default=0.95

    Returns
    -------
    AttackResult
        `rate` is the share of entries of the left list whose person's values on the right list are named. The baseline
        does not see the release and names the most frequent entry of the right list.

    Examples
    --------
    >>> import pyarrow as pa
    >>> original = pa.table({"job": ["nurse", "smith"] * 20, "shift": ["night", "day"] * 20})
    >>> result = link_through_release(original, original, ["job"], ["shift"])
    >>> result.rate, result.baseline
    (1.0, 0.5)
    """
    start = time.perf_counter()
    before = read_table(original)
    names = [*before.resolve(left, "left"), *before.resolve(right, "right")]
    table = read_release(original, released, list(dict.fromkeys(names)), control, is_aligned=is_aligned)
    sides = table.named(left, "left"), table.named(right, "right")
    if {column.name for column in sides[0]} & {column.name for column in sides[1]} or not all(sides):
        raise ParameterError("left and right share columns, or one is empty: expected different columns. Name others.")
    generator = np.random.default_rng(random_state)
    drawn = _drawn(table.n_people, n_targets, generator)
    is_linked, is_frequent = _linked(sides, [table.people(side)[drawn] for side in sides])
    outside = None
    if control is not None:
        others = _drawn(table.n_others, n_targets, generator)
        found, _ = _linked(sides, [table.others(side)[others] for side in sides])
        outside = float(found.sum()) / len(others)
    return result_of_counts(
        "linkability through a release",
        float(is_linked.sum()),
        len(drawn),
        float(is_frequent.mean()),
        control=outside,
        confidence=confidence,
        started=start,
        seed=random_state,
        details={"n_targets": len(drawn), "left": [c.name for c in sides[0]], "right": [c.name for c in sides[1]]},
        hits=Hits(drawn, is_linked, is_frequent),
    )


def infer_from_release(
    original: Any,
    released: Any,
    known: Names,
    secret: str | int,
    *,
    control: Any = None,
    is_aligned: bool = True,
    n_targets: int | None = 1000,
    random_state: int = 0,
    confidence: float = 0.95,
) -> AttackResult:
    """Infer a secret of people whose other values are known, from the released records nearest to them.

    Parameters
    ----------
    original, released : frame or array
        The same people in the same order, before and after.
    known : list of str or int
        Columns that the attacker knows of a person, in full resolution.
    secret : str or int
        The column to infer. If it was generalized, the attacker guesses the most frequent value behind a label.
    control : frame or array, optional
        Other people, who are not in the release: what can be inferred of them is knowledge about people in general.
    is_aligned : bool, default=True
        Whether the rows of both tables are in the same order. If not, labels must say what they stand for, and the
        secret must have been released unchanged.
    n_targets : int or None, default=1000
        People to attack, drawn at random; None: all.
    random_state : int, default=0
    confidence : float, default=0.95

    Returns
    -------
    AttackResult
        `rate` is the share of right guesses. The baseline does not see the release and guesses the most frequent value.

    Examples
    --------
    >>> import pyarrow as pa
    >>> original = pa.table({"age": [20, 21, 30, 31], "disease": ["flu", "flu", "cold", "cold"]})
    >>> released = original.set_column(0, "age", pa.array(["20-21", "20-21", "30-31", "30-31"]))
    >>> result = infer_from_release(original, released, ["age"], "disease")
    >>> result.rate, result.baseline
    (1.0, 0.5)
    """
    start = time.perf_counter()
    before = read_table(original)
    (secret_name,) = before.resolve([secret], "secret")
    names = [name for name in before.resolve(known, "known") if name != secret_name]
    as_it_is: dict[str, Any] = {} if is_aligned else {"unchanged": [secret_name], "is_aligned": False}
    table = read_release(original, released, [*names, secret_name] if is_aligned else names, control, **as_it_is)
    columns, (hidden,) = table.named(known, "known"), table.named([secret_name], "secret")
    if hidden.name in {column.name for column in columns} or not columns:
        raise ParameterError("secret is also in known, or known is empty: expected different columns. Name others.")
    generator = np.random.default_rng(random_state)
    drawn = _drawn(table.n_people, n_targets, generator)
    is_right = _inferred(columns, hidden, table.people(columns)[drawn], hidden.codes[drawn])
    outside = None
    if control is not None:
        others = _drawn(table.n_others, n_targets, generator)
        outside = float(_inferred(columns, hidden, table.others(columns)[others], hidden.other_codes[others]).mean())
    is_frequent = hidden.codes[drawn] == np.bincount(hidden.codes).argmax()
    return result_of_counts(
        "inference from a release",
        float(is_right.sum()),
        len(drawn),
        float(is_frequent.mean()),
        control=outside,
        confidence=confidence,
        started=start,
        seed=random_state,
        details={"n_targets": len(drawn), "known": [column.name for column in columns], "secret": hidden.name},
        hits=Hits(drawn, is_right, is_frequent, hidden.codes[drawn]),
    )


def _drawn(n: int, wanted: int | None, generator: np.random.Generator) -> NDArray[np.int64]:
    return np.arange(n) if wanted is None or wanted >= n else np.sort(generator.choice(n, wanted, replace=False))


def _n_met(
    columns: Sequence[ReleasedColumn], attempts: NDArray[np.int64], people: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return how many people meet each predicate; equal people are compared once."""
    sizes = [column.n_values for column in columns]
    if all(isinstance(column.cells, Exact) for column in columns):  # equal or not: nothing to compare pair by pair
        both = np.concatenate([people, attempts])
        _, group = merge_rows(list(both.T), sizes, len(both))
        return np.asarray(np.bincount(group[: len(people)], minlength=int(group.max()) + 1)[group[len(people) :]])
    first, group = merge_rows(list(people.T), sizes, len(people))
    counts = np.bincount(group)
    inside = rows_inside(columns, attempts, people[first], counts)
    return np.array([counts[rows].sum() for rows in inside], np.int64)


def _near(columns: Sequence[ReleasedColumn], people: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the group of every row that was released alike in these columns, and the groups nearest to each person."""
    shown = np.stack([column.shown for column in columns], axis=1)
    first, group = merge_rows(list(shown.T), [column.n_shown for column in columns], len(shown))
    candidates = shown[first]
    near = np.zeros((len(people), len(candidates)), bool)
    for part, total in distances_by_block(columns, candidates, people):
        near[part] = total <= total.min(axis=1, keepdims=True) + 1e-6
    return group, near


def _linked(
    sides: Sequence[Sequence[ReleasedColumn]], people: Sequence[NDArray[np.int64]]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the chance to link each person, and whether the most frequent entry would link the person."""
    (group_left, near_left), (group_right, near_right) = (
        _near(columns, part) for columns, part in zip(sides, people, strict=True)
    )
    sizes = [column.n_values for column in sides[1]]
    first, entry = merge_rows(list(people[1].T), sizes, len(people[1]))
    n_of = np.bincount(entry)
    together = _counted(group_left, group_right, (near_left.shape[1], near_right.shape[1]))
    fits = near_right[first].astype(np.float64)  # entries and the released records nearest to them
    share = n_of / (fits @ np.bincount(group_right))
    likely = (near_left.astype(np.float64) @ together) @ (fits * share[:, None]).T
    best = likely >= likely.max(axis=1, keepdims=True) * (1 - 1e-9)
    return best[np.arange(len(entry)), entry] / best.sum(axis=1), entry == n_of.argmax()


def _inferred(
    columns: Sequence[ReleasedColumn],
    hidden: ReleasedColumn,
    people: NDArray[np.int64],
    truth: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return how likely each person's secret is guessed right: 1 or 0, or a share where values are tied."""
    group, near = _near(columns, people)
    counts = _counted(group, hidden.likeliest[hidden.shown], (near.shape[1], hidden.n_values))
    votes = near.astype(np.float64) @ counts
    best = votes >= votes.max(axis=1, keepdims=True)
    return np.asarray(best[np.arange(len(truth)), truth] / best.sum(axis=1))


def _counted(rows: NDArray[np.int64], columns: NDArray[np.int64], shape: tuple[int, int]) -> Any:
    """Count pairs in a sparse matrix: most never occur."""
    return csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)


# -- as audits run them ------------------------------------------------------------------------------------------


def _single_out(about: AttackedRelease) -> list[Case]:
    def run() -> AttackResult:
        return single_out_of_release(
            about.original, about.released, about.known, unchanged=about.unchanged, **about.who
        )

    return [Case(SINGLING_OUT.facts.title, run)]


def _link(about: AttackedRelease) -> list[Case] | str:
    half = len(about.known) // 2
    if not half:
        return "Linking two lists does not apply: one column that attackers may know makes no two lists."
    lists = (about.known[:half], about.known[half:])
    return [
        Case(
            LINKABILITY.facts.title,
            lambda: link_through_release(about.original, about.released, *lists, **about.who),
        )
    ]


def _infer(about: AttackedRelease) -> list[Case] | str:
    if not about.secrets:
        return "Inferring a secret from the release does not apply: no column was named as sensitive."
    return [
        Case(
            f"infer {about.titles.get(secret, secret)} from the release",
            partial(infer_from_release, about.original, about.released, about.known, secret, **about.who),
        )
        for secret in about.secrets
    ]


SINGLING_OUT = NamedAttack(
    AttackFacts(
        "singling-out",
        "singling out",
        "looks for values that only one person has",
        "release",
        "singling out",
        result="singling out of a release",
        remedy="protect columns",
        knows="nothing but the release",
    ),
    _single_out,
)
LINKABILITY = NamedAttack(
    AttackFacts(
        "linkability",
        "link two lists of people",
        "finds the same people in two lists that share no column, through the release",
        "release",
        "linkability",
        knows="two lists of the same people, with one half of the quasi-identifiers each",
    ),
    _link,
)
INFERENCE = NamedAttack(
    AttackFacts(
        "inference",
        "infer a secret from the release",
        "reads a secret off the released records that fit a person",
        "release",
        "inference",
        result="inference from a release",
        remedy="diversity",
    ),
    _infer,
)
