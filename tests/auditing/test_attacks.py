# SPDX-License-Identifier: Apache-2.0
"""Which attacks an audit runs, and what it says of those it does not run."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from sfumato.attack.result import AttackResult
from sfumato.auditing import attacks as attacking
from sfumato.auditing.attacks import ATTACKS, LEVELS, attack_model, attack_release, attacks_of, sentence_of
from sfumato.errors import ParameterError
from sfumato.models import make_model
from sfumato.policy import settings

N_PEOPLE = 200
IS_MEMBER = np.arange(N_PEOPLE) < 140
ONLY_ATTRIBUTE = ("threshold", "random_forest", "network")


def people(job: list[str] | None = None) -> pa.Table:
    random = np.random.default_rng(0)
    jobs = random.choice(["nurse", "smith", "clerk"], N_PEOPLE).tolist() if job is None else job
    return pa.table({
        "age": random.integers(20, 60, N_PEOPLE), "salary": random.normal(2000, 300, N_PEOPLE), "job": jobs,
    })  # fmt: skip


def attacked(table: pa.Table, attributes: list[str], **settings_: object):
    labels = (table["age"].to_numpy() > 40).astype(np.int64)
    model = make_model("decision-tree", "classification", 0)
    model.fit(table.filter(pa.array(IS_MEMBER)), labels[IS_MEMBER])
    chosen = {"level": "quick", "leave_out": ONLY_ATTRIBUTE} | settings_
    return attack_model(model, table, labels, IS_MEMBER, estimator=None, attributes=attributes, n_jobs=1, **chosen)


def test_a_value_that_no_member_has_does_not_keep_the_others_from_being_guessed():
    jobs = people()["job"].to_pylist()
    found = attacked(people([*jobs[:-20], *(["pilot"] * 20)]), ["job"])
    assert found.not_run == ()
    assert [risk.title for risk in found.risks] == ["job, from the model"]


def test_an_attribute_is_guessed_without_a_control_where_too_few_others_have_a_value_of_members():
    jobs = people()["job"].to_pylist()
    found = attacked(people([*jobs[:-50], *(["pilot"] * 50)]), ["job"])
    assert found.not_run == ()
    assert [risk.result["control"] for risk in found.risks] == [None]


def test_an_attribute_that_cannot_be_guessed_is_said_and_the_next_one_is_taken():
    found = attacked(people(), ["salary", "job"])
    assert [risk.title for risk in found.risks] == ["job, from the model"]
    assert found.not_run == ()
    assert found.notes == ("Guessing 'salary' with the model does not apply: it guesses among 2 to 50 values.",)


def test_an_attribute_that_members_do_not_differ_in_counts_as_not_run():
    found = attacked(people(["nurse" if member else "smith" for member in IS_MEMBER]), ["job"])
    assert [(attack.attack, attack.title) for attack in found.not_run] == [
        ("attribute", "guessing 'job' with the model")
    ]
    assert found.sentences[0].startswith("Not run: guessing 'job' with the model. ")


def test_too_few_records_for_membership_count_as_not_run():
    few = people().slice(130, 20)
    labels = np.arange(20) % 2
    model = make_model("decision-tree", "classification", 0).fit(few, labels)
    found = attack_model(
        model, few, labels, np.arange(20) < 10, level="quick", estimator=None, attributes=[], leave_out=["network"]
    )
    assert [attack.attack for attack in found.not_run] == ["threshold", "random_forest"]


def test_what_has_no_meaning_for_a_release_is_a_note_and_not_a_failure():
    table = people()
    found = attack_release(table, table, ["age"])
    assert [risk.title for risk in found.risks] == ["singling out", "tell records of a group apart by row order"]
    assert found.not_run == ()
    assert [note.partition(" does not apply")[0] for note in found.notes] == [
        "Linking two lists", "Inferring a secret from the release", "Membership of the release",
        "Reading values off the ends of ranges", "Singling out by small predicates",
    ]  # fmt: skip


def test_holdout_records_and_ranges_bring_the_attacks_that_need_them():
    table = people()
    ranges = table.set_column(
        0, "age", pa.array([f"{age // 10 * 10}-{age // 10 * 10 + 9}" for age in table["age"].to_pylist()])
    )
    rest = ["singling_out", "linkability", "inference", "row_order"]
    found = attack_release(table, ranges, ["age", "job"], control=people().slice(60), leave_out=rest)
    assert [risk.title for risk in found.risks] == [
        "membership of the release", "read exact values off the ends of ranges",
        "single out by predicates of small weight",
    ]  # fmt: skip
    assert (found.not_run, found.notes) == ((), ())


def test_an_attack_whose_package_is_missing_counts_as_not_run(monkeypatch):
    facts = replace(attacking.facts_of("inference"), needs=("pandas",))
    monkeypatch.setattr(attacking, "find_spec", lambda name: None)
    monkeypatch.setattr(attacking, "facts_of", lambda name: facts)
    found = attack_release(people(), people(), ["age"], secrets=["job"])
    assert found.risks == ()
    assert {one.attack for one in found.not_run} == set(attacks_of("quick"))
    assert "pandas is not installed" in found.not_run[0].why


def test_what_attackers_know_is_no_secret_to_infer():
    table = people()
    found = attack_release(
        table, table, ["age"], secrets=["job", "age"], leave_out=["singling_out", "linkability", "row_order"]
    )
    assert [risk.title for risk in found.risks] == [
        "infer job from the release",
        "guess job inside groups from all groups (deFinetti)",
        "guess job from cuts that were not made (minimality)",
        "guess job in groups where a value is raised (skewness)",
    ]
    assert "The similarity attack" in {note.partition(" does not apply")[0] for note in found.notes}


def test_groups_are_attacked_for_columns_that_were_named_as_sensitive():
    table = people()
    found = attack_release(table, table, ["age"], secrets=["job"], sensitive=[])
    assert [risk.title for risk in found.risks if "job" in risk.title] == ["infer job from the release"]


def test_a_sensitive_number_is_guessed_up_to_a_tolerance():
    table = people().append_column("pay", pa.array(np.linspace(1000, 9000, people().num_rows)))
    found = attack_release(table, table, ["age"], secrets=["pay"])
    assert "guess pay up to a tolerance (similarity)" in {risk.title for risk in found.risks}
    assert {note.partition(" does not apply")[0] for note in found.notes} >= {
        "deFinetti's attack", "The minimality attack", "The skewness attack",
    }  # fmt: skip


def test_a_sensitive_column_that_was_dropped_is_not_guessed_in_groups():
    table = people()
    found = attack_release(table, table.drop_columns(["job"]), ["age"], secrets=["job"])
    assert not [risk for risk in found.risks if "job" in risk.title]
    assert {attack.attack for attack in found.not_run} <= {"inference"}


def test_the_rows_of_a_release_in_another_order_are_attacked_by_their_labels():
    table = people()
    moved = table.take(np.random.default_rng(0).permutation(table.num_rows))
    found = attack_release(table, moved, ["age"], secrets=["job"], is_aligned=False)
    assert {risk.result["attack"] for risk in found.risks} >= {"definetti on a release", "skewness"}


def test_attacks_that_are_left_out_are_neither_run_nor_noted():
    table = people()
    others = [name for name in attacks_of("quick") if name != "linkability"]
    found = attack_release(table, table, ["age", "job"], leave_out=others)
    assert [risk.eu_risk for risk in found.risks] == ["linkability"]
    assert found.notes == ()


def test_policies_name_the_attacks_and_levels_that_audits_know():
    assert tuple(name.replace("_", "-") for name in ATTACKS) == settings.ATTACKS
    assert settings.LEVELS == LEVELS
    assert set(attacks_of("full")) == set(ATTACKS)
    assert attacks_of("none") == ()
    with pytest.raises(ParameterError, match="expected one of none, quick"):
        attacks_of("thorough")


def result_of(verdict: str, rate: float, baseline: float, control: float | None) -> AttackResult:
    return AttackResult(
        attack="an attack", rate=rate, interval=(rate, rate), baseline=baseline, control=control, verdict=verdict,
        seconds=0.0, seed=0, details={},
    )  # fmt: skip


def test_a_sentence_compares_with_the_better_of_baseline_and_control():
    assert sentence_of(result_of("not shown", 0.228, 0.113, 0.21)) == (
        "No significant gain: 0.228, reference rate 0.210 (people outside the release)."
    )
    assert sentence_of(result_of("not shown", 0.228, 0.22, 0.1)).endswith("reference rate 0.220.")
    assert sentence_of(result_of("stronger than baseline", 0.5, 0.1, 0.2)) == (
        "It succeeds in 50.0% of cases; the reference rate is 20.0% (people outside the release)."
    )


def test_an_attack_that_is_sure_of_a_few_members_says_of_how_many():
    low = {"true_positives_at": {"0.01": {"rate": 0.064}}}
    result = replace(result_of("stronger than baseline", 0.5, 0.5, 0.52), details=low)
    assert sentence_of(result).endswith("But it detects 6.4% of the members at 1% false positives.")
    assert "But" not in sentence_of(replace(result, rate=0.6))


def test_of_several_ways_to_guess_an_attribute_the_one_that_gains_most_is_judged(monkeypatch):
    ways = {
        "right about everybody": result_of("stronger than baseline", 0.8, 0.5, 0.8),
        "right about members": result_of("stronger than baseline", 0.7, 0.5, 0.5),
    }
    monkeypatch.setattr(attacking, "attack_attribute", lambda *_, **__: ways)
    (risk,) = attacked(people(), ["job"]).risks
    assert risk.advantage == pytest.approx(0.2)


def test_what_is_missing_is_no_value_that_could_be_guessed(monkeypatch):
    way = result_of("not shown", 0.5, 0.5, None)
    monkeypatch.setattr(attacking, "attack_attribute", lambda *_, **__: {"a way": way})
    n_years = np.where(np.arange(N_PEOPLE) % 9, 1.0 + np.arange(N_PEOPLE) % 50, np.nan)
    only_one = np.where(np.arange(N_PEOPLE) % 9, 1.0, np.nan)
    table = people().append_column("years", pa.array(n_years)).append_column("vote", pa.array(only_one))
    found = attacked(table, ["vote", "years"])
    assert [risk.title for risk in found.risks] == ["years, from the model"]
    assert found.notes == ("Guessing 'vote' with the model does not apply: it guesses among 2 to 50 values.",)
