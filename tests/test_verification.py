# SPDX-License-Identifier: Apache-2.0
"""The recount tells every two different values apart."""

import decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from sfumato import verification
from sfumato.verification import GroupCounter, count_groups, diversity_of, label_groups


def test_large_numbers_beside_negative_ones_are_not_taken_for_equal():
    table = pa.table({"account": [-1, -1, 2**62 + 1, 2**62 + 3]})
    assert count_groups(table, ["account"]).tolist() == [2, 1, 1]
    assert label_groups(table, ["account"]).tolist() == [0, 0, 1, 2]


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_threads_count_the_same_groups_and_persons(n_threads: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(verification, "_THREADED_FROM", 1)
    random = np.random.default_rng(5)
    age, person = random.integers(0, 4, 1_000), random.integers(0, 60, 1_000)
    sex = random.choice(["f", "m", None], 1_000)
    table = pa.table({"age": age, "sex": pa.array(sex.tolist())})
    groups: dict[tuple[int, str | None], list[int]] = {}
    for key, who in zip(zip(age.tolist(), sex.tolist(), strict=True), person.tolist(), strict=True):
        groups.setdefault(key, []).append(who)
    sizes = count_groups(table, ["age", "sex"], n_threads=n_threads)
    persons = count_groups(table, ["age", "sex"], distinct=person, n_threads=n_threads)
    assert sorted(sizes.tolist()) == sorted(len(members) for members in groups.values())
    assert sorted(persons.tolist()) == sorted(len(set(members)) for members in groups.values())


@pytest.mark.parametrize("n_threads", [1, 2, 3, 50])
@pytest.mark.parametrize("seed", range(4))
def test_threads_find_the_same_least_diverse_group(n_threads: int, seed: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(verification, "_THREADED_FROM", 1)
    random = np.random.default_rng(seed)
    group, illness = random.integers(10, 30, 400), random.choice(["flu", "cold", "gout", None], 400)
    counts: dict[int, dict[str | None, int]] = {}
    for where, what in zip(group.tolist(), illness.tolist(), strict=True):
        found = counts.setdefault(where, {})
        found[what] = found.get(what, 0) + 1
    expected = min(sum(found.values()) / max(found.values()) for found in counts.values())
    table = pa.table({"group": group, "illness": pa.array(illness.tolist())})
    assert diversity_of(table, "group", "illness", n_threads=n_threads) == expected


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("n_threads", [1, 2])
def test_pieces_count_the_same_groups(kind: str, n_threads: int, monkeypatch: pytest.MonkeyPatch):
    random = np.random.default_rng(7)
    n = 1_000
    # In the order of their values, so that every piece has other categories and numbers than the one before.
    place = np.sort(random.integers(0, 40, n))
    columns = {
        "town": [f"town {i}" if i % 7 else None for i in place],
        "age": (place * 1000 - 300).tolist(),
        "rent": [None if i % 5 == 0 else float(i) / 4 for i in place],
        "sex": random.choice(["f", "m"], n).tolist(),
    }
    table = pa.table({**columns, "sex": pa.array(columns["sex"]).dictionary_encode()})
    if kind == "pandas":
        frame = table.to_pandas()
    elif kind == "polars":
        frame = pl.from_arrow(table)
    else:
        frame = table
    whole = count_groups(frame, list(columns))
    monkeypatch.setattr(verification, "_PIECE", 90)
    assert sorted(count_groups(frame, list(columns), n_threads=n_threads).tolist()) == sorted(whole.tolist())


@pytest.mark.parametrize("n_cells", [1, 7, 1_000])
def test_values_of_every_group_are_those_that_counting_one_by_one_finds(n_cells: int):
    random = np.random.default_rng(5)
    group, values = random.integers(0, 12, 300), random.integers(0, 4, 300)
    group[:12] = np.arange(12)
    expected = [[int(((group == g) & (values == v)).sum()) for v in range(4)] for g in range(12)]
    blocks = list(verification.count_values_by_block(group, values, 4, n_cells=n_cells))
    assert np.concatenate(blocks).tolist() == expected
    assert len(blocks) == (1 if n_cells == 1_000 else 12)
    counted = verification.count_values(pa.table({"town": group}), ["town"], values, 4)
    assert sorted(counted.tolist()) == sorted(expected)


@pytest.mark.parametrize("dtype", [np.int64, np.float64, object])
def test_pieces_of_arrays_count_the_same_groups(dtype: type, monkeypatch: pytest.MonkeyPatch):
    array = np.sort(np.random.default_rng(3).integers(-5, 400, (600, 2)), axis=0).astype(dtype)
    whole = count_groups(array, ["x0", "x1"])
    monkeypatch.setattr(verification, "_PIECE", 70)
    assert sorted(count_groups(array, ["x0", "x1"]).tolist()) == sorted(whole.tolist())


def test_pieces_tell_numbers_of_many_digits_apart():
    """Such numbers cannot be calculated with; whether they are equal can be told all the same."""
    values = [decimal.Decimal(2**53) + decimal.Decimal(tenth) / 10 for tenth in (1, 2, 3, 3)]
    counter = GroupCounter(["account"])
    for piece in (values[:3], values[3:]):
        counter.add(pa.table({"account": pa.array(piece)}))
    assert sorted(counter.sizes().tolist()) == [1, 1, 2]


def test_pieces_without_columns_are_one_group(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(verification, "_PIECE", 3)
    assert count_groups(pa.table({"age": range(10)}), []).tolist() == [10]


def test_diversity_of_more_groups_times_values_than_32_bits_hold():
    """Pairs of a group and a value are numbered; in 32 bits the last group would have the size of another."""
    n_groups, n_values = 60_000, 50_000  # 3,000 million pairs: above 2**31, below 2**32
    group = np.repeat(np.arange(n_groups), np.where(np.arange(n_groups) < n_groups - 1, 4, 2))
    value = np.arange(len(group)) % n_values  # all of a group differ
    assert diversity_of(pa.table({"group": group, "illness": value}), "group", "illness") == 2.0


def test_diversity_of_numbers_below_zero():
    table = pa.table({"group": [-7, -7, -7, -5, -5], "illness": [-2, -2, -1, -2, -1]})
    assert diversity_of(table, "group", "illness") == 1.5
