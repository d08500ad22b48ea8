# SPDX-License-Identifier: Apache-2.0
"""One TOML file that says what is protected, how, and what must hold before anything leaves.

``settings`` lists all there is to say, ``policy`` checks a file or dicts against it, ``policy_file`` reads and writes
TOML, ``suggestions`` write a first policy by looking at a table. ``auditing`` runs policies; nothing here reads data
files or trains models.
"""

from sfumato.policy.policy import Policy
from sfumato.policy.suggestions import Suggestion, suggest_roles, write_policy

__all__ = ["Policy", "Suggestion", "suggest_roles", "write_policy"]
