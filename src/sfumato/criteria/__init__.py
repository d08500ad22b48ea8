# SPDX-License-Identifier: Apache-2.0
"""Which groups are safe: one file per criterion, each a test on counts and a sentence for reports."""

from sfumato.criteria.alpha_k import AlphaKAnonymity
from sfumato.criteria.base import Criterion
from sfumato.criteria.beta_likeness import BetaLikeness
from sfumato.criteria.delta_disclosure import DeltaDisclosure
from sfumato.criteria.delta_presence import DeltaPresence
from sfumato.criteria.k_anonymity import KAnonymity
from sfumato.criteria.l_diversity import LDiversity
from sfumato.criteria.sensitive import TARGET, KnowsValues
from sfumato.criteria.t_closeness import TCloseness

__all__ = [
    "TARGET",
    "AlphaKAnonymity",
    "BetaLikeness",
    "Criterion",
    "DeltaDisclosure",
    "DeltaPresence",
    "KAnonymity",
    "KnowsValues",
    "LDiversity",
    "TCloseness",
]
