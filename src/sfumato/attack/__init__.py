# SPDX-License-Identifier: Apache-2.0
"""Attacks that measure what an attacker can still learn: a rate, its interval and a baseline to compare it with.

Attacks load on first use, so that one does not load the dependencies of the others. An attack that audits run is one
module and one line in the family below; one for Python alone is a line in the table of names.

Examples
--------
>>> import pyarrow as pa
>>> from sfumato.attack import infer_from_release
>>> people = pa.table({"age": [20, 21, 30, 31], "disease": ["flu", "flu", "cold", "cold"]})
>>> released = people.set_column(0, "age", pa.array(["20-21", "20-21", "30-31", "30-31"]))
>>> found = infer_from_release(people, released, ["age"], "disease")  # k = 2 hides no disease here
>>> found.rate, found.baseline
(1.0, 0.5)
"""

from typing import TYPE_CHECKING

from sfumato.registry import Family, lazy_names

if TYPE_CHECKING:
    from sfumato.attack.anatomy_attacks import definetti as definetti
    from sfumato.attack.anatomy_attacks import definetti_of_all as definetti_of_all
    from sfumato.attack.anatomy_attacks import minimality as minimality
    from sfumato.attack.attribute import attack_attribute as attack_attribute
    from sfumato.attack.definetti_release import definetti_from_release as definetti_from_release
    from sfumato.attack.downcoding import downcode_release as downcode_release
    from sfumato.attack.generalization_attacks import attack_generalization as attack_generalization
    from sfumato.attack.generalization_attacks import link_records as link_records
    from sfumato.attack.generalization_attacks import single_out as single_out
    from sfumato.attack.intersection import intersect_all_releases as intersect_all_releases
    from sfumato.attack.membership import MembershipResult as MembershipResult
    from sfumato.attack.membership import attack_membership as attack_membership
    from sfumato.attack.minimality_release import minimality_from_release as minimality_from_release
    from sfumato.attack.predicate_singling_out import single_out_by_predicates as single_out_by_predicates
    from sfumato.attack.reconstruction import reconstruct as reconstruct
    from sfumato.attack.reconstruction import reconstruct_from_breaches as reconstruct_from_breaches
    from sfumato.attack.reconstruction import reconstruct_leaving_one_out as reconstruct_leaving_one_out
    from sfumato.attack.reconstruction import reconstruct_with_non_personal as reconstruct_with_non_personal
    from sfumato.attack.reconstruction import reconstruct_with_some_personal as reconstruct_with_some_personal
    from sfumato.attack.reconstruction import reconstruction_risk as reconstruction_risk
    from sfumato.attack.reconstruction_adversaries import FamilySettings as FamilySettings
    from sfumato.attack.reconstruction_learners import BoostingSettings as BoostingSettings
    from sfumato.attack.reconstruction_learners import NetworkSettings as NetworkSettings
    from sfumato.attack.reconstruction_scoring import check_order as check_order
    from sfumato.attack.release_attacks import infer_from_release as infer_from_release
    from sfumato.attack.release_attacks import link_through_release as link_through_release
    from sfumato.attack.release_attacks import single_out_of_release as single_out_of_release
    from sfumato.attack.release_membership import find_members_of_release as find_members_of_release
    from sfumato.attack.result import AttackResult as AttackResult
    from sfumato.attack.result import bootstrap_interval as bootstrap_interval
    from sfumato.attack.result import judge as judge
    from sfumato.attack.result import wilson_interval as wilson_interval
    from sfumato.attack.row_order import match_by_row_order as match_by_row_order
    from sfumato.attack.samples import Samples as Samples
    from sfumato.attack.similarity import guess_from_similar_values as guess_from_similar_values
    from sfumato.attack.skewness import guess_from_skewed_groups as guess_from_skewed_groups
    from sfumato.attack.slice_matching import match_slices as match_slices
    from sfumato.attack.table_intersection import intersect_tables as intersect_tables

ATTACKS = Family(
    "attack",
    {
        "threshold": "sfumato.attack.membership:THRESHOLD",
        "random-forest": "sfumato.attack.membership:RANDOM_FOREST",
        "network": "sfumato.attack.membership:NETWORK",
        "shadow-models": "sfumato.attack.membership:SHADOW_MODELS",
        "lira": "sfumato.attack.membership:LIRA",
        "lira-offline": "sfumato.attack.membership:LIRA_OFFLINE",
        "rmia": "sfumato.attack.membership:RMIA",
        "attribute": "sfumato.attack.attribute:ATTRIBUTE",
        "singling-out": "sfumato.attack.release_attacks:SINGLING_OUT",
        "linkability": "sfumato.attack.release_attacks:LINKABILITY",
        "inference": "sfumato.attack.release_attacks:INFERENCE",
        "row-order": "sfumato.attack.row_order:ROW_ORDER",
        "definetti": "sfumato.attack.definetti_release:DEFINETTI",
        "minimality": "sfumato.attack.minimality_release:MINIMALITY",
        "skewness": "sfumato.attack.skewness:SKEWNESS",
        "similarity": "sfumato.attack.similarity:SIMILARITY",
        "release-membership": "sfumato.attack.release_membership:RELEASE_MEMBERSHIP",
        "downcoding": "sfumato.attack.downcoding:DOWNCODING",
        "predicate-singling-out": "sfumato.attack.predicate_singling_out:PREDICATE_SINGLING_OUT",
    },
)
"""Every attack that audits run, by the name that policies call it."""

_HOME_OF = {
    "attack_attribute": "attribute",
    "attack_generalization": "generalization_attacks",
    "attack_membership": "membership",
    "AttackResult": "result",
    "BoostingSettings": "reconstruction_learners",
    "bootstrap_interval": "result",
    "check_order": "reconstruction_scoring",
    "definetti": "anatomy_attacks",
    "definetti_from_release": "definetti_release",
    "definetti_of_all": "anatomy_attacks",
    "downcode_release": "downcoding",
    "FamilySettings": "reconstruction_adversaries",
    "find_members_of_release": "release_membership",
    "guess_from_similar_values": "similarity",
    "guess_from_skewed_groups": "skewness",
    "infer_from_release": "release_attacks",
    "intersect_all_releases": "intersection",
    "intersect_tables": "table_intersection",
    "judge": "result",
    "link_records": "generalization_attacks",
    "link_through_release": "release_attacks",
    "match_by_row_order": "row_order",
    "match_slices": "slice_matching",
    "MembershipResult": "membership",
    "minimality": "anatomy_attacks",
    "minimality_from_release": "minimality_release",
    "NetworkSettings": "reconstruction_learners",
    "reconstruct": "reconstruction",
    "reconstruct_from_breaches": "reconstruction",
    "reconstruct_leaving_one_out": "reconstruction",
    "reconstruct_with_non_personal": "reconstruction",
    "reconstruct_with_some_personal": "reconstruction",
    "reconstruction_risk": "reconstruction",
    "Samples": "samples",
    "single_out": "generalization_attacks",
    "single_out_by_predicates": "predicate_singling_out",
    "single_out_of_release": "release_attacks",
    "wilson_interval": "result",
}

__all__ = ["ATTACKS", *_HOME_OF]

__getattr__, __dir__ = lazy_names(__name__, _HOME_OF)
