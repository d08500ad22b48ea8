# SPDX-License-Identifier: Apache-2.0
"""Minimize: learn which attributes to collect, and how finely.

From a small full-resolution sample a minimizer learns a generalization: for every attribute, which values may share a
bucket. Clients apply it themselves, so that full-resolution data is never collected.

Minimizers load on first use: the training of the neural ones runs where there is nothing but numpy and torch. A
minimizer is one module and one line in the table below.
"""

from typing import TYPE_CHECKING

from sfumato.registry import lazy_names

if TYPE_CHECKING:
    from sfumato.minimize.apt_minimizer import AptMinimizer as AptMinimizer
    from sfumato.minimize.attribute_steps import AttributeCosts as AttributeCosts
    from sfumato.minimize.attribute_steps import attribute_costs as attribute_costs
    from sfumato.minimize.feature_selection import FeatureSelectionMinimizer as FeatureSelectionMinimizer
    from sfumato.minimize.iterative import IterativeMinimizer as IterativeMinimizer
    from sfumato.minimize.neural import AdversarialMinimizer as AdversarialMinimizer
    from sfumato.minimize.neural import MutualInformationMinimizer as MutualInformationMinimizer
    from sfumato.minimize.privacy_aware_tree import PrivacyAwareTree as PrivacyAwareTree
    from sfumato.minimize.sweep import coarsest_generalization as coarsest_generalization
    from sfumato.minimize.sweep import sweep_minimizers as sweep_minimizers
    from sfumato.minimize.sweep_result import MinimizerSweep as MinimizerSweep
    from sfumato.minimize.uniform import UniformMinimizer as UniformMinimizer

_HOME_OF = {
    "AdversarialMinimizer": "neural",
    "AptMinimizer": "apt_minimizer",
    "AttributeCosts": "attribute_steps",
    "FeatureSelectionMinimizer": "feature_selection",
    "IterativeMinimizer": "iterative",
    "MinimizerSweep": "sweep_result",
    "MutualInformationMinimizer": "neural",
    "PrivacyAwareTree": "privacy_aware_tree",
    "UniformMinimizer": "uniform",
    "attribute_costs": "attribute_steps",
    "coarsest_generalization": "sweep",
    "sweep_minimizers": "sweep",
}

__all__ = [*_HOME_OF]

__getattr__, __dir__ = lazy_names(__name__, _HOME_OF)
