# SPDX-License-Identifier: Apache-2.0
"""JSON documents, and files that are written completely or not at all.

A document may have been changed since it was written: any error in it raises InputError with the place of the error. A
shape describes a valid document. It is a function that returns True for valid values, a list with the shape of every
entry, a dict with the shape of every field (``"name?"`` may be absent), or :class:`MapOf`.
"""

from __future__ import annotations

import contextlib
import errno
import json
import math
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfumato.errors import InputError
from sfumato.system_files import nameless_file, new_file, sync

Shape = Any
FINGERPRINTS = ".fingerprints"
"""The ending of files with the fingerprints of records, which are for the owner of the records alone."""


# -- writing -------------------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Convert dataclasses, arrays and numbers to JSON values: text for keys, null for numbers that are not finite.

    Examples
    --------
    >>> plain({1: (np.float32(0.5), float("nan")), "sizes": np.arange(2)})
    {'1': [0.5, None], 'sizes': [0, 1]}
    """
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@contextlib.contextmanager
def written_whole(path: str | os.PathLike[str], *, mode: int = 0o666) -> Iterator[Path]:
    """Yield the path of an empty temporary file; it replaces `path` at the end, or is removed after an error.

    `mode` sets its permissions, reduced by the umask.
    """
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        os.close(new_file(temporary, mode))
        yield temporary
        sync(temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def named_at_the_end(temporary: Path, final: Path) -> Iterator[None]:
    """Rename a private temporary folder to its final name at the end, or remove it."""
    try:
        yield
        temporary.chmod(permitted(0o777))
        temporary.rename(final)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def permitted(mode: int) -> int:
    """Return a mode reduced by the umask."""
    mask = os.umask(0)
    os.umask(mask)
    return mode & ~mask


def write_document(document: Any, path: str | os.PathLike[str], *, mode: int = 0o666) -> None:
    """Write plain lists, numbers and text as JSON; an existing file is replaced only when all is written.

    `mode` sets its permissions, reduced by the umask.
    """
    with written_whole(path, mode=mode) as temporary, temporary.open("w", encoding="utf-8") as file:
        json.dump(document, file, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


# -- reading -------------------------------------------------------------------------------------------------------


def read_document(path: str | os.PathLike[str], what: str, wrote: str) -> dict[str, Any]:
    """Return the JSON document of a file; raise InputError with the reason if it is not one.

    Parameters
    ----------
    path : path
    what : str
        The expected content for the message, such as ``"a partition"``.
    wrote : str
        The method that writes such files, such as ``"Partition.save"``.
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


@dataclass(frozen=True)
class MapOf:
    """The shape of a dict whose keys are any text and whose values are alike."""

    shape: Shape


def parse_json(text: str | bytes, wrote: str) -> dict[str, Any]:
    """Return the document in a piece of JSON.

    Parameters
    ----------
    text : str or bytes
    wrote : str
        The method that writes such documents, for the message: ``"Partition.save"``.

    Raises
    ------
    InputError
        If the text is not JSON, not one object, nested too deeply, or holds invalid numbers.
    """
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:  # not UTF-8, not JSON, too many digits, too many brackets
        raise InputError(
            f"text that is not JSON or is nested too deeply ({type(error).__name__}): expected what {wrote} wrote. "
            "Get the document again from where it comes from."
        ) from None
    if not isinstance(document, dict):
        raise InputError(f"JSON that is not one object: expected what {wrote} wrote.")
    return document


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def check_shape(document: Any, shape: Shape, what: str, wrote: str) -> None:
    """Raise InputError with the place, not the value, of the first part of a document that does not fit a shape.

    Examples
    --------
    >>> check_shape({"sizes": [3, "4"]}, {"sizes": [is_whole]}, "a partition", "Partition.save")
    Traceback (most recent call last):
    sfumato.errors.InputError: a partition whose part sizes[1] is absent or not of its kind: expected what ...
    """
    part = find_misfit(document, shape)
    if part is not None:
        raise InputError(
            f"{what} whose part {part or 'as a whole'} is absent or not of its kind: expected what {wrote} wrote. "
            "Write it again."
        )


def find_misfit(value: Any, shape: Shape, path: str = "") -> str | None:
    """Return where a document does not fit a shape, such as ``nodes[3].left``; None if it fits."""
    if isinstance(shape, list):
        if not isinstance(value, list):
            return path
        if callable(shape[0]):  # long lists of numbers and text: no path is written for those that fit
            bad = next((place for place, entry in enumerate(value) if not shape[0](entry)), None)
            return None if bad is None else f"{path}[{bad}]"
        return _first(find_misfit(entry, shape[0], f"{path}[{place}]") for place, entry in enumerate(value))
    if isinstance(shape, MapOf):
        if not isinstance(value, Mapping):
            return path
        return _first(find_misfit(entry, shape.shape, f"{path}.*") for entry in value.values())
    if isinstance(shape, dict):
        if not isinstance(value, Mapping):
            return path
        for field, own in shape.items():
            name = field.removesuffix("?")
            inner = f"{path}.{name}" if path else name
            if name in value:
                found = find_misfit(value[name], own, inner)
                if found is not None:
                    return found
            elif name == field:
                return inner
        return None
    return None if shape(value) else path


def _first(found: Any) -> str | None:
    return next((path for path in found if path is not None), None)


def is_text(value: Any) -> bool:
    """Return True for text."""
    return isinstance(value, str)


def is_flag(value: Any) -> bool:
    """Return True for true and false."""
    return isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """Return True for an integer that 64 bits can hold."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def is_count(value: Any) -> bool:
    """Return True for an integer from 0."""
    return is_whole(value) and value >= 0


def is_number(value: Any) -> bool:
    """Return True for an integer that 64 bits can hold, or a finite float."""
    return is_whole(value) or (isinstance(value, float) and math.isfinite(value))


def is_plain(value: Any) -> bool:
    """Return True for values that can be a category: text, booleans and numbers."""
    return isinstance(value, str | bool) or is_number(value)


def one_of(*words: Any) -> Callable[[Any], bool]:
    """Return a shape that some words fit."""
    return lambda value: isinstance(value, str | None) and value in words


def or_none(shape: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a shape that null fits, too."""
    return lambda value: value is None or shape(value)


@contextlib.contextmanager
def unpublished(destination: Path) -> Iterator[Path]:
    """Yield a temporary file in the folder of the destination; it gets its name at the end, or is removed.

    Only the owner can read the file until then. If the system allows it, the file has no name until then: even a
    killed process leaves nothing behind.
    """
    folder = destination.absolute().parent
    if not folder.is_dir():
        raise InputError(
            f"the folder of {destination.name!r} does not exist: expected a folder to write to. Create it first."
        )
    hidden = folder / f".{destination.name}.unpublished-{secrets.token_hex(4)}"
    file = None
    try:
        file = nameless_file(folder)
        if file is None:
            os.close(new_file(hidden))  # not kept open: Windows renames no open file
            yield hidden
        else:
            nameless = Path(f"/proc/self/fd/{file}")
            yield nameless
            # Only with a folder does this follow the link to the file itself; the absolute path has no use for it.
            os.link(nameless, hidden, src_dir_fd=file, follow_symlinks=True)
        hidden.chmod(permitted(0o666))
        hidden.replace(destination)
    except OSError as error:
        raise InputError(
            f"{destination.name!r} cannot be written: {os.strerror(error.errno or errno.EIO)}. Nothing was published."
        ) from None
    finally:
        if file is not None:
            os.close(file)
        hidden.unlink(missing_ok=True)
