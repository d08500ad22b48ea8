# SPDX-License-Identifier: Apache-2.0
"""All attacks on a generalization at once: what runs, what is marked, and what goes on after an interruption."""

import dataclasses

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from attack.generalized_people import EXACT, people, random_generalization
from sfumato.attack import Samples, attack_generalization, generalization_attacks
from sfumato.errors import ParameterError
from strategies import in_examples


@in_examples(20)
@given(who=people())
def test_the_exact_adversary_never_fails_the_order(who):
    results = attack_generalization(
        who.generalizations[0],
        who.samples,
        who.personal,
        certainty=0.5,
        other_breaches=who.generalizations[1:],
        link=(["c0"], ["c1"]),
        settings=EXACT,
    )
    assert sorted(results) == [f"A{number}" for number in range(1, 9)]
    assert all(results[attack].verdict != "failed attack" for attack in ("A1", "A3", "A4", "A5", "A6"))


@pytest.fixture
def draw():
    generator = np.random.default_rng(1)
    frame = pa.table({name: generator.choice(["x", "y", "z"], 300) for name in ("a", "b", "c")})
    return random_generalization(frame, generator), Samples(frame, frame, frame)


def test_a_badly_trained_attack_is_marked(draw, monkeypatch):
    def badly_trained(*arguments, **options):
        honest = generalization_attacks.reconstruct_with_non_personal(*arguments, **options)
        attributes = {
            name: {**one, "rate": 0.1, "successes": 0.1 * one["trials"]}
            for name, one in honest.details["attributes"].items()
        }
        details = {**honest.details, "attributes": attributes}
        return dataclasses.replace(honest, rate=0.1, interval=(0.09, 0.11), details=details)

    monkeypatch.setattr(generalization_attacks, "reconstruct_leaving_one_out", badly_trained)
    results = attack_generalization(*draw, ["a"], settings=EXACT)
    assert results["A4"].verdict == "failed attack"
    assert results["A4"].details["weaker_attack"] == "partial personal knowledge (A5)"
    assert results["A3"].verdict != "failed attack"


def test_an_interrupted_run_goes_on_where_it_stopped(draw, tmp_path):
    def interrupt(attack):
        if attack == "A4":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attack_generalization(*draw, ["a"], settings=EXACT, cache=tmp_path, progress=interrupt)
    kept = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(kept) == 3
    attack_generalization(*draw, ["a"], settings=EXACT, cache=tmp_path)
    now = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert len(now) == 5
    assert kept.items() <= now.items()


def test_attacks_that_lack_their_arguments_get_a_sentence(draw):
    with pytest.raises(ParameterError, match="'A6': expected some of A1, A2, A3, A4, A5, A8"):
        attack_generalization(*draw, attacks=["A1", "A6"], settings=EXACT)


def test_only_the_attacks_asked_for_run(draw):
    assert list(attack_generalization(*draw, attacks=["A8", "A1"], settings=EXACT)) == ["A8", "A1"]
