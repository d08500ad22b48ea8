# SPDX-License-Identifier: Apache-2.0
"""Values worked out on paper, the examples of the papers, and sentences for what cannot be meant."""

import numpy as np
import pyarrow as pa
import pytest

from sfumato import (
    AlphaKAnonymity,
    BetaLikeness,
    DeltaDisclosure,
    DeltaPresence,
    LDiversity,
    ParameterError,
    TCloseness,
)
from sfumato.criteria import Criterion
from sfumato.hierarchies import Hierarchy

# A tree of three levels over six diseases:
#
#                       any
#            chest               stomach
#      infection  other       ulcer    other
#      flu cough  asthma      ulcer    cramp colic
ROWS = [
    ["flu", "infection", "chest", "any"],
    ["cough", "infection", "chest", "any"],
    ["asthma", "other chest", "chest", "any"],
    ["ulcer", "ulcers", "stomach", "any"],
    ["cramp", "other stomach", "stomach", "any"],
    ["colic", "other stomach", "stomach", "any"],
]
NESTED = {
    "any": {
        "chest": {"infection": ["flu", "cough"], "other chest": ["asthma"]},
        "stomach": {"ulcers": ["ulcer"], "other stomach": ["cramp", "colic"]},
    }
}
VALUES = ["flu", "cough", "asthma", "ulcer", "cramp", "colic"]
TABLE = np.array([1, 1, 1, 1, 1, 1]) * 2


def distance(counts, kind, **more):
    criterion = TCloseness(0.5, "disease", distance=kind, **more).for_values(VALUES)
    return criterion.value(np.array([counts]), TABLE)


@pytest.mark.parametrize("hierarchy", [ROWS, NESTED, NESTED["any"], Hierarchy(ROWS)])
def test_on_a_tree_of_three_levels_the_three_distances_give_three_values(hierarchy):
    """A group of flu, flu, cough against a table with a sixth of each.

    Surplus: flu 2/3 - 1/6 = 3/6, cough 1/3 - 1/6 = 1/6, each other -1/6.
    Equal: half of (3 + 1 + 4 * 1)/6 = 4/6.
    Ordered, as listed: sums 3, 4, 3, 2, 1 sixths over five steps of 1/5 = 13/30.
    Hierarchical: nothing is short within infections. Within chest, infections have 4/6 too much and asthma misses 1/6:
    1/6 meets at height 2. At the root chest has 3/6 too much and stomach misses 3/6, at height 3. Together
    1/6 * 2/3 + 3/6 * 3/3 = 11/18.
    """
    group = [2, 1, 0, 0, 0, 0]
    assert distance(group, "equal") == pytest.approx(4 / 6)
    assert distance(group, "ordered", order=VALUES) == pytest.approx(13 / 30)
    assert distance(group, "hierarchical", hierarchy=hierarchy) == pytest.approx(11 / 18)


def test_a_surplus_beside_its_lack_is_moved_the_short_way():
    """Flu has what cough misses: 1/6 to move, over 1, over one step of five, and to a node of height 1 of 3."""
    group = [2, 0, 1, 1, 1, 1]
    assert distance(group, "equal") == pytest.approx(1 / 6)
    assert distance(group, "ordered", order=VALUES) == pytest.approx(1 / 6 / 5)
    assert distance(group, "hierarchical", hierarchy=ROWS) == pytest.approx(1 / 6 / 3)


def test_the_salaries_of_the_paper_that_introduced_t_closeness():
    """Li et al. work out 0.375 for salaries 3k, 4k, 5k and 0.167 for 6k, 8k, 11k among nine salaries."""
    table = np.ones(9, np.int64)
    low, spread = [1, 1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, 1, 0, 1, 0, 0, 1]
    criterion = TCloseness(0.2, "salary", distance="ordered")
    assert criterion.each(np.array([low, spread]), table) == pytest.approx([0.375, 1 / 6], abs=1e-3)
    assert criterion.passes(np.array([low, spread]), table).tolist() == [False, True]


