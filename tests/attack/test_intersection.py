# SPDX-License-Identifier: Apache-2.0
"""Releases together are counted as somebody with all the lists would count them."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import MondrianAnonymizer
from sfumato.attack.intersection import intersect_all_releases, intersect_releases
from sfumato.datasets import load_adult
from sfumato.errors import InputError, ParameterError
from sfumato.grouping import count_candidates
from strategies import in_examples


def plainly(first: list[int], second: list[int], secrets: list[str]) -> dict[str, int]:
    """Count with dictionaries, as the definition says."""
    both = list(zip(first, second, strict=True))
    sizes = Counter(both)
    least = min(min(Counter(first).values()), min(Counter(second).values()))
    of_first, of_second = (
        {g: {s for h, s in zip(own, secrets, strict=True) if h == g} for g in own} for own in (first, second)
    )
    revealed = sum(
        len(of_first[a] & of_second[b]) == 1 and len(of_first[a]) > 1 and len(of_second[b]) > 1 for a, b in both
    )
    return {
        "smallest_together": min(sizes.values()),
        "n_alone": sum(sizes[pair] == 1 for pair in both),
        "n_below": sum(sizes[pair] < least for pair in both),
        "n_secrets_revealed": revealed,
    }


people = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from("abc")), min_size=2, max_size=40)


@in_examples(50)
@given(people)
def test_counts_are_those_of_the_definition(rows: list[tuple[int, int, str]]):
    first, second, secrets = (list(part) for part in zip(*rows, strict=True))
    tables = [pd.DataFrame({"q": groups, "secret": secrets}) for groups in (first, second)]
    found = intersect_releases(*tables, (["q"], ["q"]), sensitive="secret").to_dict()
    expected = plainly(first, second, secrets)
    assert {name: found[name] for name in expected} == expected


def test_a_secret_without_any_value_is_one_value():
    tables = [
        pd.DataFrame({"q": groups, "secret": pd.Categorical([None] * 4)}) for groups in ([0, 0, 1, 1], [0, 1, 0, 1])
    ]
    found = intersect_releases(*tables, (["q"], ["q"]), sensitive="secret")
    assert found.n_alone == 4 and found.n_secrets_revealed == 0


def test_a_key_matches_people_in_any_order_and_leaves_out_the_others():
    first = pd.DataFrame({"who": [1, 2, 3, 4, 9], "q": [0, 0, 1, 1, 1]})
    second = pd.DataFrame({"who": [4, 3, 2, 1, 8], "q": [5, 6, 6, 5, 5]})
    found = intersect_releases(first, second, (["q"], ["q"]), key="who")
    assert (found.n_people, found.smallest_together, found.n_alone) == (4, 1, 4)


def test_tables_of_other_people_are_refused():
    table = pd.DataFrame({"who": [1, 2], "q": [0, 0]})
    with pytest.raises(InputError, match="same order"):
        intersect_releases(table, table.iloc[:1], (["q"], ["q"]))
    with pytest.raises(InputError, match="repeated"):
        intersect_releases(table, pd.DataFrame({"who": [1, 1], "q": [0, 0]}), (["q"], ["q"]), key="who")
    with pytest.raises(InputError, match="no value of the key"):
        intersect_releases(table, pd.DataFrame({"who": [7, 8], "q": [0, 0]}), (["q"], ["q"]), key="who")


def test_the_same_release_twice_reveals_nothing_more():
    table = pd.DataFrame({"q": np.repeat([0, 1, 2], 5), "secret": list("abcde") * 3})
    found = intersect_releases(table, table, (["q"], ["q"]), sensitive="secret")
    assert (found.smallest_together, found.n_below, found.n_secrets_revealed) == (5, 0, 0)


def test_people_of_one_release_only_count_for_what_it_promises():
    first = pd.DataFrame({"who": range(8), "age": [1] * 4 + [2] * 4})
    second = pd.DataFrame({"who": [0, 4, 10, 11, 12, 13], "age": [7] * 6})
    found = intersect_releases(first, second, (["age"], ["age"]), key="who")
    assert (found.n_people, found.smallest_first, found.smallest_second) == (2, 4, 6)
    assert (found.smallest_together, found.n_below, found.n_alone) == (1, 2, 2)


def test_a_key_that_is_missing_somewhere_is_refused():
    first = pd.DataFrame({"who": ["a", None, "c"], "age": [1, 1, 1]})
    with pytest.raises(InputError, match="missing in 1 record"):
        intersect_releases(first, first, (["age"], ["age"]), key="who")


def test_groups_show_the_secrets_of_people_who_are_in_one_release_only():
    first = pd.DataFrame({"who": [1, 2, 3, 4], "age": [1, 1, 2, 2], "ill": ["a", "b", "a", "b"]})
    second = pd.DataFrame({"who": [1, 2, 3, 5], "age": [7, 8, 7, 8], "ill": ["a", "b", "a", "c"]})
    found = intersect_releases(first, second, (["age"], ["age"]), sensitive="ill", key="who")
    # The second person is ill with a or b says the first, with b or c says the second; 7 shows a alone anyway.
    assert found.n_secrets_revealed == 1


# ---- more than two releases ------------------------------------------------------------------------------------------


def candidates_by_hand(groups):
    """Count, person by person, who is in all of the person's groups; None: not in that release."""
    return [
        sum(
            all(theirs == own for own, theirs in zip(person, other, strict=True) if own is not None) for other in groups
        )
        for person in groups
    ]


