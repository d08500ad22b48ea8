# SPDX-License-Identifier: Apache-2.0
"""Combine the sensitive tables of an anatomy: which values of a person fit together in all of the person's groups.

Each sensitive table bounds the chance to guess its own columns. An attacker who knows how sensitive columns depend on
each other, such as which drug goes with which illness, keeps only candidates that fit together. If one column
determines another, two groups of l candidates often have a single pair in common.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.anatomy_tables import PublishedTables, read_anatomy
from sfumato.attack.group_guessing import SensitiveGroups, judge_guesses
from sfumato.attack.result import AttackResult
from sfumato.errors import InputError, ParameterError, named
from sfumato.frames import Table, read_table
from sfumato.grouping import encode_together, group_rows

_MOST_WEIGHED = 100_000_000  # groups times values
_PSEUDO = 0.5  # records by which rare pairs seem less telling


def intersect_tables(
    identifying: Any,
    sensitive: Any,
    truth: Any,
    *,
    column: str | int,
    known: Sequence[str | int] = (),
    random_state: int = 0,
) -> AttackResult:
    """Guess a sensitive column by all sensitive tables, and by how their columns depend on each other.

    The attacker knows from other people how often each value of the attacked column goes with each value of every
    other sensitive column, finds the person's group in every sensitive table, and takes the value that fits best. The
    attacker may also know some sensitive values of the person. In a table that has such a column, only rows with the
    known value are left: of a joint table, often a single one.

    Parameters
    ----------
    identifying : frame or array
        The published identifying table; its last columns are the groups, one per sensitive table.
    sensitive : frame or array, or tuple of these
        The published sensitive tables; the last column of each is the group.
    truth : frame or array
        The true values of all sensitive columns for every identifying row, in the order of the sensitive tables. A
        random half of the people teaches the attacker about the other half, and the other way round.
    column : str or int
        The column that is guessed.
    known : sequence of str or int
        Sensitive columns whose values the attacker knows of every person.
    random_state : int, default=0
        For the halves, and for the controls.

    Returns
    -------
    AttackResult
        The rate is the share of identifying rows whose value was guessed. The baseline guesses the most frequent value
        of the group, or, if that is better, the value that is most frequent among people with the same known values.
        The control judges the guesses by a truth that was shuffled within groups, or, if it is higher, those of an
        attacker to whom all sensitive columns seem independent and whose known values were shuffled within groups.

    Examples
    --------
    A drug for every illness: in tables of their own, the two groups of a person have one pair in common.

    >>> import warnings, numpy as np, pyarrow as pa
    >>> from sfumato import Anatomizer
    >>> warnings.simplefilter("ignore")  # the anatomizer warns of such columns
    >>> ill = np.random.default_rng(0).integers(0, 10, 900)
    >>> people = pa.table({"age": np.arange(900) % 70, "ill": ill, "drug": ill + 100})
    >>> for joint in (False, True):
    ...     made = Anatomizer(3, sensitive=["ill", "drug"], joint=joint, assignment="random", random_state=0)
    ...     tables, rows = made.fit_transform_with_rows(people)
    ...     truth = people.select(["ill", "drug"]).take(rows)
    ...     result = intersect_tables(tables.identifying, tables.sensitive, truth, column="ill")
    ...     print(joint, result.rate > 0.6, result.verdict)
    False True stronger than baseline
    True False not shown
    """
    started = time.perf_counter()
    published = read_anatomy(identifying, sensitive)
    told = read_table(truth)
    n_columns = sum(len(own.columns) for own in published.rows)
    if len(told.names) != n_columns or told.n_records != published.identifying.n_records:
        raise InputError(
            f"truth of shape ({told.n_records}, {len(told.names)}) for {published.identifying.n_records} identifying "
            f"rows and {n_columns} sensitive columns: expected a value of each for every row. Give the original "
            "sensitive columns in the order of the rows."
        )
    columns = _coded(published, told)
    target = _place(published, column)
    places = [_place(published, name) for name in known]
    if target in places:
        raise ParameterError(f"{named('known')} has the attacked column {column!r}: expected others. Remove it.")
    attacker = _Attacker(published, columns, target, places)
    random = np.random.default_rng(random_state)
    half = random.permutation(told.n_records) % 2
    people = [own.people for own in columns]
    guesses, by_known = attacker.guess(people, people, half)
    # The same attacker, to whom columns seem independent, and who knows the values of others in the group.
    own = published.rows[columns[target].table].groups
    apart = [codes[random.permutation(len(codes))] for codes in people]
    others = [codes[_shuffled_within(own.group, random)] for codes in people]
    blind, _ = attacker.guess(apart, others, half)
    groups = SensitiveGroups(own.group, own.slot_group, columns[target].slots, people[target], own.n_groups)
    details = {
        "n_tables": len(published.tables),
        "n_sensitive": n_columns,
        "n_known": len(places),
        "by_chance": float((1 / groups.n_different)[groups.group].mean()),
    }
    return judge_guesses(
        "intersection of tables",
        groups,
        guesses,
        details,
        started=started,
        seed=random_state,
        outside=float((blind == people[target]).mean()),
        baseline=by_known == people[target] if places else None,
    )


@dataclass(frozen=True, eq=False)
class _SensitiveColumn:
    """A sensitive column: its table, and its codes in the rows of that and of the people."""

    table: int
    slots: NDArray[np.int64]
    people: NDArray[np.int64]

    @property
    def n_values(self) -> int:
        return int(max(self.slots.max(), self.people.max())) + 1


def _coded(published: PublishedTables, told: Table) -> list[_SensitiveColumn]:
    """Number the values of all sensitive columns, in the tables and of the people alike."""
    found: list[_SensitiveColumn] = []
    for number, table in enumerate(published.tables):
        for name in table.names[:-1]:
            own = told.column(told.names[len(found)], for_counting=True)
            slots, people = encode_together(table.column(name, for_counting=True), own)
            found.append(_SensitiveColumn(number, slots.values.astype(np.int64), people.values.astype(np.int64)))
    return found


def _place(published: PublishedTables, column: str | int) -> int:
    """Return the place of a sensitive column among those of all tables."""
    number, place = published.find(column)
    return sum(len(own.columns) for own in published.rows[:number]) + place


def _shuffled_within(group: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
    """Return an order of the people in which everybody has the place of somebody of the same group."""
    order = random.permutation(len(group))
    shuffled = np.empty(len(group), np.int64)
    shuffled[np.argsort(group, kind="stable")] = order[np.argsort(group[order], kind="stable")]
    return shuffled


@dataclass(frozen=True, eq=False)
class _Attacker:
    """Who sees the tables, attacks one column and knows some others of every person."""

    published: PublishedTables
    columns: list[_SensitiveColumn]
    target: int
    known: list[int]

    def guess(
        self, taught: list[NDArray[np.int64]], known: list[NDArray[np.int64]], half: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the guesses with the tables, and those of an attacker who has only what is known of a person.

        Parameters
        ----------
        taught : list of ndarray of int64
            Per column, the codes of the people the attacker learns from, one half about the other.
        known : list of ndarray of int64
            Per column, the codes that the attacker may know of the people.
        half : ndarray of int64
            0 or 1 per person.
        """
        guesses, by_known = np.empty_like(half), np.empty_like(half)
        for number in (0, 1):
            some = half == number
            ratios, share = self._dependence([codes[~some] for codes in taught])
            fits = np.log(share)[None].repeat(int(some.sum()), axis=0)
            for place in self.known:
                fits = fits + np.log(ratios[place][:, known[place][some]]).T
            by_known[some] = fits.argmax(axis=1)
            score = np.ones((int(some.sum()), len(share)))
            for table in range(len(self.published.tables)):
                score *= self._fit(table, ratios, known)[self._key(table, known)[1][some]]
            guesses[some] = score.argmax(axis=1)
        return guesses, by_known

    def _dependence(
        self, people: list[NDArray[np.int64]]
    ) -> tuple[dict[int, NDArray[np.float64]], NDArray[np.float64]]:
        """Return how much likelier values of other columns are for each attacked value, and the shares of those."""
        n_values = self.columns[self.target].n_values
        counts = np.bincount(people[self.target], minlength=n_values).astype(np.float64) + 1.0
        share = counts / counts.sum()
        ratios = {}
        for place, column in enumerate(self.columns):
            if place == self.target:
                continue
            n_others = column.n_values
            together = np.bincount(people[self.target] * n_others + people[place], minlength=n_values * n_others)
            of_other = np.bincount(people[place], minlength=n_others) + 1.0
            expected = share[:, None] * (of_other / of_other.sum()) * len(people[place])
            ratios[place] = (together.reshape(n_values, n_others) + _PSEUDO) / (expected + _PSEUDO)
        return ratios, share

    def _key(
        self, table: int, known: list[NDArray[np.int64]]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Number the groups of a table, apart by the values that are known in it; of rows, of people, and in all."""
        groups = self.published.rows[table].groups
        parts = [np.concatenate([groups.slot_group, groups.group])]
        parts += [np.concatenate([self.columns[place].slots, known[place]]) for place in self._known_in(table)]
        numbers = group_rows(parts, len(parts[0]))
        n_slots = len(groups.slot_group)
        of_key = np.empty(int(numbers.max()) + 1, np.int64)
        of_key[numbers] = parts[0]
        return numbers[:n_slots], numbers[n_slots:], of_key

    def _known_in(self, table: int) -> list[int]:
        return [place for place in self.known if self.columns[place].table == table]

    def _fit(
        self, table: int, ratios: dict[int, NDArray[np.float64]], known: list[NDArray[np.int64]]
    ) -> NDArray[np.float64]:
        """Return how well each attacked value fits the rows of a group that have the known values, per numbered group.

        If no row has them, that of all rows of the group.
        """
        slots, _, of_key = self._key(table, known)
        groups, n_values = self.published.rows[table].groups, self.columns[self.target].n_values
        if len(of_key) * n_values > _MOST_WEIGHED:
            raise InputError(
                f"{len(of_key)} groups and {n_values} values of the attacked column: expected fewer. Attack a sample."
            )
        if self.columns[self.target].table == table:
            fit = np.eye(n_values)[self.columns[self.target].slots]
        else:
            fit = np.ones((len(slots), n_values))
            for place, column in enumerate(self.columns):
                if column.table == table:
                    fit *= ratios[place][:, column.slots].T
        found, whole = np.zeros((len(of_key), n_values)), np.zeros((groups.n_groups, n_values))
        np.add.at(found, slots, fit)
        np.add.at(whole, groups.slot_group, fit)
        is_empty = np.bincount(slots, minlength=len(of_key)) == 0
        found[is_empty] = whole[of_key[is_empty]]
        return found
