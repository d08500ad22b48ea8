# SPDX-License-Identifier: Apache-2.0
"""Our numbers beside pyCANON's, stored by ``benchmarks/peers/pycanon``: equal where both mean the same.

Where pyCANON errs or means something else, its answer stands beside ours and the reason.
"""

import json
import math
from pathlib import Path

import pandas as pd
import pytest

from criteria import definitions as plain
from sfumato import (
    AlphaKAnonymity,
    BetaLikeness,
    DeltaDisclosure,
    KAnonymity,
    LDiversity,
    TCloseness,
    datasets,
    measure,
)
from sfumato.frames import read_table
from sfumato.verification import count_groups, count_values

GOLDEN = json.loads((Path(__file__).parent / "golden" / "pycanon.json").read_text(encoding="utf-8"))
CASES = GOLDEN["cases"]
BUNDLED = [name for name, case in CASES.items() if "bundled" in case]


def counted(name):
    """Count a case's groups with the code that recounts releases; returns the counts and what pyCANON said."""
    case = CASES[name]
    if "bundled" in case:
        frame = getattr(datasets, f"load_{case['bundled']}")(as_frame=True).frame
    else:
        frame = pd.DataFrame(case["table"], index=case.get("index"))
    column = read_table(frame, categorical=[case["sensitive"]]).column(case["sensitive"])
    assert column.missing is None
    counts = count_values(frame, case["quasi_identifiers"], column.values, len(column.categories))
    sizes = count_groups(frame, case["quasi_identifiers"])
    return counts, sizes, isinstance(column.categories[0], str), case["answers"]


def test_the_golden_file_says_where_it_comes_from():
    assert GOLDEN["versions"]["pycanon"] == "1.3.6"
    assert len(BUNDLED) >= 8


@pytest.mark.parametrize("name", BUNDLED)
def test_on_adult_and_nursery_our_numbers_are_theirs_where_both_mean_the_same(name):
    counts, sizes, is_text, answers = counted(name)
    table = counts.sum(axis=0)
    assert KAnonymity(2).value(sizes[:, None], sizes) == answers["k"]
    assert LDiversity(2, "s").value(counts, table) == answers["distinct_l"]
    assert AlphaKAnonymity(0.5, 2, "s").value(counts, table) == pytest.approx(answers["alpha_k"][0])
    assert BetaLikeness(1, "s").value(counts, table) == pytest.approx(answers["basic_beta"])
    # Text at equal distance, numbers in their order.
    closeness = TCloseness(0.2, "s", distance="equal" if is_text else "ordered")
    assert closeness.value(counts, table) == pytest.approx(answers["t"])
    assert DeltaDisclosure(1, "s", absent="ignored").value(counts, table) == pytest.approx(answers["delta"])


@pytest.mark.parametrize("name", BUNDLED)
def test_their_entropy_l_is_ours_cut_off(name):
    counts, _, _, answers = counted(name)
    ours = LDiversity(2, "s", kind="entropy").value(counts, counts.sum(axis=0))
    assert ours == pytest.approx(min(map(plain.entropy_l, counts.tolist())))
    assert answers["entropy_l"] in (math.floor(ours), math.floor(ours) - (ours == int(ours)))


@pytest.mark.parametrize("n_values", range(2, 9))
def test_equally_frequent_values_reach_their_number(n_values):
    counts, _, _, answers = counted(f"{n_values} equally frequent values")
    assert LDiversity(2, "s", kind="entropy").value(counts, counts.sum(axis=0)) == n_values
    assert answers["entropy_l"] == (n_values if n_values == 5 else n_values - 1)  # a float just below is cut off


def test_the_most_frequent_value_plays_r1_not_the_rarest():
    counts, _, _, answers = counted("one value dominates")
    assert counts.tolist() == [[8, 1, 1]]
    assert answers["recursive_c_l"] == [1, 3]  # as if 8/1/1 were (1,3)-diverse; counts were sorted rising
    ours = LDiversity(3, "s", kind="recursive", c=1)
    assert ours.value(counts, counts[0]) == 8
    assert not ours.passes(counts, counts[0]).any()


@pytest.mark.parametrize("name", BUNDLED)
def test_their_recursive_c_promises_more_than_holds(name):
    counts, _, _, answers = counted(name)
    their_c, l = answers["recursive_c_l"]  # noqa: E741 - the literature's own letter
    if their_c is None:
        assert l == 1
        return
    holds = all(plain.is_recursive_c_l_diverse(row, their_c, l) for row in counts.tolist())
    ours = LDiversity(l, "s", kind="recursive", c=their_c)
    assert ours.passes(counts, counts.sum(axis=0)).all() == holds
    # Only where all values of a group are equally frequent does the order of the counts not matter.
    assert holds == (name == "nursery: health by has_nurs and children")


def test_a_missing_key_is_a_key():
    counts, sizes, _, answers = counted("a missing key")
    assert answers["k"] == answers["distinct_l"] == 2  # the record whose key is missing was left out
    assert KAnonymity(2).value(sizes[:, None], sizes) == 1
    assert LDiversity(2, "s").value(counts, counts.sum(axis=0)) == 1


def test_the_index_is_not_a_position():
    counts, _, _, answers = counted("a permuted index")
    assert answers["distinct_l"] == 2  # labels taken for positions mix the two groups
    assert LDiversity(2, "s").value(counts, counts.sum(axis=0)) == 1
    assert AlphaKAnonymity(0.5, 2, "s").value(counts, counts.sum(axis=0)) == 1
    counts, _, _, answers = counted("an index that starts at 10")
    assert answers["distinct_l"] == {"raises": "IndexError"}
    assert LDiversity(2, "s").value(counts, counts.sum(axis=0)) == 2


def test_average_risk_is_an_average_over_records():
    case = CASES["groups of 99 and 1"]
    assert case["answers"]["average_risk"] == pytest.approx(0.505, abs=1e-3)  # over groups: (1/99 + 1/1) / 2
    measured = measure(pd.DataFrame(case["table"]), quasi_identifiers=["q"])
    assert measured.prosecutor.average == pytest.approx(0.02)  # over records: 99 of them at 1/99, one at 1


def test_a_value_that_a_group_lacks_is_a_disclosure():
    counts, _, _, answers = counted("a value that a group lacks")
    table = counts.sum(axis=0)
    assert answers["delta"] == pytest.approx(math.log(2))  # over the values that occur
    assert DeltaDisclosure(1, "s").value(counts, table) is None  # that it is not this value was disclosed
    assert not DeltaDisclosure(100, "s").passes(counts, table).all()
    assert DeltaDisclosure(1, "s", absent="ignored").value(counts, table) == pytest.approx(answers["delta"])


@pytest.mark.parametrize("name", BUNDLED)
def test_enhanced_beta_is_bounded_value_by_value(name):
    """pyCANON takes the largest of min(largest gain, -ln p); the bound of each value is its own."""
    counts, _, _, answers = counted(name)
    table = counts.sum(axis=0)
    assert answers["enhanced_beta"] == pytest.approx(
        min(answers["basic_beta"], max(-math.log(n / table.sum()) for n in table if n))
    )
    ours = BetaLikeness(1, "s", kind="enhanced").value(counts, table)
    rows = counts.tolist()
    if ours is None:
        assert not all(plain.is_enhanced_beta_like(row, table.tolist(), 10**9) for row in rows)
    else:
        assert ours == pytest.approx(answers["basic_beta"])
        assert all(plain.is_enhanced_beta_like(row, table.tolist(), ours + 1e-9) for row in rows)
