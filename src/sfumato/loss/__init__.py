# SPDX-License-Identifier: Apache-2.0
"""What was given up: measures of information loss, each from 0 (nothing) to 1 (everything) where it has a scale."""

from sfumato.loss.ncp import group_ncp

__all__ = ["group_ncp"]
