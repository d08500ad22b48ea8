# SPDX-License-Identifier: Apache-2.0
"""Attacks on anatomized tables: guess which member of a group has which sensitive value.

Both take the two published tables, whose last column is the group, and the truth, which the attacker does not have.
:func:`definetti` learns from all groups together which identifying values go with which sensitive ones;
:func:`minimality` assumes that groups were joined only if necessary. Audits and the command line call them.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.attack.group_guessing import SensitiveGroups, judge_guesses, learn_values
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
    model), counts again, and so on.

    Parameters
    ----------
    identifying, sensitive : frame or array
        The published tables; the last column of both is the group.
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
    started = time.perf_counter()
    if n_iterations < 1:
        raise ParameterError(f"{named('n_iterations', n_iterations)}: expected a whole number of at least 1.")
    table, groups = _read(identifying, sensitive, truth, column)
    names = table.names[:-1]
    codes = [c.codes.astype(np.int64) for c in MemorySource(table, names, max_bins=max_bins).columns]
    learned = learn_values(groups, codes, [int(code.max()) + 1 for code in codes], n_iterations)
    details = {
        "n_iterations": learned.n_iterations,
        "n_columns": len(names),
        "n_not_weighed": learned.n_not_weighed,
    }
    return judge_guesses("definetti", groups, learned.guesses, details, started=started, seed=random_state)


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
        As for :func:`definetti`; the seed also serves the orders drawn in groups of more than 5.
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
    table, groups = _read(identifying, sensitive, truth, column)
    names = table.names[:-1] if columns is None else table.resolve(columns, "columns")
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


def _read(
    identifying: Any, sensitive: Any, truth: ArrayLike, column: str | int | None
) -> tuple[Table, SensitiveGroups]:
    """Check that the tables fit together and number groups and values."""
    who, what = read_table(identifying), read_table(sensitive)
    if len(who.names) < 2 or len(what.names) < 2:
        raise InputError("a table with one column: expected some columns and, last, the group, in both tables.")
    if column is None and len(what.names) > 2:
        raise ParameterError(
            f"column=None with {len(what.names) - 1} sensitive columns: expected which of them is attacked. Name it."
        )
    name = what.names[0] if column is None else what.resolve([column], "column")[0]
    groups = [table.column(table.names[-1]).values.astype(np.int64) for table in (who, what)]
    labels, numbered = np.unique(np.concatenate(groups), return_inverse=True)
    own, theirs = numbered[: who.n_records], numbered[who.n_records :]
    sizes = np.bincount(own, minlength=len(labels))
    if not np.array_equal(sizes, np.bincount(theirs, minlength=len(labels))):
        raise InputError(
            "group sizes differ between the tables: expected equal row counts per group. Pass both tables of one "
            "release."
        )
    answers = np.asarray(truth)
    if answers.shape != (who.n_records,):
        raise InputError(f"truth of shape {answers.shape} for {who.n_records} rows: expected one value per row.")
    values, known = _coded_alike(what.column(name, for_counting=True), answers)
    return who, SensitiveGroups(own, theirs, values, known, len(labels))


def _coded_alike(column: Any, truth: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give equal numbers to equal values of the sensitive column and of the truth."""
    told = read_table(truth.astype(object)[:, None]).column("x0", for_counting=True)
    listed: list[list[Any]] = []
    for part in (column, told):
        values = part.categories if part.categories is not None else part.values
        plain = values[part.values].tolist() if part.categories is not None and len(values) else part.values.tolist()
        missing = part.missing if part.missing is not None else np.zeros(len(plain), bool)
        listed.append([None if absent else value for value, absent in zip(plain, missing, strict=True)])
    place = {value: number for number, value in enumerate(dict.fromkeys(listed[0]))}
    unknown = sum(value not in place for value in listed[1])
    if unknown:
        raise InputError(
            f"truth has {unknown} values that the sensitive table does not have: expected the values of its column. "
            "Give them in the same type."
        )
    first, second = (np.array([place[value] for value in values], np.int64) for values in listed)
    return first, second


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
