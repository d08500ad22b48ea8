# SPDX-License-Identifier: Apache-2.0
"""Anonymize: give every record company, at the least cost to the model that will be trained on the data.

``ModelGuidedAnonymizer`` rewrites a table guided by a model's predictions; ``AnonymizedClassifier`` and
``AnonymizedRegressor`` train, predict, anonymize and retrain in one estimator. Beside them stand the classic methods:
``MondrianAnonymizer`` looks at the quasi-identifiers alone, ``WorkloadAwareAnonymizer`` at the labels,
``HilbertAnonymizer`` cuts a curve through the records, ``RPlusTreeAnonymizer`` takes in later batches, and
``FullDomainAnonymizer`` publishes every column at one level of its hierarchy.
"""

from sfumato.anonymize.estimators import AnonymizedClassifier, AnonymizedRegressor
from sfumato.anonymize.full_domain import FullDomainAnonymizer
from sfumato.anonymize.hilbert import HilbertAnonymizer
from sfumato.anonymize.model_guided import ModelGuidedAnonymizer
from sfumato.anonymize.mondrian import MondrianAnonymizer
from sfumato.anonymize.partition import Partition
from sfumato.anonymize.publications import Publication
from sfumato.anonymize.release import Release
from sfumato.anonymize.rplus_tree import RPlusTreeAnonymizer
from sfumato.anonymize.workload_aware import WorkloadAwareAnonymizer

__all__ = [
    "AnonymizedClassifier",
    "AnonymizedRegressor",
    "FullDomainAnonymizer",
    "HilbertAnonymizer",
    "ModelGuidedAnonymizer",
    "MondrianAnonymizer",
    "Partition",
    "Publication",
    "RPlusTreeAnonymizer",
    "Release",
    "WorkloadAwareAnonymizer",
]
