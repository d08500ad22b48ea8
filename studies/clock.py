# SPDX-License-Identifier: Apache-2.0
"""How long a cell takes, in seconds of processor time: the same on a quiet machine and beside other work.

A cell runs in one process with one thread, so that processor time is what the wall clock shows on a core of its own.
Used by ``runner`` and by experiments that time parts of a group themselves.
"""

from __future__ import annotations

import os


def processor_seconds() -> float:
    """Return the processor time of this process so far, and of processes that it has waited for."""
    own = os.times()
    return own.user + own.system + own.children_user + own.children_system
