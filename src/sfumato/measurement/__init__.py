# SPDX-License-Identifier: Apache-2.0
"""How well people hide in a table: group sizes, risks, uniqueness, criteria, and columns that were forgotten.

Works on any table, ours or not, and shares only the reading of tables and the criteria's definitions with the engine.
"""

from sfumato.measurement.measurement import Measurement
from sfumato.measurement.measuring import measure

__all__ = ["Measurement", "measure"]
