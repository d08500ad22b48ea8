# SPDX-License-Identifier: Apache-2.0
"""Filled-in questionnaires as one HTML page, with lines for the answers of people; for the screen and for paper."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.report.charts import safe
from sfumato.report.data import Audit
from sfumato.report.html_parts import bullets, section, whole_page
from sfumato.report.page import sign_off
from sfumato.report.questionnaires import Filled, Question, Questionnaire

_BASIS = {"measured": "measured", "policy": "as the policy says"}


def questionnaires_page(audit: Audit, questionnaires: Sequence[Questionnaire]) -> str:
    """Return a page with some questionnaires."""
    content = "\n".join(_questionnaire(own) for own in questionnaires)
    return whole_page(
        title=f"Questionnaires for {audit.name}",
        lead="What was measured is filled in. Questions are in our own words, with the paragraph of their source; the "
        "answers are for people to write.",
        content=f"{content}\n{sign_off(audit)}",
        footer="A line that is filled in is evidence. It does not say that a rule is met. questionnaires.json holds "
        "the same questions.",
    )


def _questionnaire(own: Questionnaire) -> str:
    questions = "".join(_question(number, question) for number, question in enumerate(own.questions, 1))
    note = f'<p class="quiet">{safe(own.note)}</p>' if own.note else ""
    sources = f"<h3>Sources</h3>{bullets(own.sources)}"
    return section(own.title, f'{note}<ol class="questions">{questions}</ol>{sources}', css_class="long new-page")


def _question(number: int, question: Question) -> str:
    filled = "".join(_line(line) for line in question.filled)
    lines = f'<ul class="filled">{filled}</ul>' if filled else ""
    return (
        f'<li class="question"><p class="asked">{safe(question.text)}</p><p class="quiet">{safe(question.where)}</p>'
        f'{lines}<p class="answer"><span class="quiet">Answer to question {number}:</span></p></li>'
    )


def _line(line: Filled) -> str:
    return f'<li>{safe(line.text)} <span class="quiet">({_BASIS[line.basis]})</span></li>'
