# SPDX-License-Identifier: Apache-2.0
"""The attack on sliced tables follows its definition, person by person."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import InputError, Slicer
from sfumato.attack import match_slices
from strategies import in_examples


def chances_by_hand(original, sliced, groups, secrets, sensitive):
    """Return the chance of each sensitive value of each person, from the definition, in exact fractions."""
    buckets = {number: own.to_dict("records") for number, own in sliced.groupby("bucket")}
    own = next(group for group in groups if sensitive in group)

    def agree(row, person, names):
        return all(row[name] == person[name] for name in names if name not in secrets)

    found = []
    for person in original.to_dict("records"):
        weights, answers = {}, {}
        for number, rows in buckets.items():
            weight = Fraction(1)
            for group in groups:
                weight *= Fraction(sum(agree(row, person, group) for row in rows), len(rows))
            if weight:
                matching = [row[sensitive] for row in rows if agree(row, person, own)]
                weights[number] = weight
                answers[number] = {value: Fraction(n, len(matching)) for value, n in Counter(matching).items()}
        total = sum(weights.values())
        chances = Counter()
        for number, weight in weights.items():
            for value, share in answers[number].items():
                chances[value] += weight / total * share
        found.append(chances)
    return found


@st.composite
def sliced_people(draw):
    """Small tables with few values, so that people match several buckets, and any shuffled version of them."""
    generator = np.random.default_rng(draw(st.integers(0, 2**16)))
    n = draw(st.integers(2, 14))
    names = ["a", "b", "c", "s", "t"]
    frame = pd.DataFrame({name: generator.integers(0, 3, n) for name in names})
    groups = draw(
        st.sampled_from([
            [["a", "b"], ["c"], ["s"], ["t"]],
            [["a"], ["b", "s"], ["c", "t"]],
            [["a", "b", "c", "s", "t"]],
            [["a", "b", "c"], ["s", "t"]],
        ])
    )  # fmt: skip
    bucket = generator.integers(0, max(1, n // 3), n)
    parts = []
    for group in groups:
        order = np.lexsort((generator.random(n), bucket))
        parts.append(frame[group].iloc[order].reset_index(drop=True))
    return frame, pd.concat([*parts, pd.Series(np.sort(bucket), name="bucket")], axis=1), groups


@in_examples()
@given(sliced_people())
def test_chances_are_those_of_the_definition(made):
    frame, sliced, groups = made
    result = match_slices(frame, sliced, groups, "s", secrets=["t"])
    chances = chances_by_hand(frame, sliced, groups, {"s", "t"}, "s")
    assert result.details["worst_chance"] == pytest.approx(float(max(max(own.values()) for own in chances)))
    low = sum(own[true] == max(own.values()) and list(own.values()).count(max(own.values())) == 1
              for own, true in zip(chances, frame["s"], strict=True))  # fmt: skip
    high = sum(own[true] == max(own.values()) for own, true in zip(chances, frame["s"], strict=True))
    assert low <= round(result.rate * len(frame)) <= high  # ties may go either way


def people(n=900, seed=0):
    random = np.random.default_rng(seed)
    age = random.integers(20, 60, n)
    return pd.DataFrame(
        {
            "age": age,
            "town": random.integers(0, 12, n),
            "sex": random.integers(0, 2, n),
            "ill": np.where(random.random(n) < 0.5, age % 6, random.integers(0, 6, n)),
        }
    )


def test_slicing_keeps_the_attacker_at_one_in_l():
    frame = people()
    sliced, rows, _ = Slicer(3, sensitive="ill", random_state=0).fit_transform_with_rows(frame)
    result = match_slices(frame.iloc[rows], sliced.table, sliced.column_groups, "ill")
    assert result.details["worst_chance"] <= 1 / 3 + 1e-12
    assert result.rate < 0.5


def test_the_attack_finds_everything_where_nothing_was_shuffled():
    frame = people().drop_duplicates(["age", "town", "sex"])
    untouched = frame.assign(bucket=np.arange(len(frame)))
    result = match_slices(frame, untouched, [["age", "town"], ["sex"], ["ill"]], "ill")
    assert result.rate == 1.0
    assert result.verdict == "stronger than baseline"
    assert result.control < 0.3


def test_the_attack_finds_nothing_where_the_sensitive_column_was_shuffled_over_the_whole_table():
    frame = people()
    shuffled = frame.assign(ill=np.random.default_rng(1).permutation(frame["ill"]), bucket=0)
    result = match_slices(frame, shuffled, [["age", "town", "sex"], ["ill"]], "ill")
    assert result.rate == pytest.approx(result.baseline)
    assert result.verdict == "not shown"


def test_people_who_were_not_sliced_are_refused():
    frame = people()
    sliced = Slicer(3, sensitive="ill", random_state=0).fit_transform(frame)
    with pytest.raises(InputError, match="900 people match no bucket"):
        match_slices(frame.assign(age=99), sliced.table, sliced.column_groups, "ill")
    with pytest.raises(InputError, match="no column group has the sensitive column"):
        match_slices(frame, sliced.table, [["age", "town", "sex"]], "ill")
