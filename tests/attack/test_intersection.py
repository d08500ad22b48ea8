# SPDX-License-Identifier: Apache-2.0
"""Two releases together are counted as somebody with both lists would count them."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.attack.intersection import intersect_releases
from sfumato.errors import InputError


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


@settings(max_examples=50)
@given(people)
def test_counts_are_those_of_the_definition(rows: list[tuple[int, int, str]]):
    first, second, secrets = (list(part) for part in zip(*rows, strict=True))
    tables = [pd.DataFrame({"q": groups, "secret": secrets}) for groups in (first, second)]
    found = intersect_releases(*tables, (["q"], ["q"]), sensitive="secret").to_dict()
    expected = plainly(first, second, secrets)
    assert {name: found[name] for name in expected} == expected


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
