# SPDX-License-Identifier: Apache-2.0
"""HTML for notebooks: a small table of names and values, everything escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any


def facts_as_html(title: str, facts: Sequence[tuple[str, Any]]) -> str:
    """Return a table with a row per fact; numbers are grouped by thousands, None is omitted.

    Examples
    --------
    >>> facts_as_html("Release", [("records", 48_842), ("loss", 0.1412), ("note", None)])  # doctest: +ELLIPSIS
    '<table><caption>Release</caption><tbody><tr><th scope="row">records</th><td>48,842</td></tr>...0.141...'
    """
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(_written(value))}</td></tr>'
        for name, value in facts
        if value is not None
    )
    return f"<table><caption>{escape(title)}</caption><tbody>{rows}</tbody></table>"


def _written(value: Any) -> str:
    if isinstance(value, bool | str):
        return str(value)
    if isinstance(value, float):
        return f"{value:,.3g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
