# SPDX-License-Identifier: Apache-2.0
"""Attacks that use all sensitive tables of an anatomy: strong on planted tables, at their baseline on others."""

import itertools
from collections import Counter

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato import Anatomizer, InputError, ParameterError
from sfumato.attack import definetti, definetti_of_all, intersect_tables

SECRET = ["ill", "drug"]


def people(n=1500, seed=0, *, drug_of_ill=0.0, town_of_drug=0.0, n_values=8):
    """The drug follows the illness, and the town follows the drug, with the strengths given."""
    random = np.random.default_rng(seed)

    def following(values, strength):
        return np.where(random.random(n) < strength, values, random.integers(0, n_values, n))

    ill = random.integers(0, n_values, n)
    drug = following(ill, drug_of_ill)
    town = following(drug, town_of_drug)
    return pd.DataFrame({"town": town, "age": random.integers(18, 90, n), "ill": ill, "drug": drug})


def published(frame, l=3, *, joint=False, seed=0):  # noqa: E741
    anatomizer = Anatomizer(l, sensitive=SECRET, joint=joint, assignment="random", random_state=seed)
    tables, rows = anatomizer.fit_transform_with_rows(frame)
    return tables.identifying, tables.sensitive, frame[SECRET].iloc[rows].reset_index(drop=True)


# ---- intersection ----------------------------------------------------------------------------------------------------


def intersected_by_hand(who, tables, truth):
    """Return the guesses of an attacker who knows the joint distribution of both columns, by the formula."""
    pairs = Counter(zip(truth["ill"], truth["drug"], strict=True))
    singles = [Counter(truth[name]) for name in SECRET]
    n = len(truth)
    values = [{g: list(own) for g, own in table.groupby(table.columns[-1])[name]} for table, name in
              zip(tables, SECRET, strict=True)]  # fmt: skip
    guesses = []
    for ill_group, drug_group in zip(who["group_ill"], who["group_drug"], strict=True):
        score = Counter()
        for ill, drug in itertools.product(values[0][ill_group], values[1][drug_group]):
            score[ill] += pairs[ill, drug] * n / (singles[0][ill] * singles[1][drug])
        guesses.append(max(score, key=score.get))
    return np.array(guesses)


def test_an_attacker_who_knows_how_columns_depend_combines_their_tables():
    frame = people(4000, drug_of_ill=0.6)
    who, tables, truth = published(frame)
    result = intersect_tables(who, tables, truth, column="ill")
    best = (intersected_by_hand(who, tables, truth) == truth["ill"]).mean()
    # Learned from the other half of the people, so a little worse than with the exact distribution.
    assert best - 0.03 < result.rate < best + 0.01
    assert result.rate > result.baseline + 0.15
    assert result.baseline == pytest.approx(1 / 3, abs=0.01)
    assert result.control < result.baseline + 0.03
    assert result.verdict == "stronger than baseline"


@pytest.mark.filterwarnings("ignore:'.*' follows from:sfumato.PrivacyWarning")
def test_one_table_for_both_columns_does_not_let_them_be_combined():
    frame = people(4000, drug_of_ill=1.0)
    apart = intersect_tables(*published(frame), column="ill")
    joint = intersect_tables(*published(frame, joint=True), column="ill")
    assert apart.rate > 0.7
    assert joint.rate == pytest.approx(1 / 3, abs=0.01)
    assert joint.verdict == "not shown"


def test_independent_columns_tell_nothing_about_each_other():
    # 40 tables; at 95% confidence a verdict of stronger is expected once, and more than 4 times with a chance under 1%.
    verdicts = [intersect_tables(*published(people(400, seed=seed)), column="ill").verdict for seed in range(40)]
    assert verdicts.count("stronger than baseline") <= 4
    assert verdicts.count("failed attack") <= 4


def test_a_known_value_finds_the_row_of_a_joint_table_and_nothing_in_separate_ones():
    frame = people()
    joint = intersect_tables(*published(frame, joint=True), column="ill", known=["drug"])
    apart = intersect_tables(*published(frame), column="ill", known=["drug"])
    assert joint.rate > 0.99
    assert joint.control < joint.baseline + 0.05
    assert joint.verdict == "stronger than baseline"
    assert apart.rate == pytest.approx(1 / 3, abs=0.04)
    assert apart.verdict != "stronger than baseline"


@pytest.mark.filterwarnings("ignore:'.*' follows from:sfumato.PrivacyWarning")
def test_what_a_known_value_says_without_the_release_is_the_baseline():
    frame = people(drug_of_ill=0.9)
    result = intersect_tables(*published(frame), column="ill", known=["drug"])
    assert 0.85 < result.baseline <= result.rate


