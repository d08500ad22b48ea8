# SPDX-License-Identifier: Apache-2.0
"""Questionnaires: every question has its source, what was measured is filled in, and people answer."""

import re
import tomllib
from dataclasses import replace
from importlib.resources import files

import pytest

from html_page import Page
from sfumato.errors import ParameterError
from sfumato.report.questionnaire_page import questionnaires_page
from sfumato.report.questionnaires import _MEASURED, _STATED, NAMES, check_names, fill_in

from .audits import HOSTILE, audit

FOLDER = files("sfumato.report").joinpath("questionnaires")
# The paragraph of a source: an article, clause, section, question, recital, chapter or a part that is named.
PARAGRAPH = re.compile(
    r"\b(section|sections|article|articles|clause|clauses|recital|chapter|question|on) \S|CFR \d", re.I
)
VERDICTS = ("complian", "complies", "comply", "conform", "is met", "fulfil", "satisf")


def documents() -> dict[str, dict]:
    return {name: tomllib.loads(FOLDER.joinpath(f"{name}.toml").read_text(encoding="utf-8")) for name in NAMES}


def test_every_file_of_the_folder_is_a_questionnaire():
    assert {path.name for path in FOLDER.iterdir()} == {f"{name}.toml" for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_every_question_has_the_paragraph_of_a_source_that_is_named(name):
    document = documents()[name]
    assert document["sources"] and document["title"]
    for question in document["questions"]:
        assert PARAGRAPH.search(question["where"]), question["where"]
        assert set(question) <= {"where", "text", "filled"} and question["text"]
        assert set(question.get("filled", ())) <= set(_MEASURED) | set(_STATED)


@pytest.mark.parametrize("name", NAMES)
def test_no_question_gives_a_verdict(name):
    document = documents()[name]
    for text in (document["title"], document["note"], *(question["text"] for question in document["questions"])):
        assert not [word for word in VERDICTS if word in text.lower()], text


def test_all_eighteen_identifiers_of_safe_harbor_are_asked_for():
    cited = " ".join(own["where"] for own in documents()["hipaa"]["questions"] if "(b)(2)(i)" in own["where"])
    assert set(re.findall(r"\(([A-R])\)", cited)) == set("ABCDEFGHIJKLMNOPQR")


def test_everything_that_can_be_filled_in_is_asked_for_somewhere():
    asked = {key for own in documents().values() for question in own["questions"] for key in question.get("filled", ())}
    assert asked == set(_MEASURED) | set(_STATED)


@pytest.mark.parametrize("name", NAMES)
def test_what_the_policy_does_not_say_stays_open(name):
    bare = fill_in(name, replace(audit(), context={}, risks=(), gate=(), utility=None))
    full = fill_in(name, replace(audit(), context={"purpose": "research", "recipient": "a clinic", "threshold": 0.1}))
    assert not [line for question in bare.questions for line in question.filled if line.basis == "policy"]
    assert len(bare.questions) == len(full.questions)
    assert sum(len(q.filled) for q in full.questions) > sum(len(q.filled) for q in bare.questions)


def test_what_is_stated_is_told_from_what_is_measured():
    filled = fill_in("edpb", replace(audit(), context={"purpose": "research"}))
    lines = [line for question in filled.questions for line in question.filled]
    assert [line.text for line in lines if line.basis == "policy"] == ["purpose: research"]
    assert any("95% CI [0.510, 0.530]" in line.text for line in lines if line.basis == "measured")
    page = " ".join(Page(questionnaires_page(audit(), [filled])).text)
    assert "(as the policy says)" in page and "(measured)" in page and "Answer to question 1" in page


def test_names_come_once_and_in_their_order():
    assert check_names(["nist", "edpb", "nist"]) == ("edpb", "nist")
    with pytest.raises(ParameterError, match="expected some of"):
        check_names(["sox"])


def test_nothing_on_the_page_runs_or_loads_anything():
    made = replace(audit(HOSTILE), context=dict.fromkeys(("purpose", "recipient", "reviewer"), " ".join(HOSTILE)))
    html = questionnaires_page(made, [fill_in(name, made) for name in NAMES])
    page = Page(html)
    assert not {"script", "img", "iframe", "link", "object", "embed", "form", "base"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert [value for name, value in page.attributes if name in ("href", "src", "action")] == ["#main"]
    assert "\u202e" not in html and not page.open
