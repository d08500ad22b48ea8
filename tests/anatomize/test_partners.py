# SPDX-License-Identifier: Apache-2.0
"""The models that the anatomy study compares are trained in one call, with the same coding of features."""

import sys
import warnings
from pathlib import Path

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from sfumato import Hierarchy, ParameterError

from .test_classifiers import people

sys.path.insert(0, str(Path(__file__).parents[2]))  # studies/ is a folder of the repository, not installed

from studies.anatomy_partners import _columns, train_partners

HIERARCHIES = {
    "age": Hierarchy.from_intervals(range(100), [10, 50]),
    "town": Hierarchy.from_mapping({"south": ["Bari", "Rome"], "north": ["Pisa"]}),
}


@pytest.mark.parametrize("coding", ["paper", "one-hot"])
def test_all_four_partners_are_trained_in_one_call(coding):
    X, y = people()
    X_test, y_test = people(seed=1)
    model = make_pipeline(StandardScaler(), LinearSVC())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        partners = train_partners(
            model, X, y, l=3, sensitive="dose", coding=coding, hierarchies=HIERARCHIES, random_state=0
        )
    errors = partners.errors(X_test, y_test)
    assert list(errors) == ["original", "identifying", "pruned", "anonymized"]
    assert errors["original"] < errors["identifying"]  # the dose tells most
    assert errors["original"] <= min(errors["pruned"], errors["anonymized"]) + 0.02
    assert partners.levels["age"] >= 1
    assert partners.n_suppressed == 0


def test_labels_of_numbers_are_coded_by_the_middle_of_what_they_stand_for():
    X, y = people()
    X, y = X[X["age"] >= 20], y[X["age"] >= 20]
    partners = train_partners(
        LinearSVC(dual=False), X, y, l=10, sensitive="dose", partners=["anonymized"], hierarchies=HIERARCHIES
    )
    anonymized = partners.models["anonymized"]
    assert partners.levels["age"] == 1
    # Ten numbers from 30 to 39 have the mean 34.5, which is 20 more than that of 10 to 19.
    column = _columns(X, anonymized.names, anonymized.codes, anonymized.recode)[0]
    assert set(column.values.tolist()) <= {10 * decade + 4.5 for decade in range(10)}
    assert (column.values - 4.5 == X["age"] // 10 * 10).all()


def test_the_anonymized_model_may_leave_out_records_of_small_groups():
    X, y = people()
    none, some = (
        train_partners(
            LinearSVC(dual=False), X, y, l=10, sensitive="dose", partners=["anonymized"], hierarchies=HIERARCHIES,
            most_left_out=share,
        )
        for share in (0.0, 0.1)
    )  # fmt: skip
    assert none.n_left_out == 0 < some.n_left_out <= 0.1 * len(y)
    assert some.levels["age"] < none.levels["age"]
    assert some.errors(X, y)["anonymized"] < none.errors(X, y)["anonymized"]  # on every record


def test_an_unknown_partner_is_refused():
    X, y = people()
    with pytest.raises(ParameterError, match="partners has 'raw': expected some of original"):
        train_partners(LinearSVC(), X, y, l=2, sensitive="dose", partners=["raw"])
