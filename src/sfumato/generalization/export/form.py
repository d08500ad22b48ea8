# SPDX-License-Identifier: Apache-2.0
"""A generalization as one web page that asks only for buckets; it needs no other file and no network.

A person who would rather type the exact value can: the page turns it into its bucket in the browser, and only the
bucket is sent. The page's own policy forbids it to load anything or to send anywhere but where it was told.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import urlsplit

from sfumato.errors import ParameterError
from sfumato.generalization.attributes import Attribute, CategoryAttribute
from sfumato.generalization.export.javascript import javascript_source, template
from sfumato.generalization.naming import printable
from sfumato.labels import with_missing

RATHER_NOT_SAY = "Rather not say"
SOMETHING_ELSE = "Something else"
_MOST_CHOICES = 8  # more buckets than this are a list to open
_LONGEST_REMARK = 48
_INPUTS = {
    "date": ('type="date"', "The exact date"),
    "datetime": ('type="datetime-local" step="any"', "The exact date and time"),
    "time": ('type="time" step="any"', "The exact time"),
    "duration": ('type="text" inputmode="decimal"', "The exact length in seconds"),
    None: ('type="text" inputmode="decimal"', "The exact number"),
}


def form_page(
    attributes: Sequence[Attribute],
    fingerprint: str,
    *,
    title: str = "A few questions",
    action: str | None = None,
    titles: Mapping[str, str] | None = None,
) -> str:
    """Return the page.

    Parameters
    ----------
    attributes : sequence of OrderedAttribute or CategoryAttribute
    fingerprint : str
        Fingerprint of the generalization, named at the foot of the page.
    title : str
    action : str, optional
        URL to which the buckets are sent by POST. None: the page shows the minimized record, offers it as a file, and
        tells scripts beside it by the event ``sfumato:record`` of the document.
    titles : mapping of str to str, optional
        What the questions are called; an attribute without a title goes by its name.
    """
    target = _form_target(action)
    titled = _checked_titles(titles, attributes)
    style = template("form.css")
    script = javascript_source(attributes, fingerprint) + template("form.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'; "
        f"form-action {target}"
    )
    asked = [place for place, attribute in enumerate(attributes) if attribute.is_collected]
    questions = "\n".join(_question(place, attributes[place], titled[attributes[place].name]) for place in asked)
    where = "" if action is None else f' action="{escape(action)}"'
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{_text(title)}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{_text(title)}</h1>
<p class="intro quiet">Every question asks for a range or a group, because nothing finer is needed.
If you type an exact value, it stays on this page: only its group is {"shown" if action is None else "sent"}.</p>
<form method="post" autocomplete="off"{where}>
{questions}
<div class="send"><button type="submit">{"Show my answers" if action is None else "Send"}</button>
<p class="quiet">{_counted(asked, attributes)}</p></div>
</form>
{_RESULT if action is None else ""}<footer>{_not_collected(attributes, titled)}
<p class="quiet">Generalization {fingerprint[:16]}</p></footer>
</main>
<script>{script}</script>
</body>
</html>
"""


_RESULT = """<section class="result" tabindex="-1" aria-labelledby="result-title" hidden>
<h2 id="result-title">Your answers</h2>
<p class="quiet">This is all there is. Nothing was sent anywhere.</p>
<pre></pre>
<button type="button" class="second">Save as a file</button>
</section>
"""


def _checked_titles(titles: Mapping[str, str] | None, attributes: Sequence[Attribute]) -> dict[str, str]:
    """Return the title of every attribute; raise ParameterError for a title that is not text or of no attribute."""
    given = dict(titles or {})
    for name, words in given.items():
        if name not in (attribute.name for attribute in attributes):
            raise ParameterError(
                f"titles names {name!r}, which is not an attribute of the generalization: expected some of its "
                f"{len(attributes)} attributes. Correct the name, or take it out."
            )
        if not isinstance(words, str) or not words.strip():
            raise ParameterError(
                f"titles has no text for {name!r}: expected what its question is called, such as 'Year of birth'."
            )
    return {attribute.name: given.get(attribute.name, attribute.name) for attribute in attributes}


def _question(place: int, attribute: Attribute, title: str) -> str:
    name = escape(attribute.name)
    choices = _choices(attribute)
    made = _list(choices, name, title) if attribute.n_buckets > _MOST_CHOICES else _radios(choices, name)
    return (
        f'<fieldset data-attribute="{place}">\n<legend>{_text(title)}</legend>\n'
        f"{made}\n{_exact(place, attribute)}</fieldset>"
    )


@dataclass(frozen=True)
class _Choice:
    """One answer: the label that is sent, what a person reads, and a remark beside it."""

    label: str
    shown: str
    remark: str = ""


