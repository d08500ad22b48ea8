# SPDX-License-Identifier: Apache-2.0
"""What do criteria on a sensitive column cost Mondrian beside k alone, on 1,000,000 census-like records, k=10?

The sensitive column has twenty values, some rare, that go with age, so that good splits are often not diverse and the
grower has to look further. All are timed in turns, the recount of the result included.
"""

import functools

import numpy as np
import pandas as pd

from benchmarks.harness import Context, at_most
from benchmarks.workloads import SEED, census_workload
from sfumato import LDiversity, MondrianAnonymizer, TCloseness
from sfumato.criteria import Criterion

TITLE = "criteria on a sensitive column beside k alone"
K = 10
CRITERIA: dict[str, Criterion] = {
    "3 distinct values": LDiversity(3, "diagnosis"),
    "entropy of 3 values": LDiversity(3, "diagnosis", kind="entropy"),
    "t-closeness, 0.4": TCloseness(0.4, "diagnosis"),
}


def run(context: Context) -> None:
    """Measure fit_transform with k alone and with each criterion."""
    table = census_workload(context.size(1_000_000, 2_000)).table
    quasi_identifiers = list(table.columns)
    table = table.assign(diagnosis=diagnoses(table["age"].to_numpy()))
    criteria: dict[str, Criterion | None] = {"k alone": None, **CRITERIA}
    methods = [functools.partial(release, table, quasi_identifiers, own) for own in criteria.values()]
    for method in methods:
        method()  # warms the kernels
    plain, *others = context.measure_alternating(methods)
    context.record_seconds("k alone", plain)
    for name, timing in zip(CRITERIA, others, strict=True):
        context.record_seconds(name, timing)
        context.record(f"{name}, beside k alone", timing.best / plain.best, "x", target=at_most(3))


def release(table: pd.DataFrame, quasi_identifiers: list[str], criterion: Criterion | None) -> object:
    """Anonymize the table with a fresh anonymizer."""
    criteria = None if criterion is None else [criterion]
    return MondrianAnonymizer(K, quasi_identifiers=quasi_identifiers, criteria=criteria, n_jobs=-1).fit_transform(table)


def diagnoses(age: np.ndarray) -> pd.Series:
    """Make up a diagnosis per record: the older, the later in the list."""
    generator = np.random.default_rng(SEED)
    drawn = generator.geometric(0.25, len(age)) + (age // 12)
    return pd.Series(np.minimum(drawn, 20)).map("d{:02d}".format).astype("category")
