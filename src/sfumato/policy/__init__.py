# SPDX-License-Identifier: Apache-2.0
"""One TOML file that says what is protected, how, and what must hold before anything leaves.

``settings`` lists all there is to say, ``reading`` checks a file against it, ``suggesting`` writes a first one by
looking at a table. The command line runs policies; nothing here reads data files or trains models.
"""

from sfumato.policy.reading import Policy, read_policy
from sfumato.policy.suggesting import Suggestion, suggest_roles, write_policy

__all__ = ["Policy", "Suggestion", "read_policy", "suggest_roles", "write_policy"]
