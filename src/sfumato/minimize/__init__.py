# SPDX-License-Identifier: Apache-2.0
"""Minimize: learn what must be collected at all, and how finely.

From a small full-resolution sample a minimizer learns a generalization: for every attribute, which values need not be
told apart. Clients apply it themselves, so that full-resolution data never enters.
"""

from sfumato.minimize.uniform import UniformMinimizer

__all__ = ["UniformMinimizer"]
