# SPDX-License-Identifier: Apache-2.0
"""Tests share the cores among processes, so nothing in one of them takes all cores for itself.

Gradient boosting starts a thread for each core, and threads that wait for each other on a busy machine keep it busy:
one fit of 1,600 records took ten times as much processor time.
"""

import os
from importlib.metadata import version

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when the library is loaded


def pytest_collection_modifyitems(items):
    """Leave out a check that scikit-learn 1.6 asks of estimators that say they take no sparse matrices, too."""
    if version("scikit-learn").startswith("1.6."):
        items[:] = [item for item in items if "check_sample_weight_equivalence_on_sparse_data" not in item.name]
