# SPDX-License-Identifier: Apache-2.0
"""Privacy criteria: one module each, with a test on counts, its facts and a sentence for reports.

A criterion is one module and one line in the family below. Policies, reports, ``measure`` and the documentation take
its facts from there. Criteria load on first use, so that listing their names costs nothing.
"""

from typing import TYPE_CHECKING

from sfumato.registry import Family, lazy_names

if TYPE_CHECKING:
    from sfumato.criteria.alpha_k import AlphaKAnonymity as AlphaKAnonymity
    from sfumato.criteria.base import Criterion as Criterion
    from sfumato.criteria.base import CriterionFacts as CriterionFacts
    from sfumato.criteria.beta_likeness import BetaLikeness as BetaLikeness
    from sfumato.criteria.delta_disclosure import DeltaDisclosure as DeltaDisclosure
    from sfumato.criteria.delta_presence import DeltaPresence as DeltaPresence
    from sfumato.criteria.k_anonymity import KAnonymity as KAnonymity
    from sfumato.criteria.l_diversity import LDiversity as LDiversity
    from sfumato.criteria.sensitive_criterion import TARGET as TARGET
    from sfumato.criteria.sensitive_criterion import KnowsValues as KnowsValues
    from sfumato.criteria.t_closeness import TCloseness as TCloseness

CRITERIA = Family(
    "criterion",
    {
        "k-anonymity": "sfumato.criteria.k_anonymity:KAnonymity",
        "l-diversity": "sfumato.criteria.l_diversity:LDiversity",
        "t-closeness": "sfumato.criteria.t_closeness:TCloseness",
        "alpha-k-anonymity": "sfumato.criteria.alpha_k:AlphaKAnonymity",
        "beta-likeness": "sfumato.criteria.beta_likeness:BetaLikeness",
        "delta-disclosure": "sfumato.criteria.delta_disclosure:DeltaDisclosure",
        "delta-presence": "sfumato.criteria.delta_presence:DeltaPresence",
    },
)
"""Every criterion by the name that a policy calls it."""

_HOME_OF = CRITERIA.exported | {
    "TARGET": "sfumato.criteria.sensitive_criterion",
    "Criterion": "sfumato.criteria.base",
    "CriterionFacts": "sfumato.criteria.base",
    "KnowsValues": "sfumato.criteria.sensitive_criterion",
}

__all__ = ["CRITERIA", *_HOME_OF]

__getattr__, __dir__ = lazy_names(__name__, _HOME_OF)
