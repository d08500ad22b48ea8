# SPDX-License-Identifier: Apache-2.0
"""Information loss: measures, each from 0 (nothing) to 1 (everything) where it has a scale.

All look at a finished release, ours or not: at the released rows, or at the original and the released rows side by
side. Each gives a number per column and one in total.
"""

from sfumato.loss.group_measures import average_group_size, classification_metric, discernibility, non_uniform_entropy
from sfumato.loss.ncp import gcp, group_ncp, ncp
from sfumato.loss.released_groups import Loss

__all__ = [
    "Loss",
    "average_group_size",
    "classification_metric",
    "discernibility",
    "gcp",
    "group_ncp",
    "ncp",
    "non_uniform_entropy",
]
