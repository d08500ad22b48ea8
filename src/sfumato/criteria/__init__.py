# SPDX-License-Identifier: Apache-2.0
"""Which groups are safe: one file per criterion, each a test on counts and a sentence for reports."""

from sfumato.criteria.base import Criterion
from sfumato.criteria.k_anonymity import KAnonymity

__all__ = ["Criterion", "KAnonymity"]
