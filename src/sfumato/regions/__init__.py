# SPDX-License-Identifier: Apache-2.0
"""Regions: the description of each group by the values that several of its people share, and records drawn from it.

A representative is one point per group, and a model has to guess what lies between the points. A region says, for each
column, which values the people of a group have and how often, separately for each class of the target. Every number in
it counts at least `floor` people: values that fewer people of a group have are counted together with those of
neighboring groups, and values that fewer people of the whole table have are not in it.

Records that are drawn from regions are for training a model and nothing else: they are not k-anonymous.
"""

from sfumato.regions.describing import RegionCounting, RegionPlan, plan_regions
from sfumato.regions.document import regions_from_dict, regions_to_dict
from sfumato.regions.regions import Drawn, RegionColumn, Regions
from sfumato.regions.target import RegionTarget, TargetCoding, code_target

__all__ = [
    "Drawn",
    "RegionColumn",
    "RegionCounting",
    "RegionPlan",
    "RegionTarget",
    "Regions",
    "TargetCoding",
    "code_target",
    "plan_regions",
    "regions_from_dict",
    "regions_to_dict",
]
