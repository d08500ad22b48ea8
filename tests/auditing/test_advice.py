# SPDX-License-Identifier: Apache-2.0
"""A failed gate says what to try, with numbers."""

from dataclasses import replace

import pytest

from report.audits import audit, risk
from sfumato.auditing.advice import what_to_try
from sfumato.auditing.unique_records import Uniqueness
from sfumato.report.data import GateCheck, Point


def advised(name: str, required: float = 0.5, measured: float | None = 0.4, **changed: object) -> str:
    made = replace(audit(), curve=(), gate=(GateCheck(name, required, measured, False, ""),))
    method = {**made.method, **changed.pop("method", {})}
    return " ".join(what_to_try(replace(made, method=method, **changed)))


def test_what_is_met_needs_no_advice():
    assert what_to_try(audit()) == ()


def test_groups_that_are_too_small_name_k():
    assert advised("min_k", 20, 10) == "min_k: set k = 20 under [method]; groups are formed with k = 10."


def test_a_score_that_is_too_low_names_the_k_of_the_curve_that_is_enough():
    curve = tuple(
        Point("model-guided", k, score, 0.5, 0.5) for k, score in ((2, 0.87), (5, 0.86), (10, 0.7), (20, 0.6))
    )
    said = advised("min_accuracy_kept", 0.95, 0.8, curve=curve)
    assert said == "min_accuracy_kept: set k = 5 under [method], which keeps 98.9% (k = 10 keeps less)."
    said = advised("min_accuracy_kept", 0.95, 0.8)
    assert "lower k (10 now); 'sfumato sweep policy.toml --k 2,5' measures it" in said
    assert "drop “age” if the model can do without it (20% of its detail is lost)" in said


def test_a_model_that_gains_nothing_on_raw_records_is_not_helped_by_smaller_groups():
    idle = replace(audit().utility, raw=0.79, protected=0.77, same_answer=0.81)
    assert advised("min_gain_kept", 0.5, 0.0, utility=idle) == (
        "min_gain_kept: the model gains nothing over the baseline on raw records either, so no k keeps a gain. Set "
        "another name under [model], add columns that tell the target, or leave out the condition."
    )


@pytest.mark.parametrize(
    ("attack", "kind", "says"),
    [
        ("row order", "", "shuffle the rows"),
        ("singling out of a release", "whole records", 'Set representative = "phantom", "mean" or "range"'),
        ("inference from a release", "", "set l = 2 or more"),
        ("membership of a release", "", 'Set representative = "phantom" or "mean"'),
        ("downcoding", "", 'Set representative = "phantom" or "mean"'),
        ("membership", "", "raise k (10 now), for example to 50"),
    ],
)
def test_an_attack_that_gains_too_much_names_what_stops_it(attack: str, kind: str, says: str):
    strong = risk("the attack", 0.9, "stronger than baseline")
    found = {**strong.result, "attack": attack, "details": {"predicates_from": kind}}
    said = advised("max_attack_advantage", 0.1, 0.4, risks=(replace(strong, result=found),))
    assert says in said and "the attack gains 0.400" in said


def test_unique_records_name_the_column_without_which_few_are_left():
    one = Uniqueness(("pay", "town"), 0.7, 0.9, without={"pay": 0.02, "town": 0.6}, alone={"pay": 0.5})
    assert "without “pay” 2.0% would be unique (now 70.0%)" in advised("max_unique", 0.05, 0.7, uniqueness=one)
    many = replace(one, without={"pay": 0.6, "town": 0.65}, alone={"pay": 0.5, "town": 0.1})
    said = advised("max_unique", 0.05, 0.7, uniqueness=many)
    assert said.endswith("unique by themselves: “pay” (50.0%), “town” (10.0%).")


def test_a_target_that_is_nearly_unique_names_the_rounding_that_helps():
    found = Uniqueness(("pay",), 0.9, 0.9, target=0.9, rounded_target={"3": 0.4, "2": 0.01, "1": 0.0})
    said = advised("max_unique_target", 0.5, 0.9, uniqueness=found)
    assert "round the target to 2 significant digits, which leaves 1.0% unique" in said and "target_values" in said
