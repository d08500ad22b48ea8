# SPDX-License-Identifier: Apache-2.0
"""Learners with differential privacy, to compare with. Names load on first use; they need the extra ``dp``."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.private.learners import PrivateForestClassifier as PrivateForestClassifier
    from sfumato.private.learners import PrivateLogisticRegression as PrivateLogisticRegression
    from sfumato.private.learners import PrivateNetworkClassifier as PrivateNetworkClassifier

__all__ = ["PrivateForestClassifier", "PrivateLogisticRegression", "PrivateNetworkClassifier"]


def __getattr__(name: str) -> object:
    """Load a learner when it is first asked for."""
    if name not in __all__:
        raise AttributeError(f"module 'sfumato.private' has no attribute {name!r}; see dir(sfumato.private)")
    from sfumato.private import learners

    value: object = getattr(learners, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the names, loaded or not."""
    return sorted(__all__)
