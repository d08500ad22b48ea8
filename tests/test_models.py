# SPDX-License-Identifier: Apache-2.0
"""The models of the command line take tables as they are."""

import datetime as dt
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from sfumato.errors import InputError, ParameterError
from sfumato.models import MODELS, TableEncoder, make_model

COLUMNS = {
    "age": [30, 40, None, 60],
    "job": ["nurse", "clerk", None, "nurse"],
    "born": [dt.date(1990, 1, 1), dt.date(1990, 1, 3), None, dt.date(1990, 1, 5)],
    "member": [True, False, True, True],
}


@pytest.mark.parametrize("kind", [pa.table, pl.DataFrame, pd.DataFrame])
def test_every_kind_of_frame_is_encoded_alike(kind):
    encoder = TableEncoder()
    encoded = encoder.fit_transform(kind(COLUMNS))
    assert encoder.get_feature_names_out().tolist() == [
        "age",
        "age is missing",
        "job=clerk",
        "job=nurse",
        "job is missing",
        "born",
        "born is missing",
        "member=False",
        "member=True",
    ]
    assert encoded.tolist() == [
        [30, 0, 0, 1, 0, -2, 0, 0, 1],
        [40, 0, 1, 0, 0, 0, 0, 1, 0],
        [40, 1, 0, 0, 1, 0, 1, 0, 1],
        [60, 0, 0, 1, 0, 2, 0, 0, 1],
    ]


def test_extra_columns_are_ignored():
    encoder = TableEncoder().fit(pa.table({"job": ["a", "b"]}))
    assert encoder.transform(pa.table({"more": [1, 2], "job": ["b", "a"]})).tolist() == [[0, 1], [1, 0]]


JOBS = pa.table({"job": ["a", "b", "b", "b"]})
NEW = pa.table({"job": ["new", "a", None]})


def test_for_a_linear_model_an_unseen_category_is_the_average_record():
    encoded = TableEncoder().fit(JOBS).transform(NEW)
    assert encoded.tolist() == [[0.25, 0.75], [1, 0], [0.25, 0.75]]
    with_missing = TableEncoder().fit(pa.table({"job": ["a", "b", "b", None]})).transform(NEW)
    assert with_missing.tolist() == [[0.25, 0.5, 0.25], [1, 0, 0], [0, 0, 1]]


def test_for_a_tree_an_unseen_category_is_not_a_number():
    encoded = TableEncoder(allow_nan=True).fit(JOBS).transform(NEW)
    np.testing.assert_array_equal(encoded, [[np.nan, np.nan], [1, 0], [np.nan, np.nan]])
    coded = TableEncoder(allow_nan=True, one_hot=False).fit(JOBS).transform(NEW)
    np.testing.assert_array_equal(coded, [[np.nan], [0], [np.nan]])


def test_an_unseen_category_without_columns_of_its_own_is_the_most_frequent_one():
    assert TableEncoder(one_hot=False).fit(JOBS).transform(NEW).tolist() == [[1], [0], [1]]


def test_a_category_that_a_type_lists_and_no_record_has_is_unseen():
    jobs = pd.DataFrame({"job": pd.Categorical(["a", "b", "b", "b"], categories=["a", "b", "gone"])})
    encoder = TableEncoder().fit(jobs)
    assert encoder.get_feature_names_out().tolist() == ["job=a", "job=b"]
    assert encoder.transform(pa.table({"job": ["gone"]})).tolist() == [[0.25, 0.75]]


def test_an_unseen_category_is_a_rare_one_where_there_are_some():
    rare = pa.table({"job": ["a", "b", "b", "c"]})
    for allow_nan in (False, True):
        encoder = TableEncoder(max_categories=2, allow_nan=allow_nan).fit(rare)
        assert encoder.transform(NEW.slice(0, 2)).tolist() == encoder.transform(pa.table({"job": ["c", "a"]})).tolist()


@pytest.mark.parametrize("name", MODELS)
def test_every_model_answers_for_categories_that_it_has_never_seen(name):
    model = make_model(name, MODELS[name].facts.tasks[0], 0, n_records=4)
    y = [0, 1, 0, 1]
    answers = model.fit(JOBS, y).predict(pa.table({"job": ["new", None]}))
    assert answers[0] == answers[1]


def test_scaling_gives_mean_0_and_variance_1():
    encoded = TableEncoder(scale=True).fit_transform(np.array([[1.0], [2.0], [6.0]]))
    assert encoded.mean() == pytest.approx(0, abs=1e-6)
    assert encoded.std() == pytest.approx(1, abs=1e-6)


def test_numbers_that_are_codes_become_categories():
    encoder = TableEncoder(categorical=["code"]).fit(pa.table({"code": [10, 9, 10]}))
    assert encoder.get_feature_names_out().tolist() == ["code=9", "code=10"]


def test_rare_categories_share_the_absence_of_the_others():
    jobs = ["a"] * 3 + ["b"] * 2 + ["c"]
    for order in (jobs, jobs[::-1]):
        encoder = TableEncoder(max_categories=2).fit(pa.table({"job": order}))
        assert encoder.get_feature_names_out().tolist() == ["job=a", "job=b"]


def test_a_column_that_changed_its_kind_or_is_gone_is_refused():
    encoder = TableEncoder().fit(pa.table({"x": [1, 2]}))
    with pytest.raises(InputError, match="'x' holds categories here and numbers in the training data"):
        encoder.transform(pa.table({"x": ["1", "2"]}))
    with pytest.raises(InputError, match="lacks the column 'x'"):
        encoder.transform(pa.table({"y": [1, 2]}))


@pytest.mark.parametrize(
    ("name", "task"), [(name, task) for name, model in MODELS.items() for task in model.facts.tasks]
)
def test_every_model_learns_from_a_table_with_text_and_missing_values(name, task):
    rng = np.random.default_rng(0)
    age = rng.integers(18, 80, 400).astype(float)
    job = rng.choice(["nurse", "clerk", "smith"], 400)
    amount = age + np.where(job == "smith", 40, 0)
    target = (amount > 60).astype(int) if task == "classification" else amount
    age[::50] = np.nan
    table = pa.table({"age": age, "job": job})
    model = make_model(name, task, 0, n_records=400)
    # One thread: boosting on several waits by spinning, which takes ages beside other tests.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        first = model.fit(table, target).score(table, target)
        again = clone(model).fit(table, target).score(table, target)
    assert first > 0.85
    assert first == again


def test_a_model_of_the_wrong_task_names_the_right_one():
    with pytest.raises(ParameterError, match="Give model='linear-regression'"):
        make_model("logistic-regression", "regression")
    with pytest.raises(ParameterError, match="Give model='logistic-regression'"):
        make_model("linear-regression", "classification")
    with pytest.raises(ParameterError, match="is not known"):
        make_model("oracle", "regression")


def test_categories_of_trees_are_places_in_one_column_and_missing_comes_last():
    encoder = TableEncoder(one_hot=False, max_categories=2).fit(
        pa.table({"job": ["b", "a", "b", "a", "c", None], "age": [1, 2, 3, 4, 5, 6]})
    )
    encoded = encoder.transform(pa.table({"job": ["a", "b", "c", "new", None], "age": [1, 2, 3, 4, 5]}))
    assert encoded[:, 0].tolist() == [0.0, 1.0, 2.0, 2.0, 3.0]
    assert encoded[:, 1].tolist() == [0.0, 0.0, 0.0, 0.0, 1.0]  # whether it is missing
    assert encoder.get_feature_names_out().tolist() == ["job", "job is missing", "age"]
