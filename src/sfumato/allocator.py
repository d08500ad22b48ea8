# SPDX-License-Identifier: Apache-2.0
"""How the process of a command asks the system for memory, and when it gives it back."""

from __future__ import annotations

import os

_M_MMAP_THRESHOLD = -3  # of mallopt, in <malloc.h>
_LARGE = 1 << 20  # bytes; columns of tables that matter are larger


def give_back_large_arrays() -> None:
    """Have large arrays returned to the system as soon as they are freed; called before anything heavy is loaded.

    By default the C library and Arrow keep what was freed for later, in pieces that the next column may not fit. A
    command goes through one table once, column by column, so that what is kept only adds up: on a million records it
    was a third of the peak. The price is some tenths of the time spent on copying.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # read when Arrow is first loaded
    if "MALLOC_MMAP_THRESHOLD_" in os.environ:  # somebody has decided already
        return
    import ctypes

    try:
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE)
    except (OSError, TypeError, AttributeError):  # another C library than GNU's: it has habits of its own
        return


def give_back_small_pieces() -> None:
    """Return what was freed in small pieces, such as those of a parsed file; called between two heavy steps."""
    import ctypes

    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, TypeError, AttributeError):
        return
