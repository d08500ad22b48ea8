# SPDX-License-Identifier: Apache-2.0
"""Options of kernels that only other kernels call."""

from __future__ import annotations

from typing import Any

INSIDE: dict[str, Any] = {"nogil": True, "cache": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Kernels take named tuples of dozens of arrays. To unpack them from Python objects is a third of what there is to
compile in a small one, and nobody needs it where compiled code is the only caller."""
