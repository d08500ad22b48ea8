# SPDX-License-Identifier: Apache-2.0
"""What does a release with epsilon cost beside a plain one, on 1,000,000 census-like records?

A partition is fitted once on 20,000 other people. Then both release the same table: the plain one shuffled, the private
one by noisy counts of its cells and labels. Both take turns.
"""

import functools
import warnings
from typing import Any

import numpy as np

from benchmarks.harness import Context, at_most
from benchmarks.workloads import census_workload
from sfumato import ModelGuidedAnonymizer, PrivacyLedger

TITLE = "releases with epsilon"
K = 10


def run(context: Context) -> None:
    """Measure both."""
    n_others, n_records = context.size(20_000, 1_000), context.size(1_000_000, 2_000)
    workload = census_workload(n_others + n_records)
    others, table = workload.table.iloc[:n_others], workload.table.iloc[n_others:].reset_index(drop=True)
    labels = (workload.probabilities[n_others:, -1] > 0.5).astype(int)
    anonymizer = ModelGuidedAnonymizer(k=K, n_jobs=-1).fit(others, workload.probabilities[:n_others])
    plain, private = context.measure_alternating([
        functools.partial(_plain, anonymizer, table),
        functools.partial(_private, anonymizer, table, labels),
    ])  # fmt: skip
    context.record_seconds("plain release", plain)
    context.record_seconds("release of counts, epsilon 1", private)
    context.record("release of counts over plain release", private.best / plain.best, "x", target=at_most(2.0))


def _plain(anonymizer: Any, table: Any) -> object:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return anonymizer.release(table, shuffle=True)


def _private(anonymizer: Any, table: Any, labels: np.ndarray) -> object:
    return anonymizer.release(
        table, labels, mechanism="counts", epsilon=1.0, labels=[0, 1], fitted_on="others", ledger=PrivacyLedger()
    )
