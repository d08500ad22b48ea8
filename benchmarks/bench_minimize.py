# SPDX-License-Identifier: Apache-2.0
"""What does the whole sweep of the privacy-aware tree cost beside one fit of scikit-learn's decision tree?

ACSEmployment of Massachusetts, 277,677 records x 16 attributes, 14 of them personal. The sweep is the paper's: 9 leaf
limits x 12 alphas; ours starts from the data frame and ends with 108 generalizations. scikit-learn's tree (at most 200
leaves) is given the one-hot float32 matrix ready made and only its ``fit`` is timed, in turns with ours. Apt (one
target, gradient boosting as its model) is timed once beside one run of the privacy-aware tree. The data is read from
``SFUMATO_DATA``; where it is not, nothing is measured. A quick run takes census-like records instead.
"""

import pandas as pd
from sklearn.tree import DecisionTreeClassifier

from benchmarks.harness import Context, at_most, below
from benchmarks.workloads import census_workload, one_hot_matrix
from sfumato import AptMinimizer, PrivacyAwareTree
from sfumato.generalization import generalization_from_bins

TITLE = "minimizing: a whole sweep beside one decision tree"
NUMBERS = ("AGEP", "SCHL")


def run(context: Context) -> None:
    """Time the sweep and scikit-learn's tree in turns, then one run of each method."""
    table, classes = workload(context)
    if table is None:
        context.record("the sweep costs", None, "x", target=below(2), note="SFUMATO_DATA does not name the data")
        return
    minimizer = PrivacyAwareTree(n_jobs=-1)
    matrix = one_hot_matrix(table)
    tree = DecisionTreeClassifier(max_leaf_nodes=200, random_state=0)
    n_settings = len(sweep(minimizer, table, classes))  # also warms the kernels
    ours, theirs = context.measure_alternating(
        [lambda: sweep(minimizer, table, classes), lambda: tree.fit(matrix, classes)]
    )
    context.record_seconds(f"sweep of {n_settings} settings", ours, note=f"{len(table):,} records, from the data frame")
    context.record_seconds("scikit-learn's tree, one fit", theirs, note=f"{matrix.shape[1]} one-hot columns")
    context.record("the sweep costs, in fits of scikit-learn's tree", ours.best / theirs.best, "x", target=below(2))
    single = context.measure(lambda: PrivacyAwareTree(max_leaves=200, n_jobs=-1).fit(table, classes))
    context.record_seconds("privacy-aware tree, one fit with 200 leaves", single)
    apt = context.measure(lambda: AptMinimizer(random_state=0, n_jobs=-1).fit(table, classes), repeats=1)
    context.record_seconds("Apt, one fit", apt)
    context.record("Apt costs, in fits of the privacy-aware tree", apt.best / single.best, "x", target=at_most(100))


def sweep(minimizer: PrivacyAwareTree, table: pd.DataFrame, classes: object) -> list[object]:
    """Read, grow and make all generalizations of the paper's grid."""
    sample = minimizer._read(table, classes, None)
    grid = minimizer.default_grid(sample, (0.0, 1.0))
    settings = [{"alpha": alpha, "max_leaves": n} for alpha in grid["alpha"] for n in grid["max_leaves"]]
    made = minimizer._buckets_of_settings(sample, settings)
    return [generalization_from_bins(sample.columns, buckets, floor=1) for buckets in made]


def workload(context: Context) -> tuple[pd.DataFrame | None, object]:
    """Return the records, with categories as such, and their classes."""
    if context.is_quick:
        census = census_workload(2_000)
        return census.table, census.guides["true labels"]
    from studies.datasets import load_acs_employment

    from sfumato.errors import SfumatoError

    try:
        employment = load_acs_employment(as_frame="pandas")
    except SfumatoError:
        return None, None
    table = employment.data.drop(columns=["year"], errors="ignore")
    for name in table.columns.difference(NUMBERS):
        table[name] = table[name].astype("category")
    return table, employment.target.to_numpy()
