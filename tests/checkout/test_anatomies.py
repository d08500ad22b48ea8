# SPDX-License-Identifier: Apache-2.0
"""The page of the anatomy study says what its cells hold."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from sklearn.svm import SVC

sys.path.insert(0, str(Path(__file__).parents[2]))  # studies/ is a folder of the repository, not installed

from studies import anatomy_page
from studies.anatomy import MODELS, N_FOLDS, TABLES, Cell, hierarchies
from studies.anatomy_evidence import evidence
from studies.hinge_machine import HingeMachine
from studies.merged_machine import MergedMachine


def cells(shift=1.0, n_folds=N_FOLDS):
    """Errors that rise by the shift with every step of l, under all models and tables."""
    random = np.random.default_rng(0)
    made = []
    for table in TABLES:
        for model in MODELS:
            for partner, length in (("original", 0), ("identifying", 0), *(("pruned", n) for n in (2, 3, 4, 5))):
                for fold in range(n_folds):
                    error = 20 + shift * length + random.normal(0, 0.1)
                    made.append(Cell(table, model, partner, length, fold, error, 900, 0, 0.5, 1.0))
    return made


def test_equal_records_may_be_one_with_a_weight():
    random = np.random.default_rng(3)
    X = random.integers(0, 3, (400, 3)).astype(float)
    y = np.where(X.sum(axis=1) + random.normal(0, 1, 400) > 3, "yes", "no")
    weight = random.integers(1, 4, 400).astype(float)
    merged, whole = (machine(gamma=0.3, tol=1e-6).fit(X, y, weight) for machine in (MergedMachine, SVC))
    assert merged.shape_fit_[0] <= 2 * 27 < whole.shape_fit_[0]
    np.testing.assert_allclose(merged.decision_function(X), whole.decision_function(X), atol=1e-3)


def test_the_corrected_test_is_the_plain_one_with_a_larger_variance():
    random = np.random.default_rng(1)
    first, second = random.normal(1, 1, 10), random.normal(0, 1, 10)
    plain, corrected = anatomy_page.paired_tests(first, second)
    assert plain == pytest.approx(stats.ttest_rel(first, second).pvalue)
    t = stats.ttest_rel(first, second).statistic * np.sqrt((1 / 10) / (1 / 10 + 1 / 9))
    assert corrected == pytest.approx(2 * stats.t.sf(abs(t), 9))
    assert corrected > plain


def test_evidence_turns_with_the_numbers():
    rising, falling = (evidence(cells(shift)) for shift in (1.0, -1.0))
    [one] = rising["adult-rbf-error-rises"].differences
    assert one.estimate == pytest.approx(3.0, abs=0.2)  # from l = 2 to 5
    [other] = falling["adult-rbf-error-rises"].differences
    assert other.interval()[1] < 0
    assert [one.where for one in rising["adult-rbf-original-better"].differences] == [f"l = {n}" for n in (2, 3, 4, 5)]
    assert "adult-pruned-beats-anonymized" not in rising  # nothing was anonymized here


@pytest.mark.skipif(not os.environ.get("SFUMATO_DATA"), reason="SFUMATO_DATA is not set: no hierarchies of Adult")
def test_adults_records_can_be_generalized_for_the_anonymized_machine():
    assert {"age", "workclass", "hours-per-week"} <= hierarchies().keys()


def test_a_machine_too_far_from_libsvms_is_said():
    libsvm = {table: {"ours": {"error": 5.0, "seconds": 1}, "libsvm": {"error": 5.6, "seconds": 1}} for table in TABLES}
    assert "-0.60 | no |" in anatomy_page.page(anatomy_page.Errors(cells()), libsvm, [])


def test_what_a_run_left_unfinished_is_not_compared():
    unfinished = cells(n_folds=N_FOLDS - 1)
    assert "not finished" in anatomy_page.page(anatomy_page.Errors(unfinished), {}, [])
    assert evidence(unfinished) == {}


def overlapping(n, seed=0):
    """Two classes that no plane separates, with coordinates of different scales."""
    random = np.random.default_rng(seed)
    y = random.choice(["a", "b"], n)
    X = random.normal(size=(n, 4)) * [1, 3, 1, 0.5] + np.where(y == "a", 0.7, 0)[:, None]
    return X, y


@pytest.mark.parametrize("C", [0.1, 1.0, 10.0])
def test_the_hinge_machine_is_libsvms(C):
    X, y = overlapping(600)
    ours, theirs = HingeMachine(C).fit(X, y), SVC(kernel="linear", C=C, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-3)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-3)
    assert ours.gap_ <= ours.tol
    assert (ours.predict(X) == theirs.predict(X)).mean() > 0.995


def test_a_weight_of_the_hinge_machine_counts_as_so_many_records():
    X, y = overlapping(200)
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = HingeMachine().fit(X, y, sample_weight=weight)
    repeated = HingeMachine().fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-3)


def test_the_hinge_machine_takes_one_class_and_columns_without_values():
    X, _ = overlapping(20)
    assert HingeMachine().fit(X, ["a"] * 20).predict(X).tolist() == ["a"] * 20
    X, y = overlapping(100)
    X[:, 1] = 0
    assert HingeMachine().fit(X, y).coef_[0, 1] == pytest.approx(0, abs=1e-6)
