# SPDX-License-Identifier: Apache-2.0
"""Regions: the description of each group by the values that several of its people share, and records drawn from it.

A representative is one point per group, and a model has to guess what lies between the points. A region says, for each
column, which values the people of a group have and how often, separately for each class of the target. Every number in
it counts at least `floor` people: values that fewer people of a group have are counted together with those of
neighboring groups, and values that fewer people of the whole table have are not in it.

Records that are drawn from regions are for training a model and nothing else: they are not k-anonymous.
"""

from sfumato.regions.describing import (
    GroupTargets,
    RegionCounting,
    RegionPlan,
    joined_targets,
    judged_every,
    plan_regions,
)
from sfumato.regions.document import regions_from_dict, regions_to_dict
from sfumato.regions.regions import Drawn, RegionColumn, Regions
from sfumato.regions.target import RegionTarget, TargetCoding, code_target
from sfumato.regions.weights import Weights, learn_weights, sample_of

__all__ = [
    "Drawn",
    "GroupTargets",
    "RegionColumn",
    "RegionCounting",
    "RegionPlan",
    "RegionTarget",
    "Regions",
    "TargetCoding",
    "Weights",
    "code_target",
    "joined_targets",
    "judged_every",
    "learn_weights",
    "plan_regions",
    "regions_from_dict",
    "regions_to_dict",
    "sample_of",
]
