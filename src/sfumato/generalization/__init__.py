# SPDX-License-Identifier: Apache-2.0
"""The generalization: made by `minimize`, applied by clients, attacked by `attack`.

Every value of an attribute has exactly one bucket. :class:`Generalization` applies buckets to frames and is saved as a
plain document; `export` writes it for the places where data is collected.
"""

from sfumato.generalization.artifact import Generalization
from sfumato.generalization.attributes import CategoryAttribute, OrderedAttribute
from sfumato.generalization.building import generalization_from_bins

__all__ = ["CategoryAttribute", "Generalization", "OrderedAttribute", "generalization_from_bins"]
