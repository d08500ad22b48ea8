# SPDX-License-Identifier: Apache-2.0
"""The page says what the audit says, harmlessly, whatever columns are called."""

import json
import re
from dataclasses import replace

import pytest

from html_page import Page
from sfumato.auditing.unique_records import Uniqueness
from sfumato.report import to_html, to_markdown
from sfumato.report.data import Point, UtilityResult
from sfumato.report.page import curve_page

from .audits import HOSTILE, audit


def test_the_verdict_comes_first_and_every_part_is_there():
    page = Page(to_html(audit()))
    text = " ".join(page.text)
    order = [
        "Gate passed",
        "Method",
        "Cost for the model",
        "Group sizes",
        "Attacks",
        "Columns",
        "Privacy-utility trade-off",
        "Limits of this protection",
        "Reproducibility and terms",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    assert "Fewer than 10 records were suppressed" in text
    assert not page.open


def test_a_failed_gate_says_so():
    text = to_html(audit(passed=False))
    assert "Gate failed: 1 of 2 conditions is not met" in text
    assert 'class="failed"' in text


@pytest.mark.parametrize("names", [None, HOSTILE], ids=["everyday", "hostile"])
def test_nothing_on_the_page_runs_or_loads_anything(names: list[str] | None):
    html = to_html(audit(names))
    page = Page(html)
    assert not {"script", "img", "iframe", "link", "object", "embed", "form", "base"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    addresses = [value for name, value in page.attributes if name in ("href", "src", "action")]
    assert addresses == ["#main"]
    assert not re.findall(r"url\(|@import", html)
    assert "\u202e" not in html and "\u2066" not in html
    assert not page.open


def test_hostile_names_appear_as_the_text_they_are():
    text = "".join(Page(to_html(audit(HOSTILE))).text)
    for name in HOSTILE:
        seen = re.sub(r"[\u202e\u2066]", "\ufffd", re.sub(r"[\n\r\t]", " ", name))
        assert seen in text or name == HOSTILE[6]


def test_every_picture_says_in_words_what_it_shows():
    html = to_html(audit())
    pictures = re.findall(r"<svg[^>]*>(.*?)</svg>", html)
    assert len(pictures) >= 6
    assert all(picture.startswith("<title>") and len(picture.split("</title>")[0]) > 20 for picture in pictures)


def test_no_word_judges_the_data_to_be_anonymous():
    for text in (to_html(audit()), to_markdown(audit())):
        visible = re.sub(r"<style>.*?</style>", "", text, flags=re.S).lower()
        # Names of laws and of techniques have the word; a verdict about this data must not.
        for known in ("k-anonymity", "anonymisation techniques"):
            visible = visible.replace(known, "")
        assert "anonym" not in visible


def test_a_table_of_ten_thousand_columns_stays_small():
    assert len(to_html(audit(n_columns=10_000)).encode()) < 2_000_000


def test_markdown_holds_the_same_numbers_and_no_markup_of_names():
    text = to_markdown(audit(HOSTILE))
    assert "0.520" in text and "0.8700" in text
    assert "<script>" not in text and "\n\n**Gate passed" in text
    for line in text.splitlines():
        assert not line.startswith(("# <", "](", "=cmd"))
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    unescaped = [len(re.findall(r"(?<!\\)\|", row)) for row in rows]
    assert all(2 <= count <= 8 for count in unescaped)


def test_the_data_is_plain_json_without_not_a_number():
    document = audit().to_dict()
    again = json.loads(json.dumps(document, allow_nan=False))
    assert again == document
    assert again["passed"] is True and again["n_suppressed"] is None


def test_markdown_has_every_part_of_the_page_but_its_pictures_and_terms():
    headings = re.findall(r"<h2[^>]*>([^<]+)", to_html(audit()))
    ours = re.findall(r"^## (.*)", to_markdown(audit()), re.M)
    assert set(headings) - set(ours) == {"Verdict of the gate", "Reproducibility and terms"}
    assert "| control |" in to_markdown(audit())


def test_a_curve_has_the_same_colour_in_every_picture():
    points = [Point("raw records", 1, 0.9), *(Point("mondrian", k, 0.8, 0.501, 0.5) for k in (5, 10))]
    html = curve_page(points, name="people.csv")
    assert re.findall(r'class="name (line-\d)"[^>]*>([^<]+)', html) == [
        ("line-0", "raw records"), ("line-1", "mondrian"), ("line-1", "mondrian"),
    ]  # fmt: skip
    assert html.count('class="level line-0"') == 1


def test_chance_does_not_look_like_a_trend():
    points = [Point("mondrian", k, 0.8, 0.5 + k / 1e4, 0.5) for k in (5, 10)]
    _, attacks = curve_page(points, name="people.csv").split("by the loss", 1)[0].split("<svg")[1:]
    labels = [float(label) for label in re.findall(r'text-anchor="end">([\d.]+)<', attacks)]
    assert min(labels) <= 0.46 and max(labels) >= 0.54


@pytest.mark.parametrize(("same_answer", "is_said"), [(0.86, True), (0.85, False)])
def test_a_score_that_anybody_reaches_by_one_answer_is_called_that(same_answer: float, is_said: bool):
    made = audit()
    made = replace(made, utility=replace(made.utility, same_answer=same_answer))
    text = " ".join(Page(to_html(made)).text)
    assert f"majority-class baseline {100 * same_answer:.2f}%" in text
    assert f"| majority-class baseline | {same_answer:.4f} |" in to_markdown(made)
    for words in (text, to_markdown(made)):
        assert ("no better than always predicting the most frequent class" in words) is is_said


@pytest.mark.parametrize(("raw", "is_said"), [(0.85, True), (0.87, False)])
def test_a_release_is_not_blamed_for_a_model_that_learned_nothing_from_raw_records(raw: float, is_said: bool):
    made = audit()
    made = replace(made, utility=replace(made.utility, raw=raw, protected=0.8, same_answer=0.86))
    said = "It does no better when trained on raw records." in " ".join(Page(to_html(made)).text)
    assert said is is_said


def test_a_regression_that_is_worse_than_the_mean_is_called_that():
    useless = UtilityResult("R2", "linear-regression", 0.3, -0.1, 0.1, (-0.5, -0.3), 800, 200)
    text = " ".join(Page(to_html(replace(audit(), utility=useless))).text)
    assert "no better than always predicting the mean" in text


def test_titles_of_columns_reach_every_part_of_the_report():
    made = replace(audit(), titles={"age": "Age in years", "job": "Occupation", "income": "Yearly income"})
    for text in (" ".join(Page(to_html(made)).text), to_markdown(made).replace("\\", "")):
        assert "“Age in years” and “Yearly income”" in text  # what was done
        assert "“Occupation” was dropped" in text
        assert "Occupation: age" in text and "job: age" not in text  # a subgroup
        assert text.count("Age in years") >= 2 and "zip code" in text


def test_a_verdict_below_the_baseline_is_explained_where_it_stands():
    for text in (" ".join(Page(to_html(audit())).text), to_markdown(audit()).replace("\\", "")):
        assert "below baseline (attack invalid)" in text and "failed attack" not in text
        assert "does not show that the release is safe" in text


def test_the_first_box_says_how_many_are_unique_and_what_to_try():
    unique = Uniqueness(("income", "zip code"), 0.721, 0.9)
    made = replace(audit(passed=False), uniqueness=unique, advice=("max_unique: drop it.",), titles={"income": "Wage"})
    for text in (" ".join(Page(to_html(made)).text), to_markdown(made).replace("\\", "")):
        box = text[: text.index("Method")]
        assert "72.1% of the records are unique by the columns released unchanged: “Wage” and “zip code”." in box
        assert "max_unique: drop it." in box
    few = " ".join(Page(to_html(replace(made, uniqueness=replace(unique, share=None)))).text)
    assert "Some records, too few to show their number, are unique" in few
    none = " ".join(Page(to_html(replace(made, uniqueness=replace(unique, share=0.0)))).text)
    assert "No record is unique by the columns released unchanged" in none
