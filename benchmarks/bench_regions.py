# SPDX-License-Identifier: Apache-2.0
"""What do regions add to an anonymization, on 1,000,000 census-like records?

Both start from the same table, guide and target. First `fit_transform` alone, then everything that learning from
regions adds to it: counting, weights, drawing a record for each person, and writing the drawn table. The model's own
training is not in it. Both use all cores and take turns.
"""

import functools
from typing import Any

import numpy as np

from benchmarks.harness import Context, at_most
from benchmarks.workloads import census_workload
from sfumato import ModelGuidedAnonymizer
from sfumato.regions import code_target

TITLE = "learning from regions"
SIZES = (10, 100)
MOST_FLOOR = 20


def run(context: Context) -> None:
    """Measure both for small and large groups."""
    workload = census_workload(context.size(1_000_000, 2_000))
    table, guide = workload.table, workload.probabilities
    likely = np.asarray(guide).reshape(len(guide), -1)[:, -1]
    target = (np.random.default_rng(0).random(len(likely)) < likely).astype(int)
    for k in SIZES:
        anonymizer = ModelGuidedAnonymizer(k=k, n_jobs=-1)
        fitted, _ = anonymizer._fit_recounted(table, guide, None, None)
        plain, added = context.measure_alternating([
            functools.partial(ModelGuidedAnonymizer(k=k, n_jobs=-1).fit_transform, table, guide),
            functools.partial(draw_all, anonymizer, fitted, target),
        ])  # fmt: skip
        context.record_seconds(f"fit_transform, k={k}", plain)
        context.record_seconds(f"regions and drawn records, k={k}", added)
        context.record(f"regions beside fit_transform, k={k}", added.best / plain.best, "x", target=at_most(0.5))


def draw_all(anonymizer: Any, fitted: Any, target: Any) -> object:
    """Describe the groups, and draw a record for each person."""
    floor, n_threads = min(anonymizer.k, MOST_FLOOR), anonymizer._n_threads()
    regions = anonymizer._describe_regions(fitted, code_target(target, is_number=False), target, floor)
    drawn = regions.draw(np.random.default_rng(0), n_threads=n_threads)
    return fitted.table.replaced(drawn.columns)
