# SPDX-License-Identifier: Apache-2.0
"""Anonymize: make a table k-anonymous at the least cost to the model that will be trained on it.

``ModelGuidedAnonymizer`` rewrites a table guided by a model's predictions; ``AnonymizedClassifier`` and
``AnonymizedRegressor`` train, predict, anonymize and retrain in one estimator. Beside them stand the classic methods:
``MondrianAnonymizer`` uses the quasi-identifiers alone, ``WorkloadAwareAnonymizer`` the labels,
``HilbertAnonymizer`` cuts a curve through the records, ``RPlusTreeAnonymizer`` inserts later batches, and
``FullDomainAnonymizer`` releases every column at one level of its hierarchy. ``PrivateAnonymizer`` promises
differential privacy instead of k.

Methods load on first use. A named method is one module and one line in the family below.
"""

from typing import TYPE_CHECKING

from sfumato.registry import Family, lazy_names

if TYPE_CHECKING:
    from sfumato.anonymize.earlier_releases import Publication as Publication
    from sfumato.anonymize.estimators import AnonymizedClassifier as AnonymizedClassifier
    from sfumato.anonymize.estimators import AnonymizedRegressor as AnonymizedRegressor
    from sfumato.anonymize.fitted_partition import Partition as Partition
    from sfumato.anonymize.full_domain import FullDomainAnonymizer as FullDomainAnonymizer
    from sfumato.anonymize.hilbert import HilbertAnonymizer as HilbertAnonymizer
    from sfumato.anonymize.model_guided import ModelGuidedAnonymizer as ModelGuidedAnonymizer
    from sfumato.anonymize.mondrian import MondrianAnonymizer as MondrianAnonymizer
    from sfumato.anonymize.private_anonymizer import PrivateAnonymizer as PrivateAnonymizer
    from sfumato.anonymize.release import Release as Release
    from sfumato.anonymize.rplus_tree import RPlusTreeAnonymizer as RPlusTreeAnonymizer
    from sfumato.anonymize.workload_aware import WorkloadAwareAnonymizer as WorkloadAwareAnonymizer

METHODS = Family(
    "method",
    {
        "model-guided": "sfumato.anonymize.model_guided:MODEL_GUIDED",
        "mondrian": "sfumato.anonymize.mondrian:MONDRIAN",
        "information-loss": "sfumato.anonymize.mondrian:INFORMATION_LOSS",
        "workload-aware": "sfumato.anonymize.workload_aware:WORKLOAD_AWARE",
        "hilbert": "sfumato.anonymize.hilbert:HILBERT",
        "r-plus-tree": "sfumato.anonymize.rplus_tree:R_PLUS_TREE",
        "full-domain": "sfumato.anonymize.full_domain:FULL_DOMAIN",
    },
)
"""Every method by the name that policies and commands call it."""

MECHANISMS = ("counts", "sample")
"""The mechanisms of releases with epsilon."""

_HOME_OF = {
    "AnonymizedClassifier": "estimators",
    "AnonymizedRegressor": "estimators",
    "FullDomainAnonymizer": "full_domain",
    "HilbertAnonymizer": "hilbert",
    "ModelGuidedAnonymizer": "model_guided",
    "MondrianAnonymizer": "mondrian",
    "Partition": "fitted_partition",
    "PrivateAnonymizer": "private_anonymizer",
    "Publication": "earlier_releases",
    "RPlusTreeAnonymizer": "rplus_tree",
    "Release": "release",
    "WorkloadAwareAnonymizer": "workload_aware",
}

__all__ = ["MECHANISMS", "METHODS", *_HOME_OF]

__getattr__, __dir__ = lazy_names(__name__, _HOME_OF)
