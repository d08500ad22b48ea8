# SPDX-License-Identifier: Apache-2.0
"""The judge of promises agrees with the criteria, with which it shares no formula."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.auditing.methods import promise_of
from sfumato.criteria import (
    CRITERIA,
    AlphaKAnonymity,
    BetaLikeness,
    DeltaDisclosure,
    KAnonymity,
    LDiversity,
    TCloseness,
)
from sfumato.criteria.base import CriterionFacts
from sfumato.criterion_recount import Promise, count_promise, count_records_promise
from sfumato.errors import ParameterError
from sfumato.hierarchies import Hierarchy
from strategies import in_examples

ROWS = [("a", "x", "*"), ("b", "x", "*"), ("c", "y", "*"), ("d", "y", "*")]
BOUNDS = st.sampled_from([0.05, 0.1, 0.25, 0.3, 0.5, 0.75, 1.0])


@st.composite
def criteria(draw):
    """Any criterion on a sensitive column, with any bound."""
    missing = draw(st.sampled_from(["value", "suppress"]))
    bound, whole = draw(BOUNDS), draw(st.integers(2, 4))
    return draw(
        st.sampled_from(
            [
                LDiversity(whole, "s", missing=missing),
                LDiversity(1 + bound * whole, "s", kind="entropy", missing=missing),
                LDiversity(whole, "s", kind="recursive", c=4 * bound, missing=missing),
                TCloseness(bound, "s", missing=missing),
                TCloseness(bound, "s", distance="ordered", order=["b", "d", "a", "e", "c"], missing=missing),
                TCloseness(bound, "s", distance="hierarchical", hierarchy=Hierarchy(ROWS), missing=missing),
                AlphaKAnonymity(bound, whole, "s", missing=missing),
                BetaLikeness(2 * bound, "s", missing=missing),
                BetaLikeness(2 * bound, "s", kind="enhanced", missing=missing),
                DeltaDisclosure(2 * bound, "s", missing=missing),
                DeltaDisclosure(2 * bound, "s", absent="ignored", missing=missing),
            ]
        )
    )


COUNTS = st.lists(st.lists(st.integers(0, 6), min_size=5, max_size=5).filter(any), min_size=1, max_size=6)


@in_examples(100)
@given(criterion=criteria(), groups=COUNTS)
def test_the_judge_agrees_with_the_criterion(criterion, groups):
    values, counts = ["a", "b", "c", "d", None], np.array(groups)
    judged = count_promise(promise_of(criterion), values, counts.sum(axis=0), [counts])
    seen, named = (counts[:, :-1], values[:-1]) if criterion.missing == "suppress" else (counts, values)
    own = criterion.for_values(named) if isinstance(criterion, TCloseness) else criterion
    assert judged.n_failing == int((~own.passes(seen, seen.sum(axis=0))).sum())


@in_examples(100)
@given(numbers=COUNTS, bound=BOUNDS)
def test_numbers_are_judged_in_their_own_order(numbers, bound):
    counts = np.array(numbers)
    criterion = TCloseness(bound, "s", distance="ordered")
    judged = count_promise(promise_of(criterion), [1, 2, 5, 9, None], counts.sum(axis=0), [counts])
    own = criterion.for_values([1, 2, 5, 9, None])
    assert judged.n_failing == int((~own.passes(counts, counts.sum(axis=0))).sum())


def test_criteria_of_the_literature_have_a_second_formula():
    from sfumato.criterion_recount import _JUDGES

    named = {"l-diversity", "t-closeness", "alpha-k-anonymity", "beta-likeness", "delta-disclosure"}
    assert set(_JUDGES) == named
    assert named <= set(CRITERIA)


def test_a_criterion_without_a_second_formula_is_judged_by_its_own_test():
    promise = Promise("own", "s", {}, "x", otherwise=lambda values, counts, everybody: counts[:, 0] > 0)
    assert count_promise(promise, ["a", "b"], np.array([1, 3]), [np.array([[1, 1], [0, 2]])]).n_failing == 1


@in_examples(100)
@given(k=st.integers(2, 9), sizes=st.lists(st.integers(1, 12), min_size=1))
def test_groups_of_too_few_records_are_counted(k, sizes):
    counted = count_records_promise(promise_of(KAnonymity(k)), np.array(sizes))
    assert counted.n_failing == sum(size < k for size in sizes)


@pytest.mark.parametrize(("n_failing", "says"), [(0, "l-diversity holds for 's'"), (1, "does not hold for 's'")])
def test_the_sentence_says_whether_it_holds(n_failing, says):
    group = np.array([[1, 1]]) if n_failing == 0 else np.array([[2, 0]])
    assert says in count_promise(promise_of(LDiversity(2, "s")), ["a", "b"], np.array([3, 1]), [group]).says


@dataclass
class EvenNumbers:
    """A criterion on numbers of records that is not k-anonymity."""

    facts = CriterionFacts("even-numbers", "every group has an even number of records")
    column, counting = None, "records"

    def passes(self, counts, reference):
        return counts[:, 0] % 2 == 0

    def value(self, counts, reference):
        return float(counts.max())

    def describe(self):
        return self.facts.sentence


def test_another_criterion_on_numbers_of_records_is_judged_by_its_own_test():
    assert count_records_promise(promise_of(EvenNumbers()), np.array([2, 3, 4, 5])).n_failing == 2


def test_a_criterion_that_counts_persons_and_is_not_k_anonymity_is_refused():
    persons = EvenNumbers()
    persons.counting = "distinct"
    with pytest.raises(ParameterError, match="counts persons: expected k-anonymity"):
        promise_of(persons)
