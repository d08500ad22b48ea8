# SPDX-License-Identifier: Apache-2.0
"""The browser that pages are looked at in."""

from browser import browser

__all__ = ["browser"]
