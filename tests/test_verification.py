# SPDX-License-Identifier: Apache-2.0
"""The recount tells every two different values apart."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato import verification
from sfumato.verification import count_groups, label_groups


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
