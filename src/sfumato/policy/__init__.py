# SPDX-License-Identifier: Apache-2.0
"""Policies: what is protected, how, and which conditions a release must meet.

``settings`` lists all settings, ``policy`` checks them, ``policy_file`` reads and writes TOML, and ``suggestions``
suggest a policy for a table. ``auditing`` runs policies; nothing here reads data files or trains models.
"""

from typing import TYPE_CHECKING

from sfumato.registry import lazy_names

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

__getattr__, __dir__ = lazy_names(__name__, _HOME_OF)
