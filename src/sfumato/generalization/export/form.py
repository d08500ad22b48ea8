# SPDX-License-Identifier: Apache-2.0
"""A generalization as one web page that asks only for buckets; it needs no other file and no network.

A person who would rather type the exact value can: the page turns it into its bucket in the browser, and only the
bucket is sent. The page's own policy forbids it to load anything or to send anywhere but where it was told. With a
decision of a model, questions come one by one, and end where no further answer can change it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from html import escape
from urllib.parse import urlsplit

from sfumato.errors import ParameterError
from sfumato.generalization.attributes import Attribute, CategoryAttribute
from sfumato.generalization.export.javascript import javascript_source, literal, template
from sfumato.generalization.export.wording import MOST_CHOICES, Choice, Wording, html_text
from sfumato.generalization.naming import printable

_INPUTS = {
    "date": 'type="date"',
    "datetime": 'type="datetime-local" step="any"',
    "time": 'type="time" step="any"',
    "duration": 'type="text" inputmode="decimal"',
    None: 'type="text" inputmode="decimal"',
}


def form_page(
    attributes: Sequence[Attribute],
    fingerprint: str,
    wording: Wording,
    *,
    title: str | None = None,
    action: str | None = None,
    questions: str = "",
) -> str:
    """Return the page.

    Parameters
    ----------
    attributes : sequence of OrderedAttribute or CategoryAttribute
    fingerprint : str
        Fingerprint of the generalization, named at the foot of the page.
    wording : Wording
    title : str, optional
    action : str, optional
        URL to which the buckets are sent by POST. None: the page shows the minimized record, offers it as a file, and
        tells scripts beside it by the event ``sfumato:record`` of the document.
    questions : str, default=""
        A script that defines ``questions``, by which they come one after the other; empty: all are asked.
    """
    target = _form_target(action)
    texts = wording.texts
    style = template("form.css")
    told = {"wrong": texts.wrong, "expected": dict(texts.expected)}
    if questions:
        told |= {"settled": texts.settled, "question": texts.question_of}
    shown = [wording.shown(attribute) for attribute in attributes]
    script = (
        javascript_source(attributes, fingerprint)
        + questions
        + f"const words = {literal(told)};\nconst shown = {literal(shown)};\n"
        + template("form.js")
    )
    asked = [place for place, attribute in enumerate(attributes) if attribute.is_collected]
    fields = "\n".join(_question(place, attributes[place], wording) for place in asked)
    where = "" if action is None else f' action="{escape(action)}"'
    heading = texts.title if title is None else title
    body = f"""<p class="intro quiet">{html_text(texts.intro)}
{html_text(texts.exact_shown if action is None else texts.exact_sent)}</p>
<form method="post" autocomplete="off"{where}>
{fields}
{_steps(wording) if questions else ""}<div class="send"><button type="submit">{
        html_text(texts.show if action is None else texts.send)
    }</button>
<p class="quiet">{html_text(_counted(asked, attributes, wording))}</p></div>
</form>
{_result(wording) if action is None else ""}<footer>{_not_collected(attributes, wording)}
<p class="quiet">{html_text(texts.generalization.format(fingerprint[:16]))}</p></footer>"""
    return page(heading, body, wording, style=style, script=script, target=target)


def page(title: str, body: str, wording: Wording, *, style: str, script: str = "", target: str = "'none'") -> str:
    """Return a page that loads nothing; its policy allows its own style and script alone."""
    allowed = f"script-src '{_digest(script)}'; " if script else ""
    policy = f"default-src 'none'; style-src '{_digest(style)}'; {allowed}base-uri 'none'; form-action {target}"
    scripted = f"<script>{script}</script>\n" if script else ""
    return f"""<!doctype html>
<html lang="{wording.texts.language}">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{html_text(title)}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{html_text(title)}</h1>
{body}
</main>
{scripted}</body>
</html>
"""


def _result(wording: Wording) -> str:
    texts = wording.texts
    return f"""<section class="result" tabindex="-1" aria-labelledby="result-title" hidden>
