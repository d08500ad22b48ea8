# SPDX-License-Identifier: Apache-2.0
"""Tables to try things on: two bundled, and a generator for scale."""

from sfumato.datasets.bundled import ADULT_QUASI_IDENTIFIERS, load_adult, load_nursery
from sfumato.datasets.census import iter_census, make_census

__all__ = ["ADULT_QUASI_IDENTIFIERS", "iter_census", "load_adult", "load_nursery", "make_census"]
