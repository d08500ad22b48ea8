# SPDX-License-Identifier: Apache-2.0
"""PAT keeps what its tree tells apart, and its tree is grown by the paper's criterion."""

from itertools import combinations
from zlib import crc32

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minimize.plain_pgini import fall
from sfumato import AptMinimizer, PrivacyAwareTree
from sfumato.minimize import apt_minimizer
from sfumato.minimize.pgini_growth import SharedGrowth, pgini_guide
from sfumato.minimize.tree_buckets import buckets_of_tree, without_small_buckets
from sfumato.partition.guides import CHANNELS
from sfumato.partition.scoring import side_gain
from strategies import LIBRARIES, in_examples, tables


def fitted(table, y, seed, **parameters):
    """A minimizer with what it grew from, its tree and its buckets."""
    minimizer = PrivacyAwareTree(**{"floor": 1, "min_samples_leaf": 1 + seed % 3, "n_jobs": 1, **parameters})
    growth = SharedGrowth(minimizer._read(table, y, None), minimizer.floor)
    tree, presence = minimizer._grow(growth, 12, 1)
    tree = presence.joined(tree)
    return minimizer, growth, tree, buckets_of_tree(tree, growth.sample.columns, growth.orders)


def as_split(growth, codes):
    """The columns that a tree splits on: fine codes or ranks of categories, then more orders of them."""
    first = {order.position: order for order in growth.orders.first}
    own = [first[place].ranks[column] if place in first else column for place, column in enumerate(codes.T)]
    return np.column_stack([*own, *(order.ranks[codes[:, order.position]] for order in growth.orders.others)])


def labels_of(table, seed, n_classes=3):
    """Classes that depend on the first column and on chance."""
    generator = np.random.default_rng(seed)
    first = next(iter(table.columns.values())).values
    own = np.array([crc32(str(value).encode()) % n_classes for value in first])
    return np.where(generator.random(len(own)) < 0.7, own, generator.integers(0, n_classes, len(own)))


def any_member(buckets, codes, generator):
    """Replace every code by a random code of the same bucket: what is known of g(x) is its bucket."""
    swapped = np.empty_like(codes)
    for position, own in enumerate(buckets):
        members = [np.flatnonzero(own == bucket) for bucket in range(own.max() + 1)]  # one may be of unseen ones
        chosen = [generator.choice(members[own[code]]) for code in codes[:, position]]
        swapped[:, position] = chosen
    return swapped


@in_examples()
@given(table=tables(min_records=6), seed=st.integers(0, 2**16), alpha=st.sampled_from([0.0, 0.2, 0.5, 0.8]))
def test_the_tree_decides_alike_on_a_record_and_on_its_buckets(table, seed, alpha):
    y = labels_of(table, seed)
    _, growth, tree, buckets = fitted(table.to("pandas"), y, seed, alpha=alpha)
    codes = np.column_stack([column.codes for column in growth.sample.columns]).astype(np.int64)
    generalized = any_member(buckets, codes, np.random.default_rng(seed))
    np.testing.assert_array_equal(tree.apply(as_split(growth, generalized)), tree.apply(as_split(growth, codes)))


@in_examples()
@given(
    table=tables(min_records=6, kinds=("text", "categorical", "boolean", "integer")),
    seed=st.integers(0, 2**16),
    max_leaves=st.integers(1, 12),
)
def test_free_sides_of_absent_categories_move_no_record_and_add_no_bucket(table, seed, max_leaves):
    minimizer = PrivacyAwareTree(alpha=0.1, min_samples_leaf=1, floor=1, n_jobs=1)
    sample = minimizer._read(table.to("pandas"), labels_of(table, seed), None)
    growth = SharedGrowth(sample, 1)
    whole, presence = minimizer._grow(growth, 12, 1)
    plain = whole.pruned(max_leaves)
    joined = presence.joined(plain)
    codes = as_split(growth, np.column_stack([column.codes for column in sample.columns]).astype(np.int64))
    np.testing.assert_array_equal(joined.apply(codes), plain.apply(codes))
    for own, before in zip(
        buckets_of_tree(joined, sample.columns, growth.orders),
        buckets_of_tree(plain, sample.columns, growth.orders),
        strict=True,
    ):
        assert own.max() <= before.max()


def test_categories_that_never_meet_share_a_bucket():
    # Where a is small, x and y are told apart; where it is large, u and v are: x and u never meet, nor y and v.
    a = np.repeat([0, 0, 1, 1], 100)
    job = np.repeat(["x", "y", "u", "v"], 100)
    y = np.repeat([0, 1, 2, 3], 100)
    y[::10] ^= 1  # noise within either half, so that telling the halves apart is the best first split
    minimizer = PrivacyAwareTree(alpha=0.0, min_samples_leaf=5).fit(pd.DataFrame({"a": a, "job": job}), y)
    assert minimizer.generalization_.n_buckets == (2, 2)


