# SPDX-License-Identifier: Apache-2.0
"""Tests share the cores among processes, so nothing in one of them takes all cores for itself.

Gradient boosting starts a thread for each core, and threads that wait for each other on a busy machine keep it busy:
one fit of 1,600 records took ten times as much processor time.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when the library is loaded
