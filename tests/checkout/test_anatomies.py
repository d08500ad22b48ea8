# SPDX-License-Identifier: Apache-2.0
"""The page of the anatomy study says what its cells hold."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[2]))  # studies/ is a folder of the repository, not installed

from studies import anatomy_page
from studies.anatomy import MODELS, N_FOLDS, TABLES, Cell, hierarchies
from studies.anatomy_evidence import evidence


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


def test_adults_records_can_be_generalized_for_the_anonymized_machine():
    assert {"age", "workclass", "hours-per-week"} <= hierarchies().keys()


def test_nystroem_too_far_from_libsvm_is_said():
    libsvm = {table: {"nystroem": {"error": 5.0}, "libsvm": {"error": 5.6}} for table in TABLES}
    assert "-0.60 | no |" in anatomy_page.page(anatomy_page.Errors(cells()), libsvm, [])


def test_what_a_run_left_unfinished_is_not_compared():
    unfinished = cells(n_folds=N_FOLDS - 1)
    assert "not finished" in anatomy_page.page(anatomy_page.Errors(unfinished), {}, [])
    assert evidence(unfinished) == {}
