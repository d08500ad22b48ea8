# SPDX-License-Identifier: Apache-2.0
"""Release exact values without revealing who has which sensitive value, and learn from the release.

A table becomes two, one with the identifying columns and one with the sensitive ones. Only the number of an l-diverse
group connects them. A classifier is trained on one candidate per record (pruning) or on all of them, weighted.
"""

from sfumato.anatomize.anatomizer import Anatomizer
from sfumato.anatomize.classifiers import BucketClassifier, PrunedClassifier
from sfumato.anatomize.error_bound import Bound, theorem_bound
from sfumato.anatomize.prune import PrunedTable, prune
from sfumato.anatomize.tables import AnatomizedTable

__all__ = [
    "AnatomizedTable",
    "Anatomizer",
    "Bound",
    "BucketClassifier",
    "PrunedClassifier",
    "PrunedTable",
    "prune",
    "theorem_bound",
]
