# SPDX-License-Identifier: Apache-2.0
"""Information loss: measures, each from 0 (nothing) to 1 (everything) where it has a scale.

All look at a finished release, ours or not: at the released rows, or at the original and the released rows side by
side. Each gives a number per column and one in total.

Examples
--------
>>> import pandas as pd
>>> from sfumato.loss import discernibility, ncp
>>> before = pd.DataFrame({"age": [20, 30, 50, 60]})
>>> after = pd.DataFrame({"age": ["20-30", "20-30", "50-60", "50-60"]})
>>> discernibility(after).total  # each record pays the size of its group
8.0
>>> ncp(before, after)["age"].tolist()  # a quarter of the ages from 20 to 60
[0.25, 0.25, 0.25, 0.25]
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