def test_a_bound_that_is_met_exactly_is_met():
    ten = np.array([[2, 2, 6]])
    table = np.array([4, 2, 4])  # half of (|0.2 - 0.4| + 0 + |0.6 - 0.4|) is 0.2, in floats a little more or less
    assert TCloseness(0.2, "s").passes(ten, table).all()
    assert not TCloseness(0.1999, "s").passes(ten, table).any()
    assert AlphaKAnonymity(0.6, 10, "s").passes(ten, table).all()
    assert BetaLikeness(0.5, "s").passes(ten, table).all()
    # r1 < c * tail is strict: 3 < 0.1 * 30 does not hold, although 0.1 * 30 is above 3 in floats.
    assert not LDiversity(2, "s", kind="recursive", c=0.1).passes(np.array([[3] + [3] * 10]), np.ones(11)).any()


def test_counts_of_8_1_1_need_c_above_8():
    counts = np.array([[8, 1, 1]])
    for l, tail in ((2, 2), (3, 1)):  # noqa: E741 - the literature's own letter
        criterion = LDiversity(l, "s", kind="recursive", c=8 / tail)
        assert criterion.value(counts, counts[0]) == 8 / tail
        assert not criterion.passes(counts, counts[0]).any()
        assert LDiversity(l, "s", kind="recursive", c=8 / tail + 0.01).passes(counts, counts[0]).all()


def test_a_group_without_a_counted_record_discloses_nothing():
    counts, table = np.array([[0, 0], [1, 1]]), np.array([1, 1])
    for criterion in (LDiversity(2, "s"), TCloseness(0.1, "s"), BetaLikeness(1, "s"), DeltaDisclosure(1, "s")):
        assert criterion.passes(counts, table).all()
        assert np.isnan(criterion.each(counts, table)[0])
        assert criterion.value(counts[:1], table) is None
    # But k is a number of records.
    assert AlphaKAnonymity(0.9, 2, "s").passes(counts, table).tolist() == [False, True]


ALL = [
    LDiversity(3, "disease"),
    LDiversity(2.5, "disease", kind="entropy", missing="suppress"),
    LDiversity(3, "disease", kind="recursive", c=2),
    TCloseness(0.2, "disease", distance="hierarchical", hierarchy=NESTED),
    AlphaKAnonymity(0.5, 4, "disease"),
    BetaLikeness(1.5, "disease", kind="enhanced"),
    DeltaDisclosure(0.7, "disease"),
    DeltaPresence(0.1, 0.5, population=np.arange(12).reshape(6, 2)),
]


@pytest.mark.parametrize("criterion", ALL, ids=lambda c: type(c).__name__)
def test_a_criterion_says_what_it_asks_for_and_shows_no_values(criterion):
    assert isinstance(criterion, Criterion)
    numbers = [str(v) for k, v in vars(criterion).items() if isinstance(v, int | float) and not k.startswith("_")]
    assert numbers
    for number in numbers:
        assert number in criterion.describe()
    shown = repr(criterion) + criterion.describe()
    assert "flu" not in shown
    assert "array" not in shown
    assert ("left out" in criterion.describe()) == (getattr(criterion, "missing", "value") == "suppress")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: LDiversity(1, "s"), "l=1: expected a whole number of at least 2"),
        (lambda: LDiversity(2.5, "s"), "l=2.5: expected a whole number"),
        (lambda: LDiversity(1, "s", kind="entropy"), "l=1: expected a number above 1"),
        (lambda: LDiversity(2, "s", kind="recursive"), "c=None: expected a number above 0"),
        (lambda: LDiversity(2, "s", c=2), "c=2 with kind='distinct': expected it with kind='recursive' alone"),
        (lambda: LDiversity(2, "s", kind="other"), "kind='other': expected 'distinct', 'entropy' or 'recursive'"),
        (lambda: LDiversity(2, ["s", "t"]), "expected the name of one column. For several, give one criterion each"),
        (lambda: LDiversity(2, "s", missing="drop"), "missing='drop': expected 'value'.*or 'suppress'"),
        (lambda: TCloseness(0, "s"), "t=0: expected a number above 0 and at most 1"),
        (lambda: TCloseness(1.5, "s"), "t=1.5: expected a number above 0 and at most 1"),
        (lambda: TCloseness(0.2, "s", distance="far"), "distance='far': expected 'equal'"),
        (lambda: TCloseness(0.2, "s", distance="hierarchical"), "'hierarchical' without a hierarchy"),
        (lambda: TCloseness(0.2, "s", hierarchy=NESTED), "'equal' with a hierarchy"),
        (lambda: TCloseness(0.2, "s", order=[1, 2]), "'equal' with an order: expected distance='ordered'"),
        (lambda: TCloseness(0.2, "s", distance="ordered", order=[1, 1]), "order has a value twice"),
        (lambda: TCloseness(0.2, "s", "hierarchical", "flu"), "rows of the type str: expected a sequence of rows"),
        (lambda: TCloseness(0.2, "s", "hierarchical", ["flu"]), "a row that is one value"),
        (lambda: AlphaKAnonymity(0, 2, "s"), "alpha=0: expected a number above 0 and at most 1"),
        (lambda: AlphaKAnonymity(0.5, True, "s"), "k=True: expected a whole number of at least 2"),
        (lambda: BetaLikeness(float("nan"), "s"), "beta=nan: expected a number above 0"),
        (lambda: BetaLikeness(1, "s", kind="other"), "kind='other': expected 'basic' or 'enhanced'"),
        (lambda: DeltaDisclosure(float("inf"), "s"), "delta=inf: expected a number above 0"),
        (lambda: DeltaDisclosure(1, "s", absent="ok"), "absent='ok': expected 'fails' or 'ignored'"),
        (lambda: DeltaPresence(0.5, 0.2), "delta_min=0.5 and delta_max=0.2: expected numbers from 0 to 1"),
        (lambda: DeltaPresence(0, 1.5), "expected numbers from 0 to 1"),
        (lambda: DeltaPresence(0, "1"), "expected numbers from 0 to 1"),
    ],
)
def test_what_cannot_be_meant_gets_a_sentence(make, sentence):
    with pytest.raises(ParameterError, match=sentence):
        make()


