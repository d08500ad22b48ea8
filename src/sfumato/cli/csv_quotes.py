# SPDX-License-Identifier: Apache-2.0
"""Mark the quoted fields of a CSV file, so that a parser which throws quotes away still tells which they were.

``csv_reading`` calls this on the bytes of the file. Fields are walked by compiled code, twice: once to see that every
quote is where it belongs, once to write, so that nothing is held beside the file and its marked copy.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from sfumato.cli.csv_detection import QUOTE
from sfumato.errors import InputError

Bytes = npt.NDArray[np.uint8]
_BLOCK_BYTES = 8 << 20  # of a file, looked at together: a mask of the whole file is as large as the file
_LINE_FEED, _CARRIAGE_RETURN = np.uint8(0x0A), np.uint8(0x0D)
_FINE, _NEVER_CLOSED, _TEXT_FOLLOWS = 0, 1, 2


def mark_quoted(raw: Bytes, separator: str, file_name: str) -> tuple[Bytes, int, int, bool]:
    """Put a byte that does not occur behind every quote that opens a field.

    Parameters
    ----------
    raw : ndarray of uint8
        The file in UTF-8.
    separator : str
        One character of ASCII.
    file_name : str
        For messages.

    Returns
    -------
    marked, marker, n_quoted, spans_lines
        The bytes with the marker, the marker, how many fields are in quotes, and whether one of them spans lines.

    Examples
    --------
    >>> marked, marker, n_quoted, spans_lines = mark_quoted(np.frombuffer(b'a,"b"', np.uint8), ",", "people.csv")
    >>> marked.tobytes().replace(bytes([marker]), b"*"), n_quoted, spans_lines
    (b'a,"*b"', 1, False)
    """
    marker = _unused_byte(raw, file_name)
    if not _occurs(raw, QUOTE):
        return raw, marker, 0, False
    stop = np.uint8(ord(separator))
    n_quoted, spans_lines, problem, at = _walk_fields(raw, stop, np.uint8(marker), np.empty(0, np.uint8))
    if problem != _FINE:
        line = np.count_nonzero(raw[:at] == _LINE_FEED) + 1
        what = {
            _NEVER_CLOSED: "a quoted field is opened and never closed. Close it, or write",
            _TEXT_FOLLOWS: "text follows the closing quote of a field. Write",
        }[problem]
        raise InputError(f'{file_name}, line {line}: {what} a quote that belongs to a value as "" inside quotes.')
    if not n_quoted:
        return raw, marker, 0, False
    marked = np.empty(len(raw) + n_quoted, np.uint8)
    _walk_fields(raw, stop, np.uint8(marker), marked)
    return marked, marker, int(n_quoted), bool(spans_lines)


def _unused_byte(raw: Bytes, file_name: str) -> int:
    """Pick a control byte that does not occur."""
    for byte in (*range(0x01, 0x09), *range(0x0E, 0x20)):
        if not _occurs(raw, byte):
            return int(byte)
    raise InputError(f"{file_name} is not a text file: it has every control byte. Expected CSV or Parquet.")


def _occurs(raw: Bytes, byte: int) -> bool:
    return any((raw[start : start + _BLOCK_BYTES] == byte).any() for start in range(0, len(raw), _BLOCK_BYTES))


@njit(nogil=True, cache=True)
def _walk_fields(raw, separator, marker, out):  # type: ignore[no-untyped-def]
    """Go from field to field; copy the bytes with the marker where there is room in `out`.

    A quote inside a field that does not begin with one (``5" pipe``) is text. Returns the number of quoted fields,
    whether one spans lines, and what is wrong with the field at which place.
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
            n_bytes = 1
            if is_closed and i + 1 < n and raw[i + 1] == QUOTE:  # doubled: a quote that belongs to the value
                is_closed, n_bytes = False, 2
            spans_lines |= byte in (_LINE_FEED, _CARRIAGE_RETURN)
            for _ in range(n_bytes):
                if is_writing:
                    out[to] = raw[i]
                    to += 1
                i += 1
        if not is_closed:
            return n_quoted, spans_lines, _NEVER_CLOSED, opening
        if i < n and raw[i] not in (separator, _LINE_FEED, _CARRIAGE_RETURN):
            return n_quoted, spans_lines, _TEXT_FOLLOWS, opening
        begins_field = False
    return n_quoted, spans_lines, _FINE, 0
