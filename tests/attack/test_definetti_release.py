# SPDX-License-Identifier: Apache-2.0
"""deFinetti's attack on releases: strong where known values tell the secret, at its baseline where they do not."""

import numpy as np
import pandas as pd
import pytest

from sfumato import InputError, LDiversity, MondrianAnonymizer, ParameterError
from sfumato.attack import definetti, definetti_from_release
from sfumato.datasets import load_nursery

KNOWN = ["town", "place"]


def people(n=1200, seed=0, *, strength=0.8, n_values=4):
    """The sensitive value follows the town with the strength given; the place says nothing."""
    random = np.random.default_rng(seed)
    town = random.integers(0, n_values, n)
    ill = np.where(random.random(n) < strength, town, random.integers(0, n_values, n))
    return pd.DataFrame({"town": town.astype(str), "place": np.arange(n), "ill": ill.astype(str)})


def released(frame, size=6):
    """Groups of neighboring places, in which towns are not told apart."""
    low = frame["place"] // size * size
    return frame.assign(town="{0, 1, 2, 3}", place=[f"{start}-{start + size - 1}" for start in low])


def attacked(frame, **settings):
    return definetti_from_release(frame, released(frame), ["town", "place"], "ill", **settings)


def test_values_that_follow_a_known_column_are_told_apart_inside_groups():
    result = attacked(people())
    assert result.rate > result.baseline + 0.2
    assert result.verdict == "stronger than baseline"
    assert result.control < result.baseline + 0.02  # the same guesses, judged by values shuffled within groups
    assert result.details["by_chance"] < result.baseline


def test_it_stays_at_its_baseline_on_unrelated_values():
    # 20 tables; at 95% confidence a verdict of stronger is expected every second time that 20 tables are made.
    verdicts = [attacked(people(n=400, seed=seed, strength=0.0)).verdict for seed in range(20)]
    assert verdicts.count("stronger than baseline") <= 2


def test_an_anatomy_with_the_same_groups_tells_the_same():
    frame = people()
    group = frame["place"].to_numpy() // 6
    who = pd.DataFrame({"town": frame["town"], "group": group})
    what = pd.DataFrame({"ill": frame["ill"], "group": group})
    anatomy = definetti(who, what, frame["ill"].to_numpy())
    shown = frame.assign(town="any", place=frame["place"] // 6)
    # The place is binned, and says nothing of the value.
    release = definetti_from_release(frame, shown, ["town", "place"], "ill", max_bins=1)
    assert release.rate == pytest.approx(anatomy.rate, abs=0.01)
    assert release.baseline == anatomy.baseline


def test_rows_in_another_order_are_attacked_by_what_their_labels_say():
    frame = people()
    shuffled = released(frame).sample(frac=1, random_state=1)
    result = definetti_from_release(frame, shuffled, KNOWN, "ill", is_aligned=False)
    assert result.rate == pytest.approx(attacked(frame).rate, abs=0.01)
    assert result.baseline == pytest.approx(attacked(frame).baseline)


def test_groups_that_people_are_placed_in_may_have_other_sizes():
    frame = people()
    shuffled = released(frame).sample(n=1000, random_state=1)  # some records were suppressed
    result = definetti_from_release(frame, shuffled, KNOWN, "ill", is_aligned=False)
    assert result.rate > result.baseline + 0.15


def test_what_is_known_of_people_outside_the_release_is_a_control():
    outside = people(seed=5)
    result = attacked(people(), control=outside)
    assert set(result.details["controls"]) == {"people outside the release", "values shuffled"}
    assert result.control == max(result.details["controls"].values())
    # The town says as much of them: only their group says nothing of them.
    assert result.details["control_from"] == "people outside the release"
    assert result.control > 0.6


def test_nursery_is_told_although_every_group_has_two_values():
    frame = load_nursery(as_frame="pandas").frame.sample(4000, random_state=0).reset_index(drop=True)
    known = ["parents", "has_nurs", "form", "children", "health"]
    anonymizer = MondrianAnonymizer(
        10, quasi_identifiers=known, criteria=[LDiversity(2, "class")], representative="range"
    )
    result = definetti_from_release(frame, anonymizer.fit_transform(frame[[*known, "class"]]), known, "class")
    assert result.details["by_chance"] <= 1 / 2
    assert result.rate > 0.75 and result.baseline < 0.62
    assert result.verdict == "stronger than baseline"


def test_what_cannot_be_attacked_is_refused():
    frame = people(n=120)
    with pytest.raises(ParameterError, match="n_iterations"):
        attacked(frame, n_iterations=0)
    with pytest.raises(ParameterError, match="secret is also in known"):
        definetti_from_release(frame, frame, ["town", "ill"], "ill")
    with pytest.raises(ParameterError, match="120 values: expected at most 50"):
        definetti_from_release(frame, frame, ["town"], "place")
    with pytest.raises(InputError, match="no column 'ill'"):
        definetti_from_release(frame, frame.drop(columns="ill"), ["town"], "ill")


@pytest.mark.parametrize("size", [2, 3, 5])
def test_people_who_are_placed_by_their_values_may_be_more_than_the_rows_of_their_group(size):
    frame = people(240)
    shown = released(frame, size)
    # The release has lost records, so some groups have fewer rows than people who are placed in them.
    left = shown.drop(index=range(0, 240, 2 * size)).sample(frac=1, random_state=0)
    result = definetti_from_release(frame, left, KNOWN, "ill", is_aligned=False)
    assert 0 <= result.rate <= 1 and result.hits.success.mean() == pytest.approx(result.rate)
