# SPDX-License-Identifier: Apache-2.0
"""Parts of HTML pages: the page itself, sections, tables and lists. Everything that is not a table's cell is escaped.

``page`` and ``questionnaire_page`` put them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib.resources import files
from string import Template

from sfumato.report.charts import safe


def whole_page(*, title: str, lead: str, content: str, footer: str) -> str:
    """Return a page; `content` is HTML already."""
    folder = files("sfumato.report").joinpath("templates")
    page = Template(folder.joinpath("page.html").read_text(encoding="utf-8"))
    style = folder.joinpath("style.css").read_text(encoding="utf-8")
    return page.substitute(title=safe(title), lead=safe(lead), style=style, content=content, footer=safe(footer))


def definitions(facts: Iterable[tuple[str, str]]) -> str:
    """Return a list of names and what they are; nothing for none."""
    inside = "".join(f"<dt>{safe(name)}</dt><dd>{safe(value)}</dd>" for name, value in facts)
    return f"<dl>{inside}</dl>" if inside else ""


def section(heading: str, content: str, *, css_class: str = "") -> str:
    """Return a section with its heading; `content` is HTML already."""
    identity = "".join(c if c.isalnum() else "-" for c in heading.lower())
    attribute = f' class="{css_class}"' if css_class else ""
    return (
        f'<section{attribute} aria-labelledby="{identity}"><h2 id="{identity}">{safe(heading)}</h2>{content}</section>'
    )


def paragraphs(sentences: Sequence[str]) -> str:
    """Return a paragraph for each sentence."""
    return "".join(f"<p>{safe(sentence)}</p>" for sentence in sentences)


def bullets(sentences: Sequence[str]) -> str:
    """Return a list of sentences."""
    return f"<ul>{''.join(f'<li>{safe(sentence)}</li>' for sentence in sentences)}</ul>"


def table(
    caption: str,
    names: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Sequence[int] = (),
    words: int | None = None,
) -> str:
    """Make a table; cells are HTML already. `numbers` are columns to align right, `words` is one of whole sentences."""
    kind = [' class="number"' if place in numbers else "" for place in range(len(names))]
    if words is not None:
        kind[words] = ' class="words"'
    head = "".join(
        f'<th scope="col" role="columnheader"{kind[place]}>{safe(name)}</th>' for place, name in enumerate(names)
    )
    body = "".join(
        '<tr role="row">'
        + "".join(
            f'<th scope="row" role="rowheader">{cell}</th>'
            if place == 0
            else f'<td role="cell"{kind[place]} data-name="{safe(names[place])}">{cell}</td>'
            for place, cell in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    # On a phone a row becomes a card with the names of its cells; the roles keep it a table for screen readers.
    return (
        f'<table role="table"><caption>{safe(caption)}</caption>'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table>'
    )
