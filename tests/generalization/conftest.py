# SPDX-License-Identifier: Apache-2.0
"""The database server and the browser that the exports are tried in."""

from browser import browser
from postgres import postgres

__all__ = ["browser", "postgres"]
