# SPDX-License-Identifier: Apache-2.0
"""Parameters are checked in one place, and a wrong one is answered with the expected values."""

import numpy as np
import pytest

from sfumato.arguments import check_choice, check_integer, check_share, sorted_labels
from sfumato.errors import ParameterError


@pytest.mark.parametrize("value", [2, 7, np.int64(3)])
def test_integers_in_range_pass(value):
    check_integer("n", value, 2, 7)


@pytest.mark.parametrize("value", [1, 8, 2.0, True, "3", None])
def test_other_values_are_no_integers_in_range(value):
    with pytest.raises(ParameterError, match=r"^n=.*: expected an integer from 2 to 7\. Try 3\.$") as raised:
        check_integer("n", value, 2, 7, hint="Try 3.")
    assert raised.value.parameter == "n"


def test_without_an_upper_limit_the_lower_one_is_named():
    with pytest.raises(ParameterError, match=r"^n=0: expected an integer of at least 1\.$"):
        check_integer("n", 0, 1)


@pytest.mark.parametrize("value", [0, 1, 0.5, np.float32(0.25)])
def test_shares_pass(value):
    check_share("share", value)


@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan"), "half", True, None])
def test_other_values_are_no_shares(value):
    with pytest.raises(ParameterError, match=r"expected a share from 0 to 1\.$"):
        check_share("share", value)


@pytest.mark.parametrize("value", [0, 1, 1.0])
def test_the_ends_are_no_open_shares(value):
    with pytest.raises(ParameterError, match=r"expected a share between 0 and 1\.$"):
        check_share("share", value, is_open=True)


def test_choices_are_listed():
    check_choice("kind", np.str_("a"), {"a": 1, "b": 2})
    check_choice("flag", np.True_, (True, False))
    with pytest.raises(ParameterError, match=r"^kind='c': expected 'a' or 'b'\. Choose one\.$"):
        check_choice("kind", "c", {"a": 1, "b": 2}, hint="Choose one.")
    with pytest.raises(ParameterError, match=r"^shuffle='yes': expected True, False or None\.$"):
        check_choice("shuffle", "yes", (True, False, None))


@pytest.mark.parametrize(
    "labels",
    [
        np.array([1, 0, 1, 1]),
        np.array([True, False, True]),
        np.array([-128, 127, 3] * 100, np.int8),
        np.array([-(2**63), 2**63 - 1, 0]),
        np.array([2**64 - 1, 2**64 - 2, 2**64 - 1], np.uint64),
        np.array([3, 900, 3]),
        np.array([], np.int64),
        np.array(["b", "a", "b"]),
        np.array([0.5, -1.0, 0.5]),
    ],
)
def test_labels_are_sorted_as_by_numpy(labels):
    found = sorted_labels(labels)
    assert found.dtype == labels.dtype
    np.testing.assert_array_equal(found, np.unique(labels))