<h2 id="result-title">{html_text(texts.result_title)}</h2>
<p class="quiet">{html_text(texts.result_note)}</p>
<pre></pre>
<button type="button" class="second">{html_text(texts.save)}</button>
</section>
"""


def _steps(wording: Wording) -> str:
    """Return what leads from question to question."""
    return (
        f'<div class="steps"><button type="button" class="next">{html_text(wording.texts.following)}</button>'
        '<p class="quiet" role="status"></p></div>\n'
    )


def _question(place: int, attribute: Attribute, wording: Wording) -> str:
    name, title = escape(attribute.name), wording.title(attribute)
    choices = wording.choices(attribute)
    is_long = attribute.n_buckets > MOST_CHOICES
    made = _list(choices, name, title, wording) if is_long else _radios(choices, name)
    reason = wording.reason(attribute)
    why = f'<p class="quiet why">{html_text(wording.texts.why.format(reason))}</p>\n' if reason else ""
    return (
        f'<fieldset data-attribute="{place}">\n<legend>{html_text(title)}</legend>\n'
        f"{made}\n{why}{_exact(place, attribute, wording)}</fieldset>"
    )


def _radios(choices: Sequence[Choice], name: str) -> str:
    made = [
        f'<label class="choice"><input type="radio" name="{name}" value="{escape(choice.label)}" required> '
        f"<span>{html_text(choice.shown)}{_remark(choice)}</span></label>"
        for choice in choices
    ]
    return '<div class="choices">\n' + "\n".join(made) + "\n</div>"


def _remark(choice: Choice) -> str:
    return f' <span class="quiet">{html_text(choice.remark)}</span>' if choice.remark else ""


def _list(choices: Sequence[Choice], name: str, title: str, wording: Wording) -> str:
    made = [
        f'<option value="{escape(choice.label)}">{html_text(f"{choice.shown} {choice.remark}".strip())}</option>'
        for choice in choices
    ]
    first = f'<option value="">{html_text(wording.texts.please_choose)}</option>'
    labelled = f'aria-label="{escape(printable(title))}"'
    return f'<select name="{name}" {labelled} required>\n{first}\n' + "\n".join(made) + "\n</select>"


def _exact(place: int, attribute: Attribute, wording: Wording) -> str:
    """Offer to find the bucket of an exact value, where the choices do not list all values anyway."""
    options, texts = "", wording.texts
    if isinstance(attribute, CategoryAttribute):
        if attribute.value_type == "boolean" or all(len(members) <= 1 for members in attribute.members):
            return ""
        kind, what = ('type="text"', texts.inputs["category"])
        options = "".join(f'<option value="{escape(str(value))}"></option>' for value in attribute.categories)
        options = f'<datalist id="known-{place}">{options}</datalist>'
        kind += f' list="known-{place}"'
    else:
        kind, what = _INPUTS[attribute.moment], texts.inputs[attribute.moment or "number"]
        what += texts.in_utc if attribute.is_zoned else ""
        if attribute.n_value_buckets == 1:
            return ""
    return (
        f"<details><summary>{html_text(texts.type_exact)}</summary>\n"
        f'<div class="exact"><label>{html_text(what)} <input {kind} aria-describedby="found-{place}"></label>'
        f'<output id="found-{place}" aria-live="polite"></output></div>{options}</details>\n'
    )


def _counted(asked: Sequence[int], attributes: Sequence[Attribute], wording: Wording) -> str:
    if len(asked) == len(attributes):
        return wording.texts.only_groups
    return wording.texts.only_groups_of.format(len(attributes) - len(asked), len(attributes))


def _not_collected(attributes: Sequence[Attribute], wording: Wording) -> str:
    names = [wording.title(attribute) for attribute in attributes if not attribute.is_collected]
    told = wording.texts.not_collected.format(", ".join(names))
    return f'<p class="quiet">{html_text(told)}</p>' if names else ""


def _digest(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii")


def _form_target(action: str | None) -> str:
    """Return where the page may send its form, as its content policy says it."""
    if action is None:
        return "'none'"
    parts = urlsplit(action)
    if parts.scheme in ("http", "https") and parts.netloc:
        return f"{parts.scheme}://{parts.netloc}"
    if parts.scheme or any(sign in action for sign in "<>\"' ;,"):
        raise ParameterError(
            "action is not an address that a form can be sent to: expected one that begins with https:// or /, or a "
            "relative one."
        )
    return "'self'"
