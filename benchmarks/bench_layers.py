# SPDX-License-Identifier: Apache-2.0
"""Where does the time of ``fit_transform`` go, on Adult (k=10) and on a million census-like records (k=100)?

A stopwatch is put around each layer of a real call, so the layers and the rest add up to the whole. The rows are
those of the fastest of five runs, guided by probabilities, with the default number of threads.
"""

import contextlib
import gc
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd

import sfumato.anonymize.anonymizer as fitting
import sfumato.anonymize.partitioners as growing
from benchmarks.harness import Context
from benchmarks.workloads import adult_workload, census_workload
from sfumato import ModelGuidedAnonymizer
from sfumato.anonymize.fitted_partition import Partition
from sfumato.backends.memory import MemorySource
from sfumato.partition.grower import Grower

TITLE = "where the time goes"

# The calls that make up each layer. Patching a name that has moved raises, so this table cannot go stale unseen.
LAYERS: dict[str, tuple[tuple[Any, str], ...]] = {
    "guide": ((ModelGuidedAnonymizer, "_make_guide"),),
    "encode": ((MemorySource, "__init__"), (MemorySource, "records")),
    "grow": ((Grower, "grow_in_order"),),
    "represent": (
        (growing, "lined_up"),
        (fitting, "describe_groups"),
        (growing, "partition_from_tree"),
    ),
    "rebuild": ((Partition, "rewrite"),),
    "recount": ((fitting, "verify"),),
}


def run(context: Context) -> None:
    """Take apart one call on each table."""
    adult = adult_workload(n_records=1000 if context.is_quick else None)
    take_apart(context, "Adult", adult.table, adult.probabilities, k=10)
    n_records = context.size(1_000_000, 2_000)
    census = census_workload(n_records)
    take_apart(context, f"{n_records:,} records", census.table, census.probabilities, k=100)


def take_apart(context: Context, label: str, table: pd.DataFrame, guide: np.ndarray, *, k: int) -> None:
    """Record the whole and its layers, each with its share."""
    ModelGuidedAnonymizer(k=k, n_jobs=-1).fit_transform(table, guide)  # warms the kernels
    runs = []
    for _ in range(context.repeats):
        gc.collect()
        spent: dict[str, float] = dict.fromkeys(LAYERS, 0.0)
        with stopwatches(spent):
            start = time.perf_counter()
            released = ModelGuidedAnonymizer(k=k, n_jobs=-1).fit_transform(table, guide)
            whole = time.perf_counter() - start
        del released
        runs.append((whole, spent))
    whole, spent = min(runs, key=lambda run: run[0])
    context.record(f"{label}: fit_transform", whole, "s", note=f"fastest of {len(runs)}")
    for layer, seconds in {**spent, "the rest": whole - sum(spent.values())}.items():
        context.record(f"{label}: {layer}", seconds, "s", note=f"{seconds / whole:.0%}")


@contextlib.contextmanager
def stopwatches(spent: dict[str, float]) -> Iterator[None]:
    """Add the seconds of each layer's calls to ``spent`` while the block runs."""
    with contextlib.ExitStack() as stack:
        for layer, calls in LAYERS.items():
            for owner, name in calls:
                watched = _watched(getattr(owner, name), layer, spent)
                stack.enter_context(mock.patch.object(owner, name, watched))
        yield


def _watched(function: Callable[..., Any], layer: str, spent: dict[str, float]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        start = time.perf_counter()
        try:
            return function(*arguments, **named)
        finally:
            spent[layer] += time.perf_counter() - start

    return call
