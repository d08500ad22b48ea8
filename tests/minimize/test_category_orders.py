# SPDX-License-Identifier: Apache-2.0
"""Many categories are ordered by what other records say of them, and rare ones stand where their kin is."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import Hierarchy, PrivacyAwareTree
from sfumato.errors import InputError, ParameterError
from sfumato.minimize.category_orders import _Family, _shrunken, order_categories
from strategies import in_examples


def jobs(n, seed, n_jobs=60, signal=1.0):
    """People with a job of a few dozen, some of them rare, and a class that goes with the job as far as asked."""
    generator = np.random.default_rng(seed)
    shares = generator.dirichlet(np.full(n_jobs, 0.5))
    job = generator.choice(n_jobs, n, p=shares)
    chance = 0.5 + signal * (generator.random(n_jobs) - 0.5)
    X = pd.DataFrame({"job": [f"j{own:02d}" for own in job], "age": generator.integers(18, 80, n)})
    return X, (generator.random(n) < chance[job]).astype(int), chance


def sample_of(X, y, **parameters):
    """What a minimizer reads."""
    return PrivacyAwareTree(**parameters)._read(X, y, None)


def plain_shrunken(sums, n):
    """Shrunken means of categories by hand: method of moments, towards the mean of all."""
    total, mean = sum(n), sum(sums) / sum(n)
    within = mean * (1 - mean)
    present = [(s, m) for s, m in zip(sums, n, strict=True) if m]
    spread = sum(m * (s / m - mean) ** 2 for s, m in present)
    between = (spread - (len(present) - 1) * within) / (total - sum(m * m for m in n) / total)
    if between <= 0:
        return [mean] * len(n)
    strength = within / between
    return [(s + strength * mean) / (m + strength) for s, m in zip(sums, n, strict=True)]


@in_examples()
@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=2, max_size=12))
def test_means_are_shrunken_by_the_scatter_of_the_means(cells):
    n = [max(pair) for pair in cells]
    sums = [min(pair) for pair in cells]
    if sum(n) == 0 or len([m for m in n if m]) < 2:
        return
    family = _Family.of(np.array(n), 0, None)
    found = _shrunken(np.array(sums, float)[:, None], np.array(n, float), family)[:-1, 0]
    np.testing.assert_allclose(found, plain_shrunken(sums, n), atol=1e-12)


def test_a_rare_category_is_nearer_to_the_mean_of_all_than_a_frequent_one_with_the_same_records():
    n, sums = np.array([2.0, 50.0, 200.0, 200.0]), np.array([[2.0], [50.0], [20.0], [100.0]])
    rare, frequent, *_ = _shrunken(sums, n, _Family.of(n.astype(int), 0, None))[:, 0]
    assert 0.4 < rare < frequent < 1


def test_categories_that_tell_nothing_of_the_class_are_worth_no_more_than_random_numbers():
    # Ordered by its own records, such a column seems to separate the classes: a third of its categories are pure.
    falls = {"job": [], "age": []}
    for seed in range(8):
        X, y, _ = jobs(1500, seed, n_jobs=300, signal=0.0)
        assert pd.Series(y).groupby(X["job"].to_numpy()).mean().isin([0, 1]).mean() > 0.1
        for name, own in falls.items():
            sample = sample_of(X[[name]], y, floor=1)
            codes = order_categories(sample, 1)[0].codes if name == "job" else sample.columns[0].codes
            cuts = [(codes <= cut) for cut in np.unique(codes)[:-1]]
            apart = [abs(y[left].mean() - y[~left].mean()) * left.std() for left in cuts]
            own.append(max(apart, default=0.0))
    assert np.mean(falls["job"]) < 1.3 * np.mean(falls["age"])


def test_categories_are_ordered_by_their_classes_where_records_suffice():
    X, y, chance = jobs(20_000, 0)
    (order,) = order_categories(sample_of(X, y), 1)
    counts = X["job"].value_counts().sort_index()
    frequent = np.flatnonzero(counts.to_numpy() > 200)
    known = chance[[int(name[1:]) for name in counts.index[frequent]]]
    assert np.corrcoef(np.argsort(np.argsort(order.ranks[frequent])), np.argsort(np.argsort(known)))[0, 1] > 0.97


@pytest.mark.parametrize("hierarchies", [None, {"job": {"even": [f"j{i:02d}" for i in range(0, 60, 2)],
                                                        "odd": [f"j{i:02d}" for i in range(1, 60, 2)]}}])  # fmt: skip
def test_the_order_of_the_records_does_not_matter(hierarchies):
    X, y, _ = jobs(3000, 3)
    rows = np.random.default_rng(0).permutation(len(y))
    made = [
        PrivacyAwareTree(min_samples_leaf=40, hierarchies=hierarchies, personal=["age"]).fit(*own).generalization_
        for own in ((X, y), (X.iloc[rows].reset_index(drop=True), y[rows]))
    ]
    assert made[0].attribute("job").n_buckets > 1
    assert made[0].fingerprint == made[1].fingerprint


def test_equal_weights_are_no_weights():
    X, y, _ = jobs(1200, 4)
    plain, weighted = (PrivacyAwareTree(personal=["age"])._read(X, y, own) for own in (None, np.full(len(y), 0.3)))
    for one, other in zip(order_categories(plain, 10), order_categories(weighted, 10), strict=True):
        np.testing.assert_array_equal(one.codes, other.codes)
        np.testing.assert_array_equal(one.ranks, other.ranks)


def test_records_without_weight_order_nothing():
    X, y, _ = jobs(1200, 4)
    counts = np.arange(len(y)) % 3 > 0
    sample = PrivacyAwareTree(personal=["age"])._read(X, y, counts.astype(float))
    flipped = PrivacyAwareTree(personal=["age"])._read(X, np.where(counts, y, 1 - y), counts.astype(float))
    for one, other in zip(order_categories(sample, 10), order_categories(flipped, 10), strict=True):
        np.testing.assert_array_equal(one.ranks, other.ranks)


def test_interleaved_orders_take_from_every_part_of_the_personal_order():
    # Half of the jobs are men's, half women's; in both halves the class goes with the number of the job.
    generator = np.random.default_rng(0)
    job = generator.integers(0, 40, 20_000)
    X = pd.DataFrame({"job": [f"j{own:02d}" for own in job], "sex": np.where(job % 2, "f", "m")})
    y = (generator.random(20_000) < 0.2 + 0.6 * (job % 2) + 0.005 * (job // 2)).astype(int)
    sample = PrivacyAwareTree(personal=["sex"])._read(X, y, None)
    by_class, halves, quarters = order_categories(sample, 1, ("class", "halves", "quarters"))
    is_woman = np.arange(40) % 2 == 1
    first = np.argsort(by_class.ranks[:-1])[:20]
    assert is_woman[first].mean() == 0
    for order in (halves, quarters):
        first = np.argsort(order.ranks[:-1])[:20]
        assert 0.4 <= is_woman[first].mean() <= 0.6


# -- rare and unseen ones ------------------------------------------------------------------------------------


def kin(n_each=40):
    """Two families of jobs, one of each class; in both, jobs that three people have and one that nobody has."""
    names = [f"{family}{number}" for family in ("alpha", "bravo") for number in range(8)]
    frequent = [name for name in names if name[-1] in "01234"]
    rare = [name for name in names if name[-1] in "56"]
    job = np.array([*np.repeat(frequent, n_each), *np.repeat(rare, 3)])
    hierarchy = Hierarchy([(name, name[:5], "*") for name in names])
    return pd.DataFrame({"job": job}), np.char.startswith(job, "b").astype(int), hierarchy


def test_rare_and_unseen_categories_are_where_their_parent_is():
    X, y, hierarchy = kin()
    minimizer = PrivacyAwareTree(alpha=0.1, min_samples_leaf=20, hierarchies={"job": hierarchy})
    made = minimizer.fit(X, y).generalization_
    (attribute,) = made.attributes
    assert {frozenset(own) for own in attribute.members} == {
        frozenset(f"{family}{number}" for number in range(8)) for family in ("alpha", "bravo")
    }
    new = pd.DataFrame({"job": ["alpha0", "alpha5", "alpha7", "bravo0", "bravo5", "bravo7"]})
    codes = made.codes(new)[:, 0].tolist()
    assert codes[0] == codes[1] == codes[2] != codes[3] == codes[4] == codes[5]


def test_the_place_of_a_rare_category_does_not_depend_on_its_own_records():
    X, y, hierarchy = kin()
    swapped = y.copy()
    is_rare = X["job"].isin(["alpha5", "bravo5"]).to_numpy()
    swapped[is_rare] = 1 - swapped[is_rare]  # three people of either family
    places = []
    for classes in (y, swapped):
        minimizer = PrivacyAwareTree(alpha=0.1, min_samples_leaf=20, hierarchies={"job": hierarchy})
        places.append(
            minimizer.fit(X, classes).generalization_.codes(pd.DataFrame({"job": ["alpha5", "bravo5"]})).tolist()
        )
    assert places[0] == places[1]


def test_without_a_hierarchy_rare_and_unseen_categories_have_one_place():
    X, y, _ = kin()
    made = PrivacyAwareTree(alpha=0.1, min_samples_leaf=20).fit(X, y).generalization_
    codes = made.codes(pd.DataFrame({"job": ["alpha5", "alpha6", "bravo5", "bravo6", "never seen"]}))
    assert len(set(codes[:, 0].tolist())) == 1
    assert all(name not in made.to_json() for name in ("alpha5", "alpha6", "bravo5", "bravo6"))


def test_an_unseen_category_goes_where_shrinkage_puts_it_and_not_where_most_records_are():
    # Most records are of class 0; few-record jobs are of class 1, and so, likely, are those that nobody had.
    job = np.array([*np.repeat([f"c{i}" for i in range(9)], 300), *np.repeat([f"r{i}" for i in range(40)], 4)])
    y = np.char.startswith(job, "r").astype(int)
    made = PrivacyAwareTree(alpha=0.0, min_samples_leaf=30, floor=1).fit(pd.DataFrame({"job": job}), y).generalization_
    seen, unseen = made.codes(pd.DataFrame({"job": ["c0", "r0", "never seen"]}))[:, 0].tolist()[1:]
    assert seen == unseen
    assert made.codes(pd.DataFrame({"job": ["c0"]}))[0, 0] != seen


def test_a_hierarchy_of_numbers_makes_them_categories():
    X, y, _ = jobs(3000, 5)
    X["job"] = X["job"].str[1:].astype(int)
    hierarchy = Hierarchy.from_intervals(range(100), [10])
    made = PrivacyAwareTree(min_samples_leaf=40, hierarchies={"job": hierarchy}, personal=["age"]).fit(X, y)
    attribute = made.generalization_.attribute("job")
    assert attribute.kind == "category"
    assert attribute.value_type == "number"
    assert len(attribute.categories) == 100
    loaded = type(made.generalization_).from_json(made.generalization_.to_json())
    np.testing.assert_array_equal(loaded.codes(X), made.generalization_.codes(X))


def test_a_category_that_the_hierarchy_lacks_is_refused():
    X, y, hierarchy = kin()
    X.loc[0, "job"] = "c0"
    with pytest.raises(InputError, match="1 of 412 records with a value that its hierarchy of 16 values does not have"):
        PrivacyAwareTree(hierarchies={"job": hierarchy}).fit(X, y)


def test_a_hierarchy_of_another_column_is_refused():
    X, y, hierarchy = kin()
    X["other"] = 1
    with pytest.raises(ParameterError, match="names the column 'other', which is not in attributes"):
        PrivacyAwareTree(attributes=["job"], hierarchies={"other": hierarchy}).fit(X, y)
