# SPDX-License-Identifier: Apache-2.0
"""Representatives: the values that all records of a group get. One line each in the family below.

Names import nothing; a representative is loaded when it is used.
"""

from typing import TYPE_CHECKING

from sfumato.registry import Family, lazy_names

if TYPE_CHECKING:
    from sfumato.representatives.cells import CellColumn as CellColumn
    from sfumato.representatives.members import looks_at_classes as looks_at_classes
    from sfumato.representatives.phantom import phantoms as phantoms
    from sfumato.representatives.representative import GroupValues as GroupValues
    from sfumato.representatives.representative import Representative as Representative
    from sfumato.representatives.representative import check_representative as check_representative
    from sfumato.representatives.representative import has_cells as has_cells
    from sfumato.representatives.representative import looks_around as looks_around
    from sfumato.representatives.representative import represent as represent
    from sfumato.representatives.representative import represent_cells as represent_cells
    from sfumato.representatives.representative import shown_of as shown_of

REPRESENTATIVES = Family(
    "representative",
    {
        "phantom": "sfumato.representatives.phantom:PHANTOM",
        "model": "sfumato.representatives.members:MODEL",
        "member": "sfumato.representatives.members:MEMBER",
        "median": "sfumato.representatives.middle:MEDIAN",
        "mean": "sfumato.representatives.middle:MEAN",
        "midrange": "sfumato.representatives.middle:MIDRANGE",
        "sample": "sfumato.representatives.members:SAMPLE",
        "range": "sfumato.representatives.ranges:RANGE",
        "bounds": "sfumato.representatives.ranges:BOUNDS",
        "tight-range": "sfumato.representatives.ranges:TIGHT_RANGE",
        "tight-bounds": "sfumato.representatives.ranges:TIGHT_BOUNDS",
    },
)
"""Every representative by its name."""

_HOME_OF = {
    "CellColumn": "cells",
    "GroupValues": "representative",
    "Representative": "representative",
    "check_representative": "representative",
    "has_cells": "representative",
    "looks_around": "representative",
    "looks_at_classes": "members",
    "phantoms": "phantom",
    "represent": "representative",
    "represent_cells": "representative",
    "shown_of": "representative",
}

__all__ = ["REPRESENTATIVES", *_HOME_OF]

__getattr__, __dir__ = lazy_names(__name__, _HOME_OF)
