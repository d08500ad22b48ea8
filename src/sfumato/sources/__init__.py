# SPDX-License-Identifier: Apache-2.0
"""Where records come from: each source hands the grower codes, channels and weights.

A source reads columns once, bins them, and afterwards speaks of codes only. `MemorySource` holds everything in
memory; sources for larger data hand out the same columns and layout.
"""

from sfumato.sources.base import CodedColumn, Source
from sfumato.sources.memory import MemorySource

__all__ = ["CodedColumn", "MemorySource", "Source"]
