# SPDX-License-Identifier: Apache-2.0
"""The experiments there are, by name: one line each, loaded when asked for."""

from __future__ import annotations

import importlib

from studies.runner import Experiment

NAMES = (
    "adult_utility",
    "classic_methods",
    "anatomy",
    "anatomy_libsvm",
    "anatomy_attacks",
    "minimizers",
    "generalization_attacks",
    "inference_attacks",
    "front_page",
    "feature_selection",
    "predictions_or_labels",
    "front_attacks",
    "high_dimensions",
    "raw_models",
    "beyond_regression",
    "beyond_representatives",
    "beyond_regions",
    "beyond_who_is_in",
    "beyond_shadow_releases",
    "beyond_members_of_models",
    "beyond_criteria",
    "beyond_private_training",
    "beyond_private_learners",
    "beyond_private_releases",
    "beyond_rows_or_columns",
    "beyond_questions",
    "beyond_anatomy",
    "beyond_sensitive_tables",
    "beyond_group_learning",
    "beyond_certificates",
)


def load_experiment(name: str) -> Experiment:
    """Return the `EXPERIMENT` of a module of ``studies``."""
    if name not in NAMES:
        raise KeyError(f"experiment {name!r}: expected one of {', '.join(NAMES)}. List it in studies/experiments.py.")
    experiment: Experiment = importlib.import_module(f"studies.{name}").EXPERIMENT
    return experiment