@in_examples(60)
@given(
    groups=st.integers(2, 4).flatmap(
        lambda n: st.lists(st.tuples(*[st.none() | st.integers(0, 2)] * n), min_size=1, max_size=25)
    )
)
def test_candidates_are_the_people_in_all_groups_of_a_person(groups):
    found = count_candidates(np.array([[-1 if group is None else group for group in person] for person in groups]))
    for person, own, expected in zip(groups, found.tolist(), candidates_by_hand(groups), strict=True):
        assert own == (0 if set(person) == {None} else expected)


def by_bits(n_releases=3, copies=1):
    """Every release divides the people into two halves, by another bit of their number."""
    number = np.tile(np.arange(2**n_releases), copies)
    who = np.arange(len(number))
    return [pd.DataFrame({"who": who, "q": number >> bit & 1, "ill": number}) for bit in range(n_releases)]


def test_three_releases_isolate_people_whom_no_two_isolate():
    result = intersect_all_releases(by_bits(), ["q"], k=2, sensitive="ill")
    assert (result.rate, result.baseline, result.control) == (1.0, 0.0, None)
    assert result.verdict == "stronger than baseline"
    assert result.details["rate_after"] == [0.0, 0.0, 1.0] and result.details["rate_of_pairs"] == 0.0
    assert result.details["n_alone"] == result.details["n_secrets_revealed"] == 8
    assert result.details["smallest_groups"] == [4, 4, 4] and result.details["smallest_together"] == 1


def test_releases_with_the_same_groups_tell_no_more_than_one():
    first = by_bits()[0]
    result = intersect_all_releases([first, first, first.assign(q=1 - first["q"])], ["q"], sensitive="ill")
    assert (result.rate, result.baseline, result.verdict) == (0.0, 0.0, "not shown")
    assert result.details["k"] == result.details["smallest_together"] == 4
    assert result.details["n_secrets_revealed"] == 0


def test_groups_smaller_than_k_in_one_release_are_the_baseline():
    result = intersect_all_releases(by_bits(), ["q"], k=5)
    assert (result.rate, result.baseline, result.verdict) == (1.0, 1.0, "not shown")


def test_people_of_some_releases_are_matched_by_the_key():
    first, second, third = by_bits(copies=3)
    second = second.iloc[::-1].iloc[4:]
    third = third.sample(frac=1, random_state=0)
    result = intersect_all_releases([first, second, third], [["q"], ["q"], ["q"]], k=3, key="who")
    groups = [
        [dict(zip(part["who"], part["q"], strict=True)).get(person) for part in (first, second, third)]
        for person in range(24)
    ]
    expected = candidates_by_hand(groups)
    assert result.details["n_people"] == 24
    assert result.details["n_below"] == sum(number < 3 for number in expected) > 0


def test_two_releases_are_counted_as_by_the_comparison_of_two():
    random = np.random.default_rng(0)
    tables = [
        pd.DataFrame(
            {"who": random.permutation(40)[:30], "q": random.integers(0, 4, 30), "ill": random.integers(0, 3, 30)}
        )
        for _ in range(2)
    ]
    two = intersect_releases(*tables, (["q"], ["q"]), sensitive="ill", key="who")
    both = intersect_all_releases(tables, ["q"], sensitive="ill", key="who").details
    assert (both["n_people"], both["n_alone"], both["n_below"]) == (two.n_people, two.n_alone, two.n_below)
    assert both["n_secrets_revealed"] == two.n_secrets_revealed


def test_three_trees_over_adult_isolate_more_people_than_two():
    frame = load_adult(as_frame="pandas").frame.dropna().sample(2000, random_state=0).reset_index(drop=True)
    known = ["age", "education-num", "hours-per-week", "marital-status", "race"]
    releases = [
        MondrianAnonymizer(10, quasi_identifiers=names, representative="range").fit_transform(frame[names])
        for names in (known[:3], known[1:4], known[2:])
    ]
    result = intersect_all_releases(releases, [list(release.columns) for release in releases], k=10)
    after = result.details["rate_after"]
    assert after[0] == result.baseline == 0.0
    assert 0.1 < after[1] < after[2] == result.rate
    assert after[1] <= result.details["rate_of_pairs"] <= result.rate


def test_what_cannot_be_intersected_is_refused():
    first, second, third = by_bits()
    with pytest.raises(ParameterError, match="at least two releases"):
        intersect_all_releases([first], ["q"])
    with pytest.raises(ParameterError, match="2 lists for 3 releases"):
        intersect_all_releases([first, second, third], [["q"], ["q"]])
    with pytest.raises(ParameterError, match="k=0"):
        intersect_all_releases([first, second], ["q"], k=0)
    with pytest.raises(InputError, match="8 and 7 and 8 records"):
        intersect_all_releases([first, second[1:], third], ["q"])
    with pytest.raises(InputError, match="in two releases"):
        intersect_all_releases([first, second.assign(who=second["who"] + 100)], ["q"], key="who")
