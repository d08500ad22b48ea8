# SPDX-License-Identifier: Apache-2.0
"""Every criterion carries its own facts, and what others ask about it is derived from those."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.criteria import CRITERIA, AlphaKAnonymity, Criterion, DeltaPresence, KAnonymity, LDiversity, TCloseness
from sfumato.criteria.base import asks_records_alone, least_records, saved_fields
from sfumato.measurement import measure
from strategies import in_examples

EXAMPLES = {
    name: dict(kind.facts.example) | ({"sensitive": "illness"} if "sensitive" in kind.__dataclass_fields__ else {})
    for name, kind in CRITERIA.items()
}


@pytest.mark.parametrize("name", CRITERIA)
def test_every_member_is_a_criterion(name):
    assert isinstance(CRITERIA[name](**EXAMPLES[name]), Criterion)


@pytest.mark.parametrize("name", CRITERIA)
def test_a_criterion_is_rebuilt_from_its_saved_fields(name):
    criterion = CRITERIA[name](**EXAMPLES[name])
    saved = saved_fields(criterion)
    assert CRITERIA[saved.pop("name")](**saved) == criterion


def test_saved_fields_hold_neither_tables_nor_values_nor_what_was_computed_from_them():
    presence = DeltaPresence(0.0, 0.5, population=[["Ann"], ["Bob"]])
    assert saved_fields(presence) == {"name": "delta-presence", "delta_min": 0.0, "delta_max": 0.5}
    ordered = TCloseness(0.2, "illness", distance="ordered", order=["flu", "HIV"])
    nested = TCloseness(0.2, "illness", distance="hierarchical", hierarchy={"any": ["flu", "HIV"]})
    for criterion in (ordered, nested):
        saved = {"name": "t-closeness", "t": 0.2, "sensitive": "illness", "distance": criterion.distance}
        assert saved_fields(criterion.for_values(["flu", "HIV"])) == saved | {"missing": "value"}


def test_what_is_measured_says_how_it_is_read_and_what_it_needs():
    measured = [own for kind in CRITERIA.values() for own in kind.facts.measured]
    names = {
        "is_least": ["distinct l-diversity", "entropy l-diversity"],
        "is_count": ["distinct l-diversity"],
        "needs_order": ["t-closeness, ordered distance"],
        "needs_hierarchy": ["t-closeness, hierarchical distance"],
    }
    for field, wanted in names.items():
        assert [own.name for own in measured if getattr(own, field)] == wanted


def test_facts_are_shown_by_their_name_and_sentence():
    shown = repr(LDiversity.facts)
    assert shown == f"CriterionFacts(name={LDiversity.facts.name!r}, sentence={LDiversity.facts.sentence!r})"


def test_a_criterion_that_no_family_lists_is_saved_with_its_sentence():
    class Own:
        def describe(self):
            return "nothing is required"

    assert saved_fields(Own()) == {"name": "Own", "sentence": "nothing is required"}


@in_examples(100)
@given(k=st.integers(2, 20), n=st.integers(1, 40))
def test_no_smaller_group_than_the_least_number_of_records_passes(k, n):
    for criterion in (KAnonymity(k), AlphaKAnonymity(1.0, k, "illness")):
        counts = np.array([[n]])
        assert bool(criterion.passes(counts, counts[0])[0]) == (n >= least_records(criterion))


def test_only_k_of_records_asks_for_records_alone():
    asked = [name for name, kind in CRITERIA.items() if asks_records_alone(kind(**EXAMPLES[name]))]
    assert asked == ["k-anonymity"]
    assert not asks_records_alone(KAnonymity(3, unit="person"))


@in_examples(100)
@given(
    criterion=st.sampled_from([KAnonymity(3), LDiversity(2, "illness")]),
    parts=st.lists(st.lists(st.integers(0, 4), min_size=3, max_size=3), min_size=1, max_size=4),
)
def test_every_part_of_a_failing_group_fails_where_the_criterion_says_so(criterion, parts):
    assert criterion.fails_in_parts(leaves_out_missing=False)
    counts = np.array([part for part in parts if sum(part)] or [[1, 0, 0]])
    whole = counts.sum(axis=0, keepdims=True)
    if criterion.counting == "records":
        counts, whole = counts.sum(axis=1, keepdims=True), whole.sum(axis=1, keepdims=True)
    if not criterion.passes(whole, whole[0])[0]:
        assert not criterion.passes(counts, whole[0]).any()


def test_measure_reports_what_the_criteria_list():
    import pyarrow as pa

    people = pa.table({"age": [30, 30, 41, 41], "illness": ["a", "b", "a", "b"]})
    reported = [value.criterion for value in measure(people, ["age"], sensitive=["illness"]).criteria]
    listed = [measured.name for kind in CRITERIA.values() for measured in kind.facts.measured]
    assert set(reported) == {"k-anonymity", "delta-presence", *listed}