@in_examples()
@given(table=tables(min_records=6), seed=st.integers(0, 2**16))
def test_every_level_of_apts_tree_decides_alike_on_a_record_and_on_its_buckets(table, seed):
    sample = AptMinimizer()._read(table.to("pandas"), labels_of(table, seed), None)
    rows = np.arange(sample.n_records)
    tree = apt_minimizer._grow(AptMinimizer(n_jobs=1), sample, rows, sample.y.astype(np.int64))
    codes = np.column_stack([column.codes for column in sample.columns])
    for level in range(int(apt_minimizer._depths(tree).max()) + 1):
        cut = tree.without_splits(np.flatnonzero(apt_minimizer._depths(tree) >= level))
        buckets = buckets_of_tree(cut, sample.columns)
        generalized = any_member(buckets, codes, np.random.default_rng(seed))
        np.testing.assert_array_equal(cut.apply(generalized), cut.apply(codes))


@in_examples()
@given(table=tables(min_records=6), seed=st.integers(0, 2**16), library=st.sampled_from(LIBRARIES))
def test_the_generalization_has_exactly_the_buckets_of_the_tree(table, seed, library):
    # Strict: every value has one bucket, the same wherever it occurs; and no bucket is lost or added on the way.
    y = labels_of(table, seed)
    frame = table.to(library)
    minimizer, growth, _, buckets = fitted(frame, y, seed, max_leaves=12)
    codes = minimizer.fit(frame, y).generalization_.codes(frame)
    for position, column in enumerate(growth.sample.columns):
        wanted = buckets[position][column.codes]
        pairs = set(zip(wanted.tolist(), codes[:, position].tolist(), strict=True))
        assert len(pairs) == len(set(wanted.tolist())) == len(set(codes[:, position].tolist()))


@in_examples()
@given(table=tables(min_records=6, kinds=("integer", "float", "date")), seed=st.integers(0, 2**16))
def test_buckets_of_numbers_follow_their_order(table, seed):
    _, growth, _, buckets = fitted(table.to("pandas"), labels_of(table, seed), seed, alpha=0.1)
    for column, own in zip(growth.sample.columns, buckets, strict=True):
        assert (np.diff(own[: column.bins.n_values]) >= 0).all()


@in_examples()
@given(table=tables(min_records=6), seed=st.integers(0, 2**16), fewest=st.integers(1, 8))
def test_no_bucket_has_fewer_records_than_asked_for(table, seed, fewest):
    _, growth, tree, _ = fitted(table.to("pandas"), labels_of(table, seed), seed, alpha=0.1)
    columns, orders = growth.sample.columns, growth.orders
    bounded = without_small_buckets(tree, columns, fewest, orders)
    for column, own in zip(columns, buckets_of_tree(bounded, columns, orders), strict=True):
        counts = np.bincount(own[column.codes], minlength=own.max() + 1)
        assert len(counts) == 1 or counts.min() >= fewest
    if fewest == 1:
        assert bounded.n_groups == tree.n_groups


# -- PGini ---------------------------------------------------------------------------------------------------


def small_table(seed):
    """A table with a number, a category column with missing values and one that is constant now and then."""
    generator = np.random.default_rng(seed)
    n = int(generator.integers(4, 25))
    table = pd.DataFrame(
        {
            "number": generator.integers(0, 6, n),
            "letter": generator.choice(["a", "b", "c", None], n),
            "flag": generator.choice(["x", "y"][: 1 + seed % 2], n),
        }
    )
    return table, generator.integers(0, 2 + seed % 2, n)


def every_split(column):
    """Every way to send some fine codes of a column left: prefixes, with missing on either side, or subsets."""
    bins = column.bins
    if bins.is_ordered:
        for last in range(bins.n_values):
            yield set(range(last + 1))
            if bins.has_missing:
                yield {*range(last + 1), bins.missing_bin}
        return
    for size in range(1, bins.n_bins):
        for chosen in combinations(range(bins.n_bins), size):
            yield set(chosen)


def splits_with_falls(sample, alpha, shares):
    """Every proper split of the whole sample, with the fall of PGini by the plain equation."""
    personal = [sample.columns[position] for position in sample.personal]
    arguments = (sample.n_classes, [c.bins.n_bins for c in personal], alpha, shares)
    values = [column.codes.tolist() for column in personal]
    for position, column in enumerate(sample.columns):
        for chosen in every_split(column):
            is_left = [code in chosen for code in column.codes.tolist()]
            if any(is_left) and not all(is_left):
                yield position, is_left, fall(is_left, sample.y.tolist(), values, *arguments)


def engine_gain(sample, guide, is_left):
    """The gain that the engine's own kernel gives a split."""
    channels = [np.eye(n, dtype=np.int64)[b] for b, n in zip(guide.code_blocks, guide.cardinalities, strict=True)]
    sums = np.column_stack([np.ones(sample.n_records, np.int64), *channels])
    total, left = sums.sum(axis=0), sums[np.array(is_left)].sum(axis=0)
    return side_gain(CHANNELS, left, total, total[1:] / total[0], guide.channel_weights, 0)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("seed", range(6))
