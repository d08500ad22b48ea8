# SPDX-License-Identifier: Apache-2.0
"""Differentially private learners, for comparison. Names load on first use and need the extra ``dp``."""

from typing import TYPE_CHECKING

from sfumato.registry import lazy_names

if TYPE_CHECKING:
    from sfumato.private.learners import PrivateForestClassifier as PrivateForestClassifier
    from sfumato.private.learners import PrivateLogisticRegression as PrivateLogisticRegression
    from sfumato.private.learners import PrivateNetworkClassifier as PrivateNetworkClassifier

_HOME_OF = dict.fromkeys(
    ("PrivateForestClassifier", "PrivateLogisticRegression", "PrivateNetworkClassifier"), "learners"
)

__all__ = [*_HOME_OF]

__getattr__, __dir__ = lazy_names(__name__, _HOME_OF)
