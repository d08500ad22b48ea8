# SPDX-License-Identifier: Apache-2.0
"""The index of a pandas frame may identify people: no release has it unless asked for, and a warning says so."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from sfumato import (
    AnonymizedClassifier,
    FullDomainAnonymizer,
    HilbertAnonymizer,
    MondrianAnonymizer,
    PrivacyWarning,
)
from sfumato.errors import ParameterError

NAMES = [f"name {row}" for row in range(40)]
FRAME = pd.DataFrame({"age": np.arange(40) % 8})
TELLING = [
    pd.Index(NAMES),
    pd.date_range("2020-01-01", periods=40),
    pd.MultiIndex.from_arrays([np.arange(40), NAMES]),
    pd.Index(np.arange(40) * 7_919 + 123_450_000),  # social security numbers
    pd.Index(np.arange(40), name="customer"),
]
HARMLESS = [
    pd.RangeIndex(40),
    pd.Index(np.arange(40)[::-1]),
    pd.Index(["a", "b"] * 20),
    pd.MultiIndex.from_arrays([np.arange(40), ["a", "b"] * 20]),
]


@pytest.mark.parametrize("Anonymizer", [MondrianAnonymizer, FullDomainAnonymizer])
@pytest.mark.parametrize("index", TELLING, ids=["text", "dates", "levels", "long numbers", "named numbers"])
def test_an_index_that_may_point_at_persons_is_warned_of(Anonymizer, index):
    frame = FRAME.set_axis(index)
    with pytest.warns(PrivacyWarning, match="reset_index"):
        Anonymizer(k=5).fit_transform(frame)
    anonymizer = Anonymizer(k=5).fit(frame)
    with pytest.warns(PrivacyWarning, match="reset_index"):
        kept = anonymizer.release(frame, shuffle=False, keep_index=True).table
    assert kept.index.equals(frame.index)


@pytest.mark.parametrize("Anonymizer", [MondrianAnonymizer, FullDomainAnonymizer, HilbertAnonymizer])
@pytest.mark.parametrize("index", [*TELLING, *HARMLESS], ids=str)
def test_a_release_has_row_numbers_for_its_index(Anonymizer, index):
    frame = FRAME.set_axis(index)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        released = Anonymizer(k=5).fit(frame).release(frame, shuffle=False).table
    assert released.index.equals(pd.RangeIndex(40))


def test_an_index_and_a_shuffle_are_not_released_together():
    anonymizer = MondrianAnonymizer(k=5).fit(FRAME)
    with pytest.raises(ParameterError, match="shuffle=True with keep_index=True"):
        anonymizer.release(FRAME, shuffle=True, keep_index=True)


@pytest.mark.parametrize("index", HARMLESS, ids=["range", "numbers", "few", "levels"])
def test_an_index_of_numbers_or_few_labels_is_not(index):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        MondrianAnonymizer(k=5).fit_transform(FRAME.set_axis(index))


def test_no_warning_where_nothing_leaves():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = AnonymizedClassifier(DecisionTreeClassifier(), k=5, floor=1)
        assert model.fit(FRAME.set_axis(TELLING[0]), np.arange(40) % 2).score(FRAME, np.arange(40) % 2) >= 0.5
