# SPDX-License-Identifier: Apache-2.0
"""Titles of columns for readers of a form, from the ``[titles]`` section of a policy or of any TOML file."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path

from sfumato.errors import InputError, ParameterError

_EXAMPLE = 'Write the line [titles] and below it lines such as AGEP = "Age in years".'


def read_titles(path: Path, columns: Sequence[str], option: str = "--titles") -> dict[str, str]:
    """Return the title of every column that has one.

    Parameters
    ----------
    path : Path
        A TOML file with a section ``[titles]``.
    columns : sequence of str
        Columns of the table; a title of any other is refused.
    option : str
        What messages call the file.
    """
    from sfumato.files.table_file import unknown_column

    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise InputError(f"{option} {str(path)!r} cannot be read ({type(error).__name__}): expected a file.") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(
            f"{option} {path.name!r} is not valid TOML ({type(error).__name__}): expected a section [titles]. "
            f"{_EXAMPLE}"
        ) from None
    titles = document.get("titles")
    if not isinstance(titles, dict):
        raise InputError(f"{option} {path.name!r} has no section [titles]: expected one. {_EXAMPLE}")
    for name, title in titles.items():
        if name not in columns:
            raise ParameterError(unknown_column(f"[titles] of {option}", name, columns))
        if not isinstance(title, str) or not title.strip():
            raise ParameterError(f"{option} {path.name!r}: the title of {name!r} is not text in quotes. {_EXAMPLE}")
    return titles