def test_values_that_an_order_or_a_hierarchy_lacks_are_counted_not_named():
    for criterion in (
        TCloseness(0.2, "disease", distance="ordered", order=VALUES),
        TCloseness(0.2, "disease", distance="hierarchical", hierarchy=NESTED),
    ):
        with pytest.raises(ParameterError, match="lacks 1 of the 7 values of the column 'disease'") as refused:
            criterion.for_values([*VALUES, "gout"])
        assert "gout" not in str(refused.value)


def test_text_has_no_order_of_its_own():
    with pytest.raises(ParameterError, match="expected its order, since the alphabet says nothing about it"):
        TCloseness(0.2, "disease", distance="ordered").for_values(VALUES)
    assert TCloseness(0.2, "age", distance="ordered").for_values([1, 2, None]).distance == "ordered"


def test_hierarchical_distance_must_know_the_values():
    criterion = TCloseness(0.2, "disease", distance="hierarchical", hierarchy=NESTED)
    with pytest.raises(ParameterError, match=r"Call for_values\(values\) first"):
        criterion.passes(np.array([[1, 1]]), np.array([1, 1]))
    with pytest.raises(ParameterError, match="counts of 2 values for a criterion on 6"):
        criterion.for_values(VALUES).passes(np.array([[1, 1]]), np.array([1, 1]))


def test_a_reference_without_a_value_of_a_group_is_refused():
    with pytest.raises(ParameterError, match="expected the counts of the whole table as reference"):
        BetaLikeness(1, "s").passes(np.array([[1, 1]]), np.array([2, 0]))


def test_a_group_that_the_population_has_not_reaches_no_share_and_no_group_has_none():
    criterion = DeltaPresence(0, 0.5)
    counts = np.array([[2, 8], [1, 0], [0, 0]])
    assert criterion.each(counts, counts.sum(axis=0)).tolist()[:2] == [0.25, np.inf]
    assert np.isnan(criterion.each(counts, counts.sum(axis=0))[2])
    assert criterion.value(counts[[0, 2]], counts[0]) == 0.25
    assert criterion.value(counts, counts[0]) is None


def test_a_criterion_shows_no_population_and_is_the_same_with_another():
    ann, bob = (DeltaPresence(0, 0.5, population=pa.table({"name": [who]})) for who in ("Ann", "Bob"))
    assert "Ann" not in repr(ann) and "population" not in repr(ann)
    assert ann == bob
