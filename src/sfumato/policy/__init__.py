# SPDX-License-Identifier: Apache-2.0
"""Policies: what is protected, how, and which conditions a release must meet.

``settings`` lists all settings, ``policy`` checks them, ``policy_file`` reads and writes TOML, and ``suggestions``
suggest a policy for a table. ``auditing`` runs policies; nothing here reads data files or trains models.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sfumato.policy.policy import Policy as Policy
    from sfumato.policy.suggestions import Suggestion as Suggestion
    from sfumato.policy.suggestions import suggest_roles as suggest_roles
    from sfumato.policy.suggestions import write_policy as write_policy

_HOME_OF = {
    "Policy": "policy",
    "Suggestion": "suggestions",
    "suggest_roles": "suggestions",
    "write_policy": "suggestions",
}

__all__ = [*_HOME_OF]


def __getattr__(name: str) -> object:
    """Load a name when it is first asked for: the settings alone need nothing heavy."""
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'sfumato.policy' has no attribute {name!r}; see dir(sfumato.policy)")
    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the names, loaded or not."""
    return sorted(__all__)
