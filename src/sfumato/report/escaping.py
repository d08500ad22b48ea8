# SPDX-License-Identifier: Apache-2.0
"""Names of columns and categories come from anyone: how they are put on a page without acting on it."""

from html import escape

_TURN_DIRECTION = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def safe(text: str) -> str:
    """Return text for HTML; characters that turn the direction of writing show as replaced, control ones as blanks.

    Examples
    --------
    >>> safe("<b>")
    '&lt;b&gt;'
    """
    return escape("".join(_visible(character) for character in text))


def _visible(character: str) -> str:
    if character in _TURN_DIRECTION:
        return "\ufffd"
    return character if character >= " " and character != "\x7f" else " "
