# SPDX-License-Identifier: Apache-2.0
"""The pages in ``docs/results`` are exactly what the kept cells give; ``sfumato study --pages`` writes them."""

import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

REPOSITORY = Path(__file__).parents[2]
sys.path.insert(0, str(REPOSITORY))

from studies import changes  # noqa: E402
from studies.catalogue import all_studies  # noqa: E402
from studies.command import _write_pages  # noqa: E402
from studies.front_page import ADULT, FEW, NEEDS, ROWS, SHOWN, forest, people, protection  # noqa: E402
from studies.front_page_views import introduction, table_lines, tables_side_by_side  # noqa: E402
from studies.papers import PAGES, PAPERS, pages  # noqa: E402
from studies.readme import between  # noqa: E402
from studies.synthesizer import TreeSynthesizer  # noqa: E402

from sfumato.auditing.protections import Scope, protection_of  # noqa: E402
from sfumato.cli.console import Console  # noqa: E402
from sfumato.report.frontier_row import FAMILIES  # noqa: E402


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
    claims = {claim.name: claim for study in all_studies() for claim in study.claims}
    for paper in PAPERS.values():
        if paper.main_claim:
            assert f"*“{claims[paper.main_claim].quote}”*" in index


def test_a_papers_page_starts_with_five_sentences_a_picture_and_its_claims(written):
    for name in ("goldsteen", "staab", "mancuhan"):
        title, _, opening, _, picture, *rest = written[f"{PAGES}/{name}.md"].splitlines()
        assert title.startswith("# ") and picture.startswith("![")
        assert "Of " in opening and " claims: " in opening and "The main claim" in opening
        own_words = re.sub(r"\*“.*?”\*|\[[^\]]*\]|\([^)]*\)", "", opening)
        assert len(re.findall(r"\.(?= [A-Z]|$)", own_words)) == 5
        assert "| the paper | verdict | difference, 95% CI | splits |" in rest[:6]


def estimate(*values):
    return {"value": float(np.mean(values)), "interval": [min(values), max(values)], "per_split": list(values)}


def an_attack(on, rate, control=0.5):
    return {
        "attack": "threshold", "title": "by the loss", "on": on, "goal": "membership", "rate": estimate(rate),
        "baseline": 0.5, "control": control, "auc": None, "found_at_1_percent": None, "verdict": "not shown",
    }  # fmt: skip


def a_cell(protection, values, *, table=ADULT, attacks=(), recoded=None, limit=None, certificate=None):
    row = {
        "name": ROWS[protection], "family": "none" if protection == "none" else "k", "parameter": None,
        "shares": "model", "utility": estimate(*values), "auc": estimate(*values), "recoded": recoded,
        "recoded_auc": recoded, "attacks": [an_attack(*attack) for attack in attacks], "certificate": certificate,
        "limit": limit, "subgroups": [], "seconds": 1.0, "reasons": {},
    }  # fmt: skip
    return {"table": table, "protection": protection, "row": row, "blind": 0.7, "n_train": 50, "n_test": 50}


def test_the_front_page_has_means_intervals_and_the_strongest_attack():
    bound = {"secret": "occupation", "upper": 0.6, "baseline": 0.1}
    cells = [a_cell(name, (0.8, 0.9)) for name in SHOWN[3:]]
    cells += [
        a_cell("none", (0.8, 0.9), attacks=[("model", 0.7, 0.62), ("model", 0.6), ("table", 0.9)]),
        a_cell("model-100", (0.8, 0.88), attacks=[("model", 0.52)], limit=0.731),
        a_cell("table-100", (0.8, 0.8), recoded=estimate(0.9, 0.9), certificate=bound),
    ]
    assert table_lines(cells[:-1]) == []  # a row is missing
    assert table_lines(cells)[2:5] == [
        "| no protection | 85.0 [80.0, 90.0] | 85.0 | 70.0 | 90.0 |  |  |",
        "| sfumato, model, k = 100 | 84.0 [80.0, 88.0] | 84.0 | 52.0 |  |  | 73.1 |",
        "| sfumato, table, k = 100 | 80.0 [80.0, 80.0]; recoded 90.0 | 80.0 |  |  |  | occupation 60.0 |",
    ]
    assert "right in 70.0% of the cases" in " ".join(introduction(cells))


def test_tables_are_compared_by_paired_changes():
    cells = [a_cell(name, (0.8, 0.9)) for name in FEW if name not in ("model-100", "table-100")]
    cells += [a_cell("model-100", (0.78, 0.89)), a_cell("table-100", (0.7, 0.7), recoded=estimate(0.85, 0.95))]
    lines = tables_side_by_side(cells)
    assert lines[2] == "| no protection | 85.0 / 85.0 |"
    assert lines[3].startswith("| a model, learned from groups of 100 | -1.5 ± ") and lines[3].endswith(" / -1.5 |")
    assert lines[4].startswith("| a table of groups of 100 | +5.0 ± ")  # recoded, which is better


@pytest.mark.parametrize("name", [name for name in ROWS if not name.startswith(tuple(NEEDS))])
def test_every_row_of_the_front_page_can_be_compared(name):
    given = people(ADULT, 300)
    own = protection(name, given)
    scope = Scope(forest(given.X), tuple(given.X.columns), list(given.X.columns), [], np.unique(given.y))
    found = protection_of(ROWS[name], own, scope)
    assert found.family in FAMILIES
    if name == "paper-100":
        guide = own.guide_estimator.fit(given.X, given.y)
        assert not hasattr(guide, "predict_proba")


def test_other_people_are_in_no_split():
    given = people(ADULT, 2000)
    assert len(given.X) == 2000 and len(given.others[1]) == 5000
    everybody = pd.concat([given.X, given.others[0]])
    assert len(everybody) == 7000 and set(given.X.columns) == set(everybody.columns)


def test_trees_synthesize_records_like_the_real_ones():
    given = people(ADULT, 1500)
    table = given.X.assign(target=given.y)
    synthetic = TreeSynthesizer().fit(table).sample(1500)
    assert synthetic.dtypes.equals(table.dtypes)
    assert abs(synthetic["age"].mean() - table["age"].mean()) < 2
    rich = [frame.groupby("target")["education-num"].mean().diff().iloc[-1] for frame in (table, synthetic)]
    assert abs(rich[0] - rich[1]) < 0.5  # what goes with the target still does


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


def test_every_claim_has_a_row_in_the_table_of_changes(written):
    named = {name for entry in changes.first_edition() for name in entry.became}
    rows = [row for row in written[f"{PAGES}/verdicts.md"].splitlines() if row.startswith("| *new* |")]
    new = [claim for study in all_studies() for claim in study.claims if claim.name not in named]
    assert len(rows) == len(new) > 0
    assert all(any(claim.says in row for row in rows) for claim in new)
