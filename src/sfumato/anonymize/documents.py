# SPDX-License-Identifier: Apache-2.0
"""Write a partition or a publication as a file that is there as a whole or not at all."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any


def write_document(document: Any, path: str | os.PathLike[str], *, mode: int = 0o666) -> None:
    """Write plain lists, numbers and text as JSON; a file of that name is replaced only when all is written.

    `mode` is who may read it, less what the system's mask takes away.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(document, file, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)
