# SPDX-License-Identifier: Apache-2.0
"""The index of a pandas frame leaves with a release: where it may point at persons, a warning says so."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from sfumato import AnonymizedClassifier, FullDomainAnonymizer, MondrianAnonymizer, PrivacyWarning

NAMES = [f"name {row}" for row in range(40)]
FRAME = pd.DataFrame({"age": np.arange(40) % 8})
TELLING = [
    pd.Index(NAMES),
    pd.date_range("2020-01-01", periods=40),
    pd.MultiIndex.from_arrays([np.arange(40), NAMES]),
]
HARMLESS = [
    pd.RangeIndex(40),
    pd.Index(np.arange(40)[::-1]),
    pd.Index(["a", "b"] * 20),
    pd.MultiIndex.from_arrays([np.arange(40), ["a", "b"] * 20]),
]


@pytest.mark.parametrize("Anonymizer", [MondrianAnonymizer, FullDomainAnonymizer])
@pytest.mark.parametrize("index", TELLING, ids=["text", "dates", "levels"])
def test_an_index_that_may_point_at_persons_is_warned_of(Anonymizer, index):
    frame = FRAME.set_axis(index)
    with pytest.warns(PrivacyWarning, match="reset_index"):
        Anonymizer(k=5).fit_transform(frame)
    anonymizer = Anonymizer(k=5).fit(frame)
    with pytest.warns(PrivacyWarning, match="reset_index"):
        anonymizer.release(frame)


@pytest.mark.parametrize("index", HARMLESS, ids=["range", "numbers", "few", "levels"])
def test_an_index_of_numbers_or_few_labels_is_not(index):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MondrianAnonymizer(k=5).fit_transform(FRAME.set_axis(index))


def test_no_warning_where_nothing_leaves():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = AnonymizedClassifier(DecisionTreeClassifier(), k=5)
        assert model.fit(FRAME.set_axis(TELLING[0]), np.arange(40) % 2).score(FRAME, np.arange(40) % 2) >= 0.5
