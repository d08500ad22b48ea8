# SPDX-License-Identifier: Apache-2.0
"""The attack that slicing is built against: find the buckets that match a person in every column group, and guess.

This is the definition of l-diverse slicing, person by person: the chance of a bucket is the product, over column
groups, of the share of its rows that have the person's values; the chance of a sensitive value in a bucket is its share
among the rows that have the person's values in the sensitive column's own group.

References
----------
Li, T., Li, N., Zhang, J., Molloy, I. (2012). Slicing: a new approach for privacy preserving data publishing.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.attack.result import AttackResult, result_of_counts
from sfumato.errors import InputError
from sfumato.frames import Table, read_table
from sfumato.grouping import encode_together, group_rows

_PAIRS_AT_ONCE = 5_000_000  # of people and buckets


def match_slices(
    original: Any,
    sliced: Any,
    column_groups: Sequence[Sequence[str]],
    sensitive: str,
    *,
    secrets: Sequence[str] = (),
    bucket: str = "bucket",
    random_state: int = 0,
) -> AttackResult:
    """Guess a sensitive column from a sliced table, knowing all other columns of every person.

    Parameters
    ----------
    original : frame
        The people who are in the sliced table, with their true values.
    sliced : frame
        The released table.
    column_groups : sequence of sequence of str
    sensitive : str
        The column that is guessed.
    secrets : sequence of str
        Further sensitive columns, which the attacker does not know either.
    bucket : str
        The column with the bucket.
    random_state : int, default=0
        For the control only.

    Returns
    -------
    AttackResult
        The rate is the share of people whose value was guessed. The baseline guesses the most frequent value of the
        table; the control judges the guesses by a shuffled truth. ``worst_chance`` among the details is the highest
        chance that the attacker gives to any value of any person: at most 1/l if slicing is l-diverse.

    Examples
    --------
    >>> from sfumato import Slicer
    >>> import pyarrow as pa
    >>> people = pa.table({"age": [31, 34, 42, 47] * 10, "sex": [*"fmfm"] * 10, "illness": [*"abcd"] * 10})
    >>> groups = [["age", "sex"], ["illness"]]
    >>> made = Slicer(l=2, sensitive="illness", column_groups=groups, random_state=0).fit_transform(people)
    >>> match_slices(people, made.table, groups, "illness").details["worst_chance"] <= 0.5
    True
    """
    started = time.perf_counter()
    people, table = read_table(original), read_table(sliced)
    hidden = {sensitive, *secrets}
    buckets = np.unique(table.column(bucket).values, return_inverse=True)[1]
    n_buckets = int(buckets.max()) + 1
    own = next((list(group) for group in column_groups if sensitive in group), None)
    if own is None:
        raise InputError(f"no column group has the sensitive column {sensitive!r}: expected one. Name its group.")
    known = [[name for name in group if name not in hidden] for group in column_groups]
    parts = [_Matching(people, table, names, buckets, n_buckets) for names in known if names]
    parts.sort(key=lambda part: part.n_pairs)
    secret, truth = encode_together(
        table.column(sensitive, for_counting=True), people.column(sensitive, for_counting=True)
    )
    n_values = secret.n_codes
    beside = _Matching(people, table, [name for name in own if name not in hidden], buckets, n_buckets)
    answers = _Answers(beside, secret.values.astype(np.int64), n_values)
    chances = np.zeros((people.n_records, n_values))
    for some in _stretches(parts[0], people.n_records) if parts else [np.arange(people.n_records)]:
        chances[some] = _chances(some, parts, answers, n_buckets, np.bincount(buckets))
    found = chances.sum(axis=1)
    if (found == 0).any():
        raise InputError(
            f"{int((found == 0).sum())} people match no bucket: expected people of the sliced table. Give the records "
            "that were sliced, without suppressed ones."
        )
    guesses, right = chances.argmax(axis=1), truth.values.astype(np.int64)
    shuffled = right[np.random.default_rng(random_state).permutation(len(right))]
    return result_of_counts(
        "matching of slices",
        float((guesses == right).sum()),
        len(right),
        float(np.bincount(right).max() / len(right)),
        control=float((guesses == shuffled).mean()),
        started=started,
        seed=random_state,
        details={"worst_chance": float(chances.max()), "n_buckets": n_buckets, "n_column_groups": len(column_groups)},
    )


class _Matching:
    """How often every bucket has each combination of some columns, and which combination people have."""

    def __init__(
        self, people: Table, table: Table, names: Sequence[str], buckets: NDArray[np.int64], n_buckets: int
    ) -> None:
        columns = [
            encode_together(table.column(name, for_counting=True), people.column(name, for_counting=True))
            for name in names
        ]
        together = [np.concatenate([rows.values, own.values]).astype(np.int64) for rows, own in columns]
        numbers = group_rows(together, table.n_records + people.n_records)
        self.of_row, self.of_person = numbers[: table.n_records], numbers[table.n_records :]
        self.n_buckets = n_buckets
        self.keys = self.of_row * n_buckets + buckets
        self.pairs, self.counts = np.unique(self.keys, return_counts=True)
        n_numbers = int(numbers.max()) + 1
        self.starts = np.searchsorted(self.pairs, np.arange(n_numbers + 1) * n_buckets)
        self.n_matches = np.diff(self.starts)[self.of_person]

    @property
    def n_pairs(self) -> int:
        """Pairs of a person and a bucket with the person's values."""
        return int(self.n_matches.sum())

    def count(self, people: NDArray[np.int64], buckets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many rows of a bucket have a person's values."""
        keys = self.of_person[people] * self.n_buckets + buckets
        at = np.minimum(np.searchsorted(self.pairs, keys), len(self.pairs) - 1)
        return np.where(self.pairs[at] == keys, self.counts[at], 0)


class _Answers:
    """The sensitive values of the rows of a bucket that have a combination of the columns beside them."""

    def __init__(self, beside: _Matching, values: NDArray[np.int64], n_values: int) -> None:
        self.beside, self.n_values = beside, n_values
        place = np.searchsorted(beside.pairs, beside.keys)
        entries, self.counts = np.unique(place * n_values + values, return_counts=True)
        self.values = entries % n_values
        self.starts = np.searchsorted(entries, np.arange(len(beside.pairs) + 1) * n_values)

    def chances(
        self,
        people: NDArray[np.int64],
        person: NDArray[np.int64],
        buckets: NDArray[np.int64],
        weight: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the chance of each value of some people, added up over pairs with a bucket that have a weight each.

        `person` is the place of a pair's person among the people.
        """
        keys = self.beside.of_person[people[person]] * self.beside.n_buckets + buckets
        place = np.searchsorted(self.beside.pairs, keys)
        first, n_entries = self.starts[place], np.diff(self.starts)[place]
        pair = np.repeat(np.arange(len(place)), n_entries)
        at = np.arange(len(pair)) - np.repeat(np.cumsum(n_entries) - n_entries, n_entries) + first[pair]
        share = self.counts[at] / self.beside.counts[place][pair] * weight[pair]
        keys = person[pair] * self.n_values + self.values[at]
        found = np.bincount(keys, share, minlength=len(people) * self.n_values).astype(np.float64)
        return found.reshape(len(people), self.n_values)


def _stretches(first: _Matching, n_people: int) -> list[NDArray[np.int64]]:
    """Return the people in parts that have few enough matching buckets."""
    part = np.cumsum(first.n_matches) // _PAIRS_AT_ONCE
    return np.split(np.arange(n_people), np.flatnonzero(np.diff(part)) + 1)


def _chances(
    people: NDArray[np.int64], parts: list[_Matching], answers: _Answers, n_buckets: int, sizes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the chance of each sensitive value of some people; 0 for all values of people who match no bucket."""
    if parts:
        first = parts[0]
        n_matches = first.n_matches[people]
        person = np.repeat(np.arange(len(people)), n_matches)
        within = np.arange(len(person)) - np.repeat(np.cumsum(n_matches) - n_matches, n_matches)
        bucket = first.pairs[first.starts[first.of_person[people[person]]] + within] % n_buckets
    else:
        person, bucket = np.repeat(np.arange(len(people)), n_buckets), np.tile(np.arange(n_buckets), len(people))
    weight = np.ones(len(person))
    for part in parts:
        weight *= part.count(people[person], bucket) / sizes[bucket]
    there = weight > 0
    person, bucket, weight = person[there], bucket[there], weight[there]
    total = np.bincount(person, weight, minlength=len(people))
    return answers.chances(people, person, bucket, weight / total[person])
