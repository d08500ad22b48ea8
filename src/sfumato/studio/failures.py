# SPDX-License-Identifier: Apache-2.0
"""Why something failed, in words that hold no value of a cell."""

from __future__ import annotations

import errno
import os

from sfumato.errors import MissingExtraError, SfumatoError
from sfumato.policy.setting_names import with_keys


def why_of(error: Exception) -> tuple[str, str]:
    """Return the kind of a failure, which is a key of the texts, and a sentence or name for it.

    The text of a foreign error may hold values, so only its kind is told, and of the system's errors their number's
    meaning.

    Examples
    --------
    >>> why_of(ValueError("could not convert 'Jane Doe'"))
    ('unexpected', 'ValueError')
    >>> why_of(OSError(errno.ENOSPC, "No space left on device", "jane-doe.csv"))
    ('full', '')
    """
    if isinstance(error, SfumatoError):
        return "sentence", with_keys(error.sentence)
    if isinstance(error, MissingExtraError):
        return "sentence", str(error)
    if isinstance(error, MemoryError):
        return "memory", ""
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return "full", ""
    if isinstance(error, OSError):
        return "disk", "" if error.errno is None else os.strerror(error.errno)
    return "unexpected", type(error).__name__
