# SPDX-License-Identifier: Apache-2.0
"""``sfumato demo``: one command, no files, the whole idea."""

import json
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from sfumato.cli import demo
from sfumato.cli.console import Console

from .conftest import call, run


@pytest.fixture(autouse=True)
def temporary(tmp_path_factory, monkeypatch):
    """Where the demo's page goes."""
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_the_demo_shows_the_cost_the_records_and_the_proof(tmp_path, temporary):
    done = run("demo", "--rows", 2000, "--k", 20, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    parts = (
        "before", "after", "accuracy of gradient-boosting", "trained on raw records", "next", "CC BY 4.0", "phantoms",
        "regions", "k = 20, model", "k = 200, table",
    )  # fmt: skip
    for part in parts:
        assert part in done.stdout
    flat = " ".join(done.stdout.split())
    assert "k-anonymity verified (k = 20): no group has fewer than 20 records" in flat
    assert "\x1b" not in done.stdout
    lines = [line for line in done.stdout.splitlines() if str(temporary) not in line]  # a path is not broken
    assert max(len(line.rstrip()) for line in lines) <= 80
    [page] = temporary.rglob("*.html")
    assert str(page) in flat and "<svg" in page.read_text(encoding="utf-8")
    assert not list(tmp_path.iterdir())


def test_the_demo_speaks_json():
    done = call("demo", "--rows", 1000, "--k", 10, "--json", "--quiet")
    document = json.loads(done.stdout)
    assert document["holds"] is True
    assert document["release"]["smallest_group"] >= 10
    assert 0.5 < document["utility"]["raw"] <= 1
    assert [row["family"] for row in document["frontier"]["rows"]] == ["none", "k", "k", "k", "k"]
    assert document["utility"]["n_train"] == document["release"]["n_records"] == 800


def test_wrong_numbers_get_a_sentence_and_code_2():
    for arguments, sentence in (
        (["--k", "1"], "--k 1: expected 2"),
        (["--rows", "50"], "--rows 50: expected 100"),
        (["--rows", "200", "--k", "161"], "the number of training records"),
    ):
        done = call("demo", *arguments)
        assert done.exit_code == 2
        assert sentence in " ".join(done.output.split())


@pytest.mark.parametrize("answer", [True, False])
def test_the_page_is_opened_only_for_somebody_who_says_so(monkeypatch, answer):
    opened, console = [], Console()
    monkeypatch.setattr("webbrowser.open", opened.append)
    monkeypatch.setattr("typer.confirm", lambda *_, **__: answer)
    found = SimpleNamespace(to_html=lambda title: f"<title>{title}</title>")
    demo._show_page(console, found)
    assert not opened  # nobody is there to be asked
    monkeypatch.setattr(Console, "is_watched", True)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    demo._show_page(console, found)
    assert [Path(address.removeprefix("file://")).name for address in opened] == ["frontier.html"] * answer
