# SPDX-License-Identifier: Apache-2.0
"""The pages in ``docs/results`` are exactly what the kept cells give; ``sfumato study --pages`` writes them."""

import sys
import warnings
from pathlib import Path

import pytest
from sklearn.tree import DecisionTreeClassifier

REPOSITORY = Path(__file__).parent.parent
sys.path.insert(0, str(REPOSITORY))

from studies.command import _write_pages  # noqa: E402
from studies.front_page import PRIVATE, RAW, RECODED, ROWS, HardPredictions, protected, table_lines  # noqa: E402
from studies.papers import MAIN_CLAIMS, PAGES, pages  # noqa: E402
from studies.readme import between  # noqa: E402
from studies.tables import Table, load  # noqa: E402

from sfumato.cli.console import Console  # noqa: E402


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


def a_cell(protection, seed, accuracy, recoded, *rates):
    attacks = {f"attack {place}": {"rate": rate} for place, rate in enumerate(rates)}
    return {
        "protection": protection,
        "seed": seed,
        "accuracy": accuracy,
        "recoded_accuracy": recoded,
        "attacks": attacks,
    }


def test_the_front_page_has_means_over_splits_and_the_strongest_attack():
    cells = [
        a_cell(RAW, 0, 0.9, None, 0.6, 0.7),
        a_cell(RAW, 1, 0.8, None, 0.8, 0.6),
        a_cell("ours", 0, 0.88, 0.89, 0.5, 0.52),
        a_cell("ours", 1, 0.8, 0.81, 0.54, 0.5),
        a_cell(RECODED, 0, 0.89, 0.89, 0.55, 0.5),
        a_cell("epsilon=1", 0, 0.7, None, 0.5),
    ]
    assert table_lines(cells)[2:] == [
        "| no protection | 85.0 |  | 75.0 |",
        "| sfumato | 84.0 (-1.0) | 85.0 (+0.0) | 53.0; recoded 55.0 |",
        "| logistic regression, differential privacy, epsilon 1 | 70.0 (-20.0) |  | 50.0 |",
    ]


@pytest.mark.parametrize("name", [name for name in ROWS if name not in PRIVATE])
def test_every_row_of_the_front_page_is_a_model_to_train(name):
    table = load("adult-12")
    X, y = table.X.iloc[:400], table.y[:400]
    model = DecisionTreeClassifier(max_depth=3, random_state=0)
    numbers = X.select_dtypes("number")
    own = Table(numbers, y, list(numbers))
    fitted = protected(name, model, own).fit(numbers, y)
    assert set(fitted.predict(numbers)) <= {0, 1}
    if name == "paper":
        assert not hasattr(HardPredictions(model).fit(numbers, y), "predict_proba")


@pytest.mark.parametrize("name", PRIVATE)
def test_every_private_row_of_the_front_page_learns(name):
    pytest.importorskip("opendp", reason="opendp is not installed (extra: dp)")
    table = load("adult-12")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "epsilon=inf")
        fitted = protected(name, None, table).fit(table.X, table.y)
    assert fitted.score(table.X, table.y) > 0.84


def test_a_table_is_put_between_its_marks_or_refused():
    assert between("a\n<!-- x -->\nold\n<!-- /x -->\nb", "x", ["1", "2"]) == "a\n<!-- x -->\n1\n2\n<!-- /x -->\nb"
    with pytest.raises(ValueError, match="no <!-- x -->"):
        between("nothing", "x", ["1"])


def test_pages_are_written_only_where_they_are_other(tmp_path, monkeypatch, capsys):
    texts = {"docs/new.md": "new\n", "docs/same.md": "same\n"}
    monkeypatch.setattr("studies.papers.pages", lambda: texts)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "same.md").write_text("same\n")
    for told in ("1 files were written again.", "All pages are as the kept cells give them."):
        _write_pages(Console(quiet=True), tmp_path)
        assert told in capsys.readouterr().out
    assert (tmp_path / "docs" / "new.md").read_text() == "new\n"
