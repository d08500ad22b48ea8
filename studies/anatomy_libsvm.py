# SPDX-License-Identifier: Apache-2.0
"""How far our linear machine is from LibSVM's: both on the same records of each table.

A check of ``hinge_machine``, shown on the page of ``anatomy``. Both minimize the same sum, so that their errors may
differ only by how far each stops from its minimum.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from studies.anatomy import TABLES, load, sample
from studies.clock import processor_seconds
from studies.runner import Experiment

BY = ("table", "machine")
MACHINES = ("ours", "libsvm")
N_TRAIN = 5_000


def run(keys: Sequence[Mapping[str, Any]], paper_scale: bool) -> Iterator[dict[str, Any]]:
    """Train both machines on records of one table and test them on as many others."""
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    from studies.anatomy_partners import train_partners
    from studies.hinge_machine import HingeMachine

    warnings.filterwarnings("ignore")  # machines that stop at their most iterations
    X, y, sensitive = load(keys[0]["table"])
    X, y = sample(X, y, 2 * N_TRAIN)
    X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=N_TRAIN, stratify=y, random_state=0)
    for key in keys:
        start = processor_seconds()
        machine = make_pipeline(StandardScaler(), HingeMachine() if key["machine"] == "ours" else SVC(kernel="linear"))
        partners = train_partners(machine, X_train, y_train, l=2, sensitive=sensitive, partners=["original"])
        error = 100 * partners.errors(X_test, y_test)["original"]
        yield {"error": round(error, 3), "seconds": round(processor_seconds() - start, 2)}


EXPERIMENT = Experiment(
    name="anatomy_libsvm",
    by=BY,
    keys=tuple({"table": table, "machine": machine} for table in TABLES for machine in MACHINES),
    run=run,
    together=("table",),
    titles={**TABLES, "ours": "interior-point method", "libsvm": "LibSVM"},
)
