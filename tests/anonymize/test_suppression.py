# SPDX-License-Identifier: Apache-2.0
"""The suppression limit on the fitted table: fewer records, less information loss, the same guarantees."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import (
    FullDomainAnonymizer,
    Hierarchy,
    HilbertAnonymizer,
    KAnonymity,
    LDiversity,
    ModelGuidedAnonymizer,
    MondrianAnonymizer,
    RPlusTreeAnonymizer,
    TCloseness,
    WorkloadAwareAnonymizer,
)
from strategies import in_examples, tables

pytestmark = pytest.mark.filterwarnings("ignore:quasi-identifiers that:sfumato.schema.ColumnWarning")

QUASI_IDENTIFIERS = ["age", "pay", "town"]


def people(n_records=600, seed=0):
    """Most people earn alike and live in few towns; one in fifty earns far more and lives where nobody else does."""
    generator = np.random.default_rng(seed)
    pay = generator.integers(20, 60, n_records).astype(float)
    town = generator.choice(["north", "south", "east"], n_records)
    odd = generator.choice(n_records, n_records // 50, replace=False)
    pay[odd] = generator.integers(500, 5_000, len(odd))
    town[odd] = [f"far {i % 7}" for i in range(len(odd))]
    table = pd.DataFrame({"age": generator.integers(18, 80, n_records), "pay": pay, "town": town})
    table["illness"] = generator.choice(["flu", "cold", "none"], n_records)
    return table, (table["age"] > 50).astype(int).to_numpy()


def by_information_loss(k, **settings):
    return MondrianAnonymizer(k, rule="information_loss", **settings)


def by_levels(k, **settings):
    ages = Hierarchy.from_intervals(range(18, 80), [5, 10, 20])
    settings["hierarchies"] = {"age": ages}
    return FullDomainAnonymizer(k, **settings)


GROUPING = [
    ModelGuidedAnonymizer,
    MondrianAnonymizer,
    by_information_loss,
    WorkloadAwareAnonymizer,
    HilbertAnonymizer,
    RPlusTreeAnonymizer,
]


def released(method, limit, *, table=None, guide=None, **settings):
    own, own_guide = people()
    table, guide = own if table is None else table, own_guide if guide is None else guide
    anonymizer = method(5, quasi_identifiers=QUASI_IDENTIFIERS, suppression_limit=limit, **settings)
    return anonymizer.fit(table, guide).release(table, guide)


def group_sizes(table):
    return table.groupby(QUASI_IDENTIFIERS, dropna=False, observed=True).size()


@pytest.mark.parametrize("method", GROUPING)
@pytest.mark.parametrize("limit", [0.01, 0.05])
def test_the_limit_buys_less_information_loss_for_the_table_that_was_fitted(method, limit):
    whole, part = released(method, 0.0), released(method, limit)
    assert whole.n_suppressed == 0
    assert 0 < part.n_suppressed <= limit * 600
    assert len(part.table) == 600 - part.n_suppressed
    assert part.measures["information_loss"] < whole.measures["information_loss"]
    assert group_sizes(part.table).min() >= 5


def test_the_limit_lets_full_domain_levels_be_lower_for_the_table_that_was_fitted():
    table, _ = people()
    table["pay"] = np.where(table["pay"] > 60, 500, 40)
    whole = released(by_levels, 0.0, table=table)
    part = released(by_levels, 0.05, table=table)
    assert 0 < part.n_suppressed <= 30
    assert part.measures["information_loss"] < whole.measures["information_loss"]
    assert group_sizes(part.table).min() >= 5


@pytest.mark.parametrize("method", GROUPING)
def test_which_records_are_dropped_does_not_depend_on_the_order_of_the_rows(method):
    table, guide = people()
    order = np.random.default_rng(1).permutation(len(table))
    one = released(method, 0.05, table=table, guide=guide)
    other = released(method, 0.05, table=table.iloc[order].reset_index(drop=True), guide=guide[order])
    names = list(one.table.columns)
    assert one.n_suppressed == other.n_suppressed
    pd.testing.assert_frame_equal(
        one.table.sort_values(names, ignore_index=True), other.table.sort_values(names, ignore_index=True)
    )


@pytest.mark.parametrize("method", GROUPING)
def test_diversity_and_closeness_hold_among_the_records_that_are_left(method):
    criteria = [LDiversity(2, "illness"), TCloseness(0.4, "illness")]
    part = released(method, 0.05, criteria=criteria)
    assert part.n_suppressed > 0
    shares = part.table["illness"].value_counts(normalize=True)
    for _, own in part.table.groupby(QUASI_IDENTIFIERS, dropna=False, observed=True):
        assert len(own) >= 5
        assert own["illness"].nunique() >= 2
        own_shares = own["illness"].value_counts(normalize=True).reindex(shares.index, fill_value=0)
        assert (own_shares - shares).abs().sum() / 2 <= 0.4 + 1e-9


def test_persons_are_counted_among_the_records_that_are_left():
    table, guide = people()
    table["person"] = np.arange(len(table)) // 2
    anonymizer = MondrianAnonymizer(
        5,
        quasi_identifiers=QUASI_IDENTIFIERS,
        criteria=[KAnonymity(5, unit="person")],
        keep=["person"],
        suppression_limit=0.05,
    )
    part = anonymizer.fit(table, guide).release(table, guide)
    assert part.n_suppressed > 0
    assert part.table.groupby(QUASI_IDENTIFIERS, observed=True)["person"].nunique().min() >= 5


def test_the_records_that_stretch_their_groups_go_first():
    # Three groups; one record of the first and one of the second lies far from the others.
    ages = [20, 21, 22, 23, 24, 25, 39, 40, 41, 42, 43, 44, 45, 59, 60, 60, 60, 60, 60, 60]
    table = pd.DataFrame({"age": ages, "row": range(20)})
    anonymizer = ModelGuidedAnonymizer(6, quasi_identifiers=["age"], keep=["row"], suppression_limit=0.1)
    part = anonymizer.fit(table, ["a"] * 7 + ["b"] * 7 + ["c"] * 6).release(table)
    assert sorted(set(range(20)) - set(part.table["row"])) == [6, 13]


def test_records_that_are_alike_are_dropped_together_or_not_at_all():
    ages = [20] * 10 + [90] * 3
    table = pd.DataFrame({"age": ages})
    anonymizer = MondrianAnonymizer(5, suppression_limit=0.2)  # two of thirteen: not enough for the three
    assert anonymizer.fit(table).release(table).n_suppressed == 0
    anonymizer = MondrianAnonymizer(5, suppression_limit=0.25)
    part = anonymizer.fit(table).release(table)
    assert part.n_suppressed == 3
    assert part.measures["information_loss"] == 0


@in_examples(40)
@given(data=st.data(), table=tables(min_records=8))
def test_no_limit_ever_costs_information(table, data):
    k = data.draw(st.integers(2, table.n_records // 3), "k")
    limit = data.draw(st.sampled_from((0.1, 0.3, 0.6, 1.0)), "limit")
    Anonymizer = data.draw(st.sampled_from((MondrianAnonymizer, HilbertAnonymizer)), "method")
    frame = table.to("pyarrow")
    whole = Anonymizer(k).fit(frame).release(frame)
    part = Anonymizer(k, suppression_limit=limit).fit(frame).release(frame)
    assert part.n_suppressed <= limit * table.n_records
    assert part.measures["information_loss"] <= whole.measures["information_loss"] + 1e-12
