# SPDX-License-Identifier: Apache-2.0
"""The gate lets nothing through that was not measured, and words every condition."""

import pytest

from sfumato.auditing.gate import judge_gate
from sfumato.errors import ParameterError
from sfumato.report.data import Risk, UtilityResult


def risk(rate: float, baseline: float = 0.5, control: float | None = None) -> Risk:
    result = {"rate": rate, "interval": [rate, rate], "baseline": baseline, "control": control, "verdict": "not shown"}
    return Risk("an attack", "inference", result, "")


UTILITY = UtilityResult("accuracy", "m", 0.8, 0.76, 0.78, (-0.1, 0.0), 100, 50, same_answer=0.7)


def judged(required: dict[str, float], **changed: object) -> dict[str, bool]:
    measured = {
        "smallest_group": 10,
        "least_values": 3,
        "utility": UTILITY,
        "risks": (risk(0.5), risk(0.62)),
        "unique": {"max_unique": 0.05, "max_unique_target": 0.3},
        "reidentified": {
            "max_risk": 0.1,
            "max_journalist_risk": 0.03,
            "max_marketer_risk": 0.02,
            "max_share_at_risk": 0.4,
        },
        "n_suppressed": 10,
        "n_records": 1000,
    }
    return {check.name: check.passed for check in judge_gate(required, **(measured | changed))}


@pytest.mark.parametrize(
    ("name", "met", "missed"),
    [
        ("min_k", 10, 11),
        ("min_l", 3, 4),
        ("max_risk", 0.1, 0.099),
        ("max_journalist_risk", 0.03, 0.029),
        ("max_marketer_risk", 0.02, 0.019),
        ("max_share_at_risk", 0.4, 0.399),
        ("max_attack_advantage", 0.12, 0.119),
        ("min_accuracy_kept", 0.95, 0.951),
        ("min_gain_kept", 0.6 - 1e-9, 0.601),
        ("max_unique", 0.05, 0.049),
        ("max_unique_target", 0.3, 0.299),
        ("max_suppressed", 0.01, 0.009),
    ],
)
def test_a_condition_is_met_up_to_its_bound_and_not_beyond(name: str, met: float, missed: float):
    assert judged({name: met}) == {name: True}
    assert judged({name: missed}) == {name: False}


@pytest.mark.parametrize(
    ("name", "unmeasured"),
    [
        ("min_l", {"least_values": None}),
        ("max_attack_advantage", {"risks": ()}),
        ("min_accuracy_kept", {"utility": None}),
        ("min_gain_kept", {"utility": None}),
        ("max_risk", {"reidentified": {}}),
        ("max_journalist_risk", {"reidentified": {}}),
        ("max_marketer_risk", {"reidentified": {}}),
        ("max_share_at_risk", {"reidentified": {}}),
        ("max_unique", {"unique": {}}),
        ("max_unique_target", {"unique": {}}),
    ],
)
def test_what_was_not_measured_does_not_pass(name: str, unmeasured: dict[str, object]):
    assert judged({name: 0.5}, **unmeasured) == {name: False}


def test_a_bound_on_attacks_fails_where_one_of_them_was_not_run():
    required = {"max_attack_advantage": 0.9, "min_k": 5}
    not_run = {"not_run": ["membership, by a network"], "to_run_them": "install torch"}
    checks = judge_gate(required, smallest_group=9, least_values=None, utility=UTILITY, risks=(risk(0.5),), **not_run)
    assert [(check.name, check.passed) for check in checks] == [("min_k", True), ("max_attack_advantage", False)]
    assert checks[1].measured is None
    assert checks[1].sentence == "not run, so this cannot pass: membership, by a network (install torch)"


def test_an_attack_that_gains_too_much_is_told_although_others_were_not_run():
    [check] = judge_gate(
        {"max_attack_advantage": 0.1},
        smallest_group=9, least_values=None, utility=UTILITY, risks=(risk(0.9),), not_run=["linkability"],
    )  # fmt: skip
    assert check.measured == pytest.approx(0.4) and not check.passed


def test_what_is_not_asked_for_is_not_judged():
    assert judged({"min_k": None}) == {}


def test_an_unknown_condition_is_refused_by_name():
    with pytest.raises(ParameterError, match="min_q"):
        judged({"min_q": 3})


def test_an_attack_below_its_baseline_has_no_advantage_and_no_negative_one():
    assert risk(0.4).advantage == 0.0


def test_what_an_attack_finds_out_about_strangers_too_is_no_advantage():
    assert risk(0.8, 0.5, 0.75).advantage == pytest.approx(0.05)
    assert risk(0.8, 0.5, 0.4).advantage == pytest.approx(0.3)


def test_few_suppressed_records_are_judged_and_not_told():
    [check] = judge_gate(
        {"max_suppressed": 0.01}, smallest_group=10, least_values=None, utility=None, risks=(),
        n_suppressed=3, n_records=997, smallest_shown=10,
    )  # fmt: skip
    assert check.passed and check.measured is None
    assert check.sentence == "fewer than 10 records were suppressed, limit 1.00% of all"
    assert judged({"max_suppressed": 0.001}, n_suppressed=3, smallest_shown=10) == {"max_suppressed": False}


def test_persons_are_named_where_persons_were_counted():
    [check] = judge_gate({"min_k": 5}, smallest_group=4, least_values=None, utility=None, risks=(), counted="persons")
    assert check.sentence == "the smallest group has 4 persons, 5 are required"


@pytest.mark.parametrize(("judged_score", "passes"), [(-0.1, True), (0.2, True), (-0.2, False)])
def test_a_model_that_was_no_use_may_not_become_worse(judged_score: float, passes: bool):
    useless = UtilityResult("R2", "m", -0.1, judged_score, judged_score, (0.0, 0.0), 100, 50)
    assert judged({"min_accuracy_kept": 0.9}, utility=useless) == {"min_accuracy_kept": passes}


def test_a_model_without_any_gain_on_raw_records_is_said_to_have_none():
    idle = UtilityResult("accuracy", "m", 0.79, 0.77, 0.77, (0.0, 0.0), 100, 50, same_answer=0.81)
    [check] = judge_gate(
        {"min_gain_kept": 0.5}, smallest_group=10, least_values=None, utility=idle, risks=(), n_records=1000
    )
    assert not check.passed
    assert check.sentence == "the model gains nothing over the baseline on raw records, so none of it can be kept"


def test_few_unique_records_are_judged_and_not_told():
    [check] = judge_gate(
        {"max_unique": 0.0}, smallest_group=10, least_values=None, utility=None, risks=(), unique={"max_unique": 0.003},
        n_records=1000, smallest_shown=10,
    )  # fmt: skip
    assert not check.passed and check.measured is None
    assert check.sentence.startswith("fewer than 10 records are unique by the columns released unchanged")


def test_what_is_kept_of_the_gain_is_less_than_what_is_kept_of_the_score():
    assert UTILITY.kept == pytest.approx(0.95)
    assert UTILITY.gain_kept == pytest.approx(0.6)
    nothing = UtilityResult("accuracy", "m", 0.8, 0.65, 0.65, (0, 0), 100, 50, same_answer=0.7)
    assert nothing.gain_kept == 0.0
    assert UtilityResult("R2", "m", 0.8, 0.6, 0.6, (0, 0), 100, 50).gain_kept == pytest.approx(0.75)
