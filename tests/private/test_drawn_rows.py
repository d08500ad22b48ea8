# SPDX-License-Identifier: Apache-2.0
"""Drawn records follow noisy counts of columns, or of pairs along a tree, and stay inside what is public."""

import itertools
import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy.stats import norm

from sfumato.frames import read_table
from sfumato.private.accounting import gaussian_delta
from sfumato.private.drawing import draw_places, draw_records, whole_columns
from sfumato.private.encoding import PublicEncoding
from sfumato.private.marginals import FLOOR, noisy_marginals
from sfumato.private.spanning_tree import PARTS, SpanningTree, noisy_distances, noisy_tree
from twins.seeded_noise import NoNoise, RecordedNoise, SeededNoise

BOUNDS = {"age": (18, 90), "pay": (0.0, 10.0, 20.0, 50.0, 100.0)}
CATEGORIES = {"job": ["cook", "nurse", "smith"], "zone": [1, 2, 3]}
MU = 0.5


def people(n, seed):
    """Return records whose job goes with the age and whose zone goes with the job."""
    random = np.random.default_rng(seed)
    age = random.integers(18, 90, n)
    job = np.where(random.random(n) < 0.9, age // 30, random.integers(0, 3, n))
    zone = np.where(random.random(n) < 0.8, job, random.integers(0, 3, n)) + 1
    names = np.array(["cook", "nurse", "smith"])
    frame = pd.DataFrame({"age": age, "job": names[job], "pay": random.random(n) * 100, "zone": zone})
    return frame, (age > 50).astype(np.int64)


def encoded(X):
    encoding = PublicEncoding(list(X.columns), BOUNDS, CATEGORIES)
    return encoding, encoding.cells(read_table(X))


def shares_of_pair(cells, i, j, sizes):
    counts = np.bincount(cells[:, i] * sizes[j] + cells[:, j], minlength=sizes[i] * sizes[j])
    return counts / len(cells)


def distance_from(cells, drawn, sizes):
    """Return the mean total variation distance over all pairs of columns."""
    pairs = itertools.combinations(range(len(sizes)), 2)
    return np.mean(
        [np.abs(shares_of_pair(cells, i, j, sizes) - shares_of_pair(drawn, i, j, sizes)).sum() / 2 for i, j in pairs]
    )


def test_marginals_count_every_label_and_cell():
    X, label = people(500, 3)
    encoding, cells = encoded(X)
    found = noisy_marginals(encoding, cells, label, 2, 100.0, noise=NoNoise())
    for name, counts in zip(X.columns, found.counts, strict=True):
        assert counts.sum() == 500, name
    assert found.counts[1][1, 0] == ((X["job"] == "cook") & (label == 1)).sum()
    assert found.n_records == 500


def test_counts_that_noise_explains_are_none():
    X = pa.table({"city": ["Rome"] * 1000, "age": [30] * 1000})
    public = {"city": ["Rome", *(f"village {i}" for i in range(200))]}
    encoding = PublicEncoding(["city", "age"], {"age": (0, 100)}, public)
    cells = encoding.cells(read_table(X))
    found = noisy_marginals(encoding, cells, np.zeros(1000, np.int64), 1, 0.1, noise=SeededNoise(1))
    scale = math.sqrt(2) / 0.1
    assert found.counts[0][found.counts[0] > 0].min() > FLOOR * scale
    drawn = found.draw_cells(5000, np.random.default_rng(0))
    assert (drawn[:, 0] == 0).mean() > 0.8  # 0.3 without the floor


@pytest.mark.parametrize("kind", ["marginals", "mst"])
def test_drawn_records_follow_the_columns_and_stay_inside_the_bounds(kind):
    X, label = people(5000, 4)
    X["pay"] = X["pay"].where(np.arange(5000) % 2 == 0)
    encoding, cells = encoded(X)
    model = (
        noisy_tree(encoding, cells, 100.0, noise=NoNoise())
        if kind == "mst"
        else noisy_marginals(encoding, cells, label, 2, 100.0, noise=NoNoise())
    )
    frame = draw_records(model, encoding, 20_000, whole_columns(BOUNDS), np.random.default_rng(0)).to_pandas()
    assert abs(model.n_records - 5000) < 1
    for job in CATEGORIES["job"]:
        assert abs((frame["job"] == job).mean() - (X["job"] == job).mean()) < 0.02
    assert abs(frame["age"].mean() - X["age"].mean()) < 1.5
    assert frame["age"].between(18, 90).all()
    assert frame["age"].dtype == np.int64
    assert frame["pay"].dropna().between(0, 100).all()
    assert abs(frame["pay"].isna().mean() - 0.5) < 0.02
    assert set(frame["zone"]) <= {1, 2, 3}


def test_the_tree_connects_the_columns_that_go_together():
    X, label = people(8000, 5)
    encoding, cells = encoded(X)
    tree = noisy_tree(encoding, cells, MU, noise=SeededNoise(0))
    assert {(0, 1), (1, 3)} <= set(tree.pairs)  # age with job, job with zone
    sizes = [column.n_cells for column in encoding.columns]
    alone = noisy_marginals(encoding, cells, label, 2, MU, noise=SeededNoise(0))
    random = np.random.default_rng(0)
    by_tree, by_label = (distance_from(cells, model.draw_cells(8000, random), sizes) for model in (tree, alone))
    assert by_tree < by_label / 2


def test_pairs_that_noise_would_drown_are_left_out():
    random = np.random.default_rng(6)
    X = pa.table({"a": random.integers(0, 100, 500), "b": random.integers(0, 100, 500)})
    encoding = PublicEncoding(["a", "b"], {"a": (0, 100), "b": (0, 100)}, None)
    tree = noisy_tree(encoding, encoding.cells(read_table(X)), 0.05, noise=SeededNoise(0))
    assert tree.pairs == {}
    assert tree.draw_cells(10, random).shape == (10, 2)


def test_pairs_with_too_many_cells_are_never_counted():
    X = pa.table({"a": np.arange(600) % 400, "b": np.arange(600) % 400})
    encoding = PublicEncoding(["a", "b"], None, {"a": list(range(400)), "b": list(range(400))})
    tree = noisy_tree(encoding, encoding.cells(read_table(X)), 1e4, noise=NoNoise())
    assert tree.pairs == {}


def test_counts_of_pairs_agree_with_those_of_their_columns():
    X, _ = people(4000, 7)
    encoding, cells = encoded(X)
    tree = noisy_tree(encoding, cells, MU, noise=SeededNoise(3))
    assert tree.pairs
    for (i, j), counts in tree.pairs.items():
        assert (counts >= 0).all()
        np.testing.assert_allclose(counts.sum(axis=0), tree.counts[j], rtol=1e-3, atol=1e-3 * tree.n_records)
        np.testing.assert_allclose(counts.sum(axis=1), tree.counts[i], rtol=1e-3, atol=1e-2 * tree.n_records)


def test_drawing_along_the_tree_gives_the_pairs():
    pair = np.array([[50.0, 0.0], [0.0, 30.0], [10.0, 10.0]])
    tree = SpanningTree([pair.sum(axis=1), pair.sum(axis=0)], {(0, 1): pair})
    drawn = tree.draw_cells(50_000, np.random.default_rng(0))
    np.testing.assert_allclose(shares_of_pair(drawn, 0, 1, (3, 2)), pair.ravel() / 100, atol=0.01)
    np.testing.assert_allclose(draw_places(np.zeros(4), 8000, np.random.default_rng(1)).mean(), 1.5, atol=0.1)


# -- what one person more can change ---------------------------------------------------------------------------------


def test_every_part_has_the_noise_of_its_share():
    X, _ = people(3000, 8)
    encoding, cells = encoded(X)
    source = RecordedNoise()
    tree = noisy_tree(encoding, cells, 20.0, noise=source)
    sizes = [column.n_cells for column in encoding.columns]
    columns, distances, pairs = source.gaussian_asked[:4], source.gaussian_asked[4], source.gaussian_asked[5:]
    n_pairs = len(tree.pairs)
    assert [size for _, size in columns] == sizes
    assert distances[1] == 6
    assert len(pairs) == n_pairs == 3
    # One record moves each of the four columns, six distances and three pairs by 1.
    spent = sum(1 / scale**2 for scale, _ in columns) + 6 / distances[0] ** 2 + sum(1 / s**2 for s, _ in pairs)
    assert math.isclose(spent, 20.0**2, rel_tol=1e-9)
    assert math.isclose(sum(PARTS), 1.0)


def test_one_record_moves_each_distance_by_at_most_one():
    """Every table of up to three records of two columns with every record more: no distance moves further."""
    sizes, pairs = (2, 3), [(0, 1)]
    every = list(itertools.product(range(2), range(3)))
    noisy = [np.array([1.4, 2.6]), np.array([0.0, 3.1, 0.9])]  # any counts: they are noisy, so both tables have them
    moved = set()
    for n in range(4):
        for table in itertools.combinations_with_replacement(every, n):
            for more in every:
                without, with_one = (
                    noisy_distances(np.array(t, np.int64).reshape(-1, 2), noisy, pairs, 1.0, NoNoise())[0]
                    for t in (table, (*table, more))
                )
                moved.add(round(abs(with_one - without), 6))
    assert moved == {1.0}
    assert sizes == tuple(len(own) for own in noisy)


@pytest.mark.parametrize("more", [(0, 0), (1, 2)])
def test_the_choice_of_a_tree_keeps_epsilon_and_delta_on_tiny_tables(more):
    """The chance that one pair beats another, worked out exactly: Gaussian noise on both distances."""
    table = np.array([[0, 0, 0], [1, 1, 0], [1, 2, 1]])
    grown = np.vstack([table, [*more, 1]])
    noisy = [np.array([1.0, 2.0]), np.array([1.0, 1.0, 1.0]), np.array([2.0, 1.0])]
    pairs, mu, epsilon = [(0, 1), (0, 2), (1, 2)], 0.8, 0.5
    chances = []
    for cells in (table, grown):
        first, second, _ = noisy_distances(cells, noisy, pairs, 1e4, NoNoise())
        # The difference of two draws with the scale sqrt(3) / mu.
        chances.append(norm.cdf((first - second) / (math.sqrt(6) / mu)))
    delta = gaussian_delta(epsilon, mu)
    for p, q in (chances, chances[::-1]):
        assert p <= math.exp(epsilon) * q + delta
        assert 1 - p <= math.exp(epsilon) * (1 - q) + delta
