# SPDX-License-Identifier: Apache-2.0
"""The pages in ``docs/results`` are exactly what the kept cells give; ``sfumato study --pages`` writes them."""

import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
sys.path.insert(0, str(REPOSITORY))

from studies.papers import MAIN_CLAIMS, PAGES, pages  # noqa: E402

from sfumato.cli.console import Console  # noqa: E402
from sfumato.cli.study import _write_pages  # noqa: E402


@pytest.fixture(scope="module")
def written():
    return pages()


def test_every_page_is_what_the_kept_cells_give(written):
    other = [path for path, text in written.items() if (REPOSITORY / path).read_text(encoding="utf-8") != text]
    assert not other, "run sfumato study --pages"


def test_no_page_or_drawing_of_an_earlier_study_is_left(written):
    found = {f"{PAGES}/{path.name}" for path in (REPOSITORY / PAGES).iterdir()}
    assert found == {path for path in written if path.startswith(PAGES)}


def test_every_drawing_is_shown_on_a_page(written):
    text = "".join(own for path, own in written.items() if path.endswith(".md"))
    drawings = [path.rpartition("/")[2] for path in written if path.endswith(".svg")]
    assert drawings
    assert not [name for name in drawings if f"({name})" not in text]


def test_the_index_judges_what_the_papers_promise_first_of_all(written):
    index = written[f"{PAGES}/README.md"]
    for pattern in MAIN_CLAIMS:
        assert f"| {pattern.removesuffix('*')}" in index


def test_pages_are_written_only_where_they_are_other(tmp_path, monkeypatch, capsys):
    texts = {"docs/new.md": "new\n", "docs/same.md": "same\n"}
    monkeypatch.setattr("studies.papers.pages", lambda: texts)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "same.md").write_text("same\n")
    for told in ("1 files were written anew.", "All pages are as the kept cells give them."):
        _write_pages(Console(quiet=True), tmp_path)
        assert told in capsys.readouterr().out
    assert (tmp_path / "docs" / "new.md").read_text() == "new\n"
