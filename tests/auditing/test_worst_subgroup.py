# SPDX-License-Identifier: Apache-2.0
"""The subgroup that an attack gains most on, from success person by person; which stays with the owner."""

import inspect

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import sfumato
from sfumato.attack import ATTACKS, attack_attribute, attack_membership
from sfumato.attack.named_attack import CONFIDENCE, AttackedRelease
from sfumato.attack.result import Hits
from sfumato.auditing.subgroups import SubgroupMembers, Subgroups

N = 1200


def people() -> pa.Table:
    """People of two towns; in one of them the illness follows from the age, in the other it is chance."""
    draw = np.random.default_rng(0)
    age, town = draw.integers(20, 80, N), draw.choice(["north", "south"], N)
    ill = np.where(town == "south", np.where(age < 50, "flu", "gout"), draw.choice(["flu", "gout"], N))
    return pa.table({"age": age, "height": draw.integers(150, 200, N), "town": town, "ill": ill})


def attacked(table: pa.Table) -> AttackedRelease:
    known = ["age", "height", "town"]
    released = sfumato.MondrianAnonymizer(k=10, quasi_identifiers=known).fit_transform(table)
    return AttackedRelease(
        original=table, released=released, known=known, unchanged=["ill"], secrets=["ill"], control=table,
        is_aligned=True, places=None, random_state=0, titles={}, sensitive=["ill"],
    )  # fmt: skip


@pytest.mark.parametrize("name", [name for name in ATTACKS if ATTACKS[name].facts.target == "release"])
def test_the_rate_of_an_attack_is_the_mean_over_its_people(name):
    cases = ATTACKS[name].cases(attacked(people()))
    for case in [] if isinstance(cases, str) else cases:
        result = case.run()
        assert "hits" not in result.to_dict()
        if result.hits is None:
            assert name in ("singling-out", "release-membership", "predicate-singling-out", "downcoding")
            continue
        assert result.hits.success.mean() == pytest.approx(result.rate)
        assert result.hits.baseline.mean() == pytest.approx(result.baseline)
        assert len(set(result.hits.rows.tolist())) == len(result.hits.rows) and result.hits.rows.max() < N


def test_the_rates_of_attacks_on_a_model_are_means_too():
    from sklearn.tree import DecisionTreeClassifier

    table = people().to_pandas()
    X = pd.DataFrame({"age": table["age"], "height": table["height"], "south": (table["town"] == "south").astype(int)})
    inside = np.arange(N) % 2 == 0
    model = DecisionTreeClassifier(random_state=0).fit(X[inside], table["ill"][inside])
    found = attack_membership(model, X, table["ill"], inside, attacks=["threshold"])["threshold"]
    assert found.hits.success.mean() == pytest.approx(found.rate) and found.baseline == 0.5
    assert np.array_equal(found.hits.is_member, inside[found.hits.rows])
    for result in attack_attribute(model, X[inside], table["ill"][inside], "south").values():
        assert result.hits.success.mean() == pytest.approx(result.rate)
        assert result.hits.baseline.mean() == pytest.approx(result.baseline)


def test_every_attack_of_audits_has_the_confidence_that_reports_state():
    functions = {getattr(sfumato.attack, name) for name in sfumato.attack.__all__ if name != "ATTACKS"}
    asked = [inspect.signature(one).parameters for one in functions if inspect.isfunction(one)]
    said = {own["confidence"].default for own in asked if "confidence" in own}
    assert said == {CONFIDENCE}


def test_the_planted_subgroup_is_found_with_a_reference_that_knows_the_subgroup():
    table = people()
    [case] = ATTACKS["inference"].cases(attacked(table))
    town = np.array(table["town"].to_pylist())
    groups = [SubgroupMembers("town", name, town == name) for name in ("north", "south")]
    worst = worst_subgroup(case.run().hits, groups, fewest=30, confidence=0.95)
    assert (worst.column, worst.group) == ("town", "south")
    assert worst.rate > 0.8 and worst.interval[0] < worst.rate < worst.interval[1]
    ill = np.array(table["ill"].to_pylist())[town == "south"]
    assert worst.baseline >= max((ill == "flu").mean(), (ill == "gout").mean()) - 0.05


