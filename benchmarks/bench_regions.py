# SPDX-License-Identifier: Apache-2.0
"""What do regions and phantoms add to an anonymization, on 1,000,000 census-like records?

Both start from the same table, guide and target. First `fit_transform`, then what `AnonymizedClassifier` does between
its two models: the same groups and representatives, values for the floor, counting, weights, drawing a record for each
person, and writing the drawn table; the anonymized table is not written, since nobody sees it. Both use all cores and
take turns; what is added is their difference.

Phantoms, which are the default, are compared with medians in the same way: `fit_transform` with both, in turns.
"""

import functools
from typing import Any

import numpy as np

from benchmarks.harness import Context, at_most
from benchmarks.workloads import census_workload
from sfumato import ModelGuidedAnonymizer
from sfumato.anonymize.region_training import chosen_floor
from sfumato.regions import code_target

TITLE = "learning from regions"
SIZES = (10, 100)
CHEAP = "median"


def run(context: Context) -> None:
    """Measure both for small and large groups."""
    workload = census_workload(context.size(1_000_000, 2_000))
    table, guide = workload.table, workload.probabilities
    likely = np.asarray(guide).reshape(len(guide), -1)[:, -1]
    target = (np.random.default_rng(0).random(len(likely)) < likely).astype(int)
    for k in SIZES:
        cheap, plain, both = context.measure_alternating([
            functools.partial(anonymizer(k, CHEAP).fit_transform, table, guide),
            functools.partial(anonymizer(k).fit_transform, table, guide),
            functools.partial(draw_all, k, table, guide, target),
        ])  # fmt: skip
        context.record_seconds(f"fit_transform, {CHEAP}, k={k}", cheap)
        context.record_seconds(f"fit_transform, k={k}", plain)
        context.record_seconds(f"fit_transform, regions and drawn records, k={k}", both)
        added = both.best / plain.best - 1
        context.record(f"regions beside fit_transform, k={k}", added, "x", target=at_most(0.5))
        added = plain.best / cheap.best - 1
        context.record(f"phantoms beside medians, k={k}", added, "x", target=at_most(1.0))


def anonymizer(k: int, representative: str = "phantom") -> ModelGuidedAnonymizer:
    """Make an anonymizer that uses all cores."""
    return ModelGuidedAnonymizer(k=k, representative=representative, n_jobs=-1)


def draw_all(k: int, table: Any, guide: Any, target: Any) -> object:
    """Form the groups, describe them, and draw a record for each person."""
    floor, own = chosen_floor(None, k), anonymizer(k)
    fitted = own._fit_for_regions(table, guide, None, floor)
    regions = own._describe_regions(fitted, code_target(target, is_number=False), target, floor)
    drawn = regions.draw(np.random.default_rng(0), n_threads=own._n_threads())
    return fitted.table.replaced(drawn.columns, n_threads=own._n_threads())
