# SPDX-License-Identifier: Apache-2.0
"""Which fields of a CSV file are in quotes, found by compiled code and by a regular expression."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.files.csv_quotes import check_quotes, marked_pieces


def mark(text: bytes, separator: str = ",", n_bytes: int = 1 << 20) -> tuple[list[bytes], int, bool]:
    raw = np.frombuffer(text, np.uint8)
    quotes = check_quotes(raw, separator, "people.csv")
    marker = bytes([quotes.marker])
    pieces = [piece.tobytes().replace(marker, b"*") for piece in marked_pieces(raw, separator, quotes, n_bytes)]
    return pieces, quotes.n_quoted, quotes.spans_lines


def walked(text: bytes, separator: bytes = b",") -> tuple[list[int], bool] | str:
    """Find the opening quotes field by field, or the word for what is wrong."""
    stop = re.escape(separator)
    field = re.compile(
        rb'(?:"((?:[^"]|"")*)("?)([^' + stop + rb"\r\n]*)|[^" + stop + rb"\r\n]*)(" + stop + rb"|\r\n|\r|\n|\Z)"
    )
    openings, spans, position = [], False, 0
    while position < len(text):
        found = field.match(text, position)
        assert found is not None
        if text[position : position + 1] == b'"':
            if not found.group(2):
                return "never closed"
            if found.group(3):
                return "text follows"
            openings.append(position)
            spans = spans or b"\n" in found.group(1) or b"\r" in found.group(1)
        position = found.end()
    return openings, spans


@settings(deadline=None, max_examples=50)  # the first call compiles
@given(
    st.lists(
        st.sampled_from([b'"', b'""', b",", b"\n", b"\r\n", b"\r", b"x", b"5", b'"a"', b'"a\nb"', b" "]), max_size=25
    ),
    st.integers(1, 30),
)
def test_twins_find_the_same_quotes_and_the_same_mistakes(parts: list[bytes], n_bytes: int) -> None:
    text = b"".join(parts)
    expected = walked(text)
    if isinstance(expected, str):
        with pytest.raises(InputError, match=expected):
            mark(text)
        return
    openings, spans = expected
    pieces, n_quoted, spans_lines = mark(text, n_bytes=n_bytes)
    assert (n_quoted, spans_lines) == (len(openings), spans)
    shown = bytearray(text)
    for place in reversed(openings):
        shown[place + 1 : place + 1] = b"*"
    assert b"".join(pieces) == bytes(shown)


def test_a_piece_ends_where_a_record_does():
    text = b'a,b\n"x\ny",2\r\n"z",3\r4,5'
    assert mark(text, n_bytes=1)[0] == [b"a,b\n", b'"*x\ny",2\r\n', b'"*z",3\r', b"4,5"]
    assert mark(text, n_bytes=5)[0] == [b'a,b\n"*x\ny",2\r\n', b'"*z",3\r', b"4,5"]


def test_a_quote_inside_a_field_is_text():
    assert mark(b'pipe\n5" wide\n') == ([b'pipe\n5" wide\n'], 0, False)


def test_the_marker_is_a_byte_that_does_not_occur():
    raw = np.frombuffer(b'\x01\x02,"b"', np.uint8)
    quotes = check_quotes(raw, ",", "people.csv")
    assert quotes.marker == 3
    assert [piece.tobytes() for piece in marked_pieces(raw, ",", quotes, 100)] == [b'\x01\x02,"\x03b"']


@pytest.mark.parametrize(("text", "sentence"), [(b'a\n"x', "line 2: a quoted"), (b'a\n"x"y\n', "line 2: text follows")])
def test_a_mistake_is_told_with_its_line(text: bytes, sentence: str) -> None:
    with pytest.raises(InputError, match=f"people.csv, {sentence}"):
        mark(text)
