# SPDX-License-Identifier: Apache-2.0
"""Read JSON documents that somebody may have changed: whatever is wrong with one is an InputError that says where.

A shape says what a document must be like. It is a function that returns True for what fits, a list with the shape of
every entry, a dict with the shape of every field (``"name?"`` may be absent), or :class:`MapOf`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sfumato.errors import InputError

Shape = Any


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
        What writes such documents, for the message: ``"Partition.save"``.

    Raises
    ------
    InputError
        For what is not JSON, not one object, nested too deeply, or holds numbers that nobody could write.
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
    """Raise InputError that names the first part of a document that does not fit a shape, but not its value.

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
    """Return True for text, true and false, and numbers: what can be a category."""
    return isinstance(value, str | bool) or is_number(value)


def one_of(*words: Any) -> Callable[[Any], bool]:
    """Return a shape that some words fit."""
    return lambda value: isinstance(value, str | None) and value in words


def or_none(shape: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a shape that null fits, too."""
    return lambda value: value is None or shape(value)
