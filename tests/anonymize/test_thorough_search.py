# SPDX-License-Identifier: Apache-2.0
"""The thorough search keeps the groups that say most about the guide, and changes no guarantee."""

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import sfumato.parquet
from sfumato import LDiversity, ModelGuidedAnonymizer
from sfumato.datasets import load_adult
from sfumato.errors import ParameterError
from sfumato.models import TableEncoder
from sfumato.testing import smallest_group

NAMES = ["age", "education-num", "marital-status", "occupation", "sex", "capital-gain", "hours-per-week"]


@pytest.fixture(scope="module")
def adults():
    X, y = load_adult(return_X_y=True, as_frame=True)
    X, y = X[NAMES].iloc[:4000].reset_index(drop=True), np.asarray(y)[:4000]
    encoded = TableEncoder(scale=True).fit_transform(X)
    return X, LogisticRegression(max_iter=1000).fit(encoded, y).predict_proba(encoded)


def left_out_error(guide, group):
    """Return the mean squared difference from the mean of the other records of the group; plainly."""
    found = pd.DataFrame({"guide": guide, "group": group})
    of_group = found.groupby("group")["guide"]
    others = (of_group.transform("sum") - found["guide"]) / (of_group.transform("count") - 1)
    return float(((found["guide"] - others) ** 2).mean())


def fitted(X, guide, k, **settings):
    return ModelGuidedAnonymizer(k, **settings).fit(X, guide)


@pytest.mark.parametrize("k", [5, 50, 400])
def test_groups_say_more_about_the_guide(k, adults):
    X, guide = adults
    errors = {
        search: left_out_error(guide[:, 1], fitted(X, guide, k, search=search).partition_.apply(X))
        for search in ("fast", "thorough")
    }
    assert errors["thorough"] < errors["fast"]


def test_numbers_and_several_classes_are_searched_too(adults):
    X, guide = adults
    # Most wages are low, so that the plain scale sees little of what tells them apart.
    wages = np.exp(4 * guide[:, 1])
    several = np.stack([guide[:, 0] / 2, guide[:, 0] / 2, guide[:, 1]], axis=1)
    for y, column in ((wages, wages), (several, several[:, 2])):
        fast, thorough = (fitted(X, y, 100, search=search).partition_.apply(X) for search in ("fast", "thorough"))
        assert left_out_error(column, thorough) < left_out_error(column, fast)


def test_releases_are_k_anonymous_and_meet_criteria(adults):
    X, guide = adults
    ill = np.random.default_rng(0).choice(["flu", "cold", "none"], len(X))
    criteria = [LDiversity(2, "ill")]
    anonymizer = ModelGuidedAnonymizer(
        10, search="thorough", quasi_identifiers=NAMES, criteria=criteria, representative="median"
    )
    released = anonymizer.fit_transform(X.assign(ill=ill), guide)
    assert smallest_group(released, NAMES) >= 10
    assert (released.groupby(NAMES, observed=True, dropna=False)["ill"].nunique() >= 2).all()


def test_groups_depend_neither_on_threads_nor_on_the_order_of_records(adults):
    X, guide = adults
    order = np.random.default_rng(1).permutation(len(X))
    first = fitted(X, guide, 50, search="thorough").partition_.to_dict()
    assert fitted(X, guide, 50, search="thorough", n_jobs=2).partition_.to_dict() == first
    shuffled = fitted(X.iloc[order].reset_index(drop=True), guide[order], 50, search="thorough")
    assert shuffled.partition_.to_dict()["nodes"] == first["nodes"]


def test_labels_have_one_scale(adults):
    X, guide = adults
    labels = (guide[:, 1] > 0.5).astype(int)
    assert (
        fitted(X, labels, 50, search="thorough").partition_.to_dict() == fitted(X, labels, 50).partition_.to_dict()
    )  # fmt: skip


def test_weights_count_in_the_choice(adults):
    X, guide = adults
    weight = np.random.default_rng(2).integers(1, 4, len(X)).astype(float)
    repeated = np.repeat(np.arange(len(X)), weight.astype(int))
    weighted = ModelGuidedAnonymizer(50, search="thorough").fit(X, guide, sample_weight=weight)
    assert weighted.group_sizes_.min() >= 50
    fast = ModelGuidedAnonymizer(50).fit(X, guide, sample_weight=weight)
    groups = [a.partition_.apply(X)[repeated] for a in (weighted, fast)]
    assert left_out_error(guide[repeated, 1], groups[0]) < left_out_error(guide[repeated, 1], groups[1])


def test_it_is_refused_out_of_core_and_for_other_words(tmp_path, adults):
    X, guide = adults
    X.assign(guide=guide[:, 1]).to_parquet(tmp_path / "table.parquet")
    with pytest.raises(ParameterError, match=r"search='thorough' with .*: expected 'fast', which needs counts only"):
        sfumato.parquet.fit_transform(
            ModelGuidedAnonymizer(10, search="thorough"), tmp_path / "table.parquet", tmp_path / "out.parquet",
            guide_column="guide",
        )  # fmt: skip
    with pytest.raises(ParameterError, match="search='long'"):
        fitted(X, guide, 10, search="long")
