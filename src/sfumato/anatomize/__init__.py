# SPDX-License-Identifier: Apache-2.0
"""Release exact values without revealing who has which sensitive value, and learn from the release.

A table becomes several, one with the identifying columns and others with the sensitive ones. Only the numbers of
l-diverse groups connect them. Classifiers and clusterers are trained on one candidate per record (pruning) or on all of
them, weighted. A sliced table is a relative that shuffles column groups within buckets.
"""

from sfumato.anatomize.anatomizer import Anatomizer
from sfumato.anatomize.classifiers import BucketClassifier, PrunedClassifier
from sfumato.anatomize.clustering import BucketClusterer
from sfumato.anatomize.error_bound import Bound, theorem_bound
from sfumato.anatomize.proportions import ProportionClassifier
from sfumato.anatomize.prune import PrunedTable, prune
from sfumato.anatomize.sliced_table import SlicedTable
from sfumato.anatomize.slicing import Slicer
from sfumato.anatomize.tables import AnatomizedTable

__all__ = [
    "AnatomizedTable",
    "Anatomizer",
    "Bound",
    "BucketClassifier",
    "BucketClusterer",
    "ProportionClassifier",
    "PrunedClassifier",
    "PrunedTable",
    "SlicedTable",
    "Slicer",
    "prune",
    "theorem_bound",
]
