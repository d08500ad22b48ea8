# SPDX-License-Identifier: Apache-2.0
"""The attacks on anatomized tables: strong where they must be, at their baseline where nothing is to be learned."""

import itertools
import tracemalloc

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sfumato import Anatomizer, InputError, ParameterError
from sfumato.attack import group_guessing, group_learning
from sfumato.attack.anatomy_attacks import definetti, minimality
from sfumato.attack.group_guessing import Block
from sfumato.attack.group_learning import _balanced, weigh_orders


def people(n=2000, seed=0, *, strength=0.8, n_values=4):
    """The sensitive value follows the town with the strength given, and the age says nothing."""
    random = np.random.default_rng(seed)
    town = random.integers(0, n_values, n)
    ill = np.where(random.random(n) < strength, town, random.integers(0, n_values, n))
    return pd.DataFrame({"town": town.astype(str), "age": random.integers(18, 90, n), "ill": ill.astype(str)})


def anatomized(frame, l=2, **more):  # noqa: E741
    tables, rows = Anatomizer(l, sensitive="ill", random_state=0, **more).fit_transform_with_rows(frame)
    return tables.identifying, tables.sensitive, frame["ill"].to_numpy()[rows]


# ---- deFinetti -------------------------------------------------------------------------------------------------------


def bayes_rate(frame, who, what, truth):
    """Rate of the attacker who knows the joint distribution and weighs all orders of every group."""
    chance = pd.crosstab(frame["ill"], frame["town"], normalize="index")
    hits = 0.0
    truth_of = who.assign(truth=truth).groupby("group")
    values_of = what.groupby("group")["ill"].apply(list)
    for group, members in truth_of:
        values, towns = values_of[group], members["town"].tolist()
        weight = np.zeros((len(values), len(values)))
        for order in itertools.permutations(range(len(values))):
            likely = np.prod([chance.loc[values[place], town] for place, town in zip(order, towns, strict=True)])
            for row, place in enumerate(order):
                weight[row, place] += likely
        for row, true in enumerate(members["truth"]):
            best = weight[row].max()
            tied = [values[place] for place in range(len(values)) if np.isclose(weight[row, place], best)]
            hits += tied.count(true) / len(tied)
    return hits / len(truth)


@pytest.mark.parametrize("how", ["largest", "random"])
def test_definetti_reaches_the_attacker_who_knows_the_distribution(how):
    frame = people()
    who, what, truth = anatomized(frame, 3, assignment=how)
    result = definetti(who[["town", "group"]], what, truth)
    low, high = result.interval
    assert low - 0.01 <= bayes_rate(frame, who, what, truth) <= high + 0.01
    assert result.verdict == "stronger than baseline"
    assert result.baseline == pytest.approx(1 / 3, abs=0.01)
    assert result.control == pytest.approx(result.baseline, abs=0.05)


def test_definetti_stays_at_its_baseline_on_unrelated_data():
    # 40 tables; at 95% confidence a verdict of stronger is expected once, and more than 4 times with a chance under 1%.
    verdicts = []
    for seed in range(40):
        who, what, truth = anatomized(people(n=400, seed=seed, strength=0.0))
        verdicts.append(definetti(who, what, truth).verdict)
    assert verdicts.count("stronger than baseline") <= 4
    assert verdicts.count("failed attack") <= 4


def test_definetti_does_better_the_more_the_town_tells():
    rates = []
    for strength in (0.0, 0.5, 0.9):
        who, what, truth = anatomized(people(strength=strength))
        rates.append(definetti(who, what, truth).rate)
    assert rates[0] < rates[1] < rates[2]


def test_orders_of_a_group_are_weighed_exactly():
    records, values = np.array([[0, 1, 2]]), np.array([[0, 1, 1]])
    chance = np.log([[0.7, 0.3], [0.2, 0.8]])  # of a known value, by the sensitive one
    known = np.array([0, 1, 1])
    fit = chance[values[:, None, :], known[records][:, :, None]]
    weight = weigh_orders(Block(records, values, records, np.ones((1, 3))), fit)[0]
    # Whoever has value 0: record 0 with 0.7 * 0.8 * 0.8, records 1 and 2 with 0.3 * 0.2 * 0.8 each.
    first, second = 0.7 * 0.8 * 0.8, 0.3 * 0.2 * 0.8
    total = first + 2 * second
    assert weight[:, 0] == pytest.approx([first / total, second / total, second / total])
    assert weight.sum(axis=0) == pytest.approx(np.ones(3))


def test_large_groups_are_balanced_so_that_everyone_has_one_row_and_every_row_one_owner():
    weight = _balanced(np.random.default_rng(0).normal(size=(3, 7, 7)), np.ones((3, 7)))
    assert weight.sum(axis=1) == pytest.approx(np.ones((3, 7)), abs=1e-3)
    assert weight.sum(axis=2) == pytest.approx(np.ones((3, 7)))


def test_groups_of_more_than_five_are_attacked_too():
    who, what, truth = anatomized(people(n_values=8, strength=0.9), 6)
    result = definetti(who, what, truth)
    assert result.rate > result.baseline + 0.2


# ---- minimality ------------------------------------------------------------------------------------------------------


def minimally_grouped(n_groups=100, seed=0):
    """Classes of two with the same illness, which are not diverse, each joined with a class of four, which is."""
    random = np.random.default_rng(seed)
    towns, ills, groups = [], [], []
    for group in range(n_groups):
        first, *others = random.permutation(list("abcdef"))[:5]
        towns += [f"small {group}"] * 2 + [f"large {group}"] * 4
        ills += [first, first, *others]
        groups += [group] * 6
    order = random.permutation(len(ills))
    who = pa.table({"town": towns, "group": groups})
    return who, pa.table({"ill": [ills[i] for i in order], "group": [groups[i] for i in order]}), ills


