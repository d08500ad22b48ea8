# SPDX-License-Identifier: Apache-2.0
"""Mark the quoted fields of a CSV file, so that a parser which throws quotes away still tells which they were.

``csv_reading`` calls this on the bytes of the file: once to see that every quote is where it belongs, and then for
piece after piece of whole records, so that little is held beside the file. Fields are walked by compiled code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from sfumato.errors import InputError
from sfumato.files.csv_detection import QUOTE

Bytes = npt.NDArray[np.uint8]
_BLOCK_BYTES = 8 << 20  # of a file, looked at together: a mask of the whole file is as large as the file
_LINE_FEED, _CARRIAGE_RETURN = np.uint8(0x0A), np.uint8(0x0D)
_NOWHERE: Bytes = np.empty(0, np.uint8)
_FINE, _NEVER_CLOSED, _TEXT_FOLLOWS = 0, 1, 2


@dataclass(frozen=True)
class Quotes:
    """The quotes of a file.

    Attributes
    ----------
    marker : int
        A byte that does not occur in the file.
    n_quoted : int
        How many fields are in quotes.
    spans_lines : bool
        Whether one of them spans lines.
    """

    marker: int
    n_quoted: int = 0
    spans_lines: bool = False


def check_quotes(raw: Bytes, separator: str, file_name: str) -> Quotes:
    """Look at the quotes of a file, or say in which line one is where it does not belong.

    Parameters
    ----------
    raw : ndarray of uint8
        The file in UTF-8.
    separator : str
        One character of ASCII.
    file_name : str
        For messages.

    Examples
    --------
    >>> check_quotes(np.frombuffer(b'a,"b"', np.uint8), ",", "people.csv")
    Quotes(marker=1, n_quoted=1, spans_lines=False)
    """
    marker = _unused_byte(raw, file_name)
    if not _occurs(raw, QUOTE):
        return Quotes(marker)
    n_quoted, spans_lines, problem, at = _walk_fields(raw, *_as_bytes(separator, marker), len(raw), _NOWHERE)
    if problem != _FINE:
        line = np.count_nonzero(raw[:at] == _LINE_FEED) + 1
        what = {
            _NEVER_CLOSED: "a quoted field is opened and never closed. Close it, or write",
            _TEXT_FOLLOWS: "text follows the closing quote of a field. Write",
        }[problem]
        raise InputError(f'{file_name}, line {line}: {what} a quote that belongs to a value as "" inside quotes.')
    return Quotes(marker, int(n_quoted), bool(spans_lines))


def marked_pieces(raw: Bytes, separator: str, quotes: Quotes, n_bytes: int) -> Iterator[Bytes]:
    r"""Yield the file in pieces of whole records, with the marker behind every quote that opens a field.

    Parameters
    ----------
    raw : ndarray of uint8
        The file in UTF-8.
    separator : str
        One character of ASCII.
    quotes : Quotes
        What :func:`check_quotes` found.
    n_bytes : int
        How many bytes a piece has at least, but for the last.

    Examples
    --------
    >>> raw = np.frombuffer(b'a\n"b"\n', np.uint8)
    >>> quotes = check_quotes(raw, ",", "people.csv")
    >>> [piece.tobytes().replace(b"\x01", b"*") for piece in marked_pieces(raw, ",", quotes, 1)]
    [b'a\n', b'"*b"\n']
    """
    what = _as_bytes(separator, quotes.marker)
    while len(raw):
        n_quoted, _, _, stop = _walk_fields(raw, *what, n_bytes, _NOWHERE)
        yield _marked(raw[:stop], what, n_quoted)  # without a name here, so that it is gone before the next is made
        raw = raw[stop:]


def _marked(piece: Bytes, what: tuple[np.uint8, np.uint8], n_quoted: int) -> Bytes:
    if not n_quoted:
        return piece
    marked = np.empty(len(piece) + n_quoted, np.uint8)
    _walk_fields(piece, *what, len(piece), marked)
    return marked


def _as_bytes(separator: str, marker: int) -> tuple[np.uint8, np.uint8]:
    return np.uint8(ord(separator)), np.uint8(marker)


def _unused_byte(raw: Bytes, file_name: str) -> int:
    """Pick a control byte that does not occur."""
    for byte in (*range(0x01, 0x09), *range(0x0E, 0x20)):
        if not _occurs(raw, byte):
            return int(byte)
    raise InputError(f"{file_name} is not a text file: it has every control byte. Expected CSV or Parquet.")


def _occurs(raw: Bytes, byte: int) -> bool:
    return any((raw[start : start + _BLOCK_BYTES] == byte).any() for start in range(0, len(raw), _BLOCK_BYTES))


@njit(nogil=True, cache=True)
def _walk_fields(raw, separator, marker, n_bytes, out):  # type: ignore[no-untyped-def]
    """Go from field to field to the end of a record behind so many bytes; copy them with the marker if `out` has room.

    A quote inside a field that does not begin with one (``5" pipe``) is text. Returns the number of quoted fields,
    whether one spans lines, what is wrong with a field, and its place or else where the walk ended.
    """
    n = raw.shape[0]
    is_writing = out.shape[0] > 0
    n_quoted, spans_lines, i, to = 0, False, 0, 0
    begins_field = True
    while i < n:
        byte = raw[i]
        if is_writing:
            out[to] = byte
            to += 1
        i += 1
        if not (begins_field and byte == QUOTE):
            begins_field = byte in (separator, _LINE_FEED, _CARRIAGE_RETURN)
            is_end = byte == _LINE_FEED or (byte == _CARRIAGE_RETURN and not (i < n and raw[i] == _LINE_FEED))
            if is_end and i >= n_bytes:
                break
            continue
        n_quoted += 1
        opening = i - 1
        if is_writing:
            out[to] = marker
            to += 1
        is_closed = False
        while i < n and not is_closed:
            byte = raw[i]
            is_closed = byte == QUOTE
            n_copied = 1
            if is_closed and i + 1 < n and raw[i + 1] == QUOTE:  # doubled: a quote that belongs to the value
                is_closed, n_copied = False, 2
            spans_lines |= byte in (_LINE_FEED, _CARRIAGE_RETURN)
            for _ in range(n_copied):
                if is_writing:
                    out[to] = raw[i]
                    to += 1
                i += 1
        if not is_closed:
            return n_quoted, spans_lines, _NEVER_CLOSED, opening
        if i < n and raw[i] not in (separator, _LINE_FEED, _CARRIAGE_RETURN):
            return n_quoted, spans_lines, _TEXT_FOLLOWS, opening
        begins_field = False
    return n_quoted, spans_lines, _FINE, i
