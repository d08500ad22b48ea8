# SPDX-License-Identifier: Apache-2.0
"""Pruning against its slow twin, the paper's coding of attributes, and the theorem."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.kernel_approximation import Nystroem
from sklearn.preprocessing import FunctionTransformer

from sfumato import AnatomizedTable, Anatomizer, InputError, ParameterError, threads
from sfumato.anatomize import Bound, kernels, prune, theorem_bound
from sfumato.anatomize.coordinates import learn_coding
from sfumato.anatomize.error_bound import linear_weights
from sfumato.frames import read_table
from strategies import in_examples
from twins import naive_anatomy as naive


@st.composite
def grouped_norms(draw):
    generator = np.random.default_rng(draw(st.integers(0, 2**16)))
    n_records, n_tables = draw(st.integers(2, 30)), draw(st.integers(1, 3))
    groups, starts, norms = [], [], []
    for _ in range(n_tables):
        group = np.unique(generator.integers(0, max(1, n_records // 3), n_records), return_inverse=True)[1]
        groups.append(group)
        starts.append(np.concatenate(([0], np.cumsum(np.bincount(group)))))
        norms.append(generator.integers(0, 40, n_records) / 4)  # few and exact, so that ties come up
    return generator.integers(0, 80, n_records) / 4, kernels.CandidateNorms(
        np.stack(groups, axis=1),
        np.concatenate(starts),
        np.concatenate(([0], np.cumsum([len(own) for own in starts])[:-1])).astype(np.int64),
        np.concatenate(norms),
        np.arange(n_tables) * n_records,
    )


@in_examples()
@given(grouped_norms(), st.integers(-4, 80))
def test_the_kernels_prune_as_their_slow_twins_do(table, quarters):
    own, candidates = table
    assert kernels.extreme_norms(own, candidates) == naive.extreme_norms(own, candidates)
    chosen = kernels.nearest_candidates(own, candidates, quarters / 4)
    assert [tuple(row) for row in chosen.tolist()] == naive.nearest_candidates(own, candidates, quarters / 4)


def wages(seed=0, n=60):
    random = np.random.default_rng(seed)
    return pa.table(
        {"age": random.integers(18, 90, n), "town": random.choice(["a", "b"], n), "wage": random.permutation(n)}
    )


def test_pruning_keeps_every_record_and_one_candidate_of_its_group():
    anatomized = Anatomizer(3, sensitive="wage", random_state=0).fit_transform(wages())
    pruned = prune(anatomized)
    groups = anatomized.identifying["group"].to_numpy(), anatomized.sensitive["group"].to_numpy()
    assert pruned.rows.tolist() == list(range(60))
    assert (groups[0][pruned.rows] == groups[1][pruned.candidates]).all()
    assert pruned.table.column_names == ["age", "town", "wage"]
    assert pruned.table["age"].equals(anatomized.identifying["age"])


@pytest.mark.parametrize("per", ["record", "group"])
def test_pruning_follows_the_figures_of_the_paper(per):
    """Figures B.1 and B.2 done on the joined table, one row after the other."""
    anatomized = Anatomizer(3, sensitive="wage", random_state=1).fit_transform(wages(1))
    who, what = anatomized.identifying.to_pandas(), anatomized.sensitive.to_pandas()
    joined = who.reset_index().merge(what.reset_index(), on="group", suffixes=("_who", "_what"))
    mode = joined["town"].mode()[0]
    norms = (
        (joined["age"] - joined["age"].mean()) ** 2
        + (joined["town"] != mode)
        + (joined["wage"] - joined["wage"].mean()) ** 2
    )
    expected = (norms.min() + norms.max()) / 2
    joined["away"] = (norms - expected).abs()
    best = joined.sort_values(["away", "index_who"]).groupby("group" if per == "group" else "index_who").head(1)
    pruned = prune(anatomized, per=per)
    assert pruned.radius_expected == pytest.approx(expected)
    assert sorted(zip(pruned.rows.tolist(), pruned.candidates.tolist(), strict=True)) == sorted(
        zip(best["index_who"], best["index_what"], strict=True)
    )


def test_pruning_behind_the_identity_is_plain_pruning():
    # Numbers only: the paper's coding does not centre categories, and behind a map everything is centred.
    anatomized = Anatomizer(2, sensitive="wage", random_state=0).fit_transform(wages().drop(["town"]))
    plain, mapped = prune(anatomized), prune(anatomized, feature_map=FunctionTransformer())
    assert mapped.candidates.tolist() == plain.candidates.tolist()
    assert mapped.radius_max == pytest.approx(plain.radius_max)


def test_pruning_in_a_kernel_space_chooses_by_norms_there():
    anatomized = Anatomizer(2, sensitive="wage", random_state=0).fit_transform(wages())
    mapped = prune(anatomized, coding="one-hot", feature_map=Nystroem(n_components=20, random_state=0), per="group")
    assert len(mapped.rows) == 30
    assert 0 <= mapped.radius_min < mapped.radius_max < 4  # no two points of an RBF feature space are further apart


def test_groups_numbered_by_somebody_else_are_pruned_alike():
    anatomized = Anatomizer(2, sensitive="wage", random_state=0).fit_transform(wages())
    renumbered = [
        frame.set_column(frame.num_columns - 1, "group", [frame["group"].to_numpy() * 10**12 - 5])
        for frame in (anatomized.identifying, anatomized.sensitive)
    ]
    assert prune(AnatomizedTable(*renumbered, 2)).candidates.tolist() == prune(anatomized).candidates.tolist()


def test_threads_choose_the_same_candidates(monkeypatch):
    anatomized = Anatomizer(2, sensitive="wage", random_state=0).fit_transform(wages())
    alone = prune(anatomized)
    monkeypatch.setattr(threads, "_THREADED_FROM", 1)
    monkeypatch.setattr(threads, "thread_count", lambda n_jobs: 3)
    together = prune(anatomized)
    assert together.candidates.tolist() == alone.candidates.tolist()
    assert (together.radius_min, together.radius_max) == (alone.radius_min, alone.radius_max)


def test_another_word_for_per_is_refused():
    anatomized = Anatomizer(2, sensitive="wage", random_state=0).fit_transform(wages())
    with pytest.raises(ParameterError, match="per='row': expected 'record' or 'group'"):
        prune(anatomized, per="row")
    with pytest.raises(ParameterError, match="coding='hash': expected 'paper' or 'one-hot'"):
        prune(anatomized, coding="hash")


# ---- coding ----------------------------------------------------------------------------------------------------------


def coded(frame, coding, weight=None, other=None):
    def columns(frame):
        table = read_table(frame)
        return [table.column(name) for name in table.names]

    learned = learn_coding(columns(frame), coding, weight)
    rows = columns(frame if other is None else other)
    assert learned.norms(rows) == pytest.approx((learned.coordinates(rows) ** 2).sum(axis=1))
    return learned.coordinates(rows).tolist()


FRAME = pd.DataFrame(
    {
        "age": [20.0, 30.0, np.nan, 40.0],
        "size": pd.Categorical(["M", "S", "M", "L"], ["S", "M", "L"], ordered=True),
        "town": ["Bari", "Rome", "Rome", None],
    }
)


def test_the_papers_coding_follows_its_three_rules():
    # Numbers less their mean (missing: at it); ordered categories 1 to 3 less their mode; others 0 for the mode or 1.
    assert coded(FRAME, "paper") == [[-10, 0, 1], [0, -1, 0], [0, 0, 0], [10, 1, 1]]


def test_one_hot_coding_scales_numbers_and_gives_categories_a_coordinate_each():
    scale = math.sqrt(200 / 3)
    rows = coded(FRAME, "one-hot")
    assert [row[0] * scale for row in rows] == pytest.approx([-10, 0, 0, 10])
    # S, M, L are sorted by name (L, M, S); Bari, Rome, missing.
    assert [row[1:] for row in rows] == [[0, 1, 0, 1, 0, 0], [0, 0, 1, 0, 1, 0], [0, 1, 0, 0, 1, 0], [1, 0, 0, 0, 0, 1]]


def test_records_count_as_often_as_they_are_joined():
    weight = np.array([3, 1, 1, 1])
    assert coded(FRAME, "paper", weight) == [[-6, 0, 0], [4, -1, 1], [0, 0, 1], [14, 1, 1]]


def test_what_training_did_not_have_is_one_of_the_rest():
    new = pd.DataFrame({"age": [0.0], "size": ["XL"], "town": ["Pisa"]})
    assert coded(FRAME, "paper", other=new) == [[-30, 0, 1]]
    assert coded(FRAME, "one-hot", other=new)[0][1:] == [0] * 6


def test_a_column_of_another_kind_is_refused():
    with pytest.raises(InputError, match="'town' holds numbers and held categories"):
        coded(FRAME, "paper", other=FRAME.assign(town=1))
    with pytest.raises(InputError, match="'age' holds categories and held numbers"):
        coded(FRAME, "paper", other=FRAME.assign(age="old"))


def test_moments_are_counted_in_days():
    born = pd.DataFrame({"born": pd.to_datetime(["2000-01-01", "2000-01-03"])})
    assert coded(born, "paper") == [[-1], [1]]


# ---- the theorem -----------------------------------------------------------------------------------------------------


def test_the_bound_is_the_formula_of_the_theorem():
    n, d = 50_000, 12
    bound = theorem_bound(n, d, [0.5, -1.0, 2.0], radius_min=4.0, radius_max=1000.0)
    learning = 4 * math.sqrt(((d + 2) * math.log(n + 1) + math.log(2)) / n)
    assert bound.learning == pytest.approx(learning)
    assert bound.pruning == pytest.approx((0.25 + 1 + 4) * 996 / n)
    assert bound.value == pytest.approx(bound.learning + bound.pruning)


def test_the_bound_says_when_it_says_nothing():
    assert str(Bound(1.0)).startswith("vacuous")
    assert (
        str(Bound(0.25, observed=0.0123))
        == "at most 0.250 above the best linear model; observed +0.0123 above the original"
    )
    assert str(Bound(None, reason="records were suppressed")) == "does not apply: records were suppressed"
    assert not Bound(0.99).is_vacuous


def test_scaling_in_front_of_a_linear_model_is_undone():
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, StandardScaler
    from sklearn.svm import SVC

    random = np.random.default_rng(0)
    X = random.normal(size=(80, 3)) * [1, 10, 100]
    y = X[:, 0] + X[:, 1] / 10 > 0
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y)
    weights = linear_weights(model)
    shift = np.array([1.0, -2.0, 3.0])
    moved = model.decision_function(X + shift) - model.decision_function(X)
    assert moved == pytest.approx(np.full(80, weights @ shift))
    assert linear_weights(make_pipeline(MinMaxScaler(), LogisticRegression()).fit(X, y)) is None
    assert linear_weights(SVC().fit(X, y)) is None
    assert linear_weights(SVC(kernel="linear").fit(X, y)) is not None
    assert linear_weights(LogisticRegression().fit(X, np.arange(80) % 3)) is None
