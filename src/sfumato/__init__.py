# SPDX-License-Identifier: Apache-2.0
"""Protect personal data in machine-learning tables: anonymize, minimize, anatomize, attack and audit.

This module is the public list: one table has every public name and its module. Names load on first use, so
``import sfumato`` costs next to nothing.

Examples
--------
>>> import sfumato
>>> sfumato.KAnonymity.__name__
'KAnonymity'
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the same names for type checkers and editors; a test keeps the two lists equal
    from sfumato import attack as attack
    from sfumato import compat as compat
    from sfumato import datasets as datasets
    from sfumato import duckdb as duckdb
    from sfumato import loss as loss
    from sfumato import parquet as parquet
    from sfumato import private as private
    from sfumato import spark as spark
    from sfumato import testing as testing
    from sfumato.anatomize import AnatomizedTable as AnatomizedTable
    from sfumato.anatomize import Anatomizer as Anatomizer
    from sfumato.anatomize import BucketClassifier as BucketClassifier
    from sfumato.anatomize import BucketClusterer as BucketClusterer
    from sfumato.anatomize import ProportionClassifier as ProportionClassifier
    from sfumato.anatomize import PrunedClassifier as PrunedClassifier
    from sfumato.anatomize import SlicedTable as SlicedTable
    from sfumato.anatomize import Slicer as Slicer
    from sfumato.anonymize import AnonymizedClassifier as AnonymizedClassifier
    from sfumato.anonymize import AnonymizedRegressor as AnonymizedRegressor
    from sfumato.anonymize import FullDomainAnonymizer as FullDomainAnonymizer
    from sfumato.anonymize import HilbertAnonymizer as HilbertAnonymizer
    from sfumato.anonymize import ModelGuidedAnonymizer as ModelGuidedAnonymizer
    from sfumato.anonymize import MondrianAnonymizer as MondrianAnonymizer
    from sfumato.anonymize import Partition as Partition
    from sfumato.anonymize import PrivateAnonymizer as PrivateAnonymizer
    from sfumato.anonymize import Publication as Publication
    from sfumato.anonymize import Release as Release
    from sfumato.anonymize import RPlusTreeAnonymizer as RPlusTreeAnonymizer
    from sfumato.anonymize import WorkloadAwareAnonymizer as WorkloadAwareAnonymizer
    from sfumato.auditing.audit import audit as audit
    from sfumato.auditing.evidence import EvidencePack as EvidencePack
    from sfumato.auditing.evidence import evidence as evidence
    from sfumato.auditing.frontier import frontier as frontier
    from sfumato.auditing.run import PolicyRun as PolicyRun
    from sfumato.auditing.run import run as run
    from sfumato.auditing.verify_evidence import VerifiedEvidence as VerifiedEvidence
    from sfumato.auditing.verify_evidence import verify_evidence as verify_evidence
    from sfumato.certificates import Certificate as Certificate
    from sfumato.certificates import certify as certify
    from sfumato.criteria import AlphaKAnonymity as AlphaKAnonymity
    from sfumato.criteria import BetaLikeness as BetaLikeness
    from sfumato.criteria import DeltaDisclosure as DeltaDisclosure
    from sfumato.criteria import DeltaPresence as DeltaPresence
    from sfumato.criteria import KAnonymity as KAnonymity
    from sfumato.criteria import LDiversity as LDiversity
    from sfumato.criteria import TCloseness as TCloseness
    from sfumato.errors import GuaranteeError as GuaranteeError
    from sfumato.errors import InputError as InputError
    from sfumato.errors import MissingExtraError as MissingExtraError
    from sfumato.errors import ParameterError as ParameterError
    from sfumato.errors import PrivacyWarning as PrivacyWarning
    from sfumato.errors import SfumatoError as SfumatoError
    from sfumato.generalization import Generalization as Generalization
    from sfumato.generalization.questions import Questionnaire as Questionnaire
    from sfumato.hierarchies import Hierarchy as Hierarchy
    from sfumato.hierarchies import read_hierarchy as read_hierarchy
    from sfumato.measurement import Measurement as Measurement
    from sfumato.measurement import measure as measure
    from sfumato.minimize import AdversarialMinimizer as AdversarialMinimizer
    from sfumato.minimize import AptMinimizer as AptMinimizer
    from sfumato.minimize import FeatureSelectionMinimizer as FeatureSelectionMinimizer
    from sfumato.minimize import IterativeMinimizer as IterativeMinimizer
    from sfumato.minimize import MinimizerSweep as MinimizerSweep
    from sfumato.minimize import MutualInformationMinimizer as MutualInformationMinimizer
    from sfumato.minimize import PrivacyAwareTree as PrivacyAwareTree
    from sfumato.minimize import UniformMinimizer as UniformMinimizer
    from sfumato.minimize import attribute_costs as attribute_costs
    from sfumato.minimize import coarsest_generalization as coarsest_generalization
    from sfumato.minimize import sweep_minimizers as sweep_minimizers
    from sfumato.policy import Policy as Policy
    from sfumato.private.ledger import PrivacyLedger as PrivacyLedger
    from sfumato.report.data import Audit as Audit
    from sfumato.report.frontier import Frontier as Frontier

__version__ = "0.1.0.dev0"

_HOME_OF = {
    "AdversarialMinimizer": "sfumato.minimize",
    "AlphaKAnonymity": "sfumato.criteria",
    "AnatomizedTable": "sfumato.anatomize",
    "Anatomizer": "sfumato.anatomize",
    "AnonymizedClassifier": "sfumato.anonymize",
    "AnonymizedRegressor": "sfumato.anonymize",
    "AptMinimizer": "sfumato.minimize",
    "Audit": "sfumato.report.data",
    "BetaLikeness": "sfumato.criteria",
    "BucketClassifier": "sfumato.anatomize",
    "BucketClusterer": "sfumato.anatomize",
    "Certificate": "sfumato.certificates",
    "DeltaDisclosure": "sfumato.criteria",
    "DeltaPresence": "sfumato.criteria",
    "EvidencePack": "sfumato.auditing.evidence",
    "FeatureSelectionMinimizer": "sfumato.minimize",
    "Frontier": "sfumato.report.frontier",
    "FullDomainAnonymizer": "sfumato.anonymize",
    "Generalization": "sfumato.generalization",
    "GuaranteeError": "sfumato.errors",
    "Hierarchy": "sfumato.hierarchies",
    "HilbertAnonymizer": "sfumato.anonymize",
    "InputError": "sfumato.errors",
    "IterativeMinimizer": "sfumato.minimize",
    "KAnonymity": "sfumato.criteria",
    "LDiversity": "sfumato.criteria",
    "Measurement": "sfumato.measurement",
    "MinimizerSweep": "sfumato.minimize",
    "MissingExtraError": "sfumato.errors",
    "ModelGuidedAnonymizer": "sfumato.anonymize",
    "MondrianAnonymizer": "sfumato.anonymize",
    "MutualInformationMinimizer": "sfumato.minimize",
    "ParameterError": "sfumato.errors",
    "Partition": "sfumato.anonymize",
    "Policy": "sfumato.policy",
    "PolicyRun": "sfumato.auditing.run",
    "PrivacyAwareTree": "sfumato.minimize",
    "PrivacyLedger": "sfumato.private.ledger",
    "PrivacyWarning": "sfumato.errors",
    "PrivateAnonymizer": "sfumato.anonymize",
    "ProportionClassifier": "sfumato.anatomize",
    "PrunedClassifier": "sfumato.anatomize",
    "Publication": "sfumato.anonymize",
    "Questionnaire": "sfumato.generalization.questions",
    "RPlusTreeAnonymizer": "sfumato.anonymize",
    "Release": "sfumato.anonymize",
    "SfumatoError": "sfumato.errors",
    "SlicedTable": "sfumato.anatomize",
    "Slicer": "sfumato.anatomize",
    "TCloseness": "sfumato.criteria",
    "UniformMinimizer": "sfumato.minimize",
    "VerifiedEvidence": "sfumato.auditing.verify_evidence",
    "WorkloadAwareAnonymizer": "sfumato.anonymize",
    "attack": "sfumato.attack",
    "attribute_costs": "sfumato.minimize",
    "audit": "sfumato.auditing.audit",
    "certify": "sfumato.certificates",
    "coarsest_generalization": "sfumato.minimize",
    "datasets": "sfumato.datasets",
    "evidence": "sfumato.auditing.evidence",
    "frontier": "sfumato.auditing.frontier",
    "measure": "sfumato.measurement",
    "read_hierarchy": "sfumato.hierarchies",
    "run": "sfumato.auditing.run",
    "sweep_minimizers": "sfumato.minimize",
    "verify_evidence": "sfumato.auditing.verify_evidence",
}

# Packages with names of their own. A star import leaves them out: it would hide the user's own duckdb, for one.
_PACKAGES = ("compat", "duckdb", "loss", "parquet", "private", "spark", "testing")

__all__ = ["__version__", *_HOME_OF]


def __getattr__(name: str) -> object:
    """Load a public name on first use, and keep it."""
    home = f"{__name__}.{name}" if name in _PACKAGES else _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'sfumato' has no attribute {name!r}; see dir(sfumato) for what it has")
    from importlib import import_module

    module = import_module(home)
    value: object = module if home == f"{__name__}.{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, loaded or not, and the public packages."""
    return sorted([*__all__, *_PACKAGES])
