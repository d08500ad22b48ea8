# SPDX-License-Identifier: Apache-2.0
"""R+-tree groups: safe, packed by bounding boxes, and safe to compare from publication to publication."""

import datetime
import pickle
from collections import Counter
from itertools import pairwise

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
    counts_by_group,
    diagnoses,
    distance,
)
from sfumato import (
    GuaranteeError,
    InputError,
    KAnonymity,
    LDiversity,
    MondrianAnonymizer,
    ParameterError,
    Partition,
    RPlusTreeAnonymizer,
    TCloseness,
)
from sfumato.anonymize import rplus_tree
from sfumato.columns import join_columns
from sfumato.frames import read_table
from sfumato.representatives import REPRESENTATIVES
from sfumato.testing import ANONYMIZER_CHECKS, group_sizes, people, rows_of
from strategies import LIBRARIES, in_examples, tables

pytestmark = pytest.mark.filterwarnings("ignore:quasi-identifiers that:sfumato.schema.ColumnWarning")


@parametrize_with_checks([RPlusTreeAnonymizer(k=2), RPlusTreeAnonymizer(k=2, keep_records=True)])
def test_it_passes_the_checks_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize("check", ANONYMIZER_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("representative", REPRESENTATIVES)
def test_it_passes_the_checks_of_the_family(representative, check):
    check(RPlusTreeAnonymizer(k=5, representative=representative, keep_records=True, random_state=0))


@pytest.mark.parametrize("check", ANONYMIZER_CHECKS, ids=lambda check: check.__name__)
def test_it_passes_them_with_roles_limits_and_persons(check):
    table, guide = people(seed=3)
    frame = table.append_column("person", [np.arange(120) // 2]).append_column("name", [[f"n{i}" for i in range(120)]])
    anonymizer = RPlusTreeAnonymizer(
        k=4,
        quasi_identifiers=["age", "income", "town"],
        identifiers=["name"],
        keep=["joined"],
        criteria=[KAnonymity(3, unit="person")],
        limits={"age": 3},
        keep_records=True,
    )
    for X in (frame, frame.to_pandas()):
        check(anonymizer, X, guide)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("representative", REPRESENTATIVES)
@in_examples(6)
@given(data=st.data(), table=tables())
def test_no_group_is_smaller_than_k(representative, library, table, data):
    k = data.draw(st.integers(2, min(9, table.n_records)), "k")
    assert_k_holds(RPlusTreeAnonymizer, table, library, k, representative)


@in_examples(25)
@given(table=tables(min_records=8), seed=st.integers(0, 1000))
def test_every_criterion_holds(table, seed):
    assert_criteria_hold(RPlusTreeAnonymizer, table, seed)


@in_examples(30)
@given(table=tables(min_records=12), seed=st.integers(0, 1000))
def test_the_presence_of_a_population_is_bounded(table, seed):
    assert_presence_is_bounded(RPlusTreeAnonymizer, table, seed)
    assert_impossible_presence_is_refused(RPlusTreeAnonymizer, table)


@in_examples(25)
@given(data=st.data(), table=tables(min_records=6))
def test_persons_are_counted_not_their_records(table, data):
    n_persons = data.draw(st.integers(2, table.n_records), "persons")
    assert_persons_are_counted(RPlusTreeAnonymizer, table, n_persons, data.draw(st.integers(2, n_persons), "k"))


@in_examples(30)
@given(
    table=tables(),
    library=st.sampled_from(LIBRARIES),
    representative=st.sampled_from([*REPRESENTATIVES]),
    seed=st.integers(0, 99),
)
def test_the_order_of_the_records_does_not_matter(table, library, representative, seed):
    assert_order_does_not_matter(RPlusTreeAnonymizer, table, library, 2 + seed % 3, representative, seed)


def blocks_of(group):
    """The records of each group, as sets."""
    return {frozenset(np.flatnonzero(group == g).tolist()) for g in np.unique(group)}


def test_its_partition_differs_from_mondrians():
    table, _ = people()
    packed = RPlusTreeAnonymizer(5).fit(table).partition_.apply(table)
    halved = MondrianAnonymizer(5).fit(table).partition_.apply(table)
    assert blocks_of(packed) != blocks_of(halved)


def test_leaves_hold_k_to_2k_minus_1_records_where_all_differ():
    generator = np.random.default_rng(0)
    sizes = RPlusTreeAnonymizer(7).fit(generator.normal(size=(200, 3))).group_sizes_
    assert sizes.min() >= 7
    assert sizes.max() <= 13


def test_the_cut_leaves_the_smallest_boxes():
    # Two clusters, apart in y only: cutting x at its median would leave two boxes as high as the table.
    X = np.array([[x, y + 0.1 * x] for y in (0.0, 9.0) for x in range(4)])
    group = RPlusTreeAnonymizer(4).fit(X).partition_.apply(X)
    assert group.tolist() == [0, 0, 0, 0, 1, 1, 1, 1]


# -- later batches -------------------------------------------------------------------------------------------


def assert_publications_are_safe_together(groups, k):
    """Every group of one publication and every group of another share no record, or at least k."""
    for later in range(len(groups)):
        for earlier in range(later):
            n_common = len(groups[earlier])  # records are only added, at the end
            pairs = zip(groups[earlier], groups[later][:n_common], strict=True)
            assert min(group_sizes(np.array(list(pairs))).values()) >= k


def publish_in_batches(anonymizer, frame, stops):
    """Fit on the first records, insert the others batch by batch, and return each publication and its groups."""
    published, groups = [anonymizer.fit_transform(frame.slice(0, stops[0]))], []
    groups.append(anonymizer.partition_.apply(frame.slice(0, stops[0])).tolist())
    for first, stop in pairwise(stops):
        anonymizer.insert(frame.slice(first, stop - first))
        release = anonymizer.release(frame.slice(0, stop))
        assert release.n_merged == 0
        assert anonymizer.group_sizes_.sum() == stop
        published.append(release.table)
        groups.append(anonymizer.partition_.apply(frame.slice(0, stop)).tolist())
    return published, groups


@in_examples(60)
@given(data=st.data(), table=tables(min_records=12, max_records=60), representative=st.sampled_from([*REPRESENTATIVES]))
def test_any_two_publications_have_none_or_at_least_k_records_in_common(table, representative, data):
    k = data.draw(st.integers(2, 4), "k")
    inner = data.draw(st.sets(st.integers(k, table.n_records - 1), min_size=1, max_size=3), "stops")
    anonymizer = RPlusTreeAnonymizer(k, keep_records=True, representative=representative, random_state=0)
    published, groups = publish_in_batches(anonymizer, table.to("pyarrow"), [*sorted(inner), table.n_records])
    for leaving, group in zip(published, groups, strict=True):
        assert min(group_sizes(leaving).values()) >= k
        assert len(set(zip(rows_of(leaving), group, strict=True))) == len(set(group))  # a group has one set of values
    assert_publications_are_safe_together(groups, k)


def test_leaves_do_split_where_new_records_come_together():
    generator = np.random.default_rng(0)
    old = generator.normal(size=(60, 2))
    new = generator.normal([100, 0], size=(60, 2))
    frame = pa.table({"x": np.append(old[:, 0], new[:, 0]), "y": np.append(old[:, 1], new[:, 1])})
    anonymizer = RPlusTreeAnonymizer(5, keep_records=True)
    published, groups = publish_in_batches(anonymizer, frame, [60, 120])
    assert len(set(groups[1])) > len(set(groups[0])) + 5
    assert_publications_are_safe_together(groups, 5)
    assert sorted(group_sizes(published[1]).values()) == sorted(anonymizer.group_sizes_.tolist())


def test_a_leaf_that_could_be_cut_but_for_an_earlier_publication_stays():
    X = np.array([[0.0], [1.0], [2.0], [3.0]])
    more = np.array([[0.1], [1.1], [2.1], [3.1]])
    anonymizer = RPlusTreeAnonymizer(3, keep_records=True).fit(X).insert(more)
    assert anonymizer.n_groups_ == 1  # three old records on either side there are not
    assert RPlusTreeAnonymizer(3).fit(np.concatenate([X, more])).n_groups_ == 2
    apart = np.array([[50.0], [51.0], [52.0]])
    assert anonymizer.insert(apart).group_sizes_.tolist() == [8, 3]


@in_examples(25)
@given(table=tables(min_records=16, max_records=50), seed=st.integers(0, 500))
def test_criteria_hold_after_every_batch(table, seed):
    sensitive = diagnoses(table.n_records, seed)
    stop = table.n_records // 2
    sensitive[0:2] = ["cold", "flu"]
    frame = table.to("pyarrow").append_column("diagnosis", [sensitive])
    names = list(table.columns)
    anonymizer = RPlusTreeAnonymizer(
        2, quasi_identifiers=names, criteria=[LDiversity(2, "diagnosis")], keep_records=True
    )
    published, groups = publish_in_batches(anonymizer, frame, [stop, table.n_records])
    for leaving in published:
        counts = counts_by_group(leaving, names, leaving["diagnosis"].to_pylist())
        assert min(len(values) for values in counts) >= 2
    assert_publications_are_safe_together(groups, 2)
    # Whoever intersects the two is left with two diagnoses at least.
    common = {}
    for earlier, later, value in zip(groups[0], groups[1][:stop], sensitive[:stop], strict=True):
        common.setdefault((earlier, later), set()).add(value)
    assert min(map(len, common.values())) >= 2


def test_a_criterion_that_new_records_break_is_met_by_joining_leaves():
    sensitive = ["flu", "cold"] * 20
    frame = pa.table({"age": list(range(40)), "diagnosis": sensitive})
    anonymizer = RPlusTreeAnonymizer(
        4, quasi_identifiers=["age"], criteria=[TCloseness(0.2, "diagnosis")], keep_records=True
    ).fit(frame)
    more = pa.table({"age": [0] * 12, "diagnosis": ["flu"] * 12})
    everything = pa.concat_tables([frame, more])
    release = anonymizer.insert(more).release(everything)
    assert release.n_merged >= 2
    values = everything["diagnosis"].to_pylist()
    groups = counts_by_group(release.table, ["age"], values)
    assert max(distance(counts, Counter(values)) for counts in groups) <= 0.2 + 1e-9


def test_persons_are_counted_across_batches():
    frame = pa.table({"age": list(range(40)), "person": [i % 10 for i in range(40)]})
    anonymizer = RPlusTreeAnonymizer(2, criteria=[KAnonymity(4, unit="person")], keep_records=True)
    anonymizer.fit(frame.slice(0, 20)).insert(frame.slice(20, 20))
    release = anonymizer.release(frame)
    persons = frame["person"].to_pylist()
    assert min(group_sizes(release.table, ["age"], persons=persons).values()) >= 4


def test_a_target_is_protected_in_later_batches_too():
    X = np.arange(40.0)[:, None]
    y = np.array(["no", "yes", "no", "no"] * 10)
    anonymizer = RPlusTreeAnonymizer(2, criteria=[LDiversity(2, "y")], keep_records=True)
    anonymizer.fit(X[:20], y[:20]).insert(X[20:], y[20:])
    released = anonymizer.release(X, y).table
    assert min(map(len, counts_by_group(released, [0], y.tolist()))) >= 2
    with pytest.raises(ParameterError, match="names the target, and none was passed"):
        anonymizer.insert(X)


def test_new_values_categories_and_missing_ones_come_in_with_a_batch():
    day = datetime.date(2020, 1, 1)
    first = pa.table({"town": ["b", "d"] * 6, "n": list(range(12)), "day": [day] * 12})
    more = pa.table({"town": ["a", "c", "e", None] * 5, "n": [0.5, None, 99, -7] * 5, "day": [None] * 20})
    anonymizer = RPlusTreeAnonymizer(3, keep_records=True, representative="range").fit(first)
    groups = anonymizer.partition_.apply(first)
    anonymizer.insert(more)
    again = Partition.from_dict(anonymizer.partition_.to_dict())
    for frame in (first, more):
        assert np.array_equal(again.apply(frame), anonymizer.partition_.apply(frame))
    later = anonymizer.partition_.apply(first)
    assert_publications_are_safe_together([groups.tolist(), later.tolist()], 3)
    everything = pa.table(
        {name: pa.array(first[name].to_pylist() + more[name].to_pylist()) for name in ("town", "n", "day")}
    )
    released = anonymizer.release(everything)
    assert min(group_sizes(released.table).values()) >= 3
    assert rows_of(anonymizer.transform(everything)) == rows_of(released.table)


def test_unseen_categories_stay_where_they_were_sent():
    first = pa.table({"town": ["b"] * 4 + ["d"] * 5})
    anonymizer = RPlusTreeAnonymizer(4, keep_records=True).fit(first)
    new = pa.table({"town": ["a", "e", "c", "d"]})
    sent_to = anonymizer.partition_.apply(new).tolist()
    anonymizer.insert(new)
    assert anonymizer.partition_.apply(new).tolist() == sent_to
    assert anonymizer.group_sizes_.tolist() == [4, 9]
    assert list(anonymizer.partition_.columns[0].categories) == ["a", "b", "c", "d", "e"]


def test_the_order_of_a_batch_does_not_matter():
    generator = np.random.default_rng(2)
    X, more = generator.normal(size=(50, 2)), generator.normal(size=(80, 2)) + 2
    straight = RPlusTreeAnonymizer(4, keep_records=True).fit(X).insert(more)
    shuffled = RPlusTreeAnonymizer(4, keep_records=True).fit(X[::-1]).insert(more[::-1])
    assert np.array_equal(straight.transform(more), shuffled.transform(more))


def test_an_empty_column_takes_the_kind_that_comes_later():
    empty = read_table(pa.table({"a": pa.array([None, None], pa.null())})).column("a")
    numbers = read_table(pa.table({"a": [1, 2]})).column("a")
    for joined, missing in (
        (join_columns([empty, numbers]), [1, 1, 0, 0]),
        (join_columns([numbers, empty]), [0, 0, 1, 1]),
    ):
        assert joined.kind == "number"
        assert joined.missing.tolist() == missing


def test_inserting_takes_records_that_were_kept():
    X = np.arange(12.0)[:, None]
    anonymizer = RPlusTreeAnonymizer(3).fit(X)
    with pytest.raises(ParameterError, match=r"keep_records=False at fit: expected True.*Fit again"):
        anonymizer.insert(X)
    assert anonymizer._held is None


def test_a_pickle_without_kept_records_holds_no_record():
    X = np.array([[float(i) + 0.123456789] for i in range(40)])
    plain, held = (RPlusTreeAnonymizer(10, keep_records=keep).fit(X) for keep in (False, True))
    assert X.tobytes()[:64] in pickle.dumps(held)
    assert X.tobytes()[:64] not in pickle.dumps(plain)


def test_a_batch_with_other_columns_or_kinds_is_refused_and_changes_nothing():
    frame = pa.table({"age": list(range(12))})
    anonymizer = RPlusTreeAnonymizer(3, keep_records=True).fit(frame)
    with pytest.raises(InputError, match="held numbers when the partition"):
        anonymizer.insert(pa.table({"age": ["x"] * 12}))
    with pytest.raises(ValueError, match="feature names"):
        anonymizer.insert(pa.table({"height": list(range(12))}))
    assert anonymizer.group_sizes_.sum() == 12
    assert anonymizer.insert(frame).group_sizes_.sum() == 24


def test_fitting_again_forgets_the_batches():
    X = np.arange(24.0)[:, None]
    anonymizer = RPlusTreeAnonymizer(3, keep_records=True).fit(X).insert(X + 50)
    assert anonymizer.fit(X).group_sizes_.sum() == 24
    assert anonymizer.insert(X).group_sizes_.sum() == 48


def test_packing_that_forgets_k_is_caught(monkeypatch):
    table, _ = people()
    original = rplus_tree.pack
    monkeypatch.setattr(rplus_tree, "pack", lambda codes, layout, k, **more: original(codes, layout, 2, **more))
    with pytest.raises(GuaranteeError, match="every group has at least 7 records"):
        RPlusTreeAnonymizer(7).fit_transform(table)


def test_forgetting_earlier_publications_is_what_the_rule_prevents(monkeypatch):
    generator = np.random.default_rng(5)
    X = generator.normal(size=(90, 2))
    frame = pa.table({"x": X[:, 0], "y": X[:, 1]})
    original = rplus_tree.pack
    forgetful = lambda *args, **more: original(*args, **(more | {"batch": None}))  # noqa: E731
    monkeypatch.setattr(rplus_tree, "pack", forgetful)
    _, groups = publish_in_batches(RPlusTreeAnonymizer(4, keep_records=True), frame, [30, 90])
    with pytest.raises(AssertionError):
        assert_publications_are_safe_together(groups, 4)


def test_limits_and_codes_that_are_numbers_hold_for_later_batches():
    first = pa.table({"age": [20, 21, 22, 40, 41, 42], "ward": [3, 3, 3, 7, 7, 7]})
    more = pa.table({"age": [60, 61, 62, 63], "ward": [5, 5, 5, 5]})
    anonymizer = RPlusTreeAnonymizer(
        3, limits={"age": 10}, categorical_features=["ward"], keep_records=True, representative="range"
    )
    anonymizer.fit(first).insert(more)
    everything = pa.concat_tables([first, more])
    released = anonymizer.release(everything).table
    assert rows_of(anonymizer.transform(everything)) == rows_of(released)
    assert group_sizes(released) == {
        ("29 and under", "any value"): 3, ("30-49", "any value"): 3, ("50 and over", "any value"): 4,
    }  # fmt: skip