def _radios(choices: Sequence[_Choice], name: str) -> str:
    made = [
        f'<label class="choice"><input type="radio" name="{name}" value="{escape(choice.label)}" required> '
        f"<span>{_text(choice.shown)}{_remark(choice)}</span></label>"
        for choice in choices
    ]
    return '<div class="choices">\n' + "\n".join(made) + "\n</div>"


def _remark(choice: _Choice) -> str:
    return f' <span class="quiet">{_text(choice.remark)}</span>' if choice.remark else ""


def _list(choices: Sequence[_Choice], name: str, title: str) -> str:
    made = [
        f'<option value="{escape(choice.label)}">{_text(f"{choice.shown} {choice.remark}".strip())}</option>'
        for choice in choices
    ]
    first = '<option value="">Please choose</option>'
    labelled = f'aria-label="{escape(printable(title))}"'
    return f'<select name="{name}" {labelled} required>\n{first}\n' + "\n".join(made) + "\n</select>"


def _choices(attribute: Attribute) -> list[_Choice]:
    """Return a choice for every bucket, then those for what is not listed and for no answer, where they share one."""
    shown = _shown(attribute)
    choices = [_Choice(label, words) for label, words in zip(attribute.labels, shown, strict=True)]
    if isinstance(attribute, CategoryAttribute) and attribute.has_rare and attribute.members[attribute.unseen]:
        choices.append(_shared(attribute, attribute.unseen, SOMETHING_ELSE, shown))
    if not attribute.has_missing_bucket:
        choices.append(_shared(attribute, attribute.missing, RATHER_NOT_SAY, shown))
    return choices


def _shared(attribute: Attribute, bucket: int, words: str, shown: Sequence[str]) -> _Choice:
    """Return a choice that shares the bucket of others, and says so."""
    other = shown[bucket]
    if len(other) > _LONGEST_REMARK:
        other = other[: _LONGEST_REMARK - 1].rstrip() + "…"
    return _Choice(attribute.labels[bucket], words, f"(counts as: {other})")


def _shown(attribute: Attribute) -> list[str]:
    """Return what stands beside each bucket: the label, in a person's words where they differ."""
    shown = list(attribute.labels)
    if attribute.saw_missing and not attribute.has_missing_bucket:  # no answer is a choice of its own
        shown[attribute.missing] = shown[attribute.missing].removesuffix(with_missing(""))
    for bucket, members in enumerate(attribute.members if isinstance(attribute, CategoryAttribute) else ()):
        words = ["Yes" if member is True else "No" if member is False else str(member) for member in members]
        if len(words) > _MOST_CHOICES:
            words = [*words[: _MOST_CHOICES - 1], f"{len(words) - _MOST_CHOICES + 1} others"]
        if not words:
            shown[bucket] = SOMETHING_ELSE
        elif all(word.strip() for word in words):
            shown[bucket] = ", ".join(words[:-1]) + (" or " if words[1:] else "") + words[-1]
    if attribute.has_missing_bucket:
        shown[-1] = RATHER_NOT_SAY
    return shown


def _exact(place: int, attribute: Attribute) -> str:
    """Offer to find the bucket of an exact value, where the choices do not list all values anyway."""
    options = ""
    if isinstance(attribute, CategoryAttribute):
        if attribute.value_type == "boolean" or all(len(members) <= 1 for members in attribute.members):
            return ""
        kind, what = ('type="text"', "The exact answer")
        options = "".join(f'<option value="{escape(str(value))}"></option>' for value in attribute.categories)
        options = f'<datalist id="known-{place}">{options}</datalist>'
        kind += f' list="known-{place}"'
    else:
        kind, what = _INPUTS[attribute.moment]
        what += " in UTC" if attribute.is_zoned else ""
        if attribute.n_value_buckets == 1:
            return ""
    return (
        "<details><summary>Type the exact value instead</summary>\n"
        f'<div class="exact"><label>{what} <input {kind} aria-describedby="found-{place}"></label>'
        f'<output id="found-{place}" aria-live="polite"></output></div>{options}</details>\n'
    )


def _counted(asked: Sequence[int], attributes: Sequence[Attribute]) -> str:
    if len(asked) == len(attributes):
        return "Only the groups you chose are used."
    spared = f"{len(attributes) - len(asked)} of {len(attributes)} attributes"
    return f"Only the groups you chose are used; {spared} are not asked for."


def _not_collected(attributes: Sequence[Attribute], titled: Mapping[str, str]) -> str:
    names = [_text(titled[attribute.name]) for attribute in attributes if not attribute.is_collected]
    return f'<p class="quiet">Not collected: {", ".join(names)}.</p>' if names else ""


def _text(text: str) -> str:
    return escape(printable(text))


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
