# SPDX-License-Identifier: Apache-2.0
"""The page of the anatomy study says what its cells hold."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

sys.path.insert(0, str(Path(__file__).parents[2]))  # studies/ is a folder of the repository, not installed

from studies import anatomy_page
from studies.anatomy import MODELS, N_FOLDS, TABLES, Cell


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


def test_claims_turn_with_the_numbers():
    libsvm = {table: {"nystroem": {"error": 5.0}, "libsvm": {"error": 5.6}} for table in TABLES}
    rising, falling = (anatomy_page.page(anatomy_page.Errors(cells(shift)), libsvm, []) for shift in (1.0, -1.0))
    [rises] = [line for line in rising.splitlines() if "C.2" in line and "the error rises with l" in line]
    [falls] = [line for line in falling.splitlines() if "C.2" in line and "the error rises with l" in line]
    assert "| yes |" in rises
    assert "| no |" in falls
    assert "-0.60 | no |" in rising  # Nystroem too far from LibSVM is said


def test_what_a_run_left_unfinished_is_not_compared():
    page = anatomy_page.page(anatomy_page.Errors(cells(n_folds=N_FOLDS - 1)), {}, [])
    assert "not finished" in page
    assert "in 0 of 0 claims" in page
