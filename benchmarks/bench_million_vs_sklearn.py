# SPDX-License-Identifier: Apache-2.0
"""How much faster than scikit-learn's decision tree alone is sfumato on 1,000,000 census-like records, k=100?

Both get the same hard labels: the likelier class under the generator's true probabilities ("predicted classes"), or
the drawn labels. scikit-learn's tree (``min_samples_leaf=k``) is given the one-hot float32 matrix ready
made and only its ``fit`` is timed, once: it takes tens of seconds. Ours starts from the data frame; ``fit`` ends
with the representatives, ``fit_transform`` with the rewritten frame and the recount that checks k on it. The targets
are judged on predicted classes with occupations in 12 groups (some 90 one-hot columns). Ours uses all cores unless a
row says otherwise; scikit-learn's tree has one thread only.
"""

import numpy as np
import pandas as pd
from sklearn.tree import DecisionTreeClassifier

from benchmarks.harness import Context, at_least
from benchmarks.workloads import census_workload, one_hot_matrix
from sfumato import ModelGuidedAnonymizer

TITLE = "a million records, beside scikit-learn's tree"
K = 100
JUDGED_GUIDE = "predicted classes"


def run(context: Context) -> None:
    """Compare on each guide, then time ours alone with probabilities, one thread and all occupations."""
    n_records = context.size(1_000_000, 2_000)
    workload = census_workload(n_records, coarse_occupations=True)
    table = workload.table
    first = context.measure(lambda: anonymizer().fit_transform(table, workload.guides[JUDGED_GUIDE]), repeats=1)
    context.record_seconds("sfumato, first fit_transform of the process", first, note="compiles or loads kernels")
    for guide, classes in workload.guides.items():
        compare(context, table, classes, guide, is_judged=guide == JUDGED_GUIDE)
    time_ours(context, table, workload.probabilities, "probabilities")
    time_ours(context, table, workload.guides[JUDGED_GUIDE], f"{JUDGED_GUIDE}, one thread", n_jobs=1)

    workload = census_workload(n_records)
    all_occupations = f"{JUDGED_GUIDE}, 320 occupations"
    # Some 400 one-hot columns: scikit-learn's tree would take minutes, so ours stands alone here.
    anonymizer().fit(workload.table, workload.guides[JUDGED_GUIDE])  # wider codes: other kernels to warm
    time_ours(context, workload.table, workload.guides[JUDGED_GUIDE], all_occupations)


def compare(context: Context, table: pd.DataFrame, classes: np.ndarray, label: str, *, is_judged: bool) -> None:
    """Time both on one guide and record the ratios."""
    fit, release = time_ours(context, table, classes, label)
    matrix = one_hot_matrix(table)
    tree = DecisionTreeClassifier(min_samples_leaf=K, random_state=0)
    theirs = context.measure(lambda: tree.fit(matrix, classes), repeats=1)
    note = f"{matrix.shape[1]} one-hot columns, encoding not counted; {tree.get_n_leaves():,} leaves"
    context.record_seconds(f"scikit-learn's tree ({label})", theirs, note=note)
    for name, seconds, target in (("fit", fit, at_least(20)), ("fit_transform", release, at_least(8))):
        ratio = theirs.best / seconds
        context.record(f"{name} is faster by ({label})", ratio, "x", target=target if is_judged else None)


def time_ours(
    context: Context, table: pd.DataFrame, guide: np.ndarray, label: str, *, n_jobs: int = -1
) -> tuple[float, float]:
    """Record and return the seconds of fit and of fit_transform."""
    fit, release = context.measure_alternating(
        [lambda: anonymizer(n_jobs).fit(table, guide), lambda: anonymizer(n_jobs).fit_transform(table, guide)]
    )
    sizes = anonymizer(n_jobs).fit(table, guide).group_sizes_
    groups = f"{len(sizes):,} groups, the smallest of {min(sizes)}"
    context.record_seconds(f"sfumato fit ({label})", fit, note=groups)
    context.record_seconds(f"sfumato fit_transform with recount ({label})", release)
    return fit.best, release.best


def anonymizer(n_jobs: int = -1) -> ModelGuidedAnonymizer:
    """Return a fresh anonymizer: all defaults but k, on all cores unless asked otherwise."""
    return ModelGuidedAnonymizer(k=K, n_jobs=n_jobs)
