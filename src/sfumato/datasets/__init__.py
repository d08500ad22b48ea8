# SPDX-License-Identifier: Apache-2.0
"""Tables to try things on: two bundled, more from a folder of public data, and a generator for scale."""

from sfumato.datasets.bundled import ADULT_QUASI_IDENTIFIERS, load_adult, load_nursery

__all__ = ["ADULT_QUASI_IDENTIFIERS", "load_adult", "load_nursery"]
