# SPDX-License-Identifier: Apache-2.0
"""Experiments on real data: each module is one table or figure, run with ``python -m studies.NAME``."""
