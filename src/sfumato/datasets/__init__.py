# SPDX-License-Identifier: Apache-2.0
"""Tables to try things on: two bundled, and a generator for scale.

Examples
--------
>>> from sfumato.datasets import load_nursery, make_census
>>> load_nursery(as_frame="pandas").data.shape
(12960, 8)
>>> make_census(1000, as_frame="pyarrow").data.num_rows
1000
"""

from sfumato.datasets.bundled import ADULT_QUASI_IDENTIFIERS, load_adult, load_nursery
from sfumato.datasets.census import iter_census, make_census

__all__ = ["ADULT_QUASI_IDENTIFIERS", "iter_census", "load_adult", "load_nursery", "make_census"]
