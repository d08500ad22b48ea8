# SPDX-License-Identifier: Apache-2.0
"""Attacks on anatomized tables: guess which member of a group has which sensitive value.

Both take the published tables, whose last column is the group, and the truth, which the attacker does not have.
:func:`definetti` learns from all groups of all tables together which identifying and sensitive values go together;
:func:`minimality` assumes that groups were joined only if necessary. Audits and the command line call them. What
several sensitive tables reveal to an attacker who knows how their columns depend on each other is in
``table_intersection``.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.attack.anatomy_tables import Attacked, PublishedTables, listed_values, read_anatomy
from sfumato.attack.group_guessing import judge_guesses
from sfumato.attack.group_learning import learn_tables
from sfumato.attack.result import AttackResult
from sfumato.backends.memory import MemorySource
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import Table, read_table
from sfumato.grouping import group_rows
from sfumato.loss.released_groups import code_values

_MOST_ENUMERATED = 5  # groups of up to so many records have few enough orders to try them all
_N_DRAWS = 500


def definetti(
    identifying: Any,
    sensitive: Any,
    truth: ArrayLike,
    *,
    column: str | int | None = None,
    n_iterations: int = 30,
    max_bins: int = 16,
    random_state: int = 0,
) -> AttackResult:
    """Guess sensitive values from the relation of identifying and sensitive columns over all groups.

    Groups are mixtures of the same few kinds of people. From an even guess in every group the attacker counts which
    identifying values go with which sensitive value, weighs the possible orders of each group by that (a naive Bayes
    model), counts again, and so on. Sensitive columns in one row are weighed together, since whoever has one value has
    the others; what is learned of a person in one sensitive table is used in the others.

    Parameters
    ----------
    identifying : frame or array
        The published identifying table; its last columns are the groups, one per sensitive table.
    sensitive : frame or array, or tuple of these
        The published sensitive tables; the last column of each is the group.
    truth : array-like
        The true sensitive value of every identifying row.
    column : str or int, optional
        The sensitive column that is attacked; needed where there are several.
    n_iterations : int, default=30
        Rounds of counting and weighing; ends early when nothing moves.
    max_bins : int, default=16
        Bins of an identifying column of numbers.
    random_state : int, default=0
        For the control only.

    Returns
    -------
    AttackResult
        The rate is the share of identifying rows whose value was guessed. The baseline guesses the most frequent value
        of the group; the control judges the same guesses by a truth that was shuffled within groups.
        ``n_not_weighed`` among the details are records of groups too large for this attack, which were guessed by the
        most frequent value.

    References
    ----------
    Kifer, D. (2009). Attacks on privacy and deFinetti's theorem.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sfumato.attack.anatomy_attacks import definetti
    >>> sexes, ills = ["f", "m"] * 50, ["flu", "gout"] * 50
    >>> groups = [i // 2 if i % 10 else 99 for i in range(100)]
    >>> who, what = pa.table({"sex": sexes, "group": groups}), pa.table({"ill": ills, "group": groups})
    >>> definetti(who, what, ills).rate
    1.0
    """
    published = read_anatomy(identifying, sensitive)
    attacked = published.attacked(column, truth)
    settings = _Settings(n_iterations, max_bins, random_state)
    return _learned_and_judged(published, [attacked], settings)[0]


def definetti_of_all(
    identifying: Any,
    sensitive: Any,
    truth: Any,
    *,
    n_known: int = 0,
    n_iterations: int = 30,
    max_bins: int = 16,
    random_state: int = 0,
) -> list[AttackResult]:
    """Guess every sensitive column by :func:`definetti`, which learns all of them at once.

    Parameters
    ----------
    identifying, sensitive, n_iterations, max_bins, random_state
        As for :func:`definetti`; the seed also draws the known people.
    truth : frame or array
        The true values of all sensitive columns for every identifying row, in the order of the sensitive tables.
    n_known : int, default=0
        People of whom the attacker knows all sensitive values, drawn at random; they are not judged. A few tell which
        of the learned kinds of people has which value, where all groups are alike.

    Returns
    -------
    list of AttackResult
        One per sensitive column.
    """
    published = read_anatomy(identifying, sensitive)
    told = read_table(truth)
    attacked = [
        published.attacked(place if len(published.columns) > 1 else None, listed_values(told.column(name)))
        for place, name in enumerate(told.names)
    ]
    if len(attacked) != len(published.columns):
        raise InputError(
            f"truth has {len(attacked)} columns for {len(published.columns)} sensitive ones: expected one for each, in "
            "the order of the sensitive tables."
        )
    return _learned_and_judged(published, attacked, _Settings(n_iterations, max_bins, random_state), n_known)


@dataclass(frozen=True)
class _Settings:
    n_iterations: int
    max_bins: int
    random_state: int

    def __post_init__(self) -> None:
        if self.n_iterations < 1:
            raise ParameterError(f"{named('n_iterations', self.n_iterations)}: expected a whole number of at least 1.")


def _learned_and_judged(
    published: PublishedTables, attacked: list[Attacked], settings: _Settings, n_known: int = 0
) -> list[AttackResult]:
    """Learn all tables at once, and judge the guesses of some columns, without the people who are known."""
    started = time.perf_counter()
    columns = MemorySource(published.identifying, published.names, max_bins=settings.max_bins).columns
    codes = [own.codes.astype(np.int64) for own in columns]
    rows = published.rows_coded_as(attacked)
    is_known = np.zeros(published.identifying.n_records, np.bool_)
    if n_known:
        is_known[np.random.default_rng(settings.random_state).permutation(len(is_known))[:n_known]] = True
        rows = published.rows_with_known(rows, attacked, is_known)
    learned = learn_tables(rows, codes, [int(code.max()) + 1 for code in codes], settings.n_iterations)
    results = []
    for own in attacked:
        of_table = learned[own.table]
        details = {
            "n_iterations": of_table.n_iterations,
            "n_columns": len(codes),
            "n_not_weighed": of_table.n_not_weighed,
            **({"n_tables": len(rows)} if len(rows) > 1 else {}),
            **({"n_known": n_known} if n_known else {}),
        }
        guesses = of_table.guesses(own.place)
        results.append(
            judge_guesses(
                "definetti",
                own.groups,
                guesses,
                details,
                started=started,
                seed=settings.random_state,
                is_judged=~is_known if n_known else None,
            )
        )
    return results


def minimality(
    identifying: Any,
    sensitive: Any,
    truth: ArrayLike,
    *,
    l: int,  # noqa: E741
    column: str | int | None = None,
    columns: list[str | int] | None = None,
    random_state: int = 0,
) -> AttackResult:
    """Guess sensitive values, assuming that records were grouped only if necessary.

    People with the same identifying values form a class. An algorithm that changes as little as it can joins classes in
    one group only if one of them was not l-diverse by itself. So the attacker rules out every order of a group's values
    under which all its classes would have been l-diverse, and takes the most frequent value of those left. Groups with
    a class of fewer than l records tell nothing, since such a class is never l-diverse.

    Parameters
    ----------
    identifying, sensitive, truth, column, random_state
        As for :func:`definetti`; of several sensitive tables, the one with the column is looked at. The seed also
        serves the orders drawn in groups of more than 5.
    l : int
        What the groups were made for.
    columns : list of str or int, optional
        The identifying columns whose values make a class; all of them unless given.

    Returns
    -------
    AttackResult
        As for :func:`definetti`; ``n_telling_groups`` among the details are those the reasoning says something about.
        Groups that Xiao and Tao's algorithm makes have fewer than 2 l records, so none of them does.

    References
    ----------
    Wong, R., Fu, A., Wang, K., Pei, J. (2007). Minimality attack in privacy preserving data publishing.

    Examples
    --------
    Two men and two women in one group of four, which is needed only if one sex had too few different illnesses.

    >>> import pyarrow as pa
    >>> sexes, ills = ["f", "f", "m", "m"] * 25, ["flu", "flu", "gout", "cold"] * 25
    >>> groups = [i // 4 for i in range(100)]
    >>> who, what = pa.table({"sex": sexes, "group": groups}), pa.table({"ill": ills, "group": groups})
    >>> result = minimality(who, what, ills, l=2)
    >>> result.details["n_telling_groups"]
    25
    """
    started = time.perf_counter()
    published = read_anatomy(identifying, sensitive)
    table, groups = published.identifying, published.attacked(column, truth).groups
    names = published.names if columns is None else table.resolve(columns, "columns")
    classes = _classes(table, names)
    random = np.random.default_rng(random_state)
    guesses = groups.most_frequent[groups.group]
    n_telling = 0
    for g in range(groups.n_groups):
        records, values = groups.members_of(g), groups.values_of(g)
        _, class_of, sizes = np.unique(classes[records], return_inverse=True, return_counts=True)
        if len(sizes) > 1 and sizes.min() >= l:
            guess = _most_frequent_left(values, class_of, sizes, l, random)
            if guess is not None:
                guesses[records] = guess
                n_telling += 1
    details = {"n_telling_groups": n_telling, "n_groups": groups.n_groups, "l": int(l)}
    return judge_guesses("minimality", groups, guesses, details, started=started, seed=random_state)


def _classes(table: Table, names: tuple[str, ...]) -> NDArray[np.int64]:
    """Number the records that agree in all the columns."""
    return group_rows([code_values(table.column(name, for_counting=True)) for name in names], table.n_records)


def _most_frequent_left(
    values: NDArray[np.int64],
    class_of: NDArray[np.int64],
    sizes: NDArray[np.int64],
    l: int,  # noqa: E741
    random: np.random.Generator,
) -> NDArray[np.int64] | None:
    """Return the likeliest value of each record where a class is not l-diverse; None if that rules out nothing."""
    if len(values) <= _MOST_ENUMERATED:
        orders = values[np.array(list(itertools.permutations(range(len(values)))))]
    else:
        orders = random.permuted(np.tile(values, (_N_DRAWS, 1)), axis=1)
    n_values = int(values.max()) + 1
    is_left = np.zeros(len(orders), np.bool_)
    for number, size in enumerate(sizes):
        members = orders[:, class_of == number]
        keys = np.arange(len(orders))[:, None] * n_values + members
        counts = np.bincount(keys.ravel(), minlength=len(orders) * n_values).reshape(-1, n_values)
        is_left |= counts.max(axis=1) * l > size
    if not is_left.any() or is_left.all():
        return None
    # All records of a class are alike, so their answers are counted together.
    guess = np.empty(len(values), np.int64)
    for number in range(len(sizes)):
        members = class_of == number
        guess[members] = np.bincount(orders[is_left][:, members].ravel()).argmax()
    return guess
