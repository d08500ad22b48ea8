# SPDX-License-Identifier: Apache-2.0
"""Groups along a Hilbert curve: safe, the best runs there are, and apart from each other on the curve."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.estimator_checks import parametrize_with_checks

from anonymize.group_properties import (
    assert_criteria_hold,
    assert_impossible_presence_is_refused,
    assert_k_holds,
    assert_order_does_not_matter,
    assert_persons_are_counted,
    assert_presence_is_bounded,
)
from sfumato import GuaranteeError, HilbertAnonymizer, KAnonymity, MondrianAnonymizer
from sfumato.anonymize import hilbert
from sfumato.anonymize.hilbert import join_runs
from sfumato.backends.memory import MemorySource
from sfumato.criteria.criterion_counts import Counter
from sfumato.representatives import REPRESENTATIVES
from sfumato.testing import ANONYMIZER_CHECKS, group_sizes, people, rows_of
from strategies import LIBRARIES, in_examples, tables
from twins import naive_runs

pytestmark = pytest.mark.filterwarnings("ignore:quasi-identifiers that:sfumato.schema.ColumnWarning")


@parametrize_with_checks([HilbertAnonymizer(k=2)])
def test_it_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", ANONYMIZER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("representative", REPRESENTATIVES)
def test_it_passes_the_checks_of_the_family(representative, check):
    check(HilbertAnonymizer(k=5, representative=representative, random_state=0))


@pytest.mark.parametrize("check", ANONYMIZER_CHECKS, ids=lambda check: check.__name__)
def test_it_passes_them_with_roles_limits_and_persons(check):
    table, guide = people(seed=3)
    frame = table.append_column("person", [np.arange(120) // 2]).append_column("name", [[f"n{i}" for i in range(120)]])
    anonymizer = HilbertAnonymizer(
        k=4,
        quasi_identifiers=["age", "income", "town"],
        identifiers=["name"],
        keep=["joined"],
        criteria=[KAnonymity(3, unit="person")],
        limits={"age": 3},
    )
    for X in (frame, frame.to_pandas()):
        check(anonymizer, X, guide)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("representative", REPRESENTATIVES)
@in_examples(6)
@given(data=st.data(), table=tables())
def test_no_group_is_smaller_than_k(representative, library, table, data):
    k = data.draw(st.integers(2, min(9, table.n_records)), "k")
    assert_k_holds(HilbertAnonymizer, table, library, k, representative)


@in_examples(25)
@given(table=tables(min_records=8), seed=st.integers(0, 1000))
def test_every_criterion_holds(table, seed):
    assert_criteria_hold(HilbertAnonymizer, table, seed)


@in_examples(30)
@given(table=tables(min_records=12), seed=st.integers(0, 1000))
def test_the_presence_of_a_population_is_bounded(table, seed):
    assert_presence_is_bounded(HilbertAnonymizer, table, seed)
    assert_impossible_presence_is_refused(HilbertAnonymizer, table)


@in_examples(25)
@given(data=st.data(), table=tables(min_records=6))
def test_persons_are_counted_not_their_records(table, data):
    n_persons = data.draw(st.integers(2, table.n_records), "persons")
    assert_persons_are_counted(HilbertAnonymizer, table, n_persons, data.draw(st.integers(2, n_persons), "k"))


@in_examples(30)
@given(
    table=tables(),
    library=st.sampled_from(LIBRARIES),
    representative=st.sampled_from([*REPRESENTATIVES]),
    seed=st.integers(0, 99),
)
def test_the_order_of_the_records_does_not_matter(table, library, representative, seed):
    assert_order_does_not_matter(HilbertAnonymizer, table, library, 2 + seed % 3, representative, seed)


def groups_and_keys(anonymizer, frame):
    """The group of each record and its place on the curve, as a whole number."""
    partition = anonymizer.partition_
    group = partition.apply(frame)
    keys = []
    table = MemorySource(pa_table(frame), partition.quasi_identifiers)
    points = hilbert.grid_coordinates(table.records(hilbert.Guide(0)).codes, partition.grid)
    for point in points.tolist():
        keys.append(naive_runs.hilbert_key(point, partition.grid.n_bits))
    return group, keys, table


def pa_table(frame):
    from sfumato.frames import read_table

    return read_table(frame)


@in_examples(40)
@given(table=tables(min_records=6, max_records=30), k=st.integers(2, 4))
def test_groups_are_the_runs_of_the_curve_that_lose_least(table, k):
    frame = table.to("pyarrow")
    anonymizer = HilbertAnonymizer(k).fit(frame)
    group, keys, source = groups_and_keys(anonymizer, frame)
    order = np.argsort(np.array(keys, object), kind="stable")
    assert (np.diff(group[order]) >= 0).all(), "groups follow each other on the curve"
    places = {}
    for key, own in zip(keys, group, strict=True):
        assert places.setdefault(key, own) == own, "equal records are never separated"
    different = sorted(set(keys))
    codes = source.records(hilbert.Guide(0)).codes
    rows = [codes[keys.index(key)].tolist() for key in different]
    counts = [keys.count(key) for key in different]
    least = naive_runs.best_runs(rows, counts, source.layout, k)
    n_cells = table.n_records * len(table.columns)
    assert anonymizer.information_loss_ == pytest.approx(least / n_cells, abs=1e-9)


def test_new_records_join_the_run_their_place_falls_in():
    X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0]])
    anonymizer = HilbertAnonymizer(3).fit(X)
    assert anonymizer.group_sizes_.tolist() == [3, 3]
    assert anonymizer.transform(np.array([[-5.0], [2.1], [9.5], [99.0], [np.nan]])).ravel().tolist() == [
        3,
        3,
        9,
        9,
        9,
    ]


def test_categories_not_seen_at_fit_count_as_the_last():
    frame = pa.table({"town": ["a"] * 3 + ["b"] * 3})
    anonymizer = HilbertAnonymizer(3).fit(frame)
    assert anonymizer.transform(pa.table({"town": ["zzz", "a", None]}))["town"].to_pylist() == ["b", "a", "b"]


def test_large_k_takes_fewer_cuts_into_account_and_keeps_k():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(3000, 3))
    anonymizer = HilbertAnonymizer(250).fit(X)
    assert anonymizer.group_sizes_.min() >= 250
    assert anonymizer.group_sizes_.max() < 520


def test_it_loses_less_than_mondrian_on_smooth_numbers():
    generator = np.random.default_rng(1)
    X = generator.normal(size=(2000, 2))
    assert HilbertAnonymizer(10).fit(X).information_loss_ < MondrianAnonymizer(10).fit(X).information_loss_


def naive_joined(sizes, is_safe):
    """Join groups from the left until they pass, what is left over with those before; lists of group numbers."""
    runs, current = [], []
    for g in range(len(sizes)):
        if sizes[g]:
            current = [*current, g]
            if is_safe(current):
                runs.append(current)
                current = []
    while current and not is_safe(current):
        current = runs.pop() + current
    return [*runs, current] if current else runs


@in_examples(100)
@given(
    values=st.lists(st.tuples(st.integers(0, 7), st.integers(0, 4)), min_size=1, max_size=40),
    k=st.integers(2, 4),
    n_persons=st.integers(2, 3),
)
def test_runs_that_fail_extend_to_the_next_admissible_end_and_the_last_merges_backwards(values, k, n_persons):
    group = np.array([g for g, _ in values], np.int32)
    person = np.array([p for _, p in values], np.int64)
    counters = [Counter(KAnonymity(k), None, 1), Counter(KAnonymity(n_persons, unit="person"), person, 5)]

    def is_safe(groups):
        own = np.isin(group, groups)
        return own.sum() >= k and len(set(person[own].tolist())) >= n_persons

    if not is_safe(range(8)):
        return
    run_of_group = join_runs(group, 8, counters)
    expected = naive_joined(np.bincount(group, minlength=8), is_safe)
    for run, groups in enumerate(expected):
        assert set(run_of_group[groups].tolist()) == {run}


def test_a_release_joins_runs_and_says_how_many():
    X = np.arange(40.0)[:, None]
    anonymizer = HilbertAnonymizer(4, representative="bounds").fit(X)
    assert anonymizer.n_groups_ == 10
    release = anonymizer.release(X[::2])
    assert release.n_merged == 10
    assert release.measures["smallest_group"] == 4
    assert sorted(group_sizes(release.table).values()) == [4] * 5
    with pytest.raises(GuaranteeError, match="not even all of them together"):
        anonymizer.release(X[:3])


def test_suppression_leaves_out_the_smallest_failing_runs():
    X = np.arange(40.0)[:, None]
    anonymizer = HilbertAnonymizer(4, suppression_limit=0.1).fit(X)
    release = anonymizer.release(X[:30])
    assert release.n_suppressed in (0, 1, 2, 3)
    assert sum(group_sizes(release.table).values()) == 30 - release.n_suppressed
    assert min(group_sizes(release.table).values()) >= 4


def test_predictions_choose_the_member_that_stands_for_a_group():
    table, probabilities = people()
    plain = rows_of(HilbertAnonymizer(10, representative="model").fit_transform(table))
    guided = rows_of(HilbertAnonymizer(10, representative="model").fit_transform(table, probabilities))
    assert plain != guided


def test_runs_that_forget_k_are_caught(monkeypatch):
    table, _ = people()
    original = hilbert.best_runs
    monkeypatch.setattr(hilbert, "best_runs", lambda codes, counts, layout, k: original(codes, counts, layout, 2))
    monkeypatch.setattr(hilbert, "join_runs", lambda group, n_groups, counters: np.arange(n_groups, dtype=np.int32))
    with pytest.raises(GuaranteeError, match="every group has at least 7 records"):
        HilbertAnonymizer(7).fit_transform(table)
