# SPDX-License-Identifier: Apache-2.0
"""The preview and the form in both languages: plain words, reasons, accessible, on a phone and on a wide screen."""

import dataclasses
import datetime as dt
import re
import string
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sklearn.tree import DecisionTreeClassifier

from sfumato.backends.memory import MemorySource
from sfumato.errors import ParameterError
from sfumato.frames import read_table
from sfumato.generalization import generalization_from_bins
from sfumato.generalization.export.texts import LANGUAGES, Reason, texts_of

TABLE = pa.table(
    {
        "AGEP": [17, 30, 45, 70, None],
        "SEX": [1, 2, 1, 2, 1],
        "job": ["nurse", "smith", "teacher", "smith", "cook"],
        "married": [True, False, True, False, True],
        "since": [dt.date(1990 + 5 * i, 1, 1) for i in range(5)],
        "weight": [50.5, 61.25, 70.0, 81.5, 90.75],
        "town": [f"Town {i}" for i in range(5)],
    }
)
BUCKETS = {
    "AGEP": [0, 1, 1, 2, 3], "SEX": [0, 1], "job": [0, 1, 0, 2], "married": [0, 1], "since": [0, 0, 1, 1, 2],
    "weight": [0, 0, 1, 1, 2], "town": [0] * 5,
}  # fmt: skip
WORDS = {
    "titles": {"AGEP": "Alter in Jahren", "SEX": "Geschlecht", "job": "Beruf"},
    "labels": {"SEX": {1: "männlich", 2: "weiblich"}, "job": {"nurse": "Pflege"}},
    "reasons": {
        "AGEP": Reason("needed", 0.034), "SEX": Reason("required"), "job": Reason("helps"),
        "town": Reason("not worth it", 0.002, 0.21),
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def made():
    source = MemorySource(read_table(TABLE, categorical=["SEX"]), list(BUCKETS))
    return generalization_from_bins(source.columns, [np.array(own) for own in BUCKETS.values()], floor=1)


def tree_on(generalization):
    codes = generalization.codes(TABLE)
    return DecisionTreeClassifier(random_state=0).fit(codes, [0, 1, 1, 0, 1])


def page_of(generalization, kind, language):
    if kind == "preview":
        return generalization.to_preview(language=language, is_personal=True, **WORDS)
    model = tree_on(generalization) if kind == "form with a model" else None
    return generalization.to_form(language=language, model=model, **WORDS)


KINDS = ("preview", "form", "form with a model")


def opened(browser, tmp_path, text, **options):
    path = tmp_path / "page.html"
    path.write_text(text, encoding="utf-8")
    return browser.open(path.as_uri(), **options)


def test_the_preview_says_what_is_asked_in_words_and_why(made, browser, tmp_path):
    page = opened(browser, tmp_path, page_of(made, "preview", "en"))
    text = page.evaluate("document.body.innerText")
    for words in (
        "Questions: 6. Things that are not asked: 1.",
        "1. Alter in Jahren",
        "Why: Without this answer, 3 more of every 100 decisions would be wrong.",
        "männlich",
        "Why: It has to be asked.",
        "cook or smith",
        "Knowing it would make fewer than 1 more of every 100 decisions right, but it would tell more about you than",
        "could guess 21 more of every 100 personal details.",
        'every question has the choice "Rather not say"',
        "Questions end early when no further answer can change the decision.",
    ):
        assert words in text
    headings = page.evaluate('[...document.querySelectorAll("h1, h2, h3")].map((h) => h.tagName)')
    assert headings == ["H1", "H2", *["H3"] * 6, "H2", "H2"]
    assert page.evaluate('document.querySelectorAll("script, form, input, button, a").length') == 0
    assert page.requests == [page.requests[0]]
    page.close()


def test_what_is_not_asked_for_the_same_reason_stands_together():
    names = ("AGEP", "SEX", "job", "town")
    columns = MemorySource(read_table(TABLE), list(names)).columns
    coarse = generalization_from_bins(columns, [np.zeros(column.bins.n_bins, int) for column in columns], floor=1)
    reasons = {"AGEP": Reason("useless"), "SEX": Reason("forbidden"), "job": Reason("useless")}
    page = coarse.to_preview(reasons=reasons)
    assert page.count("In a test, decisions were no better with this answer.") == 1
    told = re.sub(r"<[^>]+>", "\n", page[page.index("with this answer") :])
    assert [line for line in told.splitlines() if line in names] == ["AGEP", "job", "SEX", "town"]


def test_german_pages_are_german(made, browser, tmp_path):
    page = opened(browser, tmp_path, page_of(made, "form", "de"))
    assert page.evaluate("document.documentElement.lang") == "de"
    text = page.evaluate("document.body.innerText")
    for words in ("bis 20", "21 bis 60", "61 und mehr", "Möchte ich nicht sagen", "Ja", "Nein", "ab 2", "über 6", ","):
        assert words in text
    for words in ("and under", "Rather", "Yes", "Send", "over ", "before", "Why", "question"):
        assert words not in text
    page.evaluate('document.querySelector("details").open = true')
    page.type_into(".exact input", "45")
    assert page.evaluate('document.querySelector(".exact output").textContent') == "→ 21 bis 60"
    assert page.evaluate('new FormData(document.querySelector("form")).get("AGEP")') == "21-60"  # what is sent is one
    page.evaluate('document.querySelector(".exact input").value = ""')
    page.type_into(".exact input", "viel")
    assert page.evaluate('document.querySelector(".exact output").textContent') == "Erwartet wird eine Zahl."
    page.close()


def fields_of(text):
    return [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]


def test_every_language_has_every_text_with_the_same_places():
    english = LANGUAGES["en"]
    for texts in LANGUAGES.values():
        for own in dataclasses.fields(texts):
            value, wanted = getattr(texts, own.name), getattr(english, own.name)
            if isinstance(value, str) and own.name != "language":
                assert value.strip()
                assert fields_of(value) == fields_of(wanted)
        assert set(texts.inputs) == set(english.inputs)
        assert set(texts.reasons) == set(english.reasons)
        for name, words in texts.reasons.items():
            assert sorted(fields_of(words)) == sorted(fields_of(english.reasons[name]))
        for own in dataclasses.fields(texts.phrases):
            if own.name not in ("between", "decimal"):
                assert fields_of(getattr(texts.phrases, own.name)) == fields_of(getattr(english.phrases, own.name))


def test_every_refusal_of_the_script_is_translated():
    script = (Path(__file__).parents[2] / "src/sfumato/generalization/export/templates/runtime.js").read_text("utf-8")
    said = set(re.findall(r'refuse\(attribute, "([^"]+)"\)', script))
    assert len(said) > 6
    assert said <= set(LANGUAGES["de"].expected)


@pytest.mark.skipif(find_spec("axe_core_python") is None, reason="axe is not installed; it comes with the test extra")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_pages_keep_the_rules_of_accessibility(made, browser, tmp_path, kind, theme):
    import axe_core_python

    page = opened(browser, tmp_path, page_of(made, kind, "de"), theme=theme)
    page.evaluate((Path(axe_core_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate(
        "axe.run().then(result => result.violations.map(v => [v.id, v.nodes.slice(0, 3).map(n => n.html)]))"
    )
    assert found == []
    page.close()


@pytest.mark.parametrize("width", [320, 380, 1600])
@pytest.mark.parametrize("kind", KINDS)
def test_pages_fit_every_screen(made, browser, tmp_path, kind, width):
    page = opened(browser, tmp_path, page_of(made, kind, "de"), width=width, height=800)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.errors == []
    page.close()


@pytest.mark.parametrize("kind", KINDS)
def test_pages_load_nothing(made, kind):
    text = page_of(made, kind, "en")
    assert "default-src &#x27;none&#x27;" in text
    assert not re.search(r"(?:src|href)\s*=|url\(|@import|fetch\(|XMLHttpRequest", text.replace("link.href =", ""))


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"language": "fr"}, "language='fr'"),
        ({"labels": {"AGEP": {1: "one"}}}, "labels of 'AGEP': expected a dict of categories and words"),
        ({"labels": {"SEX": {1: " "}}}, "labels of 'SEX' has a value without text"),
        ({"labels": {"height": {}}}, "labels names 'height'"),
        ({"reasons": {"height": Reason("helps")}}, "reasons names 'height'"),
    ],
)
def test_words_that_fit_nothing_are_refused(made, options, match):
    with pytest.raises(ParameterError, match=match):
        made.to_preview(**options)


def test_small_shares_are_not_told_exactly():
    texts = texts_of("en")
    assert texts.reason(Reason("needed", 0.0004)).startswith("Without this answer, fewer than 1 more of every 100")
    assert texts.reason(Reason("needed", 0.1234)).startswith("Without this answer, 12 more of every 100")


def test_values_with_commas_are_told_apart_by_semicolons():
    jobs = ["cook", "nurse (night, day)", "smith", "teacher, retired"]  # sorted, as codes are
    source = MemorySource(read_table(pa.table({"job": jobs})), ["job"])
    page = generalization_from_bins(source.columns, [np.array([0, 1, 1, 1])], floor=1).to_preview()
    assert "nurse (night, day); smith or teacher, retired" in page
