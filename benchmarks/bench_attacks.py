# SPDX-License-Identifier: Apache-2.0
"""What does it cost to attack a generalization with the whole family of adversaries, tuned, on 277,677 records?

ACSEmployment of Massachusetts, 16 attributes, 14 of them personal, split 60/10/30. Reconstruction from buckets (A1)
with every adversary, against the privacy-aware tree with 20 leaves and against five random buckets per attribute; and
with the counted table alone, as sweeps use it. Without the data the line says so, and is not judged.
"""

from typing import Any

import numpy as np
from studies.datasets import load_acs_employment

from benchmarks.harness import Context, at_most
from sfumato.attack import FamilySettings, Samples, reconstruct
from sfumato.errors import InputError
from sfumato.minimize import PrivacyAwareTree, UniformMinimizer

TITLE = "attacking a generalization with the whole family"
NOT_PERSONAL = ("AGEP", "SCHL")
SEED = 20210


def run(context: Context) -> None:
    """Time A1 against two generalizations, with all adversaries and with the table alone."""
    try:
        bunch = load_acs_employment(as_frame="pandas")
    except InputError:
        context.record("A1", None, "s", note="the ACSEmployment data is not installed")
        return
    n_records = context.size(len(bunch.data), 3_000)
    rows = np.random.default_rng(SEED).permutation(len(bunch.data))[:n_records]
    train, validation, test = np.split(rows, [int(0.6 * n_records), int(0.7 * n_records)])
    categories = [name for name in bunch.data.columns if name != "AGEP"]
    personal = [name for name in bunch.data.columns if name not in NOT_PERSONAL]
    parts = [bunch.data.iloc[part] for part in (train, validation, test)]
    samples = Samples(*parts, categorical_features=categories)
    options: dict[str, Any] = {
        "personal": personal,
        "categorical_features": categories,
        "random_state": SEED,
        "n_jobs": -1,
    }
    minimizers = {
        "PAT, 20 leaves, alpha 0.7": (PrivacyAwareTree(max_leaves=20, alpha=0.7, **options), 60),
        "Uniform, 5 buckets": (UniformMinimizer(5, **options), 180),
    }
    for name, (minimizer, limit) in minimizers.items():
        generalization = minimizer.fit(parts[0], np.asarray(bunch.target)[train]).generalization_
        for label, settings, target in (
            ("the table alone", FamilySettings(adversaries=("table",), n_jobs=-1), None),
            ("the whole family", FamilySettings(n_jobs=-1), at_most(limit)),
        ):
            found = []
            timing = context.measure(
                lambda: found.append(reconstruct(generalization, samples, personal, settings=settings)),  # noqa: B023
                repeats=1,
            )
            note = f"rate {found[-1].rate:.4f}, baseline {found[-1].baseline:.4f}; {', '.join(settings.members)}"
            context.record(f"{name}: A1, {label}", timing.best, "s", target=target, note=note)