def worst_subgroup(found: Hits, own: list, *, fewest: int, confidence: float) -> object:
    return Subgroups(tuple(own), fewest).worst(found, confidence)


def hits(success: np.ndarray, **more: object) -> Hits:
    return Hits(np.arange(len(success)), success, np.full(len(success), 0.5), **more)


def test_all_subgroups_that_are_compared_share_the_error():
    success = np.random.default_rng(0).random(400) < 0.6
    half = np.arange(400) < 200
    one = worst_subgroup(hits(success), [SubgroupMembers("a", "x", half)], fewest=30, confidence=0.95)
    many = [SubgroupMembers("a", "x", half), *(SubgroupMembers("b", str(i), ~half) for i in range(20))]
    of_many = worst_subgroup(hits(success & half), many, fewest=30, confidence=0.95)
    assert one.group == of_many.group == "x"
    assert of_many.interval[0] < one.interval[0] < one.rate == of_many.rate < one.interval[1] < of_many.interval[1]


def test_a_subgroup_without_a_gain_is_called_worse_in_at_most_one_of_twenty_tables():
    draw = np.random.default_rng(0)
    members = [SubgroupMembers("a", str(i), np.arange(800) // 100 == i) for i in range(8)]
    n_wrong = 0
    for _ in range(600):
        worst = worst_subgroup(hits(draw.random(800) < 0.5), members, fewest=30, confidence=0.95)
        n_wrong += worst.interval[0] > 0.5
    assert n_wrong / 600 < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 600)


def test_what_most_of_a_subgroup_have_is_no_gain():
    # Nearly all of the subgroup have another value than most of the table: who knows the subgroup knows that.
    truth = np.where(np.arange(400) < 100, 1, 0)
    table_wide = Hits(np.arange(400), truth == truth, truth == 0, truth)
    [inside] = [SubgroupMembers("a", "x", np.arange(400) < 100)]
    assert worst_subgroup(table_wide, [inside], fewest=30, confidence=0.95).baseline == 1.0


def test_members_and_others_count_alike():
    is_member = np.arange(300) < 200
    says_all_are = hits(is_member.copy(), is_member=is_member)
    worst = worst_subgroup(says_all_are, [SubgroupMembers("a", "x", np.ones(300, bool))], fewest=30, confidence=0.95)
    assert worst.rate == 0.5


@pytest.mark.parametrize(("n", "fewest", "is_shown"), [(29, 5, False), (30, 5, True), (40, 41, False)])
def test_a_small_subgroup_is_not_shown(n, fewest, is_shown):
    found = worst_subgroup(
        hits(np.ones(100, bool)), [SubgroupMembers("a", "x", np.arange(100) < n)], fewest=fewest, confidence=0.95
    )
    assert (found is not None) is is_shown


def test_the_report_names_the_subgroup_and_no_row():
    table = people().to_pandas()
    policy = sfumato.Policy.of(
        method={"name": "mondrian", "k": 10},
        columns={"target": "ill", "subgroups": ["town", "age"], "quasi_identifiers": ["age", "height", "town"]},
        model={"name": "decision-tree"},
        audit={"leave_out": ["network"]},
    )
    made = sfumato.run(policy, table=table).audit
    inferred = next(risk for risk in made.risks if risk.result["attack"] == "inference from a release")
    assert inferred.worst is not None and inferred.attempts == 960
    assert (
        inferred.worst.column in ("town", "age")
        and f"{inferred.worst.column}: {inferred.worst.group}" in made.to_html()
    )
    assert "hits" not in made.to_json() and '"rows"' not in made.to_json()
