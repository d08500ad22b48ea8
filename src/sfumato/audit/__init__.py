# SPDX-License-Identifier: Apache-2.0
"""Audit: what could an attacker still learn, and what did protection cost? Data first; ``report`` makes pages of it.

Names load on first use, so that a gate on a finished audit does not load the attacks.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.audit.compare import Comparison as Comparison
    from sfumato.audit.compare import compare_protections as compare_protections
    from sfumato.audit.mitigations import usual_protections as usual_protections
    from sfumato.audit.private_models import PrivateForestClassifier as PrivateForestClassifier
    from sfumato.audit.private_models import PrivateLogisticRegression as PrivateLogisticRegression
    from sfumato.audit.private_models import PrivateNetworkClassifier as PrivateNetworkClassifier

_HOME_OF = {
    "Comparison": "compare",
    "PrivateForestClassifier": "private_models",
    "PrivateLogisticRegression": "private_models",
    "PrivateNetworkClassifier": "private_models",
    "compare_protections": "compare",
    "usual_protections": "mitigations",
}

__all__ = [*_HOME_OF]


def __getattr__(name: str) -> object:
    """Load a name when it is first asked for."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'sfumato.audit' has no attribute {name!r}; see dir(sfumato.audit)")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the names, loaded or not."""
    return sorted(__all__)
