# SPDX-License-Identifier: Apache-2.0
"""Parse names of columns from the command line: separated by commas, exact, in quotes if necessary."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from sfumato.errors import ParameterError

# A part may begin with a text in quotes, in which a quote is doubled; then come other letters up to the next comma.
_PART = re.compile(r'(?P<blanks>[ \t]*)(?:"(?P<quoted>(?:[^"]|"")*)")?(?P<rest>[^,]*)(?:,|$)')


def split_names(given: Sequence[str] | None, columns: Sequence[str] = ()) -> list[str]:
    """Return names separated by commas; an option can also be repeated.

    A name in quotes is exact, with its blanks and commas. A name without quotes is exact if a column has that name;
    otherwise blanks around it are dropped.

    Parameters
    ----------
    given : sequence of str or None
    columns : sequence of str
        Columns of the file.

    Examples
    --------
    >>> split_names(["age, sex", "zip"])
    ['age', 'sex', 'zip']
    >>> split_names(['"city, state","age "'])
    ['city, state', 'age ']
    >>> split_names(["city, state"], ["city, state"])
    ['city, state']
    """
    names: list[str] = []
    for text in given or ():
        if text in columns:
            names.append(text)
            continue
        for part, is_quoted in parts_of(text):
            if is_quoted:
                names.append(part)
            elif part.strip() or part in columns:
                names.append(_without_blanks(part, columns))
    return names


def parts_of(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts between commas, and whether a whole part was in quotes; text after quotes is appended."""
    at = 0
    while at <= len(text):
        found = _PART.match(text, at)
        assert found is not None  # it matches anything
        quoted, rest = found["quoted"], found["rest"]
        if quoted is None:
            yield found["blanks"] + rest, False
        elif rest.strip():
            yield quoted.replace('""', '"') + rest.rstrip(), False
        else:
            yield quoted.replace('""', '"'), True
        if found.end() == len(text) and not text.endswith(","):
            return
        at = found.end() if found.end() > at else at + 1
        if at == len(text):
            return


def _without_blanks(part: str, columns: Sequence[str]) -> str:
    if part not in columns:
        return part.strip()
    if part != part.strip() and part.strip() in columns:
        raise ParameterError(
            f"the name {part!r} is that of one column, and {part.strip()!r} that of another: expected an "
            "unambiguous name. Put the name in quotes, such as '\"age \",zip'."
        )
    return part


def nearly_equal_names(names: Sequence[str]) -> list[str]:
    """Return a note for each group of names that differ in blanks or capitals only."""
    alike = defaultdict(list)
    for name in names:
        alike[plain_name(name)].append(name)
    return [
        f"the columns {' and '.join(map(repr, group))} differ in blanks or capitals only. Names are exact: check that "
        "you name the one you mean."
        for group in alike.values()
        if len(group) > 1
    ]


def plain_name(name: str) -> str:
    """Return a name without differences that people overlook: surrounding and repeated blanks, capitals."""
    return " ".join(name.split()).casefold()
