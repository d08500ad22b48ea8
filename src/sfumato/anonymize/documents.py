# SPDX-License-Identifier: Apache-2.0
"""Files of partitions and publications: written as a whole or not at all, and refused in words if they are damaged."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path
from typing import Any

from sfumato.documents import parse_json
from sfumato.errors import InputError


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


def read_document(path: str | os.PathLike[str], what: str, wrote: str) -> dict[str, Any]:
    """Return the JSON document of a file, or raise InputError that says why it is not one.

    Parameters
    ----------
    path : path
    what : str
        What is expected, such as ``"a partition"``.
    wrote : str
        What writes such files, such as ``"Partition.save"``.
    """
    name = Path(path).name
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise InputError(
            f"the file {name!r} cannot be read as {what} ({type(error).__name__}): expected the JSON file that {wrote} "
            "wrote. Check the path."
        ) from None
    try:
        return parse_json(content, wrote)
    except InputError as error:
        raise InputError(f"the file {name!r} cannot be read as {what}: {error}") from None