def test_minimality_tells_who_made_the_joining_necessary():
    who, what, truth = minimally_grouped()
    result = minimality(who, what, truth, l=2)
    # Only the value that is there twice can have made the small class unsafe: both of it are found, and of the four
    # different values of the large class one. Without the reasoning, two of six.
    assert result.rate == pytest.approx(3 / 6)
    assert result.baseline == pytest.approx(2 / 6)
    assert result.details["n_telling_groups"] == 100
    assert result.verdict == "stronger than baseline"


def test_minimality_concludes_nothing_from_classes_that_are_too_small_for_l():
    who, what, truth = minimally_grouped()
    result = minimality(who, what, truth, l=3)
    assert result.details["n_telling_groups"] == 0
    assert result.verdict == "not shown"


def test_minimality_counts_the_orders_that_are_left():
    # Two classes of two with a, a, b, c: an order stays only if a class has both a, which is 8 of 24 orders.
    who = pa.table({"town": ["x", "x", "y", "y"], "group": [0] * 4})
    what = pa.table({"ill": ["a", "b", "a", "c"], "group": [0] * 4})
    result = minimality(who, what, ["a", "a", "b", "c"], l=2)
    # In those, either class is a, a or b, c in turn: a is guessed for all, and is right for two of four.
    assert result.rate == 0.5
    assert result.details["n_telling_groups"] == 1


@pytest.mark.parametrize("how", ["largest", "random"])
def test_minimality_says_nothing_about_groups_of_the_anatomizer(how):
    frame = people()[["town", "ill"]]
    who, what, truth = anatomized(frame, 3, assignment=how)
    result = minimality(who, what, truth, l=3)
    assert result.details["n_telling_groups"] == 0
    assert result.verdict == "not shown"


# ---- input -----------------------------------------------------------------------------------------------------------


def test_the_result_is_json_without_values():
    import json

    who, what, truth = anatomized(people(n=200))
    told = json.dumps(definetti(who, what, truth).to_dict())
    assert "town" not in told
    assert json.loads(told)["attack"] == "definetti"


def test_one_of_several_sensitive_columns_is_attacked_by_name():
    frame = people().assign(wage=lambda f: f["ill"].astype(int) + 1)
    anatomizer = Anatomizer(2, sensitive=["ill", "wage"], joint=True, random_state=0)
    tables, rows = anatomizer.fit_transform_with_rows(frame)
    with pytest.raises(ParameterError, match="column=None with 2 sensitive columns"):
        definetti(tables.identifying, tables.sensitive, frame["wage"].to_numpy()[rows])
    result = definetti(tables.identifying, tables.sensitive, frame["wage"].to_numpy()[rows], column="wage")
    assert result.rate > result.baseline


def test_missing_values_are_a_value():
    frame = people()
    frame["ill"] = frame["ill"].where(frame["ill"] != "3", None)
    who, what, truth = anatomized(frame)
    assert definetti(who, what, truth).rate > 0.6


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda who, what, truth: (who, what, truth[1:]), "expected one value per row"),
        (lambda who, what, truth: (who.iloc[1:], what, truth[1:]), "equal row counts per group"),
        (lambda who, what, truth: (who[["group"]], what, truth), "a table with one column"),
        (lambda who, what, truth: (who, what, ["x", *truth[1:]]), "truth has 1 values that the sensitive table"),
    ],
)
def test_tables_that_do_not_fit_together_are_refused(change, sentence):
    with pytest.raises(InputError, match=sentence):
        definetti(*change(*anatomized(people(n=100))))


def test_at_least_one_round_is_needed():
    with pytest.raises(ParameterError, match="n_iterations=0"):
        definetti(*anatomized(people(n=100)), n_iterations=0)


def one_group(n, n_values, seed=0):
    random = np.random.default_rng(seed)
    ill = random.integers(0, n_values, n)
    trace = np.where(random.random(n) < 0.9, ill, random.integers(0, n_values, n))
    groups = np.arange(n) // (n - n // 4)  # a large group, and a small one
    order = random.permutation(n)
    who = pa.table({"trace": [f"t{v}" for v in trace], "group": groups})
    what = pa.table({"ill": [f"i{v}" for v in ill[order]], "group": groups[order]})
    return who, what, [f"i{v}" for v in ill]


def test_equal_rows_of_a_large_group_are_weighed_together(monkeypatch):
    tables = one_group(40, 4)
    together = definetti(*tables)
    for module in (group_guessing, group_learning):
        monkeypatch.setattr(module, "MOST_BY_ROWS", 1000)
    one_by_one = definetti(*tables)
    assert together.rate == pytest.approx(one_by_one.rate)
    assert together.details == one_by_one.details


def test_a_group_of_many_thousands_is_attacked_in_little_memory():
    tracemalloc.start()
    result = definetti(*one_group(20_000, 3))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100e6  # a row for each pair of records would take 1.8 GB
    assert result.details["n_not_weighed"] == 0


def test_a_group_too_large_to_be_weighed_is_guessed_by_its_most_frequent_value(monkeypatch):
    monkeypatch.setattr(group_guessing, "_MOST_WEIGHED", 100)
    result = definetti(*one_group(400, 4))
    assert result.details["n_not_weighed"] == 400
    assert result.rate == pytest.approx(result.baseline)
