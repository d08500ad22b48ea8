# SPDX-License-Identifier: Apache-2.0
"""A page that shows a person what will be asked, in which words, and why; and what will not be asked.

It has no form and no script: it can be read, printed and put on a wall before anything is collected.
"""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.generalization.attributes import Attribute
from sfumato.generalization.export.form import page
from sfumato.generalization.export.javascript import template
from sfumato.generalization.export.wording import Wording, html_text


def preview_page(
    attributes: Sequence[Attribute],
    fingerprint: str,
    wording: Wording,
    *,
    title: str | None = None,
    is_personal: bool = False,
) -> str:
    """Return the page.

    Parameters
    ----------
    attributes : sequence of OrderedAttribute or CategoryAttribute
    fingerprint : str
        Fingerprint of the generalization, named at the foot of the page.
    wording : Wording
    title : str, optional
    is_personal : bool, default=False
        Whether questions end early for people whose decision is settled.
    """
    texts = wording.texts
    asked = [attribute for attribute in attributes if attribute.is_collected]
    spared = [attribute for attribute in attributes if not attribute.is_collected]
    counted = texts.preview_intro.format(asked=len(asked), spared=len(spared))
    questions = "\n".join(_asked(number, attribute, wording) for number, attribute in enumerate(asked, 1))
    early = f"<p>{html_text(texts.personal_text)}</p>" if is_personal else ""
    body = f"""<p class="intro">{html_text(counted)}
{html_text(texts.intro)}</p>
<section aria-labelledby="asked"><h2 id="asked">{html_text(texts.asked_title)}</h2>
<ol class="cards">
{questions}
</ol></section>
<section aria-labelledby="spared"><h2 id="spared">{html_text(texts.not_asked_title)}</h2>
{_not_asked(spared, wording)}</section>
<section aria-labelledby="free"><h2 id="free">{html_text(texts.free_title)}</h2>
<p>{html_text(texts.free_text)}</p>{early}</section>
<footer><p class="quiet">{html_text(texts.generalization.format(fingerprint[:16]))}</p></footer>"""
    return page(texts.preview_title if title is None else title, body, wording, style=template("form.css"))


def _asked(number: int, attribute: Attribute, wording: Wording) -> str:
    texts, reason = wording.texts, wording.reason(attribute)
    choices = "".join(
        f"<li>{html_text(f'{choice.shown} {choice.remark}'.strip())}</li>" for choice in wording.choices(attribute)
    )
    why = f'<p class="why">{html_text(texts.why.format(reason))}</p>' if reason else ""
    return (
        f'<li class="card"><h3>{number}. {html_text(wording.title(attribute))}</h3>{why}\n'
        f'<p class="quiet">{html_text(texts.choices_title)}</p><ul>{choices}</ul></li>'
    )


def _not_asked(spared: Sequence[Attribute], wording: Wording) -> str:
    texts = wording.texts
    if not spared:
        return f"<p>{html_text(texts.nothing_left)}</p>"
    titles_of: dict[str | None, list[str]] = {}
    for attribute in spared:
        titles_of.setdefault(wording.reason(attribute), []).append(wording.title(attribute))
    lists = []
    for reason, titles in titles_of.items():
        told = f'<p class="quiet">{html_text(reason)}</p>' if reason else ""
        lists.append(f"{told}<ul>{''.join(f'<li><strong>{html_text(title)}</strong></li>' for title in titles)}</ul>")
    return f"<p>{html_text(texts.not_asked_intro)}</p>\n" + "\n".join(lists)