def test_the_gain_of_every_split_is_the_fall_of_pgini(seed, alpha):
    table, y = small_table(seed)
    minimizer = PrivacyAwareTree(alpha=alpha, personal=["letter", "flag"], personal_weights={"letter": 1 + seed % 3})
    sample = minimizer._read(table, y, None)
    shares = minimizer._shares(sample)
    guide = pgini_guide(sample, alpha, shares)
    found = list(splits_with_falls(sample, alpha, shares.tolist()))
    assert len(found) > 2
    for _, is_left, wanted in found:
        assert engine_gain(sample, guide, is_left) == pytest.approx(float(wanted), abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_the_first_split_is_the_one_at_which_pgini_falls_most(seed):
    table, y = small_table(seed)
    alpha = (0.0, 0.3, 0.6)[seed % 3]
    minimizer = PrivacyAwareTree(alpha=alpha, min_samples_leaf=1, floor=1, n_jobs=1)
    sample = minimizer._read(table, y, None)
    best = max(value for *_, value in splits_with_falls(sample, alpha, minimizer._shares(sample).tolist()))
    tree, _ = minimizer._grow(SharedGrowth(sample, 1), 2, 1)
    if tree.n_groups == 1:
        assert best <= 1e-9
        return
    codes = np.column_stack([column.codes for column in sample.columns])
    is_left = (tree.apply(codes) == 0).tolist()
    guide = pgini_guide(sample, alpha, minimizer._shares(sample))
    assert engine_gain(sample, guide, is_left) == pytest.approx(float(best), abs=1e-9)


def test_weights_per_personal_attribute_keep_their_mean():
    table, y = small_table(1)
    sample = PrivacyAwareTree()._read(table, y, None)
    equal = PrivacyAwareTree(personal_weights={"letter": 5, "flag": 5})._shares(sample)
    uneven = PrivacyAwareTree(personal_weights={"letter": 3})._shares(sample)
    assert equal.tolist() == [0.5, 0.5]
    assert uneven.tolist() == [0.75, 0.25]


@in_examples()
@given(table=tables(min_records=6), seed=st.integers(0, 2**16))
def test_privacy_alone_never_splits(table, seed):
    _, _, tree, buckets = fitted(table.to("pandas"), labels_of(table, seed), seed, alpha=1.0)
    assert tree.n_groups == 1
    assert all(not own.any() for own in buckets)


# -- sweeping ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_settings_that_share_growths_give_the_buckets_of_fits_apart(n_jobs):
    generator = np.random.default_rng(5)
    X = pd.DataFrame(
        {
            "age": generator.integers(18, 90, 3000),
            "job": generator.choice(list("abcdefghijklm"), 3000),
            "town": generator.choice(["Bari", "Rome"], 3000),
        }
    )
    y = (X["age"] > 50) ^ X["job"].isin(["b", "k", "m"]) ^ (generator.random(3000) < 0.1)
    minimizer = PrivacyAwareTree(min_samples_leaf=20, n_jobs=n_jobs)
    sample = minimizer._read(X, y, None)
    settings = [
        {"alpha": alpha, "max_leaves": leaves, "floor": fewest}
        for alpha in (0.0, 0.3, 0.6, 1.0)
        for leaves in (1, 3, 8, 30)
        for fewest in (1, 200)
    ]
    together = minimizer._buckets_of_settings(sample, settings)
    assert len({tuple(own.max() for own in buckets) for buckets in together}) > 3
    for setting, buckets in zip(settings, together, strict=True):
        own = PrivacyAwareTree(min_samples_leaf=20, n_jobs=1, **setting)._buckets(sample)
        for one, other in zip(buckets, own, strict=True):
            np.testing.assert_array_equal(one, other)


def test_categories_share_a_bucket_exactly_when_no_split_tells_them_apart():
    job = np.repeat(list("abcdef"), 200)
    y = np.isin(job, ["b", "e"])
    minimizer = PrivacyAwareTree(alpha=0.2, min_samples_leaf=5).fit(pd.DataFrame({"job": job}), y)
    (attribute,) = minimizer.generalization_.attributes
    assert set(map(frozenset, attribute.members)) == {frozenset("acdf"), frozenset("be")}


def test_missing_values_share_the_bucket_of_what_they_resemble():
    age = np.array([20.0, 30.0, 70.0, 80.0, np.nan] * 60)
    with_old = PrivacyAwareTree(alpha=0, min_samples_leaf=5).fit(age[:, None], np.nan_to_num(age, nan=99) > 50)
    (attribute,) = with_old.generalization_.attributes
    assert (attribute.n_buckets, attribute.missing) == (2, 1)
    alone = PrivacyAwareTree(alpha=0, min_samples_leaf=5).fit(age[:, None], np.isnan(age))
    (attribute,) = alone.generalization_.attributes
    assert (attribute.n_buckets, attribute.has_missing_bucket) == (2, True)
