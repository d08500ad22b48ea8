# SPDX-License-Identifier: Apache-2.0
"""Detect the encoding and the separator of a CSV file.

Notes tell the user about detections that a look at the file would not show; options overrule them.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import re

import numpy as np

from sfumato.errors import InputError, ParameterError, Sentence, named

SEPARATORS = (",", ";", "\t", "|")
BLANKS = "blanks"
"""The separator of fields that stand between runs of blanks."""

#: Enough to see how a file is written, little enough to be instant.
SAMPLE_BYTES = 262_144
_QUOTE, _SPACE = 0x22, 0x20
_BLOCK_BYTES = 1 << 20


def as_utf8(data: bytes, file_name: str, encoding: str | None, notes: list[str]) -> tuple[bytes, str, bool]:
    """Return the text as UTF-8, the name of its codec, and whether it starts with a byte order mark."""
    if encoding is not None:
        try:
            codec = codecs.lookup(encoding).name
            "".encode(codec)  # some names are of codecs that do not write text, such as base64
        except LookupError:
            raise ParameterError(
                f"{named('encoding', encoding)} is not known: expected a name such as utf-8, utf-16, latin-1 or cp1252."
            ) from None
    else:
        codec = _detect_encoding(data, file_name)
        if codec == "cp1252":
            notes.append(
                Sentence(
                    f"{file_name} is not UTF-8 and was read as Windows-1252 (which includes Latin-1); "
                    f"give {named('encoding')} if letters look wrong."
                )
            )
        elif codec.startswith("utf-16"):
            notes.append(f"{file_name} was read as UTF-16.")
    marks = {"utf-8": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}
    if codec == "utf-8-sig":
        codec = "utf-8"
    if codec == "utf-16":
        codec = "utf-16-be" if data.startswith(codecs.BOM_UTF16_BE) else "utf-16-le"
    mark = marks.get(codec, b"")
    has_mark = bool(mark) and data.startswith(mark)
    body = data[len(mark) :] if has_mark else data
    misfit = _first_misfit(body, codec)
    if misfit is not None:
        line = body.count(b"\n", 0, misfit) + 1
        raise InputError(
            f"{file_name} cannot be read as {codec}: line {line} has bytes that are not {codec}. "
            f"Give the encoding it was written in, for example {named('encoding', 'cp1252')}."
        )
    text = body if codec == "utf-8" else body.decode(codec).encode("utf-8")
    if b"\x00" in text:
        raise InputError(f"{file_name} is not a text file: it has zero bytes. Expected CSV or Parquet.")
    return text, codec, has_mark


def _first_misfit(data: bytes, codec: str) -> int | None:
    """Return the position of the first bytes that a codec cannot read, or None.

    Decodes in blocks: the whole text beside the bytes would double the memory.
    """
    decoder = codecs.getincrementaldecoder(codec)()
    for start in range(0, len(data) + 1, _BLOCK_BYTES):
        block = data[start : start + _BLOCK_BYTES]
        n_held = len(decoder.getstate()[0])  # the beginning of a letter, from the block before
        try:
            decoder.decode(block, final=start + _BLOCK_BYTES > len(data))
        except UnicodeDecodeError as error:
            return start - n_held + error.start
    return None


def _detect_encoding(data: bytes, file_name: str) -> str:
    if data.startswith(codecs.BOM_UTF8):
        return "utf-8"
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    sample = np.frombuffer(data[:SAMPLE_BYTES], dtype=np.uint8)
    # Without a mark, UTF-16 of mostly Latin text still shows as a zero in every other byte.
    if len(sample) >= 2 and (sample[0::2] == 0).mean() > 0.4:
        return "utf-16-be"
    if len(sample) >= 2 and (sample[1::2] == 0).mean() > 0.4:
        return "utf-16-le"
    for codec in ("utf-8", "cp1252"):
        misfit = _first_misfit(data, codec)
        if misfit is None:
            return codec
        if codec == "utf-8" and _is_utf8_with_damage(data):
            line = data.count(b"\n", 0, misfit) + 1
            raise InputError(
                f"{file_name} is UTF-8 but for some bytes, the first in line {line}. Correct them, or give the "
                f"encoding with {named('encoding')} if it is another one after all."
            )
    raise InputError(
        f"{file_name} is neither UTF-8 nor Windows-1252 text. Give the encoding it was written in with "
        f"{named('encoding')}, for example {named('encoding', 'cp437')}; Parquet files need the ending .parquet."
    )


def _is_utf8_with_damage(data: bytes) -> bool:
    """Return True if most letters beyond ASCII are valid UTF-8; Windows-1252 would spoil them all."""
    text = data.decode("utf-8", errors="replace")
    n_damaged = text.count("\ufffd")
    n_good = sum(map(len, re.findall(r"[^\x00-\x7f\ufffd]+", text)))
    return n_good > n_damaged


def checked_separator(separator: str) -> str:
    """Return the separator for a character or its name."""
    if separator == BLANKS:
        return separator
    by_name = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
    separator = by_name.get(separator, separator)
    if len(separator) != 1 or not separator.isascii() or separator in '"\r\n' or separator.isalnum():
        raise ParameterError(
            f"{named('separator', separator)}: expected one character such as ',' or ';', the word tab, or the word "
            "blanks for runs of them, and neither a quote, a letter nor a digit."
        )
    return separator


def detect_separator(text: bytes) -> str:
    """Return the character that splits every line into the same number of fields, quotes respected."""
    sample = text[:SAMPLE_BYTES].decode("utf-8", errors="ignore")
    is_cut = len(text) > SAMPLE_BYTES
    best, best_rank = ",", (False, 1)
    for candidate in SEPARATORS:
        widths: list[int] = []
        # A field longer than the csv module takes ends the look; judge by the lines before it.
        with contextlib.suppress(csv.Error):
            for row in csv.reader(io.StringIO(sample, newline=""), delimiter=candidate):
                widths += [len(row)] if row else []
        if is_cut and len(widths) > 1:
            widths.pop()
        if not widths or widths[0] < 2:
            continue
        # A separator that cuts every line alike wins; among those, the one that makes the most columns.
        rank = (len(set(widths)) == 1, widths[0])
        if rank > best_rank:
            best, best_rank = candidate, rank
    return BLANKS if not best_rank[0] and _is_separated_by_blanks(sample, is_cut=is_cut) else best


_QUOTED_OR_BLANKS = re.compile(rb'"(?:[^"]|"")*"|[ \t]+')


def _is_separated_by_blanks(sample: str, *, is_cut: bool) -> bool:
    """Return True if runs of blanks split every line into the same number of fields, and lines are not just words.

    Lines are more than words if blanks align the fields, or if one field is a number in every line.
    """
    lines = [line for line in sample.splitlines() if line.strip()]
    lines = lines[:-1] if is_cut else lines
    rows = [blanks_to_tabs(line.encode()).decode().split("\t") for line in lines]
    if len(rows) < 2 or len(rows[0]) < 2 or len({len(row) for row in rows}) > 1:
        return False
    if any("  " in line.strip() for line in lines):
        return True
    return any(all(re.fullmatch(r"[+-]?[0-9.,]+", field) for field in column) for column in zip(*rows[1:], strict=True))


def blanks_to_tabs(text: bytes) -> bytes:
    """Return text with one tab for every run of blanks outside quotes, and none at line ends.

    Examples
    --------
    >>> blanks_to_tabs(b' 31   "New York" 2\\n')
    b'31\\t"New York"\\t2\\n'
    """
    tabbed = _QUOTED_OR_BLANKS.sub(lambda found: found[0] if found[0][:1] == b'"' else b"\t", text)
    return re.sub(rb"(?m)^\t|\t(?=\r?$)", b"", tabbed)


_SEPARATOR_LINE = re.compile(rb"sep=([^\r\n])\r?\n", re.IGNORECASE)


def separator_line(text: bytes) -> tuple[str | None, bytes]:
    """Return the separator that a first line such as ``sep=;`` declares for Excel, and the text after that line."""
    found = _SEPARATOR_LINE.match(text)
    return (None, text) if found is None else (found[1].decode("ascii", errors="replace"), text[found.end() :])


def without_space_after_separator(text: bytes, separator: str) -> bytes:
    """Drop the spaces of ``39, Private`` if every separator outside quotes is followed by one."""
    if separator == " ":
        return text
    raw = np.frombuffer(text, dtype=np.uint8)
    for part in (raw[:SAMPLE_BYTES], raw):  # the beginning of most files already decides
        at = np.flatnonzero(part[:-1] == ord(separator))
        at = at[np.searchsorted(np.flatnonzero(part == _QUOTE), at) % 2 == 0]
        if not len(at) or not (part[at + 1] == _SPACE).all():
            return text
    return np.delete(raw, at + 1).tobytes()