def test_the_attacked_column_and_the_truth_are_checked():
    who, tables, truth = published(people(200))
    with pytest.raises(ParameterError, match="known has the attacked column 'ill'"):
        intersect_tables(who, tables, truth, column="ill", known=["ill"])
    with pytest.raises(ParameterError, match="expected one of 'ill', 'drug'"):
        intersect_tables(who, tables, truth, column="town")
    with pytest.raises(InputError, match=r"truth of shape \(200, 1\)"):
        intersect_tables(who, tables, truth[["ill"]], column="ill")


# ---- deFinetti across tables -----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:'.*' follows from:sfumato.PrivacyWarning")
def test_what_one_table_teaches_is_used_in_the_other():
    frame = people(drug_of_ill=0.9, town_of_drug=0.6)
    who, tables, truth = published(frame)
    alone = definetti(who[["town", "age", "group_ill"]], tables[0], truth["ill"])
    together = definetti(who, tables, truth["ill"], column="ill")
    assert together.rate > alone.rate + 0.05
    assert together.details["n_tables"] == 2


def test_columns_in_one_row_give_each_other_away_and_columns_of_their_own_tables_do_not():
    # The town says which drug a person takes, and nothing about the illness.
    frame = people(town_of_drug=0.95)
    joint, apart = (definetti_of_all(*published(frame, joint=joint)) for joint in (True, False))
    assert all(result.rate > 0.85 for result in joint)
    assert apart[1].rate > 0.85
    assert apart[0].rate == pytest.approx(1 / 3, abs=0.05)
    assert apart[0].verdict != "stronger than baseline"


def test_all_columns_at_once_are_attacked_as_one_by_one():
    who, tables, truth = published(people(600, drug_of_ill=0.5, town_of_drug=0.7))
    every = definetti_of_all(who, tables, truth)
    single = [definetti(who, tables, truth[name], column=name) for name in SECRET]
    assert [one.rate for one in every] == [one.rate for one in single]
    assert [one.interval for one in every] == [one.interval for one in single]


def test_definetti_across_tables_stays_at_its_baseline_on_unrelated_data():
    # 60 results; more than 7 of a verdict that has a chance of 2.5% each are there with a chance under 1 in 1,000.
    verdicts = [
        result.verdict
        for seed in range(30)
        for result in definetti_of_all(*published(people(400, seed=seed), seed=seed))
    ]
    assert verdicts.count("stronger than baseline") <= 7
    assert verdicts.count("failed attack") <= 7


def test_a_few_known_people_tell_which_value_is_which():
    # Every group has each of three values once, so that nothing else tells them apart.
    random = np.random.default_rng(0)
    ill = np.tile([0, 1, 2], 500)
    town = np.where(random.random(1500) < 0.9, ill, random.integers(0, 3, 1500))
    frame = pd.DataFrame({"town": town, "ill": ill})
    tables, rows = Anatomizer(3, sensitive="ill", random_state=0).fit_transform_with_rows(frame)
    truth = frame[["ill"]].iloc[rows]
    knowing = definetti_of_all(tables.identifying, tables.sensitive, truth, n_known=30)[0]
    assert knowing.rate > 0.85
    assert knowing.details["n_known"] == 30
    unrelated = frame.assign(town=random.integers(0, 3, 1500))
    tables, rows = Anatomizer(3, sensitive="ill", random_state=0).fit_transform_with_rows(unrelated)
    told = definetti_of_all(tables.identifying, tables.sensitive, truth, n_known=30)[0]
    assert told.verdict != "stronger than baseline"


def test_results_hold_no_values():
    who, tables, truth = published(people(300))
    found = [intersect_tables(who, tables, truth, column="ill"), *definetti_of_all(who, tables, truth)]
    for result in found:
        assert all(isinstance(value, int | float | str | dict) for value in result.details.values())
        assert "town" not in str(result.to_dict())


def test_large_joint_groups_are_attacked_by_rows_that_are_equal_in_all_columns():
    random = np.random.default_rng(0)
    ill, drug = random.integers(0, 3, 200), random.integers(0, 3, 200)
    trace = np.where(random.random(200) < 0.95, drug, random.integers(0, 3, 200))
    groups = np.arange(200) // 100
    order = random.permutation(200)
    who = pa.table({"trace": trace, "group": groups})
    what = pa.table({"ill": ill[order], "drug": drug[order], "group": groups[order]})
    truth = pa.table({"ill": ill, "drug": drug})
    on_ill, on_drug = definetti_of_all(who, what, truth, n_known=20)
    assert on_drug.rate > 0.8
    assert 0.2 < on_ill.rate < 0.5


@pytest.mark.filterwarnings("ignore:'.*' follows from:sfumato.PrivacyWarning")
def test_numpy_arrays_are_attacked_by_position():
    frame = people(600, drug_of_ill=0.9)
    made = Anatomizer(3, sensitive=[2, 3], assignment="random", random_state=0)
    tables, rows = made.fit_transform_with_rows(frame.to_numpy())
    result = intersect_tables(tables.identifying, tables.sensitive, frame.to_numpy()[rows][:, 2:], column=0)
    assert result.rate > result.baseline + 0.1
