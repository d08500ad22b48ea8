# SPDX-License-Identifier: Apache-2.0
"""Whole journeys with real jobs in child processes, from a file to the evidence pack; they take minutes."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import csv

from browser import Browser, Page
from sfumato.auditing.verify_evidence import verify_evidence
from sfumato.datasets import load_adult
from sfumato.studio.child import Worker

from .conftest import people
from .test_in_browser import Served, go, wait

pytestmark = pytest.mark.slow


def click(page: Page, selector: str) -> None:
    page.evaluate(f"document.querySelector({selector!r}).click()")


def adult() -> Any:
    X, y = load_adult(return_X_y=True, as_frame="pyarrow")
    return X.append_column("income", [y])


@pytest.mark.parametrize("table", [lambda: people(1500), adult], ids=["made-up people", "adult"])
def test_from_a_file_to_the_evidence_pack(tmp_path: Path, browser: Browser, table: Callable[[], Any]) -> None:
    csv.write_csv(table(), tmp_path / "people.csv")
    served = Served(tmp_path)
    page = browser.open(served.address, width=1280)
    try:
        click(page, "form[action='/open'] button")
        wait(page, "location.pathname === '/table' && document.querySelector('.facts') !== null", 120)
        wait(page, "document.querySelector('#rail')?.textContent.includes('to confirm')", 120)
        go(page, served, "frontier")
        assert "still to be confirmed" in page.evaluate("document.body.innerText")
        go(page, served, "roles")
        n_questions = page.evaluate("document.querySelectorAll('.call form').length")
        assert n_questions >= 2  # race, and what is predicted
        for n in range(n_questions, 0, -1):
            click(page, ".call form button")
            wait(page, f"document.querySelectorAll('.call form').length === {n - 1}")
        wait(page, "document.querySelector('#lead').textContent.includes('are the only ones')", 120)

        go(page, served, "frontier")
        click(page, "form[action='/frontier/measure'] button")
        wait(
            page, "document.querySelectorAll('figure:first-of-type .fillkeep').length >= 3", 300
        )  # drawn as they arrive
        began = time.monotonic()
        page.evaluate("fetch('/roles').then(r => r.text())")
        assert time.monotonic() - began < 2  # the page answers while the job runs
        click(page, "form[action='/job/cancel'] button")
        wait(page, "document.querySelector('#job').textContent.includes('Stopped by you')", 60)
        kept = dict(served.studio.points("k-release")["rows"])
        assert 1 <= len(kept) < 6
        click(page, "form[action='/frontier/measure'] button")
        wait(page, "document.querySelector('#job').textContent.includes('Finished')", 400)
        rows = served.studio.points("k-release")["rows"]
        assert len(rows) == 6 and all(rows[k] == row for k, row in kept.items())
        wait(page, "document.querySelectorAll('.ghost').length === 0")
        slider = "document.querySelector('#stop')"
        page.evaluate(f"{slider}.value = 1; {slider}.dispatchEvent(new Event('input', {{bubbles: true}}))")
        click(page, "aside.read form button")

        go(page, served, "release")
        page.type_into("#q-purpose", "a study")
        click(page, "#questions button")
        wait(page, "document.querySelector('#questions').parentElement.textContent.includes('1 of 6 are answered')")
        # A gate that refuses: nothing is written, and the button says why.
        set_gate(page, "min_k", "1000")
        click(page, "form[action='/release/judge'] button")
        wait(page, "document.querySelector('#gate').textContent.includes('It may not leave')", 300)
        assert page.evaluate("document.querySelector('#write button').disabled")
        assert not (tmp_path / "people-released.csv").exists()
        set_gate(page, "min_k", "10")
        for name in ("max_attack_advantage", "min_accuracy_kept", "min_gain_kept", "max_unique"):
            set_gate(page, name, "")
        click(page, "form[action='/release/judge'] button")
        wait(page, "document.querySelector('#write button').disabled === false", 300)
        click(page, "#write button")
        wait(page, "document.querySelector('#gate').textContent.includes('Written: 5 files')", 300)
        found = verify_evidence(tmp_path / "people-evidence.zip", tmp_path / "people-released.csv")
        assert found.belongs_together
    finally:
        page.close()
        served.close()


def test_a_form_is_learned_and_written_as_it_was_shown(tmp_path: Path, browser: Browser) -> None:
    csv.write_csv(people(1500), tmp_path / "people.csv")
    served = Served(tmp_path)
    page = browser.open(served.address, width=1280)
    try:
        click(page, "form[action='/open'] button")
        wait(page, "document.querySelector('#rail')?.textContent.includes('to confirm')", 120)
        go(page, served, "minimize")
        assert "still to be confirmed" in page.evaluate("document.body.innerText")
        go(page, served, "roles")
        for _ in range(2):
            n = page.evaluate("document.querySelectorAll('.call form').length")
            click(page, ".call form button")
            wait(page, f"document.querySelectorAll('.call form').length === {n - 1}")
        go(page, served, "minimize")
        click(page, "form[action='/minimize/learn'] button")
        wait(page, "document.querySelectorAll('.form').length === 6", 300)
        slider = "document.querySelector('#stop')"
        page.evaluate(f"{slider}.value = 4; {slider}.dispatchEvent(new Event('input', {{bubbles: true}}))")
        assert "5.0%" in page.evaluate("document.querySelector('#lead').textContent")
        shown = page.evaluate(
            "[...document.querySelectorAll('.form:not([hidden]) fieldset')].map(f =>"
            " [...f.querySelectorAll('label')].map(l => l.textContent.trim()))"
        )
        click(page, "form[action='/minimize/write'] button")
        wait(page, "document.querySelector('#forms').textContent.includes('Written: 2 files')", 200)
        form = browser.open((tmp_path / "people-form.html").as_uri())
        labels = "[...document.querySelectorAll('label.choice, option')].map(o => o.textContent.trim())"
        written = [" ".join(label.split()) for label in form.evaluate(labels)]
        form.close()
        assert shown and all(answer in written for answers in shown for answer in answers)
    finally:
        page.close()
        served.close()


def test_the_example_table_from_the_first_click(tmp_path: Path, browser: Browser) -> None:
    served = Served(tmp_path)
    page = browser.open(served.address, width=1280)
    try:
        assert "No table here yet" in page.evaluate("document.body.innerText")
        click(page, "form[action='/example'] button")
        wait(page, "document.querySelector('.facts')?.textContent.includes('48,842')", 120)
        wait(page, "document.querySelector('#rail')?.textContent.includes('to confirm')", 120)
        go(page, served, "roles")
        wait(page, "document.querySelector('#lead').textContent.includes('are the only ones')", 120)
        assert page.evaluate("document.querySelectorAll('table.roles tbody tr').length") == 15
        assert sorted(one.name for one in tmp_path.glob("*.*")) == [
            ".sfumato-studio", "adult-example-policy.toml", "adult-example.csv",
        ]  # fmt: skip
        page.close()
        served.close()
        served = Served(tmp_path)  # closing and opening again loses nothing
        page = browser.open(served.address, width=1280)
        assert "adult-example-policy.toml" in page.evaluate("document.body.innerText")
    finally:
        page.close()
        served.close()


def set_gate(page: Page, name: str, value: str) -> None:
    page.evaluate(
        f"document.querySelector('#gate-{name}').value = {value!r};"
        "document.querySelector(\"form[action='/release/conditions']\").requestSubmit()"
    )
    wait(
        page,
        f"document.querySelector('#gate-{name}').value === {value!r} && document.querySelector('.lights') !== null",
    )
    time.sleep(0.5)


def test_a_curve_in_two_parts_is_the_curve_in_one(folder: Path) -> None:
    path = folder / "policy.toml"
    text = 'version = 1\n[data]\nfile = "people.csv"\nrelease = "x.csv"\n[columns]\ntarget = "ill"\n'
    path.write_text(text + '[model]\nname = "decision-tree"\n', encoding="utf-8")

    def rows(*numbers: int) -> dict[Any, Any]:
        told: list[Any] = []
        Worker().frontier(
            lambda kind, **content: told.append(content.get("row")), policy=str(path), n_splits=1, columns_for=[],
            protections={"k-release": list(numbers)},
        )  # fmt: skip
        return {row["parameter"]: {**row, "seconds": 0} for row in told if row}

    whole, first, second = rows(5, 10, 20), rows(5, 10), rows(20)
    assert {**first, **second} == whole
