# SPDX-License-Identifier: Apache-2.0
"""Predicate singling out: hulls and real members isolate people beyond chance, cells and phantoms do not."""

import numpy as np
import pandas as pd
import pytest

from attack.published_people import cells, census, hulls, published
from sfumato.attack import single_out_by_predicates
from sfumato.attack.predicate_singling_out import _chance_at_most
from sfumato.errors import InputError

HIGHEST_CHANCE = np.exp(-1)


def points(n: int, seed: int, n_columns: int = 8) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return pd.DataFrame({f"x{i}": random.integers(0, 1000, n) for i in range(n_columns)})


def test_hashes_of_hulls_isolate_about_one_in_e_where_chance_isolates_nobody():
    table = points(2000, 0)
    released = hulls(table, np.argsort(np.argsort(table["x0"])) // 5)
    found = single_out_by_predicates(table, released, control=points(2000, 1))
    assert found.details["predicates_from"] == "records and a hash"
    assert found.rate == pytest.approx((1 - 1 / 5) ** 4, abs=0.03)  # of five people exactly one is left
    assert found.baseline < 0.2 and found.verdict == "stronger than baseline"


def test_hashes_of_cells_isolate_no_more_than_chance():
    table = points(4000, 0, n_columns=2)
    found = single_out_by_predicates(table, cells(table, 100), control=points(4000, 1, n_columns=2))
    assert found.details["predicates_from"] == "records and a hash"
    assert found.rate == pytest.approx(HIGHEST_CHANCE, abs=0.03)
    assert found.baseline == pytest.approx(HIGHEST_CHANCE, abs=0.03) and found.verdict == "not shown"


def test_a_released_record_isolates_whoever_is_alone_with_its_values():
    table = points(1000, 0)
    found = single_out_by_predicates(table, table, control=points(1000, 1))
    assert (found.rate, found.details["predicates_from"]) == (1.0, "released records")
    assert found.verdict == "stronger than baseline" and found.control == 0.0


def test_equal_people_are_not_told_apart_by_a_hash():
    table = points(500, 0)
    doubled = pd.concat([table, table], ignore_index=True)
    found = single_out_by_predicates(doubled, hulls(doubled, np.arange(1000) % 500 // 5), control=points(1000, 1))
    assert found.rate == 0.0


def test_a_value_that_one_record_of_a_cell_has_isolates_its_person():
    random = np.random.default_rng(5)
    tables = [points(4000, seed, n_columns=2).assign(job=random.integers(0, 60, 4000).astype(str)) for seed in (0, 1)]
    known = ["x0", "x1"]
    released = cells(tables[0][known], 100).assign(job=tables[0]["job"])
    alone = single_out_by_predicates(tables[0], released, known, control=tables[1])
    with_job = single_out_by_predicates(tables[0], released, known, control=tables[1], unchanged=["job"])
    assert alone.verdict == "not shown"
    assert (with_job.rate, with_job.details["predicates_from"]) == (1.0, "records and unchanged values")
    assert with_job.verdict == "stronger than baseline"


def test_the_weight_is_that_of_the_population():
    table = points(4000, 0, n_columns=2)
    found = single_out_by_predicates(table, cells(table, 100), control=points(4000, 1, n_columns=2))
    low, high = found.details["weight_interval"]
    assert low < found.details["weight"] < high
    assert found.details["weight"] == pytest.approx(1 / 4000, rel=0.25)  # a cell of one in m, where it has m of n


def test_chance_is_highest_at_one_in_n_and_never_falls_above():
    n = 1000
    chances = [_chance_at_most(weight, n) for weight in (0.0, 0.1 / n, 1 / n, 5 / n, 1.0)]
    assert chances[0] == 0.0 and chances[1] == pytest.approx(0.1 * (1 - 0.1 / n) ** (n - 1))
    assert chances[2] == chances[3] == chances[4] == pytest.approx(HIGHEST_CHANCE, abs=1e-3)


def test_a_release_of_one_group_has_one_predicate():
    table = points(60, 0, n_columns=1)
    found = single_out_by_predicates(table, hulls(table, np.zeros(60, int)), control=points(60, 1, n_columns=1))
    assert found.details["n_attempts"] == 1 and found.verdict == "not shown"


# -- census records ----------------------------------------------------------------------------------------------


def test_real_census_records_as_representatives_isolate_people():
    inside, others, _ = census()
    for representative in ("model", "member"):
        found = single_out_by_predicates(inside, published(representative), control=others)
        assert found.rate > 0.6 and found.verdict == "stronger than baseline", representative


def test_phantoms_isolate_nobody():
    inside, others, _ = census()
    for k in (5, 10):
        found = single_out_by_predicates(inside, published("phantom", k), control=others)
        assert found.rate == 0.0 and found.verdict == "not shown"


def test_the_seed_decides_which_records_are_tried():
    inside, others, _ = census()
    found = [
        single_out_by_predicates(inside, published("range"), control=others, n_attempts=40, random_state=seed)
        for seed in (1, 1, 2)
    ]
    assert found[0].rate == found[1].rate != found[2].rate


def test_too_few_other_people_get_a_sentence():
    table = points(100, 0)
    with pytest.raises(InputError, match="19 people in control: expected at least 20"):
        single_out_by_predicates(table, table, control=points(19, 1))
