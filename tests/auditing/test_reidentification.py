# SPDX-License-Identifier: Apache-2.0
"""Risks of re-identification by their definitions, masked where they concern few, and as the gate judges them."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sfumato
from sfumato.auditing.gate import judge_gate
from sfumato.auditing.reidentification import measure_reidentification, smallest_group_for
from sfumato.errors import ParameterError
from strategies import in_examples

SIZES = st.lists(st.integers(1, 60), min_size=1, max_size=40)


def expected_inverse(size: int, fraction: float, n_terms: int = 20_000) -> float:
    """E[1/F] where F - size is negative binomial: the sum itself, term by term."""
    total, term = 0.0, fraction**size
    for more in range(n_terms):
        total += term / (size + more)
        term *= (size + more) / (more + 1) * (1 - fraction)
    return total


@in_examples(100)
@given(before=SIZES, after=SIZES, threshold=st.sampled_from([0.05, 0.1, 0.34]))
def test_prosecutor_risks_are_those_of_each_record(before, after, threshold):
    found, measured = measure_reidentification(
        np.array(before), np.array(after), context={"threshold": threshold}, smallest_shown=1
    )
    for profile, sizes in ((found.before, before), (found.after, after)):
        records = [1 / size for size in sizes for _ in range(size)]
        prosecutor, journalist, marketer = profile.attackers
        assert prosecutor.maximum == max(records)
        assert prosecutor.average == pytest.approx(np.mean(records), abs=6e-4)
        assert prosecutor.above[f"{threshold:g}"] == pytest.approx(np.mean([r > threshold for r in records]), abs=6e-4)
        # Without a sampling fraction the table is the population.
        assert (journalist.maximum, journalist.above) == (prosecutor.maximum, prosecutor.above)
        assert marketer.maximum is None and marketer.average == prosecutor.average
        assert profile.unique == pytest.approx(sizes.count(1) / sum(sizes), abs=6e-4)
    records = [1 / size for size in after for _ in range(size)]
    assert measured["max_risk"] == measured["max_journalist_risk"] == max(records)
    assert measured["max_marketer_risk"] == pytest.approx(np.mean(records))
    assert measured["max_share_at_risk"] == pytest.approx(np.mean([r > threshold for r in records]))


@pytest.mark.parametrize("fraction", [0.02, 0.3, 0.9])
def test_the_journalist_is_estimated_by_the_sum_itself(fraction):
    sizes = np.array([3, 3, 8, 20])
    found, measured = measure_reidentification(sizes, sizes, context={"sampling_fraction": fraction}, smallest_shown=1)
    each = {size: expected_inverse(size, fraction) for size in (3, 8, 20)}
    assert measured["max_journalist_risk"] == pytest.approx(each[3], rel=1e-6)
    assert measured["max_marketer_risk"] == pytest.approx(sum(size * each[size] for size in sizes.tolist()) / 34)
    assert found.after.attackers[1].maximum < found.after.attackers[0].maximum
    assert set(found.before.population_unique) == {
        "zayatz", "pitman", "shifted_negative_binomial", "negative_binomial",
    }  # fmt: skip


def test_a_share_of_few_people_is_masked_and_so_is_what_would_tell_it():
    before = np.array([1, 1, 1, 97])
    found, measured = measure_reidentification(
        before, before, context={"sampling_fraction": 1.0, "threshold": 0.5}, smallest_shown=10
    )
    assert found.after.unique is None and set(found.after.population_unique.values()) == {None}
    assert found.after.attackers[0].above["0.5"] is None
    assert measured["max_share_at_risk"] == 0.03  # exact for the gate, which masks it in words


@pytest.mark.parametrize("fraction", [None, 0.01, 0.2, 1.0])
@pytest.mark.parametrize("limit", [0.9, 0.09, 0.003, 1e-9])
def test_advice_names_the_smallest_group_that_is_enough(limit, fraction):
    size = smallest_group_for(limit, fraction)

    def risk(n: int) -> float:
        _, measured = measure_reidentification(
            np.array([n]), np.array([n]), context={"sampling_fraction": fraction}, smallest_shown=1
        )
        return measured["max_journalist_risk"]

    assert risk(size) <= limit * (1 + 1e-9)
    assert size == 1 or risk(size - 1) > limit


# -- policies ------------------------------------------------------------------------------------------------------


def table(n: int = 240) -> pd.DataFrame:
    draw = np.random.default_rng(1)
    return pd.DataFrame({"age": draw.integers(18, 90, n), "height": draw.integers(150, 200, n)})


def run(**sections: dict) -> sfumato.PolicyRun:
    return sfumato.run(sfumato.Policy.of(method={"name": "mondrian", "k": 4}, **sections), table=table())


@pytest.mark.parametrize(
    ("name", "context"),
    [
        ("max_risk", {}),
        ("max_journalist_risk", {"sampling_fraction": 0.5}),
        ("max_marketer_risk", {"sampling_fraction": 0.5}),
        ("max_share_at_risk", {"threshold": 0.2}),
    ],
)
def test_a_gate_on_risks_releases_nothing_beyond_its_limit_and_says_what_to_try(name, context):
    measured = run(gate={name: 1.0}, context=context).audit.gate[0].measured
    assert measured > 0 and run(gate={name: measured}, context=context).passed
    failed = run(gate={name: measured / 2}, context=context)
    assert failed.passed is False and failed.release is None
    [advice] = failed.audit.advice
    needed = int(advice.split("at least ")[1].split()[0])
    assert advice.startswith(f"{name}: groups of at least {needed} meet it; set k = {needed}")
    if name != "max_share_at_risk":
        policy = sfumato.Policy.of(method={"name": "mondrian", "k": needed}, gate={name: measured / 2}, context=context)
        assert sfumato.run(policy, table=table()).passed


def test_a_share_above_a_threshold_needs_the_threshold():
    with pytest.raises(ParameterError, match="max_share_at_risk without a threshold"):
        sfumato.Policy.of(gate={"max_share_at_risk": 0.1}, columns={"target": "ill"})


def test_people_alone_in_the_population_are_estimated_unfavorably():
    def measured(sizes, fraction):
        return measure_reidentification(
            np.array(sizes), np.array(sizes), context={"sampling_fraction": fraction}, smallest_shown=5
        )

    report, found = measured([1] * 60 + [2] * 10, 1.0)
    assert found["max_population_unique"] == pytest.approx(60 / 80)  # the whole population: nothing is estimated
    few = measured([1] * 60 + [2] * 10, 0.1)[1]["max_population_unique"]
    assert 0 < few < 60 / 80
    assert few == pytest.approx(max(measured([1] * 60 + [2] * 10, 0.1)[0].after.population_unique.values()), abs=1e-3)
    assert measured([4] * 20, 0.1)[1]["max_population_unique"] == 0
    assert report.after.unique == 0.75


def test_people_alone_in_the_population_need_its_size_and_close_the_gate():
    with pytest.raises(ParameterError, match="max_population_unique without a population"):
        sfumato.Policy.of(gate={"max_population_unique": 0.1}, columns={"target": "ill"})
    checked = judge_gate(
        {"max_population_unique": 0.1}, smallest_group=1, least_values=None, utility=None, risks=(),
        reidentified={"max_population_unique": 0.2}, n_records=100,
    )  # fmt: skip
    assert [(check.passed, check.measured) for check in checked] == [(False, 0.2)]
    assert run(gate={"max_population_unique": 0.0}, context={"sampling_fraction": 0.1}).passed


def test_risks_of_persons_count_persons():
    people = table().assign(person=np.arange(240) // 2)
    people[["age", "height"]] = people.groupby("person")[["age", "height"]].transform("first")
    policy = sfumato.Policy.of(method={"name": "mondrian", "k": 4}, columns={"unit": "person"}, gate={"max_risk": 0.25})
    done = sfumato.run(policy, table=people)
    assert done.passed and done.audit.reidentification.counted == "persons"
    assert done.audit.gate[0].measured == done.audit.reidentification.after.attackers[0].maximum
    # Two records of one person are no two people to hide among.
    assert done.audit.reidentification.before.attackers[0].maximum == 1.0


def test_the_report_has_the_risks_before_and_after_and_precedents_with_their_source():
    made = run(context={"access": "public", "threshold": 0.3, "sampling_fraction": 0.1}).audit
    for text in (made.to_html(), made.to_markdown().replace("\\", "")):
        assert "prosecutor, maximum" in text and "share of records above 0.3" in text
        assert "EMA/90915/2016" in text and "0.09 (groups of 11)" in text and "not a rule" in text
    quiet = run().audit.to_html()
    assert "EMA/90915/2016" not in quiet and "share of records above 0.09" in quiet


def test_an_audit_of_two_tables_judges_the_risk():
    people = table().assign(ill="no")
    released = people.assign(age=people["age"] // 40, height=170)
    smallest = int(released.groupby(["age", "height"]).size().min())
    found = sfumato.audit(people, released, gate={"max_risk": 1 / smallest})
    assert found.passed and found.reidentification.after.attackers[0].maximum == 1 / smallest
    failed = sfumato.audit(people, released, gate={"max_risk": 0.99 / smallest})
    assert failed.passed is False
    assert f"groups of at least {math.ceil(smallest / 0.99)} meet it; raise k where" in failed.advice[0]
