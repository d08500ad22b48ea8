# SPDX-License-Identifier: Apache-2.0
"""The page as people see it: in a real browser, in both themes, on paper, and by the rules of accessibility."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from browser import Browser, Page
from sfumato.auditing.reidentification import measure_reidentification
from sfumato.report import to_html
from sfumato.report.data import Audit
from sfumato.report.page import curve_page
from sfumato.report.questionnaire_page import questionnaires_page
from sfumato.report.questionnaires import NAMES, fill_in
from sfumato.report.risk_data import AttackedSubgroup, FileHash

from .audits import HOSTILE, audit


def with_context(made: Audit, said: str = "research") -> Audit:
    """Return an audit with everything that a run of a policy adds: context, risks, subgroups, hashes."""
    context = {"purpose": said, "recipient": said, "access": "public", "threshold": 0.1, "reviewer": said}
    found, _ = measure_reidentification(
        np.array([1] * 20 + [5] * 40), np.array([10] * 22), context={**context, "sampling_fraction": 0.1},
        smallest_shown=10,
    )  # fmt: skip
    worst = AttackedSubgroup("job", said, 60, 0.6, (0.5, 0.7), 0.4)
    risks = tuple(replace(risk, knowledge=said, access=said, attempts=60, worst=worst) for risk in made.risks)
    outputs = {"release": FileHash(said, "ab" * 32), "artifact": FileHash("partition.json", "cd" * 32)}
    return replace(made, context=context, reidentification=found, risks=risks, outputs=outputs)


def filled(made: Audit) -> str:
    return questionnaires_page(made, [fill_in(name, made) for name in NAMES])


PAGES = {
    "everyday": lambda: to_html(audit()),
    "failed": lambda: to_html(audit(passed=False)),
    "hostile": lambda: to_html(audit(HOSTILE)),
    "many columns": lambda: to_html(audit(n_columns=400)),
    "context": lambda: to_html(with_context(audit())),
    "hostile context": lambda: to_html(with_context(audit(HOSTILE), " ".join(HOSTILE))),
    "questionnaires": lambda: filled(with_context(audit())),
    "hostile questionnaires": lambda: filled(with_context(audit(HOSTILE), " ".join(HOSTILE))),
    "curve": lambda: curve_page(audit().curve, name="policy.toml"),
}

# Text of a picture that reaches beyond it is cut off.
CUT_TEXTS = """[...document.querySelectorAll('svg')].flatMap(svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(text => {
    const own = text.getBoundingClientRect();
    return own.left < box.left - 1 || own.right > box.right + 1 || own.top < box.top - 2 || own.bottom > box.bottom + 2;
  }).map(text => text.textContent);
})"""
# Two labels of one picture that lie on each other cannot be read.
OVERLAPS = """[...document.querySelectorAll('svg')].flatMap(svg => {
  const texts = [...svg.querySelectorAll('text')].map(t => [t.textContent, t.getBoundingClientRect()]);
  const found = [];
  for (let i = 0; i < texts.length; i++) for (let j = i + 1; j < texts.length; j++) {
    const [a, b] = [texts[i][1], texts[j][1]];
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const tall = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 2 && tall > 3) found.push([texts[i][0], texts[j][0]]);
  }
  return found;
})"""


def opened(browser: Browser, folder: Path, name: str, **options: object) -> tuple[Page, str]:
    path = folder / "report.html"
    path.write_text(PAGES[name](), encoding="utf-8")
    return browser.open(path.as_uri(), **options), path.as_uri()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", list(PAGES))
def test_the_page_loads_nothing_says_nothing_wrong_and_can_be_read(browser, tmp_path, name, theme):
    page, address = opened(browser, tmp_path, name, theme=theme)
    assert page.requests == [address]
    assert page.errors == []
    assert "gotcha" not in page.evaluate("document.title")[:6]
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1")
    assert page.evaluate(CUT_TEXTS) == []
    assert page.evaluate(OVERLAPS) == []
    page.close()


@pytest.mark.parametrize("width", [360, 1400])
def test_the_page_fits_narrow_and_wide_windows(browser, tmp_path, width):
    page, _ = opened(browser, tmp_path, "everyday", width=width)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth + 1")
    page.close()


@pytest.mark.parametrize("name", list(PAGES))
def test_nothing_has_to_be_scrolled_sideways_on_a_phone(browser, tmp_path, name):
    page, _ = opened(browser, tmp_path, name, width=380)
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    beyond = "e => e.getBoundingClientRect().right > window.innerWidth + 1 || e.scrollWidth > e.clientWidth + 1"
    seen = "[...document.querySelectorAll('main table, main tr, main td, main tbody th, main p, main li, main svg')]"
    assert page.evaluate(f"{seen}.filter({beyond}).map(e => e.outerHTML.slice(0, 80))") == []
    # Letters of pictures stay large enough to be read.
    scale = "s => s.getBoundingClientRect().width / s.viewBox.baseVal.width"
    assert 0.8 < page.evaluate(f"Math.min(1, ...[...document.querySelectorAll('svg.chart')].map({scale}))") <= 1
    assert page.evaluate(CUT_TEXTS) == [] and page.evaluate(OVERLAPS) == []
    page.close()


def test_a_table_names_its_cells_on_a_phone(browser, tmp_path):
    page, _ = opened(browser, tmp_path, "everyday", width=380)
    cell = "[...document.querySelectorAll('td')].find(e => e.dataset.name === 'verdict')"
    assert page.evaluate(f"getComputedStyle({cell}, '::before').content") == '"verdict: "'
    page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_paper_is_light_whatever_the_screen_is(browser, tmp_path, theme):
    page, _ = opened(browser, tmp_path, "everyday", theme=theme)
    page.call(
        "Emulation.setEmulatedMedia", {"media": "print", "features": [{"name": "prefers-color-scheme", "value": theme}]}
    )
    ink = "getComputedStyle(document.body).color + getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ink) == "rgb(34, 37, 43)rgb(255, 255, 255)"
    kept = "[...document.querySelectorAll('h2, h3')].every(h => getComputedStyle(h).breakAfter === 'avoid')"
    assert page.evaluate(kept)
    assert page.evaluate(
        "[...document.querySelectorAll('svg, tr')].every(e => getComputedStyle(e).breakInside === 'avoid')"
    )
    page.close()


@pytest.mark.skipif(find_spec("axe_core_python") is None, reason="axe is not installed; it comes with the test extra")
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", list(PAGES))
def test_the_page_keeps_the_rules_of_accessibility(browser, tmp_path, name, theme):
    import axe_core_python

    page, _ = opened(browser, tmp_path, name, theme=theme)
    page.evaluate((Path(axe_core_python.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate(
        "axe.run().then(result => result.violations.map(v => [v.id, v.nodes.slice(0, 3).map(n => n.html)]))"
    )
    assert found == []
    page.close()


@pytest.mark.parametrize("name", ["everyday", "context", "questionnaires"])
def test_the_page_prints_on_light_paper(browser, tmp_path, name):
    page, _ = opened(browser, tmp_path, name, theme="light")
    printed = page.call("Page.printToPDF", {"printBackground": True})
    assert len(printed["data"]) > 10_000
    page.close()


@pytest.mark.parametrize("name", ["context", "questionnaires"])
def test_there_is_room_to_sign_and_to_answer(browser, tmp_path, name):
    page, _ = opened(browser, tmp_path, name, theme="dark", width=700)
    page.call("Emulation.setEmulatedMedia", {"media": "print"})
    tall = "e => e.getBoundingClientRect().height"
    assert page.evaluate(f"Math.min(...[...document.querySelectorAll('.sign-off td')].map({tall}))") >= 40
    lines = "[...document.querySelectorAll('.sign-off td, .answer')]"
    assert page.evaluate(f"{lines}.every(e => getComputedStyle(e).borderBottomStyle === 'solid')")
    if name == "questionnaires":
        assert page.evaluate(f"Math.min(...[...document.querySelectorAll('.answer')].map({tall}))") >= 40
        breaks = "[...document.querySelectorAll('.new-page')].slice(1)"
        assert page.evaluate(f"{breaks}.every(e => getComputedStyle(e).breakBefore === 'page')")
    page.close()
