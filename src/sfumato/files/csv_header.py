# SPDX-License-Identifier: Apache-2.0
"""Whether the first line of a CSV file names the columns or is a record.

A record that is taken for the header would be published as one, and shown in messages. So the user is asked where the
first line looks like a record, and the question shows no part of it. ``csv_reading`` calls this.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sfumato.errors import InputError, named

if TYPE_CHECKING:
    from sfumato.files.csv_reading import TextColumn

_NUMBER = r"[+-]?(?:\d+(?:[.,]\d+)*|[.,]\d+)(?:[eE][+-]?\d+)?%?"
_DATE = r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}(?:[ T].*)?"
_VALUE = f"^(?:{_NUMBER}|{_DATE})$"
_MOST = 0.9  # share of a column's values that makes it one of numbers or dates, or of one shape


def refuse_record_as_header(columns: Sequence[TextColumn], file_name: str) -> None:
    """Raise InputError where the first line looks like a record; the message has counts, and nothing of the line."""
    n_alike = sum(_is_like_values_below(column) for column in columns)
    if n_alike:
        raise InputError(
            f"the first line of {file_name} looks like a record: in {n_alike} of {len(columns)} columns it is like the "
            f"values below it. Expected the names of the columns. Give {named('header', False)} if it is a record "
            f"(columns are then called column1, column2, ...), or {named('header', True)} if it names the columns."
        )


def check_distinct_names(columns: Sequence[TextColumn], file_name: str) -> None:
    """Raise InputError where columns have the same name, which may be somebody's value: told by their places."""
    places = defaultdict(list)
    for place, column in enumerate(columns, start=1):
        if column.written_name:
            places[column.written_name].append(place)
    repeated = [own for own in places.values() if len(own) > 1]
    if repeated:
        shown = " and ".join(map(str, repeated[0][:5]))
        more = f", and so have {len(repeated) - 1} other groups of columns" if len(repeated) > 1 else ""
        raise InputError(
            f"the first line of {file_name} has the same text in columns {shown}{more}. Expected every column to have "
            f"its own name: rename them, or give {named('header', False)} if the first line is a record."
        )


def _is_like_values_below(column: TextColumn) -> bool:
    """Whether a field of the first line is one of the values of its column, or a number or code as they are."""
    import pyarrow as pa
    import pyarrow.compute as pc

    name = column.written_name
    if not name:
        return False
    filled = pc.and_(pa.array(column.counts > 0), pc.greater(pc.binary_length(column.fields), 0))
    fields, counts = column.fields.filter(filled), pa.array(column.counts).filter(filled)
    if not len(fields):
        return False
    if pc.any(pc.equal(fields, name)).as_py():
        return True
    if re.match(_VALUE, name):
        alike = pc.match_substring_regex(fields, _VALUE)
    elif re.search(r"[0-9@]", name):
        alike = pc.equal(_shape(fields), _shape(pa.array([name]))[0])
    else:
        return False
    return bool(pc.sum(counts.filter(alike), min_count=0).as_py() >= _MOST * pc.sum(counts).as_py())


def _shape(fields: Any) -> Any:
    """Return text with every run of digits as 9 and every run of letters as a: A12-7 and B3-41 are alike."""
    import pyarrow.compute as pc

    return pc.replace_substring_regex(pc.replace_substring_regex(fields, r"\pL+", "a"), "[0-9]+", "9")
