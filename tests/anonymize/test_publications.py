# SPDX-License-Identifier: Apache-2.0
"""Batches over time: every release keeps k, and people whom two releases single out together are told of."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import FullDomainAnonymizer, HilbertAnonymizer, MondrianAnonymizer, Partition, PrivacyWarning
from sfumato.anonymize.earlier_releases import Publication
from sfumato.attack.intersection import intersect_releases
from sfumato.errors import InputError, ParameterError
from sfumato.testing import smallest_group
from strategies import in_examples

K = 4


def people(ages: Any, first: int = 0) -> pd.DataFrame:
    return pd.DataFrame({"who": np.arange(first, first + len(ages)), "age": ages, "illness": ["flu"] * len(ages)})


@pytest.fixture(scope="module")
def fitted() -> MondrianAnonymizer:
    """Four groups: up to 29, 30 to 39, 40 to 49, 50 and over."""
    anonymizer = MondrianAnonymizer(K, quasi_identifiers=["age"], identifiers=["who"], representative="range")
    anonymizer.fit(people(np.repeat([25, 26, 35, 36, 45, 46, 55, 56], 2)))
    assert anonymizer.n_groups_ == 4
    return anonymizer


def quietly(anonymizer: Any, frame: Any, **given: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        return anonymizer.release(frame, **given)


def test_the_same_batch_twice_tells_nothing_new(fitted):
    batch = people([25, 25, 26, 26, 35, 35, 36, 36])
    first = fitted.release(batch, persons="who")
    second = fitted.release(batch, earlier=[first], persons="who")  # warnings are errors
    [together] = second.measures["together"]
    assert together["is_safe"]
    assert (together["n_people"], together["smallest_together"], together["n_new"], together["n_gone"]) == (8, 4, 0, 0)


@pytest.mark.parametrize("kind", [float, str])
def test_people_are_recognised_by_numbers_of_another_type(fitted, kind: type):
    batch = people([25, 25, 26, 26, 35, 35, 36, 36])
    first = fitted.release(batch, persons="who")
    second = fitted.release(batch.assign(who=batch["who"].astype(kind)), earlier=[first], persons="who")
    [together] = second.measures["together"]
    assert (together["n_people"], together["n_new"], together["n_gone"]) == (8, 0, 0)


def test_one_newcomer_is_singled_out_by_the_difference(fitted):
    ages = [25, 25, 26, 26, 35, 35, 36, 36]
    first = fitted.release(people(ages))
    later = people([*ages, 36])
    with pytest.warns(PrivacyWarning, match=r"fewer than 4 of fewer than 4 who came did so with fewer than 4"):
        second = fitted.release(later, earlier=[first])
    assert smallest_group(second.table, ["age"]) >= K  # each release by itself keeps k
    [together] = second.measures["together"]
    assert (together["n_new"], together["n_new_below"], together["n_below"]) == (1, 1, 0)
    assert not together["is_counted"]


def test_those_who_leave_are_told_of_as_well(fitted):
    ages = [25, 25, 26, 26, 26, 35, 35, 36, 36]
    first = fitted.release(people(ages), persons="who")
    with pytest.warns(PrivacyWarning, match="who went did so with fewer than 4"):
        second = fitted.release(people(ages).drop(index=4), earlier=first, persons="who")
    [together] = second.measures["together"]
    assert (together["n_gone"], together["n_gone_below"], together["n_new"]) == (1, 1, 0)


def test_a_person_who_changed_groups_alone_is_singled_out(fitted):
    first_ages, later_ages = [25] * 5 + [35] * 5, [25] * 4 + [35] * 6  # the fifth turned thirty
    first = fitted.release(people(first_ages), persons="who")
    later = people(later_ages)
    with pytest.warns(PrivacyWarning, match=r"fewer than 4 of 10 people who are in both .* fewer than 4 of them alone"):
        second = fitted.release(later, earlier=[first], persons="who")
    [together] = second.measures["together"]
    assert (together["n_people"], together["smallest_together"], together["n_alone"]) == (10, 1, 1)
    assert together["n_below"] == 1
    assert smallest_group(first.table, ["age"]) >= K
    assert smallest_group(second.table, ["age"]) >= K


def test_groups_joined_in_one_release_and_not_in_the_other_are_intersected(fitted):
    # Two people under thirty are hidden among those under forty at first, and later among others of their age.
    first = fitted.release(people([25, 26, 35, 35, 36, 36]), persons="who")
    later = people([25, 26, 35, 35, 36, 36, 25, 26, 26])
    with pytest.warns(PrivacyWarning, match="share their two groups with fewer than 4"):
        second = fitted.release(later, earlier=[first], persons="who")
    [together] = second.measures["together"]
    assert (together["n_below"], together["smallest_together"], together["n_alone"]) == (2, 2, 0)
    assert (together["n_new"], together["n_new_below"]) == (3, 3)


def test_enough_newcomers_are_no_danger(fitted):
    ages = [25, 25, 26, 26, 35, 35, 36, 36]
    first = fitted.release(people(ages), persons="who")
    second = fitted.release(people([*ages, 25, 25, 26, 26]), earlier=[first], persons="who")
    assert second.measures["together"][0]["n_new_below"] == 0


def test_other_people_are_not_taken_for_the_same_where_they_are_known(fitted):
    first = fitted.release(people([25, 25, 26, 26]), persons="who")
    second = fitted.release(people([25, 25, 26, 26, 26], first=100), earlier=[first], persons="who")
    [together] = second.measures["together"]
    assert (together["n_people"], together["smallest_together"], together["n_new"]) == (0, None, 5)


AGES = st.lists(st.integers(20, 60), min_size=K, max_size=30)


@in_examples()
@given(first=AGES, moved=st.lists(st.integers(-15, 15), max_size=30), new=st.lists(st.integers(20, 60), max_size=10))
def test_people_in_both_are_counted_as_somebody_with_both_tables_would(fitted, first, moved, new):
    own = MondrianAnonymizer(K, quasi_identifiers=["age"], keep=["who"], representative="range")
    own.fit(people(np.repeat([25, 26, 35, 36, 45, 46, 55, 56], 2)))
    ages = [age + (moved[place] if place < len(moved) else 0) for place, age in enumerate(first)] + new
    releases = [own.release(people(first), persons="who")]
    releases.append(quietly(own, people(ages), earlier=releases, persons="who"))
    expected = intersect_releases(releases[0].table, releases[1].table, (["age"], ["age"]), key="who")
    [together] = releases[1].measures["together"]
    assert together["n_people"] == expected.n_people
    assert together["smallest_together"] == expected.smallest_together
    assert together["n_alone"] == expected.n_alone
    assert together["n_new"] == len(new)
    assert together["n_gone"] == 0


@in_examples()
@given(first=AGES, new=st.lists(st.integers(20, 60), max_size=20))
def test_growing_batches_need_no_names(fitted, first, new):
    batches = people(first), people([*first, *new])
    found = []
    for persons in ("who", None):
        earlier = fitted.release(batches[0], persons=persons)
        release = quietly(fitted, batches[1], earlier=[earlier], persons=persons)
        assert smallest_group(release.table, ["age"]) >= K
        found.append(release.measures["together"][0])
    assert found[0].pop("is_counted") and not found[1].pop("is_counted")
    assert found[0] == found[1]


@in_examples(30)
@given(first=AGES, second=AGES)
def test_the_release_itself_is_the_same_whatever_was_released_before(fitted, first, second):
    earlier = fitted.release(people(first))
    alone = fitted.release(people(second))
    compared = quietly(fitted, people(second), earlier=[earlier])
    pd.testing.assert_frame_equal(compared.table, alone.table)
    assert compared.publication.to_dict() == alone.publication.to_dict()


def test_a_publication_is_kept_in_a_private_file_without_names(fitted, tmp_path: Path):
    batch = people([25, 25, 26, 26, 35, 35, 36, 36]).assign(who=[f"patient-{place}" for place in range(8)])
    first = fitted.release(batch, persons="who")
    first.publication.save(tmp_path / "first.json")
    assert (tmp_path / "first.json").stat().st_mode & 0o077 == 0
    assert b"patient" not in (tmp_path / "first.json").read_bytes()
    loaded = Publication.load(tmp_path / "first.json")
    assert loaded.to_dict() == first.publication.to_dict()
    second = fitted.release(batch, earlier=[loaded], persons="who")
    assert second.measures["together"][0]["n_people"] == 8
    assert [path.name for path in tmp_path.iterdir()] == ["first.json"]


def test_a_partition_is_recognised_when_it_was_saved_and_loaded(fitted, tmp_path: Path):
    table = people(np.arange(20, 84)).assign(town=np.tile(["Ulm", "Graz", "Bonn", None], 16))
    for anonymizer in (fitted, MondrianAnonymizer(K, quasi_identifiers=["age", "town"], identifiers=["who"])):
        if anonymizer is not fitted:
            anonymizer.fit(table)
        anonymizer.partition_.save(tmp_path / "partition.json")
        assert Partition.load(tmp_path / "partition.json").fingerprint == anonymizer.partition_.fingerprint
    assert anonymizer.partition_.fingerprint != fitted.partition_.fingerprint


@pytest.mark.parametrize("method", [HilbertAnonymizer, FullDomainAnonymizer])
def test_other_methods_compare_their_releases_too(method: Any):
    settings: dict[str, Any] = {"quasi_identifiers": ["age"], "identifiers": ["who"]}
    ages = np.repeat([25, 35, 45, 55], 5)
    if method is FullDomainAnonymizer:
        settings["hierarchies"] = {"age": {"young": [25, 35], "old": [45, 55]}}
    anonymizer = method(K, **settings).fit(people(ages))
    first = anonymizer.release(people(ages), persons="who")
    moved = ages.copy()
    moved[0] = 45
    with pytest.warns(PrivacyWarning, match="alone"):
        second = anonymizer.release(people(moved), earlier=[first], persons="who")
    assert second.measures["together"][0]["n_alone"] == 1


def test_what_cannot_be_compared_is_refused(fitted, tmp_path: Path):
    batch = people([25, 25, 26, 26])
    first = fitted.release(batch)
    other = MondrianAnonymizer(2, quasi_identifiers=["age"], identifiers=["who"]).fit(batch)
    with pytest.raises(InputError, match="another partition"):
        other.release(batch, earlier=[first])
    with pytest.raises(InputError, match="different keys"):
        both = [fitted.release(batch, persons="who"), fitted.release(batch, persons="who")]
        fitted.release(batch, earlier=both, persons="who")
    with pytest.raises(InputError, match="1 repeated"):
        fitted.release(batch.assign(who=[1, 1, 2, 3]), persons="who")
    with pytest.raises(InputError, match="missing in 1 records"):
        fitted.release(batch.assign(who=[1, None, 2, 3]), persons="who")
    with pytest.raises(ParameterError, match="earlier has a str"):
        fitted.release(batch, earlier=["first.json"])
    with pytest.raises(ParameterError, match="persons names the column"):
        fitted.release(batch, persons="nobody")
    for text in ("{}", "[]", '{"format":"sfumato-publication","version":1}', "no JSON"):
        (tmp_path / "odd.json").write_text(text)
        with pytest.raises(InputError, match="publication"):
            Publication.load(tmp_path / "odd.json")


# ---- all releases together -------------------------------------------------------------------------------------------


def by_bits(n: int = 4, copies: int = 1) -> list[tuple[MondrianAnonymizer, pd.DataFrame]]:
    """Each release has another column, which divides the people into halves by another bit of their number."""
    number = np.tile(np.arange(2**n), copies)
    found = []
    for bit in range(n):
        frame = pd.DataFrame({"who": np.arange(len(number)), "half": number >> bit & 1})
        found.append((MondrianAnonymizer(K, quasi_identifiers=["half"], keep=["who"]).fit(frame), frame))
    return found


def test_people_whom_only_all_releases_together_single_out_are_told_of():
    releases: list[Any] = []
    for number, (anonymizer, frame) in enumerate(by_bits()):
        given: dict[str, Any] = {"shuffle": False, "earlier": list(releases), "persons": "who"}
        if number != 2:  # two leave four people; three leave two, which is not said again of four releases
            releases.append(anonymizer.release(frame, **given))
            continue
        with pytest.warns(PrivacyWarning, match="all 2 earlier ones together tell more than any two: 16 of 16 people"):
            releases.append(anonymizer.release(frame, **given))
    assert "all_together" not in releases[1].measures
    third, fourth = (release.measures["all_together"] for release in releases[2:])
    assert (third["n_people"], third["n_below"], third["n_beyond"], third["smallest_together"]) == (16, 16, 16, 2)
    assert (fourth["n_alone"], fourth["n_below"], fourth["n_beyond"]) == (16, 16, 0)
    assert all(part["is_safe"] for part in releases[2].measures["together"])


def test_releases_that_hide_everybody_in_all_groups_need_no_warning():
    releases: list[Any] = []
    for anonymizer, frame in by_bits(3, copies=K):
        releases.append(anonymizer.release(frame, shuffle=False, earlier=releases, persons="who"))
    found = releases[-1].measures["all_together"]
    assert (found["is_safe"], found["smallest_together"], found["n_releases"]) == (True, K, 3)


@in_examples(30)
@given(batches=st.lists(AGES, min_size=3, max_size=3))
def test_all_releases_are_counted_as_somebody_with_all_groups_would(fitted, batches):
    releases: list[Any] = []
    for ages in batches:
        releases.append(quietly(fitted, people(ages), earlier=releases, persons="who"))
    kept = [release.publication for release in releases]  # two groups may have the same label
    tables = [dict(zip(part.persons.tolist(), part.group_of_person.tolist(), strict=True)) for part in kept]
    groups = {who: [table.get(who) for table in tables] for table in tables for who in table}
    expected = [
        sum(all(own in (None, other) for own, other in zip(person, them, strict=True)) for them in groups.values())
        for person in groups.values()
        if person[2] is not None and person[:2] != [None, None]
    ]
    found = releases[2].measures["all_together"]
    assert found["n_people"] == len(expected)
    assert found["n_below"] == sum(number < K for number in expected)
    assert found["n_alone"] == expected.count(1)


def test_without_persons_releases_of_one_partition_are_intersected_by_their_numbers(fitted):
    ages = [25, 25, 26, 26, 35, 35, 36, 36, 45, 45, 46, 46]
    named, unnamed = [], []
    for batch in (ages[:8], ages[:10], ages):
        named.append(quietly(fitted, people(batch), earlier=named, persons="who"))
        unnamed.append(quietly(fitted, people(batch), earlier=unnamed))
    counted, supposed = (releases[-1].measures["all_together"] for releases in (named, unnamed))
    assert counted["is_counted"] and not supposed["is_counted"]
    # Numbers tell of people in all three releases; persons also of the two who are in the last two.
    assert (counted["n_people"], supposed["n_people"]) == (10, 8)
    assert supposed["n_beyond"] == counted["n_beyond"] == 0


def test_releases_that_can_only_be_compared_two_at_a_time_are_not_intersected(fitted):
    ages = [25, 25, 26, 26, 35, 35, 36, 36]
    other = MondrianAnonymizer(K, quasi_identifiers=["age"], identifiers=["who"]).fit(people([*ages, 80, 81, 82, 83]))
    first = other.release(people(ages), persons="who")
    second = fitted.release(people(ages))
    last = quietly(fitted, people(ages), earlier=[first, second], persons="who")
    assert [part["is_counted"] for part in last.measures["together"]] == [True, False]
    assert "all_together" not in last.measures
